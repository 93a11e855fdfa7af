//! The machine of a run: processor, memory, cards, and other load during the run.
//! Hardware is free text, so every card can be named.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::{CPU_BACKEND, Record};

#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Host {
    /// A hash of the machine's id: equal for the same machine, without naming it
    pub id_hash: Option<String>,
    pub cpu: RecordedCpu,
    pub ram_gb: Option<f64>,
    /// Megatransfers per second
    pub ram_mt_s: Option<u32>,
    pub os: Option<String>,
    pub kernel: Option<String>,
    /// `none`, or the kind of virtual machine
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

/// Limits of the container; null without a limit.
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
    pub load1: Option<f64>,
    pub temp_max_c: Option<f64>,
    pub throttled: Option<bool>,
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
