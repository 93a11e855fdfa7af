//! A machine as far as it matters to models: devices, their memory, and the links between them.
//! Nothing here queries the system. Every fact says how it was learnt.

use crate::enum_table;
use crate::weights::Repack;

/// A value and how it was learnt.
#[derive(Clone, Debug, PartialEq)]
pub struct Fact<T> {
    pub value: T,
    pub basis: Basis,
    /// Source of the value: `/proc/meminfo`, `NVML`, `12 passes over 1 GiB`.
    pub source: String,
}

enum_table! {
    /// How a figure was learnt, from the most to the least certain.
    #[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
    #[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
    #[cfg_attr(feature = "serde", serde(rename_all = "lowercase"))]
    pub enum Basis: name {
        /// Read from the file or the system, or timed here.
        Measured = "measured",
        /// Fitted to timings made here.
        Calibrated = "calibrated",
        /// Fitted to published runs of this very device.
        Published = "published",
        /// Stated by a person or a profile.
        Stated = "stated",
        /// Fitted to published runs of the device's class.
        Prior = "prior",
        /// Unknown; a usual value is used.
        Assumed = "assumed",
    }
}

#[derive(Clone, Debug, Default, PartialEq)]
pub struct Machine {
    /// Name for people.
    pub name: String,
    pub os: Option<String>,
    pub cpu: Cpu,
    pub memory: Memory,
    /// The fastest first.
    pub gpus: Vec<Gpu>,
}

/// System memory, within the limits that are set for this program.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Memory {
    pub total_bytes: u64,
    pub available_bytes: u64,
}

impl Memory {
    /// Models may take `max_bytes` together. `None`: no limit.
    pub fn limit_models(&mut self, max_bytes: Option<u64>) {
        self.available_bytes = max_bytes.unwrap_or(u64::MAX).min(self.available_bytes);
    }
}

#[derive(Clone, Debug, Default, PartialEq)]
pub struct Cpu {
    pub name: Option<String>,
    /// Physical cores within the CPU quota.
    pub cores: u32,
    pub threads: u32,
    /// Vector extensions by name: `avx2`, `avx512_vnni`, `amx_int8`, `neon`.
    pub features: Vec<String>,
    pub repack: Repack,
    pub device: Device,
}

#[derive(Clone, Debug, PartialEq)]
pub struct Gpu {
    pub name: String,
    pub vendor: Vendor,
    pub api: GpuApi,
    pub memory: GpuMemory,
    /// Whether it is a part of the processor, and its own memory is what the firmware reserves for it of the system's.
    pub is_in_processor: bool,
    pub driver: Option<String>,
    /// NVIDIA's name of this one card, such as `GPU-8a1bd3a4-…`. It is for matching only, and stands in no output.
    pub uuid: Option<String>,
    /// The engine's name of it, such as `CUDA1`, if hob can say which card that name means. It stands in no output.
    pub engine_name: Option<String>,
    /// NVIDIA's compute capability: 8.9 is (8, 9).
    pub compute_capability: Option<(u32, u32)>,
    /// Link to system memory; `None` if the memory is shared.
    pub link: Option<Link>,
    pub device: Device,
}

impl Gpu {
    /// A card of which no more is known.
    pub fn new(name: impl Into<String>, vendor: Vendor, api: GpuApi, memory: GpuMemory) -> Gpu {
        Gpu {
            name: name.into(),
            vendor,
            api,
            memory,
            is_in_processor: false,
            driver: None,
            uuid: None,
            engine_name: None,
            compute_capability: None,
            link: None,
            device: Device::default(),
        }
    }

    /// Whether it reads the same memory chips as the processor.
    pub fn is_integrated(&self) -> bool {
        self.is_in_processor || matches!(self.memory, GpuMemory::Unified { .. })
    }
}

enum_table! {
    #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
    #[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
    #[cfg_attr(feature = "serde", serde(rename_all = "lowercase"))]
    pub enum Vendor: name {
        Nvidia = "NVIDIA",
        Amd = "AMD",
        Intel = "Intel",
        Apple = "Apple",
        Other = "another vendor",
    }
}

enum_table! {
    /// The interface through which a card computes.
    #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
    #[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
    #[cfg_attr(feature = "serde", serde(rename_all = "lowercase"))]
    pub enum GpuApi: name {
        Cuda = "CUDA",
        Rocm = "ROCm",
        Vulkan = "Vulkan",
        Metal = "Metal",
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum GpuMemory {
    Own {
        total_bytes: u64,
        free_bytes: u64,
    },
    /// Part of system memory, of which the card may use this much.
    Unified {
        limit_bytes: u64,
    },
}

#[derive(Clone, Debug, PartialEq)]
pub struct Link {
    /// `PCIe 4.0 x8`
    pub name: String,
    pub bytes_s: f64,
    pub basis: Basis,
}

/// Speed of a device.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Device {
    /// Peak bandwidth of its memory, bytes/s.
    pub bandwidth: Option<Fact<f64>>,
    /// Constants of the speed formula; `None` for the prior of its class.
    pub constants: Option<Constants>,
}

/// Constants of the speed formula, fitted to runs of the device or of its class.
#[derive(Clone, Debug, PartialEq)]
pub struct Constants {
    pub basis: Basis,
    /// Share of the bandwidth at which weights are read (η).
    pub bandwidth_efficiency: f64,
    /// Share of the bandwidth at which the KV cache is read (η_kv). On a CPU it may exceed 1, because each head computes alone.
    pub kv_bandwidth_efficiency: f64,
    /// Fixed cost of a layer, µs (τ).
    pub layer_us: f64,
    /// Extra time of a recurrent layer, µs.
    pub recurrent_us: f64,
    /// Extra time of a layer with experts, µs: router, sorting, and kernels that wait for both.
    pub experts_us: f64,
    /// Fixed cost of a token, µs (t0).
    pub token_us: f64,
    /// Operations per second in prefill; `None` if unknown.
    pub prefill_flops: Option<f64>,
    /// Kernel timings of one core. Without them, only memory limits the weights.
    pub kernels: Vec<Kernel>,
    /// Pace of the median token, as a share of the undisturbed pace, when models were timed: above 0 and up to 1.
    /// It lowers the lower end of ranges. 1 if not measured.
    pub steadiness: f64,
}

/// Rates of one core with weights of one quant.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Kernel {
    pub quant: &'static str,
    /// Bytes per second when multiplying with one vector.
    pub bytes_s: f64,
    /// Operations per second with a prompt's vectors; `None` if unknown.
    pub flop_s: Option<f64>,
}
