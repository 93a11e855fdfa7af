//! What devices of a kind make of their bandwidth, where nobody has calibrated this one.
//! A prior of a kind that was published is told apart from a guess about one that was not.

use crate::machine::{Api, Basis, Constants, Cpu, Gpu, GpuMemory, Machine, Vendor};

use super::layout::Site;

/// What is usual of a class of devices; see [`Constants`].
#[derive(Clone, Copy)]
struct DevicePrior {
    basis: Basis,
    bandwidth_efficiency: f64,
    kv_bandwidth_efficiency: f64,
    layer_us: f64,
    recurrent_us: f64,
    experts_us: f64,
    /// Operations a second in prefill, for each byte a second of memory.
    flop_per_byte: f64,
    /// How far below and above what is told a device of this class may be, as shares. Nine tenths and more of the
    /// published rows lie within; a class of one or two devices has more.
    spread: (f64, f64),
}

// Fitted to the rows of `bench/published/decode.csv`, but for every third device, which is held back. Sources:
// https://github.com/ggml-org/llama.cpp/discussions/4167 (Apple), /15013 (CUDA), /10879 (Vulkan), /15021 (ROCm), and those
// of `bench/published/sources.csv`, which have the rows themselves.

/// Turing and later: 13 cards, 0.67 to 0.85 of their bandwidth from 7B on.
const CUDA: DevicePrior = DevicePrior {
    basis: Basis::Prior,
    bandwidth_efficiency: 0.83,
    // The one curve over contexts that is published reaches so much, and nothing here says otherwise.
    kv_bandwidth_efficiency: 0.63,
    layer_us: 43.0,
    recurrent_us: 26.0,
    experts_us: 45.0,
    // 8B at 512 tokens: 2,400 tokens/s on an RTX 3070, 7,139 on an RTX 4090: 86 and 113.
    flop_per_byte: 110.0,
    spread: (0.25, 0.25),
};
/// A GTX 1050 Ti and a P40: no tensor cores, and kernels that wait.
const CUDA_PASCAL: DevicePrior = DevicePrior {
    bandwidth_efficiency: 0.36,
    layer_us: 30.0,
    recurrent_us: 60.0,
    experts_us: 60.0,
    flop_per_byte: 35.0,
    spread: (0.35, 0.60),
    ..CUDA
};
/// An A100 and an H100, in builds of 2023: memory is so fast that starting kernels takes longer than reading.
const CUDA_HBM: DevicePrior = DevicePrior {
    bandwidth_efficiency: 0.80,
    layer_us: 148.0,
    flop_per_byte: 40.0,
    spread: (0.30, 0.50),
    ..CUDA
};
/// No row of a GB10 was used: what AMD's processors reach of the same kind of memory.
const CUDA_UNIFIED: DevicePrior =
    DevicePrior { bandwidth_efficiency: 0.82, spread: (0.30, 0.30), ..CUDA };
/// Two cards of AMD.
const ROCM: DevicePrior = DevicePrior {
    bandwidth_efficiency: 0.47,
    layer_us: 38.0,
    recurrent_us: 40.0,
    experts_us: 87.0,
    flop_per_byte: 60.0,
    spread: (0.30, 0.40),
    ..CUDA
};
/// Five cards of NVIDIA and two of AMD.
const VULKAN: DevicePrior =
    DevicePrior { bandwidth_efficiency: 0.80, spread: (0.30, 0.50), ..ROCM };
/// AMD's processors with graphics since RDNA 3.
const VULKAN_UNIFIED: DevicePrior = DevicePrior {
    bandwidth_efficiency: 0.87,
    layer_us: 30.0,
    experts_us: 20.0,
    // 7B at 512 tokens: 1,338 tokens/s on a Radeon 8060S.
    flop_per_byte: 70.0,
    spread: (0.25, 0.25),
    ..VULKAN
};
const ROCM_UNIFIED: DevicePrior = DevicePrior { bandwidth_efficiency: 0.80, ..VULKAN_UNIFIED };
/// The graphics of older processors: 0.56 of the memory on a Vega 8 (nine runs). Its recurrent layers were computed by the
/// processor in the builds that were measured.
const VULKAN_VEGA: DevicePrior = DevicePrior {
    bandwidth_efficiency: 0.58,
    kv_bandwidth_efficiency: 0.55,
    layer_us: 150.0,
    recurrent_us: 3_000.0,
    experts_us: 0.0,
    flop_per_byte: 20.0,
    spread: (0.30, 0.25),
    ..VULKAN_UNIFIED
};
/// Apple's chips, but for the large ones.
const METAL: DevicePrior = DevicePrior {
    bandwidth_efficiency: 0.86,
    layer_us: 100.0,
    recurrent_us: 37.0,
    experts_us: 40.0,
    // LLaMA-7B at 512 tokens: 118 tokens/s on an M1, 886 on an M4 Max: 23 and 22; 71 on an M5 Pro.
    flop_per_byte: 23.0,
    spread: (0.30, 0.25),
    ..CUDA
};
/// Max and Ultra since M3.
const METAL_LARGE: DevicePrior = DevicePrior { spread: (0.25, 0.40), ..METAL };
/// Max and Ultra of M1 and M2: their memory is ahead of their cores.
const METAL_LARGE_OLD: DevicePrior = DevicePrior { layer_us: 220.0, spread: (0.45, 0.40), ..METAL };
/// Nobody's rows: a little below CUDA.
const OTHER_CARD: DevicePrior = DevicePrior {
    basis: Basis::Assumed,
    bandwidth_efficiency: 0.60,
    kv_bandwidth_efficiency: 0.50,
    layer_us: 40.0,
    recurrent_us: 100.0,
    experts_us: 80.0,
    flop_per_byte: 50.0,
    spread: (0.50, 0.50),
};
/// Of two channels at 80 GB/s, about 33 GB/s were reached by the half of a split model and by 9B in Q8_0. Some fifteen
/// operations of a layer wait for all threads: 90 µs on two cores of a shared machine.
const CPU: DevicePrior = DevicePrior {
    basis: Basis::Prior,
    bandwidth_efficiency: 0.45,
    kv_bandwidth_efficiency: 0.30,
    layer_us: 90.0,
    recurrent_us: 60.0,
    experts_us: 0.0,
    flop_per_byte: 0.0,
    spread: (0.25, 0.25),
};
/// What one core works through of a cache in attention: an element of 2 bytes in 0.23 ns, with units of 256 bits.
const CORE_KV_BYTES_S: f64 = 8.7e9;
/// Of one core with vector units of 256 bits; twice that with 512, and a fifth without.
const CORE_FLOPS: f64 = 60e9;
/// Of such cards as have tensor cores.
const TURING: (u32, u32) = (7, 5);

impl DevicePrior {
    fn constants(self, prefill_flops: Option<f64>) -> Constants {
        let DevicePrior {
            basis,
            bandwidth_efficiency,
            kv_bandwidth_efficiency,
            layer_us,
            recurrent_us,
            experts_us,
            ..
        } = self;
        let (token_us, kernels, steadiness) = (0.0, Vec::new(), 1.0);
        Constants {
            basis,
            bandwidth_efficiency,
            kv_bandwidth_efficiency,
            layer_us,
            recurrent_us,
            experts_us,
            token_us,
            prefill_flops,
            kernels,
            steadiness,
        }
    }

    fn of_gpu(gpu: &Gpu) -> DevicePrior {
        let is_unified = matches!(gpu.memory, GpuMemory::Unified { .. });
        match (gpu.api, is_unified, gpu.vendor) {
            (Api::Cuda, true, _) => CUDA_UNIFIED,
            (Api::Cuda, false, _) => of_cuda(gpu.compute_capability),
            (Api::Metal, ..) => of_apple(&gpu.name),
            (Api::Vulkan, true, Vendor::Amd) if gpu.name.contains("Vega") => VULKAN_VEGA,
            (Api::Vulkan, true, Vendor::Amd) => VULKAN_UNIFIED,
            (Api::Rocm, true, Vendor::Amd) => ROCM_UNIFIED,
            (Api::Vulkan, false, Vendor::Amd | Vendor::Nvidia) => VULKAN,
            (Api::Rocm, false, Vendor::Amd) => ROCM,
            (_, true, _) => DevicePrior { flop_per_byte: 20.0, ..OTHER_CARD },
            (_, false, _) => OTHER_CARD,
        }
    }
}

/// Where nobody knows a card's capability, it is taken as recent.
fn of_cuda(capability: Option<(u32, u32)>) -> DevicePrior {
    match capability {
        Some(has) if has < (7, 0) => CUDA_PASCAL,
        Some((8, 0) | (9, 0) | (10, _)) => CUDA_HBM,
        // An RTX 3090 reads 4,030 tokens/s of 8B: 69.
        Some(has) if has >= TURING && has < (8, 9) => DevicePrior { flop_per_byte: 75.0, ..CUDA },
        _ => CUDA,
    }
}

/// `Apple M2 Ultra`: the second generation, large.
fn of_apple(name: &str) -> DevicePrior {
    let generation = name.split_whitespace().find_map(|word| word.strip_prefix('M')?.parse().ok());
    let generation: u32 = generation.unwrap_or(u32::MAX);
    let is_large = ["Max", "Ultra"].iter().any(|size| name.ends_with(size));
    let usual = match is_large {
        true if generation <= 2 => METAL_LARGE_OLD,
        true => METAL_LARGE,
        false => METAL,
    };
    // Since then, each core has units of its own for matrices.
    if generation >= 5 { DevicePrior { flop_per_byte: 70.0, ..usual } } else { usual }
}

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
    let kv_bandwidth_efficiency =
        bandwidth.map_or(CPU.kv_bandwidth_efficiency, |bytes_s| cores * CORE_KV_BYTES_S / bytes_s);
    let usual = || DevicePrior { kv_bandwidth_efficiency, ..CPU }.constants(Some(of_core * cores));
    cpu.device.constants.clone().unwrap_or_else(usual)
}

/// Of a card as such.
pub fn of_gpu(gpu: &Gpu) -> Constants {
    let usual = DevicePrior::of_gpu(gpu);
    let bandwidth = gpu.device.bandwidth.as_ref().map(|fact| fact.value);
    let prefill_flops = bandwidth.map(|bytes_s| bytes_s * usual.flop_per_byte);
    gpu.device.constants.clone().unwrap_or_else(|| usual.constants(prefill_flops))
}

/// How far off a speed may be, by what is known of the device: shares below and above. One shape on one card was
/// published at 52 and at 39 tokens a second, so that less than 14 % is not to be had of a card as such.
pub(super) fn spread(machine: &Machine, site: Site, basis: Basis) -> (f64, f64) {
    let of_class = match site {
        Site::Cpu => CPU.spread,
        Site::Gpu(number) => {
            machine.gpus.get(number).map_or(OTHER_CARD, DevicePrior::of_gpu).spread
        }
    };
    match basis {
        Basis::Measured | Basis::Calibrated => (0.10, 0.10),
        Basis::Published => (0.15, 0.15),
        Basis::Said | Basis::Prior => of_class,
        Basis::Assumed => (0.50, 0.50),
    }
}
