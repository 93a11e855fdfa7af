//! The machine of a run: processor, memory, cards, and other load during the run.
//! Hardware is free text, so every card can be named.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::{CPU_BACKEND, Record};

/// The machine of the run.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Host {
    /// A hash of the machine's id: equal for the same machine, without naming it
    pub id_hash: Option<String>,
    pub cpu: RecordedCpu,
    /// Memory of the machine
    pub ram_gb: Option<f64>,
    /// Megatransfers per second
    pub ram_mt_s: Option<u32>,
    /// Operating system
    pub os: Option<String>,
    /// Version of the kernel
    pub kernel: Option<String>,
    /// `none`, or the kind of virtual machine
    pub virt: Option<String>,
    pub cgroup: Cgroup,
    pub accelerators: Vec<Accelerator>,
    pub noise: Noise,
}

/// The processor.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct RecordedCpu {
    pub model: Option<String>,
    pub cores: Option<u32>,
    pub threads: Option<u32>,
    /// Vector units, such as `avx2`
    pub isa: Vec<String>,
    /// Frequency governor of Linux, such as `performance`
    pub governor: Option<String>,
}

/// Limits of the container; null without a limit.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Cgroup {
    pub cpus: Option<f64>,
    pub mem_gb: Option<f64>,
}

/// Equal graphics cards.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Accelerator {
    pub name: String,
    pub count: u32,
    /// Memory of one card; null if it uses the memory of the machine
    pub vram_gb: Option<f64>,
    pub driver: Option<String>,
    /// `cuda`, `vulkan`, `metal`, `rocm`, or another name
    pub runtime: Option<String>,
    pub power_w: Option<f64>,
    pub clock_mhz: Option<f64>,
}

/// Other load on the machine during the run.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Noise {
    /// Percent of the time in which a process waited for a core (Linux PSI)
    pub psi_cpu: Option<f64>,
    /// Load average of the last minute
    pub load1: Option<f64>,
    /// Highest temperature, in °C
    pub temp_max_c: Option<f64>,
    /// Whether the machine slowed itself down
    pub throttled: Option<bool>,
    /// Memory of the cards that other programs used
    pub vram_other_gb: Option<f64>,
    pub on_battery: Option<bool>,
}

impl Record {
    /// Names what computed: the cards, or the processor without cards or if the engine does not use them.
    pub fn hardware(&self) -> String {
        let is_on_cpu = self.engine.backend.as_deref() == Some(CPU_BACKEND);
        let cards = self.host.accelerators.iter().filter(|_| !is_on_cpu);
        let cards: Vec<String> = cards
            .map(|card| match card.count {
                0 | 1 => card.name.clone(),
                count => format!("{count} × {}", card.name),
            })
            .collect();
        match (cards.is_empty(), &self.host.cpu.model) {
            (false, _) => cards.join(" + "),
            (true, Some(cpu)) => cpu.clone(),
            (true, None) => "unknown".to_owned(),
        }
    }
}
