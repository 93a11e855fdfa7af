//! Parses `gpu0=7.2GiB` or `ram=12GB`: free memory that the user states, which replaces the probed value.
//! Serves plans for another time of day, or for a machine that other programs will share.

use std::str::FromStr;

use hob_core::fit::Pool;
use hob_core::machine::{GpuMemory, Machine};

/// Longer units come first, because they also end in `b`.
const UNITS: [(&str, f64); 9] = [
    ("gib", 1_073_741_824.0),
    ("mib", 1_048_576.0),
    ("kib", 1024.0),
    ("gb", 1e9),
    ("mb", 1e6),
    ("kb", 1e3),
    ("g", 1_073_741_824.0),
    ("m", 1_048_576.0),
    ("b", 1.0),
];

/// A number without a unit counts as bytes. A smaller number is rejected as a mistake.
const BARE_BYTES_MIN: f64 = 1e6;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PoolOverride {
    pub pool: Pool,
    pub free_bytes: u64,
}

/// The text is not a pool and a size.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("\"{0}\" is not a pool and a size (expected for example gpu0=7.2GiB or ram=12GB)")]
pub struct PoolParseError(String);

/// The machine has no card with this number.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("there is no gpu{number}: this machine has {cards} of them, counted from 0")]
pub struct UnknownPool {
    number: usize,
    cards: usize,
}

impl FromStr for PoolOverride {
    type Err = PoolParseError;

    fn from_str(text: &str) -> Result<PoolOverride, PoolParseError> {
        let unread = || PoolParseError(text.to_owned());
        let (pool, size) = text.split_once('=').ok_or_else(unread)?;
        let pool = match pool.trim().to_ascii_lowercase().as_str() {
            "ram" | "cpu" => Pool::Ram,
            "gpu" => Pool::Vram(0),
            named => {
                let number = named.strip_prefix("gpu").and_then(|number| number.parse().ok());
                Pool::Vram(number.ok_or_else(unread)?)
            }
        };
        Ok(PoolOverride { pool, free_bytes: bytes(size).ok_or_else(unread)? })
    }
}

fn bytes(text: &str) -> Option<u64> {
    let text = text.trim().to_ascii_lowercase();
    let unit = UNITS.iter().find_map(|(unit, of)| Some((text.strip_suffix(unit)?, *of)));
    let (number, of_unit) = unit.unwrap_or((&text, 1.0));
    let number: f64 = number.trim().parse().ok()?;
    let bytes = (number * of_unit).round();
    // Such a small number probably lacks its unit.
    if unit.is_none() && bytes > 0.0 && bytes < BARE_BYTES_MIN {
        return None;
    }
    (bytes >= 0.0 && bytes < (1_u64 << 60) as f64).then_some(bytes as u64)
}

/// Sets the stated free memory of each pool, and raises its total if that is smaller.
///
/// # Errors
/// A pool names a card that the machine does not have.
pub fn apply(machine: &mut Machine, pools: &[PoolOverride]) -> Result<(), UnknownPool> {
    let cards = machine.gpus.len();
    for PoolOverride { pool, free_bytes } in pools.iter().copied() {
        match pool {
            Pool::Ram => {
                machine.memory.available_bytes = free_bytes;
                machine.memory.total_bytes = machine.memory.total_bytes.max(free_bytes);
            }
            Pool::Vram(number) => {
                let unknown = UnknownPool { number, cards };
                let gpu = machine.gpus.get_mut(number).ok_or(unknown)?;
                gpu.memory = match gpu.memory {
                    GpuMemory::Own { total_bytes, .. } => {
                        GpuMemory::Own { total_bytes: total_bytes.max(free_bytes), free_bytes }
                    }
                    GpuMemory::Unified { .. } => GpuMemory::Unified { limit_bytes: free_bytes },
                };
            }
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::profile;

    #[test]
    fn a_pool_and_its_size() {
        let rows = [
            ("gpu0=7.2GiB", Some((Pool::Vram(0), 7_730_941_133))),
            ("ram=12GB", Some((Pool::Ram, 12_000_000_000))),
            ("RAM = 512 mib", Some((Pool::Ram, 512 << 20))),
            ("gpu1=2000000000", Some((Pool::Vram(1), 2_000_000_000))),
            ("gpu1=0", Some((Pool::Vram(1), 0))),
            ("gpu1=3", None),
            ("gpu=8g", Some((Pool::Vram(0), 8 << 30))),
            ("gpu0", None),
            ("gpu0=", None),
            ("gpu0=-1GB", None),
            ("gpu0=1e30GB", None),
            ("gpu0=NaN", None),
            ("disk=1GB", None),
            ("gpux=1GB", None),
        ];
        for (text, expected) in rows {
            let got = text.parse().ok().map(|wish: PoolOverride| (wish.pool, wish.free_bytes));
            assert_eq!(got, expected, "{text}");
        }
    }

    #[test]
    fn what_is_said_to_be_free_is() {
        let mut machine = profile::builtin("rtx-4070-laptop").expect("a profile").machine;
        let wishes = ["gpu0=1GB", "ram=2GB"].map(|text| text.parse().expect("a pool"));
        apply(&mut machine, &wishes).expect("pools");
        assert!(matches!(machine.gpus[0].memory, GpuMemory::Own { free_bytes: 1_000_000_000, .. }));
        assert_eq!(machine.memory.available_bytes, 2_000_000_000);
        let beyond = ["gpu1=1GB".parse().expect("a pool")];
        assert_eq!(apply(&mut machine, &beyond), Err(UnknownPool { number: 1, cards: 1 }));
    }
}
