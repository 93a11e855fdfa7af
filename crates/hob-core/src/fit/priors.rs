//! What devices of a kind make of their bandwidth, where nobody has calibrated this one.
//! A prior of a kind that was published is told apart from a guess about one that was not.

use crate::machine::{Api, Basis, Constants, Cpu, Gpu, GpuMemory, Machine};

use super::layout::Site;

/// What is usual of a kind; see [`Constants`].
#[derive(Clone, Copy)]
struct Usual {
    basis: Basis,
    reach: f64,
    kv_reach: f64,
    layer_us: f64,
    recurrent_us: f64,
}

/// Reading weights on a card of its own memory: 0.68 on an RTX 4070 Laptop (six published rows). Launching the
/// kernels of a layer takes about 10 µs, and a recurrent layer launches some 25 more of 5 µs each. Pages of a cache are
/// read less evenly than weights: so much was reached by the one curve over contexts that was published.
const CUDA: Usual =
    Usual { basis: Basis::Prior, reach: 0.70, kv_reach: 0.63, layer_us: 10.0, recurrent_us: 120.0 };
/// A processor's graphics through Vulkan: 0.55 of the memory on a Vega 8 (nine published rows). Recurrent layers were
/// computed by the processor in the builds that were measured.
const VULKAN_UNIFIED: Usual = Usual {
    basis: Basis::Prior,
    reach: 0.60,
    kv_reach: 0.55,
    layer_us: 150.0,
    recurrent_us: 3_000.0,
};
/// Nobody's rows: a little below CUDA.
const OTHER_CARD: Usual = Usual {
    basis: Basis::Assumed,
    reach: 0.60,
    kv_reach: 0.50,
    layer_us: 30.0,
    recurrent_us: 300.0,
};
/// Of two channels at 80 GB/s, about 33 GB/s were reached by the half of a split model and by 9B in Q8_0. Some fifteen
/// operations of a layer wait for all threads: 90 µs on two cores of a shared machine.
const CPU: Usual =
    Usual { basis: Basis::Prior, reach: 0.45, kv_reach: 0.30, layer_us: 90.0, recurrent_us: 60.0 };
/// What one core works through of a cache in attention: an element of 2 bytes in 0.23 ns, with units of 256 bits.
const CORE_KV_BYTES_S: f64 = 8.7e9;

impl Usual {
    fn constants(self, prefill_flops: Option<f64>) -> Constants {
        let Usual { basis, reach, kv_reach, layer_us, recurrent_us } = self;
        let (token_us, kernels, steadiness) = (0.0, Vec::new(), 1.0);
        Constants {
            basis,
            reach,
            kv_reach,
            layer_us,
            recurrent_us,
            token_us,
            prefill_flops,
            kernels,
            steadiness,
        }
    }
}

/// Operations a second in prefill, for each byte a second of memory: 37 TFLOP/s at 256 GB/s (one published run).
const CUDA_FLOP_PER_BYTE: f64 = 145.0;
const UNIFIED_FLOP_PER_BYTE: f64 = 20.0;
const OTHER_FLOP_PER_BYTE: f64 = 60.0;
/// Of one core with vector units of 256 bits; twice that with 512, and a fifth without.
const CORE_FLOPS: f64 = 60e9;

/// Calibrated ones first, else those of its kind.
pub fn constants(machine: &Machine, site: Site) -> Constants {
    match site {
        Site::Cpu => of_cpu(&machine.cpu),
        Site::Gpu(number) => {
            machine.gpus.get(number).map_or_else(|| OTHER_CARD.constants(None), of_gpu)
        }
    }
}

fn of_cpu(cpu: &Cpu) -> Constants {
    let has = |feature: &str| cpu.features.iter().any(|known| known.starts_with(feature));
    let of_core = match (has("avx512"), has("avx2") || has("neon") || has("asimd")) {
        (true, _) => 2.0 * CORE_FLOPS,
        (false, true) => CORE_FLOPS,
        (false, false) => CORE_FLOPS / 5.0,
    };
    let cores = f64::from(cpu.cores.max(1));
    let bandwidth = cpu.device.bandwidth.as_ref().map(|fact| fact.value);
    // Heads of a group find in the cores' caches what the first of them has read, so that this may be more than all.
    let kv_reach = bandwidth.map_or(CPU.kv_reach, |bytes_s| cores * CORE_KV_BYTES_S / bytes_s);
    let usual = || Usual { kv_reach, ..CPU }.constants(Some(of_core * cores));
    cpu.device.constants.clone().unwrap_or_else(usual)
}

/// Of a card as such.
pub fn of_gpu(gpu: &Gpu) -> Constants {
    let is_unified = matches!(gpu.memory, GpuMemory::Unified { .. });
    let (usual, flop_per_byte) = match (gpu.api, is_unified) {
        (Api::Cuda, false) => (CUDA, CUDA_FLOP_PER_BYTE),
        (Api::Vulkan, true) => (VULKAN_UNIFIED, UNIFIED_FLOP_PER_BYTE),
        (_, true) => (OTHER_CARD, UNIFIED_FLOP_PER_BYTE),
        (_, false) => (OTHER_CARD, OTHER_FLOP_PER_BYTE),
    };
    let bandwidth = gpu.device.bandwidth.as_ref().map(|fact| fact.value);
    let prefill_flops = bandwidth.map(|bytes_s| bytes_s * flop_per_byte);
    gpu.device.constants.clone().unwrap_or_else(|| usual.constants(prefill_flops))
}

/// How far off a speed may be, by what is known of the device: shares below and above. One shape on one card was
/// published at 52 and at 39 tokens a second, so that less than 14 % is not to be had of a card as such.
pub(super) fn spread(basis: Basis) -> (f64, f64) {
    match basis {
        Basis::Measured | Basis::Calibrated => (0.10, 0.10),
        Basis::Said | Basis::Prior => (0.25, 0.25),
        Basis::Assumed => (0.50, 0.50),
    }
}
