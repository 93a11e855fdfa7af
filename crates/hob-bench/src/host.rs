//! This machine, as far as it says of itself what it is and how busy it was.
//! Read from Linux' files; elsewhere nothing is known, and nothing is made up.

use std::path::Path;

use crate::record::{Cgroup, Cpu, Host, Noise, sha256_hex};

/// Vector units that change how fast a model runs.
const UNITS: [&str; 6] = ["avx2", "avx512f", "avx512_vnni", "avx_vnni", "amx_int8", "asimddp"];
const KIB_PER_GB: f64 = 1e9 / 1024.0;

/// The machine; how busy it is, is asked again with [`noise`] at the end of a run.
pub fn host() -> Host {
    let info = read("/proc/cpuinfo");
    Host {
        id_hash: id_hash(&read("/etc/machine-id")),
        cpu: cpu(&info),
        ram_gb: amount(&read("/proc/meminfo"), "MemTotal:").map(|kib| rounded(kib / KIB_PER_GB)),
        os: Some(std::env::consts::OS.to_owned()),
        kernel: said(&read("/proc/sys/kernel/osrelease")),
        virt: info.contains(" hypervisor").then(|| "virtual machine".to_owned()),
        cgroup: Cgroup { cpus: quota(&read("/sys/fs/cgroup/cpu.max")), mem_gb: None },
        noise: noise(),
        ..Host::default()
    }
}

/// Who else was at work in the last ten seconds.
pub fn noise() -> Noise {
    Noise {
        psi_cpu: waiting(&read("/proc/pressure/cpu")),
        load1: read("/proc/loadavg").split(' ').next().and_then(|load| load.parse().ok()),
        on_battery: None,
        ..Noise::default()
    }
}

fn read(path: &str) -> String {
    // What is not there is not known.
    fs_err::read_to_string(Path::new(path)).unwrap_or_default()
}

fn said(text: &str) -> Option<String> {
    Some(text.trim()).filter(|text| !text.is_empty()).map(str::to_owned)
}

/// The same machine, and not which: with our own name before it, so that nobody else has this hash.
fn id_hash(id: &str) -> Option<String> {
    said(id).map(|id| sha256_hex(format!("hob-bench {id}").as_bytes())[..16].to_owned())
}

fn cpu(info: &str) -> Cpu {
    let field = |name: &str| {
        let line = info.lines().find(|line| line.starts_with(name))?;
        said(line.split_once(':')?.1)
    };
    let flags = field("flags").or(field("Features")).unwrap_or_default();
    let has = |unit: &&&str| flags.split(' ').any(|flag| flag == **unit);
    let threads = info.lines().filter(|line| line.starts_with("processor")).count();
    Cpu {
        model: field("model name"),
        cores: field("cpu cores").and_then(|cores| cores.parse().ok()),
        threads: u32::try_from(threads).ok().filter(|threads| *threads > 0),
        isa: UNITS.iter().filter(has).map(|unit| (*unit).to_owned()).collect(),
        governor: said(&read("/sys/devices/system/cpu/cpu0/cpufreq/scaling_governor")),
    }
}

fn amount(text: &str, name: &str) -> Option<f64> {
    let line = text.lines().find_map(|line| line.strip_prefix(name))?;
    line.split_whitespace().next()?.parse().ok()
}

fn rounded(value: f64) -> f64 {
    (value * 10.0).round() / 10.0
}

/// Of a control group: how many cores it may use, or none where it may use all.
fn quota(text: &str) -> Option<f64> {
    let (quota, period) = text.trim().split_once(' ')?;
    let (quota, period): (f64, f64) = (quota.parse().ok()?, period.parse().ok()?);
    (period > 0.0).then(|| quota / period)
}

/// Percent of the last ten seconds in which somebody waited for a core.
fn waiting(text: &str) -> Option<f64> {
    let some = text.lines().find_map(|line| line.strip_prefix("some "))?;
    some.split(' ').find_map(|field| field.strip_prefix("avg10="))?.parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn files_of_linux() {
        let info = "processor\t: 0\nmodel name\t: Some CPU\ncpu cores\t: 4\nflags\t\t: fpu avx2 avx512f_x\n\nprocessor\t: 1\n";
        let got = cpu(info);
        assert_eq!(
            (got.model.as_deref(), got.cores, got.threads),
            (Some("Some CPU"), Some(4), Some(2))
        );
        assert_eq!(got.isa, ["avx2"]);
        assert_eq!(waiting("some avg10=12.50 avg60=3.00\nfull avg10=0.00\n"), Some(12.5));
        assert_eq!((quota("200000 100000\n"), quota("max 100000\n")), (Some(2.0), None));
        assert_eq!(amount("MemTotal:  1000 kB\n", "MemTotal:"), Some(1000.0));
        assert_eq!((id_hash(""), id_hash("a\n").map(|hash| hash.len())), (None, Some(16)));
    }
}
