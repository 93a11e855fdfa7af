//! Where a run took place: processor, memory, cards, and who else was at work there.
//! Hardware is free text; nobody's card is missing from a list.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Host {
    /// A hash of the machine's id: the same machine, and not which
    pub id_hash: Option<String>,
    pub cpu: RecordedCpu,
    pub ram_gb: Option<f64>,
    /// Megatransfers per second
    pub ram_mt_s: Option<u32>,
    pub os: Option<String>,
    pub kernel: Option<String>,
    /// `none`, or what the machine runs in
    pub virt: Option<String>,
    pub cgroup: Cgroup,
    pub accelerators: Vec<Accelerator>,
    pub noise: Noise,
}

#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct RecordedCpu {
    pub model: Option<String>,
    pub cores: Option<u32>,
    pub threads: Option<u32>,
    /// Vector units, such as `avx2`
    pub isa: Vec<String>,
    pub governor: Option<String>,
}

/// What a container is held to; null where it is not.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Cgroup {
    pub cpus: Option<f64>,
    pub mem_gb: Option<f64>,
}

#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Accelerator {
    pub name: String,
    pub count: u32,
    pub vram_gb: Option<f64>,
    pub driver: Option<String>,
    /// `cuda`, `vulkan`, `metal`, `rocm`, or what it is called
    pub runtime: Option<String>,
    pub power_w: Option<f64>,
    pub clock_mhz: Option<f64>,
}

/// What else went on there during the run.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Noise {
    /// Percent of the time in which somebody waited for a core
    pub psi_cpu: Option<f64>,
    pub load1: Option<f64>,
    pub temp_max_c: Option<f64>,
    pub throttled: Option<bool>,
    pub vram_other_gb: Option<f64>,
    pub on_battery: Option<bool>,
}
