//! Reads the CPU from `/proc/cpuinfo`: cores, hardware threads and SIMD extensions.
//! x86 was tested on real machines. The ARM fields follow the kernel's documentation.

use std::collections::BTreeSet;

use hob_core::weights::Repack;

use crate::files::{non_empty, read};

/// SIMD extensions that change the speed of a model: the kernel's name and hob's name. The kernel calls NEON `asimd`.
const SIMD_EXTENSIONS: [(&str, &str); 18] = [
    ("avx", "avx"),
    ("avx2", "avx2"),
    ("fma", "fma"),
    ("f16c", "f16c"),
    ("avx512f", "avx512f"),
    ("avx512bw", "avx512bw"),
    ("avx512vbmi", "avx512_vbmi"),
    ("avx512_vnni", "avx512_vnni"),
    ("avx512_bf16", "avx512_bf16"),
    ("avx_vnni", "avx_vnni"),
    ("amx_tile", "amx_tile"),
    ("amx_int8", "amx_int8"),
    ("amx_bf16", "amx_bf16"),
    ("asimd", "neon"),
    ("asimddp", "dotprod"),
    ("i8mm", "i8mm"),
    ("sve", "sve"),
    ("sme", "sme"),
];

/// The CPU as the system describes it, without the limits of this process.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct CpuInfo {
    pub model: Option<String>,
    /// Physical cores of all sockets.
    pub cores: Option<u32>,
    pub threads: Option<u32>,
    /// All flags that the kernel lists, by its names.
    pub flags: Vec<String>,
    pub governor: Option<String>,
    pub is_virtual: bool,
}

/// Reads the CPU from Linux. All fields are empty on other systems.
pub(crate) fn linux_cpu() -> CpuInfo {
    CpuInfo {
        governor: non_empty(&read("/sys/devices/system/cpu/cpu0/cpufreq/scaling_governor")),
        ..CpuInfo::parsed(&read("/proc/cpuinfo"))
    }
}

impl CpuInfo {
    pub(crate) fn parsed(info: &str) -> CpuInfo {
        let field = |name: &str| values(info, name).next().map(str::to_owned);
        let count = |text: &str| values(info, text).count();
        let flags = field("flags").or(field("Features")).unwrap_or_default();
        let flags: Vec<String> = flags.split_whitespace().map(str::to_owned).collect();
        CpuInfo {
            model: field("model name").or_else(|| arm_name(info)),
            cores: cores(info),
            threads: u32::try_from(count("processor")).ok().filter(|threads| *threads > 0),
            is_virtual: flags.iter().any(|flag| flag == "hypervisor"),
            flags,
            governor: None,
        }
    }

    pub(crate) fn has(&self, flag: &str) -> bool {
        self.flags.iter().any(|known| known == flag)
    }

    /// Returns the SIMD extensions that matter to models, by hob's names.
    pub fn simd_extensions(&self) -> Vec<String> {
        let has = SIMD_EXTENSIONS.iter().filter(|(flag, _)| self.has(flag));
        has.map(|(_, name)| (*name).to_owned()).collect()
    }
}

/// Returns how llama.cpp rearranges weights for these SIMD extensions.
pub(crate) fn repack(simd_extensions: &[String]) -> Repack {
    let has = |name: &str| simd_extensions.iter().any(|known| known == name);
    match () {
        () if has("avx512f") => Repack::Avx512,
        () if has("avx2") => Repack::Avx2,
        () if has("dotprod") || has("i8mm") => Repack::Neon,
        () => Repack::None,
    }
}

fn values<'a>(info: &'a str, name: &'a str) -> impl Iterator<Item = &'a str> {
    let fields = info.lines().filter_map(|line| line.split_once(':'));
    fields.filter(move |(key, _)| key.trim() == name).map(|(_, value)| value.trim())
}

/// Counts pairs of socket and core. Uses the field `cpu cores` if the kernel lists no pairs.
fn cores(info: &str) -> Option<u32> {
    let sockets = values(info, "physical id");
    let pairs: BTreeSet<(&str, &str)> = sockets.zip(values(info, "core id")).collect();
    let reported = || values(info, "cpu cores").next()?.parse().ok();
    u32::try_from(pairs.len()).ok().filter(|cores| *cores > 0).or_else(reported)
}

/// Names an ARM CPU. The kernel gives only its part number.
fn arm_name(info: &str) -> Option<String> {
    let part = values(info, "CPU part").next()?;
    let name = match part {
        "0xd08" => "Cortex-A72",
        "0xd0b" => "Cortex-A76",
        "0xd0c" => "Neoverse N1",
        "0xd40" => "Neoverse V1",
        "0xd49" => "Neoverse N2",
        "0xd4f" => "Neoverse V2",
        _ => return Some(format!("ARM part {part}")),
    };
    Some(name.to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    const X86: &str = "processor\t: 0\nmodel name\t: Some CPU\nphysical id\t: 0\ncore id\t\t: 0\n\
        cpu cores\t: 2\nflags\t\t: fpu avx2 avx512f_x hypervisor\n\n\
        processor\t: 1\nmodel name\t: Some CPU\nphysical id\t: 0\ncore id\t\t: 0\n\n\
        processor\t: 2\nphysical id\t: 0\ncore id\t\t: 1\n\nprocessor\t: 3\nphysical id\t: 0\ncore id\t\t: 1\n";

    /// The file of a Raspberry Pi 5, shortened.
    const ARM: &str = "processor\t: 0\nBogoMIPS\t: 108.00\nFeatures\t: fp asimd evtstrm aes crc32 atomics \
        fphp asimdhp asimddp\nCPU implementer\t: 0x41\nCPU part\t: 0xd0b\n\nprocessor\t: 1\nFeatures\t: fp\n";

    #[test]
    fn cpuinfo_of_x86_and_arm_is_parsed() {
        let got = CpuInfo::parsed(X86);
        assert_eq!(
            (got.model.as_deref(), got.cores, got.threads, got.is_virtual),
            (Some("Some CPU"), Some(2), Some(4), true)
        );
        assert_eq!(got.simd_extensions(), ["avx2"]);
        let got = CpuInfo::parsed(ARM);
        assert_eq!(
            (got.model.as_deref(), got.cores, got.threads),
            (Some("Cortex-A76"), None, Some(2))
        );
        assert_eq!(got.simd_extensions(), ["neon", "dotprod"]);
        assert_eq!(CpuInfo::parsed(""), CpuInfo::default());
    }

    #[test]
    fn cores_are_counted_in_every_socket() {
        let two = X86.replace("core id\t\t: 1", "core id\t\t: 0").replacen(
            "processor\t: 2\nphysical id\t: 0",
            "processor\t: 2\nphysical id\t: 1",
            1,
        );
        assert_eq!(CpuInfo::parsed(&two).cores, Some(2));
        assert_eq!(CpuInfo::parsed("processor : 0\ncpu cores : 4\n").cores, Some(4));
    }

    #[test]
    fn simd_extensions_select_the_repacking() {
        let rows: [(&[&str], Repack); 4] = [
            (&["avx2", "avx512f"], Repack::Avx512),
            (&["avx2"], Repack::Avx2),
            (&["neon", "dotprod"], Repack::Neon),
            (&["neon"], Repack::None),
        ];
        for (units, expected) in rows {
            let units: Vec<String> = units.iter().map(|unit| (*unit).to_owned()).collect();
            assert_eq!(repack(&units), expected, "{units:?}");
        }
    }
}
