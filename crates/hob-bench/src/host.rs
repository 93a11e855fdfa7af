//! Describes this machine for records: its hardware and how busy it was. `hob-machine` provides the facts.
//! Unknown facts stay empty.

use std::sync::Mutex;

use hob_core::locked;
use hob_core::machine::{Gpu, GpuMemory};
use hob_machine::{CpuInfo, cpu_info, identity, probe, quota_cpus, ram, throttle_count};

use crate::record::{Accelerator, Cgroup, Host, Noise, RecordedCpu, sha256_hex};

/// Vector units that change how fast a model runs, as the kernel names them.
const VECTOR_UNITS: [&str; 7] =
    ["avx2", "avx512f", "avx512_vnni", "avx_vnni", "amx_int8", "asimddp", "i8mm"];
const BYTES_PER_GB: f64 = 1e9;
/// A machine is busy if processes wait for a core in this percentage of the time, or more.
pub const PSI_PCT_MAX: f64 = 10.0;

/// Number of throttling events before the campaign.
static THROTTLED_BEFORE: Mutex<Option<u64>> = Mutex::new(None);

/// Describes the machine. Called once at the start of a campaign: drivers are slow, and throttling counts from here. [`noise`]
/// reports the load at the end of a run.
pub fn host() -> Host {
    *locked(&THROTTLED_BEFORE) = throttle_count();
    let (info, identity) = (cpu_info(), identity());
    Host {
        id_hash: identity.machine_id.as_deref().map(id_hash),
        virt: info.is_virtual.then(|| "virtual machine".to_owned()),
        cpu: cpu(info),
        ram_gb: ram().map(|ram| rounded(ram.total_bytes as f64 / BYTES_PER_GB)),
        os: Some(std::env::consts::OS.to_owned()),
        kernel: identity.kernel,
        cgroup: Cgroup { cpus: quota_cpus(), mem_gb: None },
        accelerators: accelerators(&probe().machine.gpus),
        noise: noise(),
        ..Host::default()
    }
}

/// Other load in the last ten seconds, and throttling since [`host`] was called.
pub fn noise() -> Noise {
    let now = hob_machine::noise::SystemLoad::now();
    let mut before = locked(&THROTTLED_BEFORE);
    Noise {
        psi_cpu: now.waiting_percent,
        load1: now.load1,
        throttled: has_grown(&mut before, throttle_count()),
        on_battery: hob_machine::on_battery(),
        ..Noise::default()
    }
}

/// Compares with the first known count.
fn has_grown(before: &mut Option<u64>, now: Option<u64>) -> Option<bool> {
    let now = now?;
    Some(now > *before.get_or_insert(now))
}

/// A hash that is equal for the same machine and does not name it. The prefix makes it differ from other programs' hashes.
fn id_hash(id: &str) -> String {
    sha256_hex(format!("hob-bench {id}").as_bytes())[..16].to_owned()
}

fn cpu(info: CpuInfo) -> RecordedCpu {
    let has = |unit: &&&str| info.flags.iter().any(|flag| flag == **unit);
    RecordedCpu {
        isa: VECTOR_UNITS.iter().filter(has).map(|unit| (*unit).to_owned()).collect(),
        model: info.model,
        cores: info.cores,
        threads: info.threads,
        governor: info.governor,
    }
}

/// Equal cards are one entry, in the order of the first of them.
fn accelerators(gpus: &[Gpu]) -> Vec<Accelerator> {
    let mut all: Vec<Accelerator> = Vec::new();
    for card in gpus.iter().map(accelerator) {
        let is_alike = |other: &&mut Accelerator| {
            Accelerator { count: card.count, ..Accelerator::clone(other) } == card
        };
        match all.iter_mut().find(is_alike) {
            Some(other) => other.count += 1,
            None => all.push(card),
        }
    }
    all
}

/// Graphics that use the system's memory have none of their own.
fn accelerator(gpu: &Gpu) -> Accelerator {
    let own_bytes = match gpu.memory {
        GpuMemory::Own { total_bytes, .. } => Some(total_bytes).filter(|bytes| *bytes > 0),
        GpuMemory::Unified { .. } => None,
    };
    Accelerator {
        name: gpu.name.clone(),
        count: 1,
        vram_gb: own_bytes.map(|bytes| rounded(bytes as f64 / BYTES_PER_GB)),
        driver: gpu.driver.clone(),
        runtime: Some(gpu.api.name().to_lowercase()),
        ..Accelerator::default()
    }
}

fn rounded(value: f64) -> f64 {
    (value * 10.0).round() / 10.0
}

#[cfg(test)]
mod tests {
    use hob_core::machine::{GpuApi, Vendor};

    use super::*;

    fn gpu(name: &str, api: GpuApi, memory: GpuMemory) -> Gpu {
        let driver = (api == GpuApi::Cuda).then(|| "580.95".to_owned());
        Gpu { driver, ..Gpu::new(name, Vendor::Other, api, memory) }
    }

    #[test]
    fn equal_cards_are_counted_and_shared_memory_is_not_counted() {
        let own = |total_bytes, free_bytes| GpuMemory::Own { total_bytes, free_bytes };
        let gpus = [
            gpu("A", GpuApi::Cuda, own(24 << 30, 1)),
            gpu("B", GpuApi::Vulkan, GpuMemory::Unified { limit_bytes: 1 << 30 }),
            gpu("A", GpuApi::Cuda, own(24 << 30, 2)),
            gpu("A", GpuApi::Cuda, own(12 << 30, 2)),
            gpu("C", GpuApi::Rocm, own(0, 0)),
        ];
        let card = |name: &str, count, vram_gb, driver: Option<&str>, runtime: &str| Accelerator {
            name: name.to_owned(),
            count,
            vram_gb,
            driver: driver.map(str::to_owned),
            runtime: Some(runtime.to_owned()),
            ..Accelerator::default()
        };
        let expected = [
            card("A", 2, Some(25.8), Some("580.95"), "cuda"),
            card("B", 1, None, None, "vulkan"),
            card("A", 1, Some(12.9), Some("580.95"), "cuda"),
            card("C", 1, None, None, "rocm"),
        ];
        assert_eq!(accelerators(&gpus), expected);
        assert_eq!(accelerators(&[]), []);
    }

    #[test]
    fn throttling_counts_from_the_first_known_value() {
        let mut before = None;
        assert_eq!(has_grown(&mut before, None), None);
        assert_eq!(has_grown(&mut before, Some(5)), Some(false));
        assert_eq!(has_grown(&mut before, Some(5)), Some(false));
        assert_eq!(has_grown(&mut before, Some(6)), Some(true));
        assert_eq!((has_grown(&mut before, None), before), (None, Some(5)));
    }

    #[test]
    fn only_known_processor_flags_are_recorded() {
        let flags = ["fpu", "avx2", "avx512f_x"].map(str::to_owned).to_vec();
        let info = CpuInfo { model: Some("Some CPU".to_owned()), flags, ..CpuInfo::default() };
        let got = cpu(info);
        assert_eq!((got.model.as_deref(), got.isa), (Some("Some CPU"), vec!["avx2".to_owned()]));
        assert_eq!((id_hash("a").len(), id_hash("a") == id_hash("b")), (16, false));
    }
}
