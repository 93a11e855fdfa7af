//! This machine, as records say it: what it is and how busy it was. Asked of `hob-machine`; where that knows nothing,
//! nothing is made up.

use hob_machine::{CpuInfo, cpu_info, identity, quota_cpus, ram};

use crate::record::{Cgroup, Cpu, Host, Noise, sha256_hex};

/// Vector units that change how fast a model runs, as the kernel names them.
const UNITS: [&str; 6] = ["avx2", "avx512f", "avx512_vnni", "avx_vnni", "amx_int8", "asimddp"];
const BYTES_PER_GB: f64 = 1e9;

/// The machine; how busy it is, is asked again with [`noise`] at the end of a run.
pub fn host() -> Host {
    let (info, identity) = (cpu_info(), identity());
    Host {
        id_hash: identity.machine_id.as_deref().map(id_hash),
        virt: info.is_virtual.then(|| "virtual machine".to_owned()),
        cpu: cpu(info),
        ram_gb: ram().map(|ram| rounded(ram.total_bytes as f64 / BYTES_PER_GB)),
        os: Some(std::env::consts::OS.to_owned()),
        kernel: identity.kernel,
        cgroup: Cgroup { cpus: quota_cpus(), mem_gb: None },
        noise: noise(),
        ..Host::default()
    }
}

/// Who else was at work in the last ten seconds.
pub fn noise() -> Noise {
    let now = hob_machine::noise::noise();
    Noise { psi_cpu: now.waiting_percent, load1: now.load1, on_battery: None, ..Noise::default() }
}

/// The same machine, and not which: with our own name before it, so that nobody else has this hash.
fn id_hash(id: &str) -> String {
    sha256_hex(format!("hob-bench {id}").as_bytes())[..16].to_owned()
}

fn cpu(info: CpuInfo) -> Cpu {
    let has = |unit: &&&str| info.flags.iter().any(|flag| flag == **unit);
    Cpu {
        isa: UNITS.iter().filter(has).map(|unit| (*unit).to_owned()).collect(),
        model: info.model,
        cores: info.cores,
        threads: info.threads,
        governor: info.governor,
    }
}

fn rounded(value: f64) -> f64 {
    (value * 10.0).round() / 10.0
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_the_kernel_lists_becomes_what_records_say() {
        let flags = ["fpu", "avx2", "avx512f_x"].map(str::to_owned).to_vec();
        let info = CpuInfo { model: Some("Some CPU".to_owned()), flags, ..CpuInfo::default() };
        let got = cpu(info);
        assert_eq!((got.model.as_deref(), got.isa), (Some("Some CPU"), vec!["avx2".to_owned()]));
        assert_eq!((id_hash("a").len(), id_hash("a") == id_hash("b")), (16, false));
    }
}
