//! Reads AMD and Intel graphics from the files of Linux' direct rendering manager (DRM).
//! Follows the kernel's documentation of amdgpu, i915 and xe; not tested on real cards.

use std::path::{Path, PathBuf};

use hob_core::machine::{Device, Gpu, GpuApi, GpuMemory, Vendor};

use crate::cards::{self, Card};
use crate::files::{non_empty, number, read};
use crate::memory::Vram;
use crate::nvidia::link;

const CARDS: &str = "/sys/class/drm";
pub(crate) const SOURCE: &str = CARDS;
/// AMD's compute stack. Without it llama.cpp is built for Vulkan.
const ROCM: &str = "/opt/rocm";
/// Files in which distributions keep the names of PCI devices.
const NAMES: [&str; 2] = ["/usr/share/hwdata/pci.ids", "/usr/share/misc/pci.ids"];
/// Maximum memory that a system usually reserves for integrated graphics, which borrow more when needed. Cards that run models
/// have more of their own.
const SET_ASIDE_BYTES_MAX: u64 = 2 << 30;
const AMD: u16 = 0x1002;
const INTEL: u16 = 0x8086;

pub(crate) fn cards(ram_bytes: u64) -> Vec<Gpu> {
    let names = NAMES.iter().map(read).find(|names| !names.is_empty()).unwrap_or_default();
    let has_rocm = Path::new(ROCM).exists();
    let system =
        System { ram_bytes, names, api: if has_rocm { GpuApi::Rocm } else { GpuApi::Vulkan } };
    folders(Path::new(CARDS)).iter().filter_map(|folder| system.card(folder)).collect()
}

/// Returns the memory of all AMD cards together.
pub(crate) fn vram() -> Option<Vram> {
    let card = |folder: &PathBuf| {
        let of = |name: &str| number(folder.join(name));
        Some(Vram {
            used_bytes: of("mem_info_vram_used")?,
            total_bytes: of("mem_info_vram_total")?,
        })
    };
    Vram::together(folders(Path::new(CARDS)).iter().filter_map(card).collect())
}

/// Returns the device folders of all cards. Skips the outputs of a card, which have the same device.
fn folders(cards: &Path) -> Vec<PathBuf> {
    let Ok(entries) = fs_err::read_dir(cards) else { return Vec::new() };
    let is_card = |entry: &fs_err::DirEntry| {
        let name = entry.file_name();
        name.to_string_lossy().strip_prefix("card").is_some_and(|rest| rest.parse::<u32>().is_ok())
    };
    let cards = entries.flatten().filter(is_card).map(|entry| entry.path().join("device"));
    let mut cards: Vec<PathBuf> = cards.collect();
    cards.sort();
    cards
}

/// Facts that are the same for all cards.
struct System {
    ram_bytes: u64,
    /// The content of `pci.ids`.
    names: String,
    /// The API of AMD cards.
    api: GpuApi,
}

impl System {
    fn card(&self, folder: &Path) -> Option<Gpu> {
        let id = |name: &str| hexadecimal(&read(folder.join(name)));
        let device = id("device")?;
        match id("vendor")? {
            AMD => self.amd(folder, device),
            INTEL => Some(self.intel(folder, device)),
            _ => None,
        }
    }

    fn amd(&self, folder: &Path, device: u16) -> Option<Gpu> {
        let of = |name: &str| number(folder.join(name));
        let total_bytes = of("mem_info_vram_total")?;
        let free_bytes = total_bytes.saturating_sub(of("mem_info_vram_used").unwrap_or(0));
        let unified = cards::amd_unified(device);
        let borrowed_bytes = of("mem_info_gtt_total").unwrap_or(0);
        // The system does not count what the firmware reserves for graphics. If they may borrow less than that, as on machines
        // set up for models, it counts as their own memory. Otherwise they share the system's.
        let is_in_processor = unified.is_some();
        let is_own = !is_in_processor || total_bytes > borrowed_bytes;
        if is_own && total_bytes > SET_ASIDE_BYTES_MAX {
            let memory = GpuMemory::Own { total_bytes, free_bytes };
            let card = cards::amd(device, total_bytes);
            let gpu = self.gpu(folder, Found { device, memory, card, name: unified });
            let link = gpu.link.clone().filter(|_| !is_in_processor);
            return Some(Gpu { is_in_processor, link, ..gpu });
        }
        let used_bytes = of("mem_info_gtt_used").unwrap_or(0);
        let limit_bytes = free_bytes.saturating_add(borrowed_bytes.saturating_sub(used_bytes));
        let memory = GpuMemory::Unified { limit_bytes };
        Some(self.gpu(folder, Found { device, memory, card: None, name: unified }))
    }

    fn intel(&self, folder: &Path, device: u16) -> Gpu {
        let own =
            [folder.join("../lmem_total_bytes"), folder.join("tile0/physical_vram_size_bytes")];
        let own_bytes = own.iter().find_map(|file| number(file).filter(|bytes| *bytes > 0));
        let memory = match own_bytes {
            Some(total_bytes) => {
                let left = number(folder.join("../lmem_avail_bytes")).unwrap_or(total_bytes);
                GpuMemory::Own { total_bytes, free_bytes: left.min(total_bytes) }
            }
            // Intel's drivers allow half of the system's memory.
            None => GpuMemory::Unified { limit_bytes: self.ram_bytes / 2 },
        };
        let card = own_bytes.and_then(|bytes| cards::intel(device, bytes));
        self.gpu(folder, Found { device, memory, card, name: None })
    }

    fn gpu(&self, folder: &Path, found: Found) -> Gpu {
        let Found { device, memory, card, name } = found;
        let is_amd = hexadecimal(&read(folder.join("vendor"))) == Some(AMD);
        let (vendor, id, api) = if is_amd {
            (Vendor::Amd, AMD, self.api)
        } else {
            (Vendor::Intel, INTEL, GpuApi::Vulkan)
        };
        let known = card.map(|card| card.name).or(name).map(str::to_owned);
        let unnamed = || format!("{} graphics {device:#06x}", vendor.name());
        let name = non_empty(&read(folder.join("product_name"))).or(known);
        let bandwidth = card.map(|card| cards::data_sheet(card.bytes_s));
        let is_own = matches!(memory, GpuMemory::Own { .. });
        let name = name.or_else(|| named(&self.names, id, device)).unwrap_or_else(unnamed);
        Gpu {
            driver: driver(folder),
            link: link_of(folder).filter(|_| is_own),
            device: Device { bandwidth, constants: None },
            ..Gpu::new(name, vendor, api, memory)
        }
    }
}

/// A card that was found.
struct Found {
    device: u16,
    memory: GpuMemory,
    card: Option<Card>,
    name: Option<&'static str>,
}

fn hexadecimal(text: &str) -> Option<u16> {
    u16::from_str_radix(text.trim().strip_prefix("0x")?, 16).ok()
}

fn driver(folder: &Path) -> Option<String> {
    let target = fs_err::read_link(folder.join("driver")).ok()?;
    Some(target.file_name()?.to_string_lossy().into_owned())
}

/// Reads a speed such as `16.0 GT/s PCIe`, and the number of lanes.
fn link_of(folder: &Path) -> Option<hob_core::machine::Link> {
    let speed = read(folder.join("max_link_speed"));
    let lanes = number(folder.join("max_link_width"))?;
    let generation = match speed.split(' ').next()?.trim() {
        "2.5" => 1,
        "5.0" | "5" => 2,
        "8.0" | "8" => 3,
        "16.0" | "16" => 4,
        "32.0" | "32" => 5,
        "64.0" | "64" => 6,
        _ => return None,
    };
    link(Some(generation), u32::try_from(lanes).ok())
}

/// Finds a device name in `pci.ids`. Lines of vendors have no indent; lines of their devices start with a tab.
fn named(names: &str, vendor: u16, device: u16) -> Option<String> {
    let (vendor, device) = (format!("{vendor:04x}  "), format!("\t{device:04x}  "));
    let of_vendor = names.lines().skip_while(|line| !line.starts_with(&vendor)).skip(1);
    let mut devices = of_vendor.take_while(|line| line.starts_with(['\t', '#']) || line.is_empty());
    non_empty(devices.find_map(|line| line.strip_prefix(&device))?)
}

#[cfg(test)]
mod tests;
