//! Probes this machine: CPU, graphics cards, memory and limits.
//! Takes bandwidths of cards from data sheets. `bandwidth.rs` measures the bandwidth of the memory.

use hob_core::machine::{Basis, Cpu, Device, Gpu, Machine, Memory};

use crate::cgroup;
use crate::cpu::{self, CpuInfo, linux_cpu};
use crate::facts::{MachineFacts, Provenance};
use crate::files::{non_empty, read};
use crate::memory::{Ram, Vram, linux_ram};
use crate::{apple, drm, nvidia};

/// Identifies a machine and its kernel.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Identity {
    /// The machine id of the system. It is secret, because it identifies this machine everywhere.
    pub machine_id: Option<String>,
    pub kernel: Option<String>,
}

pub fn identity() -> Identity {
    Identity {
        machine_id: non_empty(&read("/etc/machine-id")).or_else(apple::machine_id),
        kernel: non_empty(&read("/proc/sys/kernel/osrelease")).or_else(apple::kernel),
    }
}

/// Returns the CPU quota of this process in cores. `None` means no quota.
pub fn quota_cpus() -> Option<f64> {
    cgroup::limits().cpus
}

/// Reads the memory of all graphics cards together. Returns `None` if no card reports its memory.
pub fn vram() -> Option<Vram> {
    nvidia::vram().or_else(drm::vram)
}

/// Reads the main memory. Returns `None` if the system does not report it.
pub fn ram() -> Option<Ram> {
    linux_ram().or_else(apple::ram)
}

/// Reads the CPU of this machine, without the limits of this process. What the system does not report is empty.
pub fn cpu_info() -> CpuInfo {
    apple::chip().map_or_else(linux_cpu, |(info, _)| info)
}

/// Probes the machine now. Runs the drivers' programs, which takes a moment on machines with graphics cards.
pub fn probe() -> MachineFacts {
    let memory = ram();
    let total_bytes = memory.map_or(0, |ram| ram.total_bytes);
    let (info, mut gpus, source) = match apple::chip() {
        Some((info, gpus)) => (info, gpus, apple::SOURCE),
        None => (linux_cpu(), Vec::new(), "/proc/cpuinfo"),
    };
    let mut provenance = vec![Provenance::new(Basis::Measured, apple::SOURCE); gpus.len()];
    let drivers =
        [(nvidia::cards(total_bytes), nvidia::SOURCE), (drm::cards(total_bytes), drm::SOURCE)];
    for (cards, source) in drivers {
        provenance.extend(vec![Provenance::new(Basis::Measured, source); cards.len()]);
        gpus.extend(cards);
    }
    let mut found: Vec<(Gpu, Provenance)> = gpus.into_iter().zip(provenance).collect();
    found.sort_by(|(one, _), (other, _)| pace(other).total_cmp(&pace(one)));
    let (gpus, provenance) = found.into_iter().unzip();
    let quota = quota_cpus();
    let cpu = of_info(&info, quota, threads_here());
    let name = cpu.name.clone().unwrap_or_else(|| "this machine".to_owned());
    let machine = Machine {
        name,
        os: Some(std::env::consts::OS.to_owned()),
        cpu,
        memory: memory.map_or_else(Memory::default, Memory::from),
        gpus,
    };
    let mut known = MachineFacts::all_from(machine, &Provenance::new(Basis::Measured, source));
    known.gpus = provenance;
    if let Some(cpus) = quota {
        known.cores.source = format!("{source}, within a quota of {cpus:.1}");
    }
    known.memory.source = match memory.map(|ram| ram.limit_bytes) {
        Some(Some(_)) => "/proc/meminfo, within a control group's limit".to_owned(),
        _ if cfg!(target_os = "macos") => apple::SOURCE.to_owned(),
        _ => "/proc/meminfo".to_owned(),
    };
    known.notes.extend(notes(&known.machine));
    known
}

/// Sort key: the fastest card first, cards with their own memory before those that share the system's.
fn pace(gpu: &Gpu) -> f64 {
    let known = gpu.device.bandwidth.as_ref().map_or(0.0, |fact| fact.value);
    if gpu.is_integrated() { known } else { 1.0 + known }
}

fn threads_here() -> u32 {
    let threads = std::thread::available_parallelism().map_or(1, std::num::NonZero::get);
    u32::try_from(threads).unwrap_or(u32::MAX)
}

/// `allowed` is the number of threads that affinity and quota allow at the same time.
fn of_info(info: &CpuInfo, quota: Option<f64>, allowed: u32) -> Cpu {
    let threads = info.threads.unwrap_or(allowed);
    let cores = info.cores.unwrap_or(threads);
    // Assumes that a process with half of the threads has half of the cores.
    let whole = quota.map_or(u32::MAX, |cpus| cpus.floor().max(1.0) as u32);
    let features = info.simd_extensions();
    Cpu {
        name: info.model.clone(),
        cores: cores.min(whole).min(allowed).max(1),
        threads: threads.min(allowed).max(1),
        repack: cpu::repack(&features),
        features,
        device: Device::default(),
    }
}

fn notes(machine: &Machine) -> Vec<String> {
    let is_unknown = |gpu: &&Gpu| gpu.device.bandwidth.is_none() && !gpu.is_integrated();
    let unnamed = machine.gpus.iter().filter(is_unknown);
    let cards = unnamed.map(|gpu| {
        format!(
            "the memory bandwidth of {} is unknown: state it in a profile (--machine)",
            gpu.name
        )
    });
    let silent = (machine.memory.total_bytes == 0)
        .then(|| "this system does not report its memory: name a profile (--machine)".to_owned());
    cards.chain(silent).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn cores_are_those_that_may_be_used() {
        let info = CpuInfo { cores: Some(8), threads: Some(16), ..CpuInfo::default() };
        let rows = [
            (None, 16, (8, 16)),
            (Some(2.5), 16, (2, 16)),
            (Some(0.5), 1, (1, 1)),
            (None, 4, (4, 4)),
        ];
        for (quota, allowed, expected) in rows {
            let cpu = of_info(&info, quota, allowed);
            assert_eq!((cpu.cores, cpu.threads), expected, "{quota:?} {allowed}");
        }
        let unknown = of_info(&CpuInfo::default(), None, 3);
        assert_eq!((unknown.cores, unknown.threads), (3, 3));
    }

    #[test]
    fn this_machine_has_cores_and_says_how_it_knows() {
        let known = probe();
        assert!(known.machine.cpu.cores > 0);
        assert_eq!(cpu_info().model, known.machine.cpu.name);
        assert!(known.rows().iter().all(|row| !row.source.is_empty()));
        if cfg!(target_os = "linux") {
            assert!(known.machine.memory.available_bytes > 0);
        }
    }
}
