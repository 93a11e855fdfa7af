//! What is left of memory, on the card where there is one and in the machine: asked of whoever knows it.
//! Where nobody does, nothing is known; a ceiling is then searched for without a first guess.

use std::process::{Command, Stdio};

const MIB: u64 = 1 << 20;
const KIB: u64 = 1 << 10;
const CARDS: &str = "/sys/class/drm";

/// All cards of this machine together.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Vram {
    pub(crate) used_bytes: u64,
    pub(crate) total_bytes: u64,
}

/// None where no card tells.
pub(crate) fn vram() -> Option<Vram> {
    of_nvidia().or_else(of_amd)
}

/// Of the machine's own memory, within the limit that is set for this program.
pub(crate) fn ram_left_bytes() -> Option<u64> {
    let machine = available_bytes(&read("/proc/meminfo"));
    let number = |file: &str| read(file).trim().parse::<u64>().ok();
    let limit = number("/sys/fs/cgroup/memory.max").zip(number("/sys/fs/cgroup/memory.current"));
    let within = limit.map(|(most, current)| most.saturating_sub(current));
    machine.into_iter().chain(within).min()
}

/// By the driver's own program: its library would be a dependency of every hob.
fn of_nvidia() -> Option<Vram> {
    let asked = Command::new("nvidia-smi")
        .args(["--query-gpu=memory.used,memory.total", "--format=csv,noheader,nounits"])
        .stdin(Stdio::null())
        .stderr(Stdio::null())
        .output()
        .ok()?;
    nvidia_said(&String::from_utf8_lossy(&asked.stdout))
}

fn nvidia_said(text: &str) -> Option<Vram> {
    let card = |line: &str| {
        let (used, total) = line.split_once(',')?;
        let bytes = |mib: &str| mib.trim().parse::<u64>().ok().map(|mib| mib * MIB);
        Some(Vram { used_bytes: bytes(used)?, total_bytes: bytes(total)? })
    };
    together(text.lines().map(card).collect::<Option<Vec<_>>>()?)
}

fn of_amd() -> Option<Vram> {
    let number = |file: std::path::PathBuf| fs_err::read_to_string(file).ok()?.trim().parse().ok();
    let entries = fs_err::read_dir(CARDS).ok()?.flatten();
    let card = |entry: fs_err::DirEntry| {
        let device = entry.path().join("device");
        let used_bytes = number(device.join("mem_info_vram_used"))?;
        Some(Vram { used_bytes, total_bytes: number(device.join("mem_info_vram_total"))? })
    };
    // A card's outputs stand beside it and have the same device.
    let is_card = |entry: &fs_err::DirEntry| {
        entry.file_name().to_string_lossy().trim_start_matches("card").parse::<u32>().is_ok()
    };
    together(entries.filter(is_card).filter_map(card).collect())
}

fn together(cards: Vec<Vram>) -> Option<Vram> {
    let add = |all: Vram, one: Vram| Vram {
        used_bytes: all.used_bytes + one.used_bytes,
        total_bytes: all.total_bytes + one.total_bytes,
    };
    cards.into_iter().reduce(add)
}

fn available_bytes(info: &str) -> Option<u64> {
    let line = info.lines().find_map(|line| line.strip_prefix("MemAvailable:"))?;
    let kib: u64 = line.split_whitespace().next()?.parse().ok()?;
    Some(kib * KIB)
}

fn read(path: &str) -> String {
    // What is not there is not known.
    fs_err::read_to_string(path).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_the_driver_says_of_its_cards() {
        let rows = [
            ("6083, 8188\n", Some(Vram { used_bytes: 6083 * MIB, total_bytes: 8188 * MIB })),
            ("1, 10\n2, 20\n", Some(Vram { used_bytes: 3 * MIB, total_bytes: 30 * MIB })),
            ("[N/A], [N/A]\n", None),
            ("No devices were found\n", None),
            ("", None),
        ];
        for (said, expected) in rows {
            assert_eq!(nvidia_said(said), expected, "{said}");
        }
    }

    #[test]
    fn what_the_machine_has_available() {
        let info = "MemTotal:  100 kB\nMemFree:  1 kB\nMemAvailable:    64 kB\n";
        assert_eq!(available_bytes(info), Some(64 * KIB));
        assert_eq!(available_bytes("MemTotal: 100 kB\n"), None);
    }
}
