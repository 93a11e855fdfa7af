//! Reads NVIDIA cards from `nvidia-smi`. The driver's library would be a dependency of every hob binary.
//! Follows the documentation and published outputs of `nvidia-smi`.

use hob_core::machine::{Basis, Device, Gpu, GpuApi, GpuMemory, Link, Vendor};

use crate::cards;
use crate::files::output_of;
use crate::memory::Vram;

const PROGRAM: &str = "nvidia-smi";
/// Queried fields, in the order in which they are parsed. Uses the link's maximum speed, because idle cards reduce it.
const FIELDS: &str = "name,memory.total,memory.free,driver_version,compute_cap,pcie.link.gen.max,pcie.link.width.max,uuid";
const MIB: u64 = 1 << 20;
/// Bytes per second of one PCIe lane, by generation, without the overhead of the encoding.
const LANE_BYTES_S: [f64; 6] = [0.25e9, 0.5e9, 0.985e9, 1.969e9, 3.938e9, 7.563e9];

pub(crate) const SOURCE: &str = PROGRAM;

/// Returns all cards. `ram_bytes` is the memory that a card without its own memory may use.
pub(crate) fn cards(ram_bytes: u64) -> Vec<Gpu> {
    let query = format!("--query-gpu={FIELDS}");
    let told = output_of(PROGRAM, &[&query, "--format=csv,noheader,nounits"]);
    told.lines().filter_map(|line| parsed(line, ram_bytes)).collect()
}

/// Returns the memory of all cards together.
pub(crate) fn vram() -> Option<Vram> {
    let query = ["--query-gpu=memory.used,memory.total", "--format=csv,noheader,nounits"];
    vram_of(&output_of(PROGRAM, &query))
}

/// Enforced power limits in watts, one for each card that reports one.
pub(crate) fn power_limits_w() -> Vec<f64> {
    let query = ["--query-gpu=power.limit", "--format=csv,noheader,nounits"];
    output_of(PROGRAM, &query).lines().filter_map(|line| line.trim().parse().ok()).collect()
}

fn parsed(line: &str, ram_bytes: u64) -> Option<Gpu> {
    let fields: Vec<&str> = line.split(',').map(str::trim).collect();
    let [name, total, free, driver, capability, generation, width, uuid] = fields[..] else {
        return None;
    };
    // `nvidia-smi` prints `[N/A]` for a card that shares the system's memory.
    let memory = match (mib(total), mib(free)) {
        (Some(total_bytes), free) => {
            GpuMemory::Own { total_bytes, free_bytes: free.unwrap_or(total_bytes) }
        }
        (None, _) => GpuMemory::Unified { limit_bytes: ram_bytes },
    };
    let total_bytes = mib(total).unwrap_or(ram_bytes);
    let bandwidth = cards::nvidia(name, total_bytes).map(cards::data_sheet);
    let is_own = matches!(memory, GpuMemory::Own { .. });
    Some(Gpu {
        driver: Some(driver).filter(|text| is_reported(text)).map(str::to_owned),
        uuid: Some(uuid).filter(|text| is_reported(text)).map(str::to_owned),
        compute_capability: pair(capability),
        link: link(generation.parse().ok(), width.parse().ok()).filter(|_| is_own),
        device: Device { bandwidth, constants: None },
        ..Gpu::new(name, Vendor::Nvidia, GpuApi::Cuda, memory)
    })
}

fn is_reported(text: &str) -> bool {
    !text.is_empty() && !text.starts_with('[')
}

fn mib(text: &str) -> Option<u64> {
    text.parse::<u64>().ok()?.checked_mul(MIB)
}

fn pair(text: &str) -> Option<(u32, u32)> {
    let (major, minor) = text.split_once('.')?;
    Some((major.parse().ok()?, minor.parse().ok()?))
}

/// Returns the PCIe link of a generation and a number of lanes.
pub(crate) fn link(generation: Option<u32>, lanes: Option<u32>) -> Option<Link> {
    let (generation, lanes) = generation.zip(lanes)?;
    let of_lane = LANE_BYTES_S.get((generation as usize).checked_sub(1)?)?;
    Some(Link {
        name: format!("PCIe {generation}.0 x{lanes}"),
        bytes_s: of_lane * f64::from(lanes),
        basis: Basis::Prior,
    })
}

fn vram_of(text: &str) -> Option<Vram> {
    let card = |line: &str| {
        let (used, total) = line.split_once(',')?;
        Some(Vram { used_bytes: mib(used.trim())?, total_bytes: mib(total.trim())? })
    };
    Vram::together(text.lines().map(card).collect::<Option<Vec<_>>>()?)
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
            assert_eq!(vram_of(said), expected, "{said}");
        }
    }

    #[test]
    fn a_card_of_a_laptop() {
        let line =
            "NVIDIA GeForce RTX 4070 Laptop GPU, 8188, 7807, 580.95.05, 8.9, 4, 8, GPU-8a1bd3a4-1";
        let card = parsed(line, 0).expect("a card");
        let (total_bytes, free_bytes) = (8188 * MIB, 7807 * MIB);
        assert_eq!(card.memory, GpuMemory::Own { total_bytes, free_bytes });
        assert_eq!(card.compute_capability, Some((8, 9)));
        assert_eq!(card.driver.as_deref(), Some("580.95.05"));
        assert_eq!(card.uuid.as_deref(), Some("GPU-8a1bd3a4-1"));
        let link = card.link.expect("a link");
        assert_eq!((link.name.as_str(), link.bytes_s.round()), ("PCIe 4.0 x8", 15.752e9));
        assert_eq!(card.device.bandwidth.map(|fact| fact.value), Some(256e9));
    }

    #[test]
    fn what_a_card_does_not_tell_is_not_known() {
        let card =
            parsed("NVIDIA GB10, [N/A], [N/A], 580.95.05, 12.1, 1, 1, [N/A]", 100).expect("a card");
        assert_eq!(card.memory, GpuMemory::Unified { limit_bytes: 100 });
        assert_eq!((card.link, card.compute_capability, card.uuid), (None, Some((12, 1)), None));
        let odd =
            parsed("A card, 1024, [N/A], [N/A], [N/A], [N/A], [N/A], [N/A]", 0).expect("a card");
        assert_eq!((odd.driver, odd.compute_capability, odd.link), (None, None, None));
        assert!(odd.device.bandwidth.is_none());
        assert_eq!(parsed("No devices were found", 0), None);
        assert_eq!(parsed("", 0), None);
    }
}
