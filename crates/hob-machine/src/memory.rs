//! Total and free memory of the machine and of its graphics cards, and how Linux reports the former.
//! `probe.rs` asks each system and driver in turn.

use hob_core::machine::Memory;

use crate::cgroup::{self, Limits};
use crate::files::read;

const KIB: u64 = 1 << 10;

/// Memory of all graphics cards of this machine together.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Vram {
    pub used_bytes: u64,
    pub total_bytes: u64,
}

/// The main memory of the machine.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Ram {
    /// Total memory of the machine, without the limits of this process.
    pub total_bytes: u64,
    /// Free memory for this process: of the machine, or within its limits if that is less.
    pub available_bytes: u64,
    /// The smallest limit of this process.
    pub limit_bytes: Option<u64>,
}

impl Vram {
    pub(crate) fn together(cards: Vec<Vram>) -> Option<Vram> {
        let add = |all: Vram, one: Vram| Vram {
            used_bytes: all.used_bytes.saturating_add(one.used_bytes),
            total_bytes: all.total_bytes.saturating_add(one.total_bytes),
        };
        cards.into_iter().reduce(add)
    }
}

impl From<Ram> for Memory {
    fn from(ram: Ram) -> Memory {
        let total_bytes = ram.limit_bytes.map_or(ram.total_bytes, |most| most.min(ram.total_bytes));
        Memory { total_bytes, available_bytes: ram.available_bytes.min(total_bytes) }
    }
}

/// Reads the memory from Linux and the limits of this process. Returns `None` on other systems.
pub(crate) fn linux_ram() -> Option<Ram> {
    of_linux(&read("/proc/meminfo"), &cgroup::limits())
}

fn of_linux(info: &str, limits: &Limits) -> Option<Ram> {
    let available_bytes = amount(info, "MemAvailable:")?;
    let left_bytes = limits.memory.map(|share| share.left_bytes);
    Some(Ram {
        total_bytes: amount(info, "MemTotal:")?,
        available_bytes: left_bytes.map_or(available_bytes, |left| left.min(available_bytes)),
        limit_bytes: limits.memory.map(|share| share.limit_bytes),
    })
}

fn amount(info: &str, name: &str) -> Option<u64> {
    let line = info.lines().find_map(|line| line.strip_prefix(name))?;
    let kib: u64 = line.split_whitespace().next()?.parse().ok()?;
    kib.checked_mul(KIB)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::cgroup::Share;

    #[test]
    fn what_the_machine_has_and_what_a_limit_leaves_of_it() {
        let info = "MemTotal:  100 kB\nMemFree:  1 kB\nMemAvailable:    64 kB\n";
        let all = of_linux(info, &Limits::default()).expect("known");
        let (total_bytes, available_bytes) = (100 * KIB, 64 * KIB);
        assert_eq!(all, Ram { total_bytes, available_bytes, limit_bytes: None });
        let share = Share { limit_bytes: 50 * KIB, left_bytes: 20 * KIB };
        let held = of_linux(info, &Limits { cpus: None, memory: Some(share) }).expect("known");
        let expected = Memory { total_bytes: 50 * KIB, available_bytes: 20 * KIB };
        assert_eq!((held.total_bytes, Memory::from(held)), (total_bytes, expected));
        assert_eq!(of_linux("MemTotal: 100 kB\n", &Limits::default()), None);
    }
}
