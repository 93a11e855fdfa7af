//! Tests with folders as the kernel's drivers write them.
//! Covers cards with their own memory and integrated graphics.

use super::*;
use crate::files::folder_with;

const GIB: u64 = 1 << 30;

fn system() -> System {
    let names = "1001  Another\n\t1638  Not this\n1002  Advanced Micro Devices, Inc. [AMD/ATI]\n\
        \t15dd  Raven Ridge\n\t\t1002 15dd  A board\n\t1638  Cezanne [Radeon Vega Series]\n8086  Intel\n\t9a49  Iris Xe\n";
    System { ram_bytes: 16 * GIB, names: names.to_owned(), api: GpuApi::Vulkan }
}

fn read_of(files: &[(&str, &str)]) -> Vec<Gpu> {
    let folder = folder_with(files);
    folders(folder.path()).iter().filter_map(|card| system().card(card)).collect()
}

#[test]
fn a_processor_s_graphics_have_one_pool() {
    let got = read_of(&[
        ("card1/device/vendor", "0x1002\n"),
        ("card1/device/device", "0x1638\n"),
        ("card1/device/mem_info_vram_total", "536870912\n"),
        ("card1/device/mem_info_vram_used", "268435456\n"),
        ("card1/device/mem_info_gtt_total", "33000000000\n"),
        ("card1/device/mem_info_gtt_used", "1000000000\n"),
        ("card1/device/max_link_speed", "16.0 GT/s PCIe\n"),
        ("card1/device/max_link_width", "16\n"),
        ("card1-HDMI-A-1/device/vendor", "0x1002\n"),
        ("renderD128/device/vendor", "0x1002\n"),
    ]);
    let [gpu] = &got[..] else { panic!("{got:?}") };
    assert_eq!(gpu.memory, GpuMemory::Unified { limit_bytes: 32_268_435_456 });
    assert_eq!((gpu.vendor, gpu.api, &gpu.link), (Vendor::Amd, GpuApi::Vulkan, &None));
    assert_eq!(gpu.name, "Radeon Vega (Cezanne)");
}

#[test]
fn a_large_part_that_the_firmware_reserves_for_graphics_is_their_own() {
    let reserving = |vram: &str, gtt: &str| {
        let mut got = read_of(&[
            ("card1/device/vendor", "0x1002\n"),
            ("card1/device/device", "0x1586\n"),
            ("card1/device/mem_info_vram_total", vram),
            ("card1/device/mem_info_vram_used", "1073741824\n"),
            ("card1/device/mem_info_gtt_total", gtt),
            ("card1/device/max_link_speed", "16.0 GT/s PCIe\n"),
            ("card1/device/max_link_width", "16\n"),
        ]);
        got.remove(0)
    };
    let gpu = reserving("103079215104\n", "16642998272\n");
    let own = GpuMemory::Own { total_bytes: 96 * GIB, free_bytes: 95 * GIB };
    assert_eq!((gpu.memory, &*gpu.name, &gpu.link), (own, "Radeon 8060S", &None));
    assert!(gpu.is_in_processor && gpu.is_integrated());
    // Less than they may borrow.
    let gpu = reserving("4294967296\n", "6442450944\n");
    assert_eq!(gpu.memory, GpuMemory::Unified { limit_bytes: 9 * GIB });
    assert!(!gpu.is_in_processor && gpu.is_integrated());
}

#[test]
fn a_card_has_its_own() {
    let got = read_of(&[
        ("card0/device/vendor", "0x1002\n"),
        ("card0/device/device", "0x744c\n"),
        ("card0/device/mem_info_vram_total", "25753026560\n"),
        ("card0/device/mem_info_vram_used", "753026560\n"),
        ("card0/device/max_link_speed", "16.0 GT/s PCIe\n"),
        ("card0/device/max_link_width", "16\n"),
    ]);
    let [gpu] = &got[..] else { panic!("{got:?}") };
    let (total_bytes, free_bytes) = (25_753_026_560, 25_000_000_000);
    assert_eq!(gpu.memory, GpuMemory::Own { total_bytes, free_bytes });
    assert_eq!(gpu.name, "Radeon RX 7900 XTX");
    assert_eq!(gpu.link.as_ref().map(|link| link.name.as_str()), Some("PCIe 4.0 x16"));
    assert_eq!(gpu.device.bandwidth.as_ref().map(|fact| fact.value), Some(960e9));
}

#[test]
fn intel_s_are_in_the_processor_or_beside_it() {
    let got = read_of(&[
        ("card0/device/vendor", "0x8086\n"),
        ("card0/device/device", "0x9a49\n"),
        ("card1/device/vendor", "0x8086\n"),
        ("card1/device/device", "0x56a0\n"),
        ("card1/lmem_total_bytes", "17179869184\n"),
        ("card2/device/vendor", "0x1234\n"),
        ("card2/device/device", "0x1111\n"),
    ]);
    let [inside, beside] = &got[..] else { panic!("{got:?}") };
    assert_eq!(inside.memory, GpuMemory::Unified { limit_bytes: 8 * GIB });
    assert_eq!((inside.name.as_str(), &inside.device.bandwidth), ("Iris Xe", &None));
    assert_eq!(beside.memory, GpuMemory::Own { total_bytes: 16 * GIB, free_bytes: 16 * GIB });
    assert_eq!(beside.name, "Arc A770");
}

#[test]
fn devices_are_found_under_their_vendor() {
    let names = system().names;
    assert_eq!(named(&names, AMD, 0x1638).as_deref(), Some("Cezanne [Radeon Vega Series]"));
    assert_eq!((named(&names, AMD, 0x9a49), named("", AMD, 1)), (None, None));
}
