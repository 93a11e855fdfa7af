//! Prior constants by class of device, for devices without a calibration.
//! A class with published runs (`Prior`) is kept apart from a guess (`Assumed`).

use crate::machine::{Basis, Constants, Cpu, Gpu, GpuApi, Machine, Vendor};

use super::layout::ComputeSite;

/// Prior of one class of devices; see [`Constants`].
#[derive(Clone, Copy)]
struct DevicePrior {
    basis: Basis,
    bandwidth_efficiency: f64,
    kv_bandwidth_efficiency: f64,
    layer_us: f64,
    recurrent_us: f64,
    experts_us: f64,
    /// Operations per second in prefill for each byte per second of memory bandwidth.
    flop_per_byte: f64,
    /// How far below and above the estimate a device of this class may be, as shares. At least nine tenths of the
    /// published rows are within; classes with one or two devices have more.
    spread: (f64, f64),
}

// Fitted to the rows of `bench/published/decode.csv`, without every third device, which is held back. Sources:
// https://github.com/ggml-org/llama.cpp/discussions/4167 (Apple), /15013 (CUDA), /10879 (Vulkan), /15021 (ROCm), and
// those in `bench/published/sources.csv`.

/// Turing and later: 13 cards, which reach 0.67 to 0.85 of their bandwidth from 7B on.
const CUDA: DevicePrior = DevicePrior {
    basis: Basis::Prior,
    bandwidth_efficiency: 0.83,
    // From the only published curve over contexts.
    kv_bandwidth_efficiency: 0.63,
    layer_us: 43.0,
    recurrent_us: 26.0,
    experts_us: 45.0,
    // 8B at 512 tokens: 2,400 tokens/s on an RTX 3070, 7,139 on an RTX 4090: 86 and 113 operations per byte.
    flop_per_byte: 110.0,
    spread: (0.25, 0.25),
};
/// A GTX 1050 Ti and a P40: no tensor cores, and slow kernels.
const CUDA_PASCAL: DevicePrior = DevicePrior {
    bandwidth_efficiency: 0.36,
    layer_us: 30.0,
    recurrent_us: 60.0,
    experts_us: 60.0,
    flop_per_byte: 35.0,
    spread: (0.35, 0.60),
    ..CUDA
};
/// An A100 and an H100, in builds of 2023. Their memory is so fast that starting kernels takes longer than reading.
const CUDA_HBM: DevicePrior = DevicePrior {
    bandwidth_efficiency: 0.80,
    layer_us: 148.0,
    flop_per_byte: 40.0,
    spread: (0.30, 0.50),
    ..CUDA
};
/// For a GB10, without runs of one: near the efficiency of AMD's processors with the same kind of memory.
const CUDA_UNIFIED: DevicePrior =
    DevicePrior { bandwidth_efficiency: 0.82, spread: (0.30, 0.30), ..CUDA };
/// Fitted to two AMD cards.
const ROCM: DevicePrior = DevicePrior {
    bandwidth_efficiency: 0.47,
    layer_us: 38.0,
    recurrent_us: 40.0,
    experts_us: 87.0,
    flop_per_byte: 60.0,
    spread: (0.30, 0.40),
    ..CUDA
};
/// Fitted to five NVIDIA and two AMD cards.
const VULKAN: DevicePrior =
    DevicePrior { bandwidth_efficiency: 0.80, spread: (0.30, 0.50), ..ROCM };
/// AMD processors with graphics since RDNA 3.
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
/// Graphics of older AMD processors: a Vega 8 reaches 0.56 (nine runs). The builds that were measured computed
/// recurrent layers on the CPU.
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
/// Apple chips, except Max and Ultra.
const METAL: DevicePrior = DevicePrior {
    bandwidth_efficiency: 0.86,
    layer_us: 100.0,
    recurrent_us: 37.0,
    experts_us: 40.0,
    // LLaMA-7B at 512 tokens: 118 tokens/s on an M1, 886 on an M4 Max: 23 and 22 operations per byte; 71 on an M5 Pro.
    flop_per_byte: 23.0,
    spread: (0.30, 0.25),
    ..CUDA
};
/// Max and Ultra since M3.
const METAL_LARGE: DevicePrior = DevicePrior { spread: (0.25, 0.40), ..METAL };
/// Max and Ultra of M1 and M2, whose memory is faster than their cores can use.
const METAL_LARGE_OLD: DevicePrior = DevicePrior { layer_us: 220.0, spread: (0.45, 0.40), ..METAL };
/// Classes without published runs: a guess below CUDA.
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
/// With two channels at 80 GB/s, the CPU's half of a split model, and a 9B in Q8_0, were read at about 33 GB/s. Some fifteen
/// operations per layer wait for all threads: 90 µs on two cores of a shared machine.
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
/// KV cache bytes per second that one core attends to: an element of 2 bytes in 0.23 ns, with 256-bit vectors.
const CORE_KV_BYTES_S: f64 = 8.7e9;
/// Operations per second of one core with 256-bit vectors; twice that with 512 bits, a fifth without vectors.
const CORE_FLOPS: f64 = 60e9;
/// The first compute capability with tensor cores.
const TURING: (u32, u32) = (7, 5);

impl DevicePrior {
    fn constants(self, prefill_flops: Option<f64>) -> Constants {
        Constants {
            basis: self.basis,
            bandwidth_efficiency: self.bandwidth_efficiency,
            kv_bandwidth_efficiency: self.kv_bandwidth_efficiency,
            layer_us: self.layer_us,
            recurrent_us: self.recurrent_us,
            experts_us: self.experts_us,
            token_us: 0.0,
            prefill_flops,
            kernels: Vec::new(),
            steadiness: 1.0,
        }
    }

    fn of_gpu(gpu: &Gpu) -> DevicePrior {
        match (gpu.api, gpu.is_integrated(), gpu.vendor) {
            (GpuApi::Cuda, true, _) => CUDA_UNIFIED,
            (GpuApi::Cuda, false, _) => of_cuda(gpu.compute_capability),
            (GpuApi::Metal, ..) => of_apple(&gpu.name),
            (GpuApi::Vulkan, true, Vendor::Amd) if gpu.name.contains("Vega") => VULKAN_VEGA,
            (GpuApi::Vulkan, true, Vendor::Amd) => VULKAN_UNIFIED,
            (GpuApi::Rocm, true, Vendor::Amd) => ROCM_UNIFIED,
            (GpuApi::Vulkan, false, Vendor::Amd | Vendor::Nvidia) => VULKAN,
            (GpuApi::Rocm, false, Vendor::Amd) => ROCM,
            (_, true, _) => DevicePrior { flop_per_byte: 20.0, ..OTHER_CARD },
            (_, false, _) => OTHER_CARD,
        }
    }
}

/// A card of unknown capability counts as recent.
fn of_cuda(capability: Option<(u32, u32)>) -> DevicePrior {
    match capability {
        Some(has) if has < (7, 0) => CUDA_PASCAL,
        Some((8, 0) | (9, 0) | (10, _)) => CUDA_HBM,
        // An RTX 3090 reads 4,030 tokens/s of 8B: 69 operations per byte.
        Some(has) if has >= TURING && has < (8, 9) => DevicePrior { flop_per_byte: 75.0, ..CUDA },
        _ => CUDA,
    }
}

/// Reads generation and size from a name such as `Apple M2 Ultra`.
fn of_apple(name: &str) -> DevicePrior {
    let generation = name.split_whitespace().find_map(|word| word.strip_prefix('M')?.parse().ok());
    let generation: u32 = generation.unwrap_or(u32::MAX);
    let is_large = ["Max", "Ultra"].iter().any(|size| name.ends_with(size));
    let usual = match is_large {
        true if generation <= 2 => METAL_LARGE_OLD,
        true => METAL_LARGE,
        false => METAL,
    };
    // Since M5 each core has matrix units.
    if generation >= 5 { DevicePrior { flop_per_byte: 70.0, ..usual } } else { usual }
}

/// Calibrated constants, or else the prior of the device's class.
pub fn constants(machine: &Machine, site: ComputeSite) -> Constants {
    match site {
        ComputeSite::Cpu => of_cpu(&machine.cpu),
        ComputeSite::Gpu(number) => {
            machine.gpus.get(number).map_or_else(|| OTHER_CARD.constants(None), of_gpu)
        }
    }
}

fn of_cpu(cpu: &Cpu) -> Constants {
    let has = |feature: &str| cpu.features.iter().any(|known| known.starts_with(feature));
    let is_wide = has("avx2") || has("avx512") || has("neon") || has("asimd");
    let of_core = match (has("avx512"), is_wide) {
        (true, _) => 2.0 * CORE_FLOPS,
        (false, true) => CORE_FLOPS,
        (false, false) => CORE_FLOPS / 5.0,
    };
    // No processor with AVX alone was measured. Its kernels may be slower than its memory.
    let is_guess = !is_wide && !cpu.features.is_empty();
    let basis = if is_guess { Basis::Assumed } else { CPU.basis };
    let cores = f64::from(cpu.cores.max(1));
    let bandwidth = cpu.device.bandwidth.as_ref().map(|fact| fact.value);
    // Query heads of a group find the keys of the first one in the core's cache, so this may exceed 1.
    let kv_bandwidth_efficiency =
        bandwidth.map_or(CPU.kv_bandwidth_efficiency, |bytes_s| cores * CORE_KV_BYTES_S / bytes_s);
    let usual = DevicePrior { basis, kv_bandwidth_efficiency, ..CPU };
    cpu.device.constants.clone().unwrap_or_else(|| usual.constants(Some(of_core * cores)))
}

/// Constants of a card, outside a machine.
pub fn of_gpu(gpu: &Gpu) -> Constants {
    let usual = DevicePrior::of_gpu(gpu);
    let bandwidth = gpu.device.bandwidth.as_ref().map(|fact| fact.value);
    let prefill_flops = bandwidth.map(|bytes_s| bytes_s * usual.flop_per_byte);
    gpu.device.constants.clone().unwrap_or_else(|| usual.constants(prefill_flops))
}

/// How far a speed may be below and above its estimate, as shares. One model architecture on one card was published at
/// 52 and at 39 tokens/s, so a card's estimate cannot be better than 14 %.
pub(super) fn spread(machine: &Machine, site: ComputeSite, basis: Basis) -> (f64, f64) {
    let of_class = match site {
        ComputeSite::Cpu => CPU.spread,
        ComputeSite::Gpu(number) => {
            machine.gpus.get(number).map_or(OTHER_CARD, DevicePrior::of_gpu).spread
        }
    };
    match basis {
        Basis::Measured | Basis::Calibrated => (0.10, 0.10),
        Basis::Published => (0.15, 0.15),
        Basis::Stated | Basis::Prior => of_class,
        Basis::Assumed => (0.50, 0.50),
    }
}
