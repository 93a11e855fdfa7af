//! A machine, as far as it matters to models: who computes, out of which memory, and over what they meet.
//! Nothing here asks the system. Whoever probes, measures or reads a profile fills it, and says how it was learnt.

use crate::weights::Repack;

/// A fact and how it was learnt.
#[derive(Clone, Debug, PartialEq)]
pub struct Fact<T> {
    pub value: T,
    pub basis: Basis,
    /// Who says so: `/proc/meminfo`, `NVML`, `12 passes over 1 GiB`.
    pub source: String,
}

/// From the surest to the least sure.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Basis {
    /// Counted in the file or the system, or timed here.
    Measured,
    /// Fitted to what was timed here.
    Calibrated,
    /// Fitted to what others published of this very device.
    Published,
    /// Said by a person or a profile.
    Said,
    /// Fitted to what others published of such devices.
    Prior,
    /// Nobody knows; what is usual was taken.
    Assumed,
}

#[derive(Clone, Debug, Default, PartialEq)]
pub struct Machine {
    /// As people call it.
    pub name: String,
    pub os: Option<String>,
    pub cpu: Cpu,
    pub memory: Memory,
    /// The fastest first.
    pub gpus: Vec<Gpu>,
}

/// Of the system, within the limits that are set for this program.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Memory {
    pub total_bytes: u64,
    pub available_bytes: u64,
}

#[derive(Clone, Debug, Default, PartialEq)]
pub struct Cpu {
    pub name: Option<String>,
    /// Without their second threads, within the quota.
    pub cores: u32,
    pub threads: u32,
    /// Vector units by name: `avx2`, `avx512_vnni`, `amx_int8`, `neon`.
    pub features: Vec<String>,
    pub repack: Repack,
    pub device: Device,
}

#[derive(Clone, Debug, PartialEq)]
pub struct Gpu {
    pub name: String,
    pub vendor: Vendor,
    pub api: Api,
    pub memory: GpuMemory,
    pub driver: Option<String>,
    /// Of NVIDIA: 8.9 is (8, 9).
    pub compute_capability: Option<(u32, u32)>,
    /// To the system's memory; none where that is its own.
    pub link: Option<Link>,
    pub device: Device,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Vendor {
    Nvidia,
    Amd,
    Intel,
    Apple,
    Other,
}

impl Vendor {
    pub fn name(self) -> &'static str {
        match self {
            Vendor::Nvidia => "NVIDIA",
            Vendor::Amd => "AMD",
            Vendor::Intel => "Intel",
            Vendor::Apple => "Apple",
            Vendor::Other => "another vendor",
        }
    }
}

impl Basis {
    pub fn name(self) -> &'static str {
        match self {
            Basis::Measured => "measured",
            Basis::Calibrated => "calibrated",
            Basis::Published => "published",
            Basis::Said => "said",
            Basis::Prior => "prior",
            Basis::Assumed => "assumed",
        }
    }
}

impl Api {
    pub fn name(self) -> &'static str {
        match self {
            Api::Cuda => "CUDA",
            Api::Rocm => "ROCm",
            Api::Vulkan => "Vulkan",
            Api::Metal => "Metal",
        }
    }
}

/// Through what it computes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Api {
    Cuda,
    Rocm,
    Vulkan,
    Metal,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum GpuMemory {
    Own {
        total_bytes: u64,
        free_bytes: u64,
    },
    /// Part of the system's memory, of which it may have so much.
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

/// How fast somebody computes.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Device {
    /// Of its memory, at best, bytes a second.
    pub bandwidth: Option<Fact<f64>>,
    /// What it makes of that; none: what is usual for its kind.
    pub constants: Option<Constants>,
}

/// What a device makes of its figures, fitted to what was measured of it or of its like.
#[derive(Clone, Debug, PartialEq)]
pub struct Constants {
    pub basis: Basis,
    /// Share of the bandwidth at which weights are read (η).
    pub bandwidth_efficiency: f64,
    /// The same of the KV cache (η_kv). Of a processor, which computes with each head by itself, it may be more than all.
    pub kv_bandwidth_efficiency: f64,
    /// Fixed cost of a layer, µs (τ).
    pub layer_us: f64,
    /// What a recurrent layer costs beside that, µs.
    pub recurrent_us: f64,
    /// What a layer of experts costs beside that, µs: the router, sorting, and kernels that wait for both.
    pub experts_us: f64,
    /// Fixed cost of a token, µs (t0).
    pub token_us: f64,
    /// Operations a second in prefill; none: nobody knows.
    pub prefill_flops: Option<f64>,
    /// Of one core; none: as fast as memory gives weights, and as everything is computed.
    pub kernels: Vec<Kernel>,
    /// Share of its undisturbed pace at which the token in the middle was made when models were timed, more than 0 and up
    /// to 1: how much others take away, and so how far below what is told it may be. 1 where nobody looked.
    pub steadiness: f64,
}

/// What one core reaches with weights of a type.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Kernel {
    pub quant: &'static str,
    /// That it multiplies with one vector, bytes a second.
    pub bytes_s: f64,
    /// With a prompt's, operations a second; none: nobody knows.
    pub flop_s: Option<f64>,
}
