//! Lists the memory bandwidth of common cards and chips in GB/s, from their makers' data sheets.
//! A laptop card is a different chip from the desktop card of the same name. Unlisted cards have no default.

use hob_core::machine::{Basis, Fact};

/// The driver's name without the maker's prefix, a maximum of GiB, and GB/s. The maximum distinguishes cards that share a
/// name and differ in memory size.
type Row = (&'static str, u64, f64);

const ANY: u64 = u64::MAX;

const NVIDIA: [Row; 86] = [
    ("RTX 5090", ANY, 1792.0),
    ("RTX 5080", ANY, 960.0),
    ("RTX 5070 Ti", ANY, 896.0),
    ("RTX 5070", ANY, 672.0),
    ("RTX 5060 Ti", ANY, 448.0),
    ("RTX 5060", ANY, 448.0),
    ("RTX 5050", ANY, 320.0),
    ("RTX 5090 Laptop GPU", ANY, 896.0),
    ("RTX 5080 Laptop GPU", ANY, 896.0),
    ("RTX 5070 Ti Laptop GPU", ANY, 672.0),
    ("RTX 5070 Laptop GPU", ANY, 384.0),
    ("RTX 5060 Laptop GPU", ANY, 384.0),
    ("RTX 5050 Laptop GPU", ANY, 384.0),
    ("RTX 4090", ANY, 1008.0),
    ("RTX 4080 SUPER", ANY, 736.0),
    ("RTX 4080", ANY, 716.8),
    ("RTX 4070 Ti SUPER", ANY, 672.0),
    ("RTX 4070 Ti", ANY, 504.0),
    ("RTX 4070 SUPER", ANY, 504.0),
    ("RTX 4070", ANY, 504.0),
    ("RTX 4060 Ti", ANY, 288.0),
    ("RTX 4060", ANY, 272.0),
    ("RTX 4090 Laptop GPU", ANY, 576.0),
    ("RTX 4080 Laptop GPU", ANY, 432.0),
    ("RTX 4070 Laptop GPU", ANY, 256.0),
    ("RTX 4060 Laptop GPU", ANY, 256.0),
    ("RTX 4050 Laptop GPU", ANY, 192.0),
    ("RTX 3090 Ti", ANY, 1008.0),
    ("RTX 3090", ANY, 936.0),
    ("RTX 3080 Ti", ANY, 912.0),
    ("RTX 3080", 10, 760.0),
    ("RTX 3080", ANY, 912.0),
    ("RTX 3070 Ti", ANY, 608.0),
    ("RTX 3070", ANY, 448.0),
    ("RTX 3060 Ti", ANY, 448.0),
    ("RTX 3060", 8, 240.0),
    ("RTX 3060", ANY, 360.0),
    ("RTX 3050", 6, 168.0),
    ("RTX 3050", ANY, 224.0),
    ("RTX 3080 Ti Laptop GPU", ANY, 512.0),
    ("RTX 3080 Laptop GPU", ANY, 448.0),
    ("RTX 3070 Ti Laptop GPU", ANY, 448.0),
    ("RTX 3070 Laptop GPU", ANY, 448.0),
    ("RTX 3060 Laptop GPU", ANY, 336.0),
    ("RTX 3050 Ti Laptop GPU", ANY, 192.0),
    ("RTX 2080 Ti", ANY, 616.0),
    ("RTX 2080 SUPER", ANY, 496.0),
    ("RTX 2080", ANY, 448.0),
    ("RTX 2070 SUPER", ANY, 448.0),
    ("RTX 2070", ANY, 448.0),
    ("RTX 2060 SUPER", ANY, 448.0),
    ("RTX 2060", ANY, 336.0),
    ("GTX 1660 SUPER", ANY, 336.0),
    ("GTX 1660 Ti", ANY, 288.0),
    ("GTX 1660", ANY, 192.0),
    ("GTX 1080 Ti", ANY, 484.0),
    ("GTX 1080", ANY, 320.0),
    ("GTX 1070", ANY, 256.0),
    ("TITAN RTX", ANY, 672.0),
    ("RTX A6000", ANY, 768.0),
    ("RTX A5000", ANY, 768.0),
    ("RTX A4000", ANY, 448.0),
    ("RTX A2000 12GB", ANY, 288.0),
    ("RTX 6000 Ada Generation", ANY, 960.0),
    ("RTX 5000 Ada Generation", ANY, 576.0),
    ("RTX 4500 Ada Generation", ANY, 432.0),
    ("RTX 4000 Ada Generation", ANY, 360.0),
    ("RTX 2000 Ada Generation", ANY, 224.0),
    ("RTX PRO 6000 Blackwell Workstation Edition", ANY, 1792.0),
    ("GB10", ANY, 273.0),
    ("A100-SXM4-40GB", ANY, 1555.0),
    ("A100-PCIE-40GB", ANY, 1555.0),
    ("A100-SXM4-80GB", ANY, 2039.0),
    ("A100 80GB PCIe", ANY, 1935.0),
    ("A40", ANY, 696.0),
    ("A30", ANY, 933.0),
    ("A10", ANY, 600.0),
    ("A10G", ANY, 600.0),
    ("L4", ANY, 300.0),
    ("L40", ANY, 864.0),
    ("L40S", ANY, 864.0),
    ("H100 PCIe", ANY, 2039.0),
    ("H100 80GB HBM3", ANY, 3352.0),
    ("H200", ANY, 4800.0),
    ("T4", ANY, 320.0),
    ("P40", ANY, 347.0),
];

/// PCI device number, name, maximum GiB of memory, and GB/s. Several cards can share one device number.
type Numbered = (u16, &'static str, u64, f64);

const AMD: [Numbered; 13] = [
    (0x744c, "Radeon RX 7900 GRE", 16, 576.0),
    (0x744c, "Radeon RX 7900 XT", 20, 800.0),
    (0x744c, "Radeon RX 7900 XTX", ANY, 960.0),
    (0x747e, "Radeon RX 7700 XT", 12, 432.0),
    (0x747e, "Radeon RX 7800 XT", ANY, 624.0),
    (0x7480, "Radeon RX 7600", ANY, 288.0),
    (0x7550, "Radeon RX 9070", ANY, 644.6),
    (0x7551, "Radeon AI PRO R9700", ANY, 644.6),
    (0x7590, "Radeon RX 9060 XT", ANY, 322.3),
    (0x73bf, "Radeon RX 6800", ANY, 512.0),
    (0x73df, "Radeon RX 6700 XT", ANY, 384.0),
    (0x66af, "Radeon VII", ANY, 1024.0),
    (0x74a1, "Instinct MI300X", ANY, 5300.0),
];

const INTEL: [Numbered; 5] = [
    (0x56a0, "Arc A770", 8, 512.0),
    (0x56a0, "Arc A770", ANY, 560.0),
    (0x56a1, "Arc A750", ANY, 512.0),
    (0xe20b, "Arc B580", ANY, 456.0),
    (0xe20c, "Arc B570", ANY, 380.0),
];

/// AMD processors with integrated graphics, which use the system's memory.
const AMD_UNIFIED: [(u16, &str); 16] = [
    (0x15dd, "Radeon Vega (Raven Ridge)"),
    (0x15d8, "Radeon Vega (Picasso)"),
    (0x1636, "Radeon Vega (Renoir)"),
    (0x164c, "Radeon Vega (Lucienne)"),
    (0x1638, "Radeon Vega (Cezanne)"),
    (0x15e7, "Radeon Vega (Barcelo)"),
    (0x163f, "Radeon (Van Gogh)"),
    (0x164e, "Radeon (Raphael)"),
    (0x1681, "Radeon 680M"),
    (0x15bf, "Radeon 780M"),
    (0x1900, "Radeon 780M"),
    (0x15c8, "Radeon 740M"),
    (0x150e, "Radeon 890M"),
    (0x1114, "Radeon 860M"),
    (0x1586, "Radeon 8060S"),
    (0x13c0, "Radeon (Granite Ridge)"),
];

const APPLE: [(&str, f64); 18] = [
    ("Apple M1", 68.25),
    ("Apple M1 Pro", 200.0),
    ("Apple M1 Max", 400.0),
    ("Apple M1 Ultra", 800.0),
    ("Apple M2", 100.0),
    ("Apple M2 Pro", 200.0),
    ("Apple M2 Max", 400.0),
    ("Apple M2 Ultra", 800.0),
    ("Apple M3", 100.0),
    ("Apple M3 Pro", 150.0),
    // The value of the variant with more cores. The variant with fewer cores has three quarters of it.
    ("Apple M3 Max", 400.0),
    ("Apple M3 Ultra", 819.0),
    ("Apple M4", 120.0),
    ("Apple M4 Pro", 273.0),
    ("Apple M4 Max", 546.0),
    ("Apple M5", 153.0),
    ("Apple M5 Pro", 307.0),
    ("Apple M5 Max", 614.0),
];

const GIB: f64 = (1_u64 << 30) as f64;
const GB: f64 = 1e9;

/// Rounds to whole GiB, because drivers report slightly less than the nominal size.
fn gib(memory_bytes: u64) -> u64 {
    (memory_bytes as f64 / GIB).round() as u64
}

/// Returns the bandwidth in bytes per second.
pub(crate) fn nvidia(name: &str, memory_bytes: u64) -> Option<f64> {
    let short = ["NVIDIA ", "GeForce ", "Tesla "]
        .iter()
        .fold(name, |name, word| name.strip_prefix(word).unwrap_or(name));
    let short = short.split(" with Max-Q").next().unwrap_or(short);
    let mut rows = NVIDIA.iter();
    let row = rows.find(|(known, most, _)| *known == short && gib(memory_bytes) <= *most);
    row.map(|(_, _, gb_s)| gb_s * GB)
}

/// A bandwidth in bytes per second as a fact.
pub(crate) fn data_sheet(bytes_s: f64) -> Fact<f64> {
    Fact { value: bytes_s, basis: Basis::Prior, source: "data sheet".to_owned() }
}

/// The facts that belong to a device number.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Card {
    pub(crate) name: &'static str,
    pub(crate) bytes_s: f64,
}

pub(crate) fn amd(device: u16, memory_bytes: u64) -> Option<Card> {
    numbered(&AMD, device, memory_bytes)
}

pub(crate) fn intel(device: u16, memory_bytes: u64) -> Option<Card> {
    numbered(&INTEL, device, memory_bytes)
}

fn numbered(rows: &[Numbered], device: u16, memory_bytes: u64) -> Option<Card> {
    let is_it = |row: &&Numbered| row.0 == device && gib(memory_bytes) <= row.2;
    rows.iter().find(is_it).map(|(_, name, _, gb_s)| Card { name, bytes_s: gb_s * GB })
}

pub(crate) fn amd_unified(device: u16) -> Option<&'static str> {
    AMD_UNIFIED.iter().find(|(known, _)| *known == device).map(|(_, name)| *name)
}

pub(crate) fn apple(chip: &str) -> Option<f64> {
    APPLE.iter().find(|(known, _)| *known == chip).map(|(_, gb_s)| gb_s * GB)
}

#[cfg(test)]
mod tests {
    use super::*;

    const MIB: u64 = 1 << 20;

    #[test]
    fn a_card_is_known_by_its_whole_name() {
        let rows = [
            ("NVIDIA GeForce RTX 4070 Laptop GPU", 8188, Some(256e9)),
            ("NVIDIA GeForce RTX 4070", 12282, Some(504e9)),
            ("NVIDIA GeForce RTX 3060", 12288, Some(360e9)),
            ("NVIDIA GeForce RTX 3060", 8192, Some(240e9)),
            ("NVIDIA H200", 143_771, Some(4800e9)),
            ("Tesla T4", 15_360, Some(320e9)),
            ("NVIDIA GeForce RTX 4070 Extreme", 12282, None),
        ];
        for (name, mib, expected) in rows {
            assert_eq!(nvidia(name, mib * MIB), expected, "{name}");
        }
    }

    #[test]
    fn one_number_stands_for_cards_of_several_sizes() {
        let name = |device, mib: u64| amd(device, mib * MIB).map(|card| card.name);
        assert_eq!(name(0x744c, 24_560), Some("Radeon RX 7900 XTX"));
        assert_eq!(name(0x744c, 20_464), Some("Radeon RX 7900 XT"));
        assert_eq!((name(0x1234, 8_192), amd_unified(0x1638).is_some()), (None, true));
        assert_eq!((apple("Apple M4 Pro"), apple("Apple M4 Pro Max")), (Some(273e9), None));
    }
}
