//! Reads Apple machines, where CPU and graphics share one memory.
//! Follows Apple's manuals of `sysctl`, `vm_stat` and `ioreg`; not tested on a real machine.

use hob_core::machine::{Device, Gpu, GpuApi, GpuMemory, Vendor};

use crate::cards;
use crate::cpu::CpuInfo;
use crate::files::{non_empty, output_of};
use crate::memory::Ram;

pub(crate) const SOURCE: &str = "sysctl";
const KEYS: [&str; 4] =
    ["machdep.cpu.brand_string", "hw.memsize", "hw.physicalcpu", "hw.logicalcpu"];
/// The user's own limit for graphics, in MiB; 0 for the default. Older systems do not have it.
const WIRED_LIMIT: &str = "iogpu.wired_limit_mb";
/// Up to this memory, graphics may use two thirds of it by default, and above at least three quarters. llama.cpp logs
/// (`recommendedMaxWorkingSetSize`) 10,923 MiB of 16 GiB, 21,845 MiB of 32 GiB, and 49,152 MiB of 64 GiB.
const TWO_THIRDS_BYTES_MAX: u64 = 32 << 30;
const MIB: u64 = 1 << 20;

pub(crate) fn ram() -> Option<Ram> {
    if !cfg!(target_os = "macos") {
        return None;
    }
    let sysctl = Sysctl::parsed(&output_of("/usr/sbin/sysctl", &KEYS));
    let total_bytes = sysctl.memory_bytes?;
    let free_bytes = available_bytes(&output_of("/usr/bin/vm_stat", &[]));
    let available_bytes = free_bytes.unwrap_or(total_bytes / 2).min(total_bytes);
    Some(Ram { total_bytes, available_bytes, limit_bytes: None })
}

/// Returns the CPU and its graphics.
pub(crate) fn chip() -> Option<(CpuInfo, Vec<Gpu>)> {
    if !cfg!(target_os = "macos") {
        return None;
    }
    // Apart, because `sysctl` fails as a whole if it does not know a key.
    let limit = output_of("/usr/sbin/sysctl", &[WIRED_LIMIT]);
    let sysctl = Sysctl::parsed(&(output_of("/usr/sbin/sysctl", &KEYS) + &limit));
    Some((sysctl.cpu(), sysctl.gpu().into_iter().collect()))
}

/// The id of the hardware.
pub(crate) fn machine_id() -> Option<String> {
    if !cfg!(target_os = "macos") {
        return None;
    }
    hardware_id(&output_of("/usr/sbin/ioreg", &["-rd1", "-c", "IOPlatformExpertDevice"]))
}

pub(crate) fn kernel() -> Option<String> {
    if !cfg!(target_os = "macos") {
        return None;
    }
    non_empty(&output_of("/usr/sbin/sysctl", &["-n", "kern.osrelease"]))
}

fn hardware_id(text: &str) -> Option<String> {
    let value = text.lines().find_map(|line| line.trim().strip_prefix("\"IOPlatformUUID\" = "))?;
    non_empty(value.trim_matches('"'))
}

#[derive(Clone, Debug, Default, PartialEq, Eq)]
struct Sysctl {
    chip: Option<String>,
    memory_bytes: Option<u64>,
    cores: Option<u32>,
    threads: Option<u32>,
    /// Above 0.
    wired_limit_mib: Option<u64>,
}

impl Sysctl {
    fn parsed(text: &str) -> Sysctl {
        let value = |key: &str| {
            let lines = text.lines().filter_map(|line| line.split_once(": "));
            lines.filter(|(name, _)| *name == key).map(|(_, value)| value.trim()).next()
        };
        Sysctl {
            chip: value(KEYS[0]).map(str::to_owned),
            memory_bytes: value(KEYS[1]).and_then(|bytes| bytes.parse().ok()),
            cores: value(KEYS[2]).and_then(|cores| cores.parse().ok()),
            threads: value(KEYS[3]).and_then(|threads| threads.parse().ok()),
            wired_limit_mib: value(WIRED_LIMIT)
                .and_then(|mib| mib.parse::<u64>().ok())
                .filter(|mib| *mib > 0),
        }
    }

    fn is_silicon(&self) -> bool {
        self.chip.as_deref().is_some_and(|chip| chip.starts_with("Apple "))
    }

    fn cpu(&self) -> CpuInfo {
        // All Apple chips have these units. For Intel CPUs `sysctl` lists units under other keys, which are not read.
        let flags: &[&str] = if self.is_silicon() { &["asimd", "asimddp"] } else { &["avx2"] };
        CpuInfo {
            model: self.chip.clone(),
            cores: self.cores,
            threads: self.threads,
            flags: flags.iter().map(|flag| (*flag).to_owned()).collect(),
            ..CpuInfo::default()
        }
    }

    fn gpu(&self) -> Option<Gpu> {
        let chip = self.chip.as_deref().filter(|_| self.is_silicon())?;
        let bandwidth = cards::apple(chip).map(cards::data_sheet);
        let memory_bytes = self.memory_bytes?;
        let usual_bytes = match memory_bytes {
            ..=TWO_THIRDS_BYTES_MAX => memory_bytes / 3 * 2,
            _ => memory_bytes / 4 * 3,
        };
        let limit_bytes = self.wired_limit_mib.map_or(usual_bytes, |mib| mib.saturating_mul(MIB));
        let memory = GpuMemory::Unified { limit_bytes };
        Some(Gpu {
            device: Device { bandwidth, constants: None },
            ..Gpu::new(chip, Vendor::Apple, GpuApi::Metal, memory)
        })
    }
}

/// Returns the bytes of free pages and of pages that the system frees on demand.
fn available_bytes(text: &str) -> Option<u64> {
    let page_bytes: u64 = text.split("page size of ").nth(1)?.split(' ').next()?.parse().ok()?;
    let pages = |name: &str| {
        let line = text.lines().find_map(|line| line.strip_prefix(name)?.strip_prefix(':'))?;
        line.trim().trim_end_matches('.').parse::<u64>().ok()
    };
    let free = pages("Pages free")?;
    let others = ["Pages inactive", "Pages speculative", "Pages purgeable"];
    let given_up = others.into_iter().filter_map(pages).sum::<u64>();
    free.saturating_add(given_up).checked_mul(page_bytes)
}

#[cfg(test)]
mod tests {
    use super::*;

    const M2: &str = "machdep.cpu.brand_string: Apple M2\nhw.memsize: 17179869184\nhw.physicalcpu: 8\n\
        hw.logicalcpu: 8\n";
    const VM_STAT: &str = "Mach Virtual Memory Statistics: (page size of 16384 bytes)\n\
        Pages free:                               10000.\nPages active:                            200000.\n\
        Pages inactive:                           20000.\nPages speculative:                         3000.\n\
        Pages purgeable:                            500.\n\"Translation faults\":                1.\n";

    #[test]
    fn a_chip_has_one_memory() {
        let sysctl = Sysctl::parsed(M2);
        let gpu = sysctl.gpu().expect("its graphics");
        // 10,922.67 MiB
        assert_eq!(gpu.memory, GpuMemory::Unified { limit_bytes: 11_453_246_122 });
        assert_eq!(gpu.device.bandwidth.map(|fact| fact.value), Some(100e9));
        assert_eq!(
            (sysctl.cpu().cores, sysctl.cpu().simd_extensions()),
            (Some(8), vec!["neon".into(), "dotprod".into()])
        );
        let intel = Sysctl::parsed(&M2.replace("Apple M2", "Intel(R) Core(TM) i7"));
        assert_eq!((intel.gpu(), Sysctl::parsed("").gpu()), (None, None));
    }

    #[test]
    fn graphics_may_use_a_part_of_the_memory_or_what_the_user_allows() {
        let limit = |memory_gib: u64, more: &str| {
            let memory = format!("hw.memsize: {}", memory_gib << 30);
            let text = M2.replace("hw.memsize: 17179869184", &memory) + more;
            Sysctl::parsed(&text).gpu().expect("its graphics").memory
        };
        let unified = |mib: u64| GpuMemory::Unified { limit_bytes: mib << 20 };
        assert_eq!(limit(24, ""), unified(16_384));
        assert_eq!(limit(64, ""), unified(49_152));
        assert_eq!(limit(64, "iogpu.wired_limit_mb: 0\n"), unified(49_152));
        assert_eq!(limit(16, "iogpu.wired_limit_mb: 14336\n"), unified(14_336));
    }

    #[test]
    fn the_id_of_the_hardware_is_among_its_properties() {
        let text = "+-o Mac14,2  <class IOPlatformExpertDevice, id 0x100000250>\n    {\n\
            \"IOPlatformSerialNumber\" = \"C02XXXXX\"\n    \
            \"IOPlatformUUID\" = \"564D3A2B-0000-1000-8000-001122334455\"\n    }\n";
        let expected = Some("564D3A2B-0000-1000-8000-001122334455".to_owned());
        assert_eq!((hardware_id(text), hardware_id("")), (expected, None));
    }

    #[test]
    fn pages_that_can_be_had() {
        assert_eq!(available_bytes(VM_STAT), Some(33_500 * 16_384));
        assert_eq!(available_bytes("no such program"), None);
    }
}
