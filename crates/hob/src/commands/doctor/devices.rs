//! Checks the devices that the chat engine finds: each computes a token of the chat model, in a process of its own.
//! A graphics card that the engine does not find is a warning that says what to install.

use hob_core::machine::{Gpu, Vendor};
use hob_engines::chat::{CardUse, DeviceReport, EngineDevice};

use super::check::Check;
use crate::app::App;
use crate::machine::here;
use crate::wire_up::{
    ChatFile, HiddenCards, TriedDevices, other_build, run_devices_worker, used_cards,
};

const MB: u64 = 1_000_000;
/// What to do about a device that the worker did not reach.
const RETRY: &str = "repair what fails, then run `hob doctor` again";

pub(super) async fn checks(app: &App<'_>) -> Vec<Check> {
    // Without a model the devices are only listed. That it is missing is a finding of its own.
    let model = ChatFile::find(&app.settings.chat, app).ok();
    let looking = app.printer.spinner("trying the devices");
    let tried = run_devices_worker(model.as_ref().map(|file| file.path.as_path())).await;
    looking.finish_and_clear();
    let tried = match tried {
        Ok(tried) => tried,
        Err(failure) => return vec![Check::failed("devices", failure)],
    };
    let mut checks = of_devices(&tried, model.is_some());
    checks.extend(unused_libraries(&tried));
    let named = app.written.config.named_devices();
    checks.extend(named.filter_map(|(table, cards)| unknown_device(&table, cards, &tried)));
    let gpus = here(app).machine.gpus;
    let used: Vec<Gpu> = used_cards(&gpus).map(|(_, gpu)| gpu.clone()).collect();
    checks.extend(hidden_cards(used.len(), &tried, &HiddenCards::of(app)));
    checks.extend(unused_card(&gpus, &used, &tried));
    checks
}

fn found(tried: &TriedDevices) -> impl Iterator<Item = &EngineDevice> {
    tried.reports.iter().filter_map(|report| match report {
        DeviceReport::Found(device) => Some(device),
        DeviceReport::Unused { .. }
        | DeviceReport::Computed { .. }
        | DeviceReport::Failed { .. } => None,
    })
}

/// A finding for each device. Without devices: why the engine does not start.
fn of_devices(tried: &TriedDevices, has_model: bool) -> Vec<Check> {
    // The worker tries one device after the other, so the first without a result is the one that ended it.
    let culprit = found(tried).position(|device| outcome(device, tried).is_none());
    let mut checks: Vec<Check> = found(tried)
        .enumerate()
        .map(|(place, device)| of_device(device, tried, has_model && culprit == Some(place)))
        .collect();
    if checks.is_empty() {
        let reason = tried.failed.as_deref().unwrap_or("it found no processor");
        let to_do = "run `hob worker devices` to see its message";
        checks.push(Check::fail(
            "devices",
            format!("the chat engine does not start: {reason}"),
            to_do,
        ));
    }
    checks
}

/// The milliseconds of a token on this device, or why it computed none. `None`: it was not tried, or not to the end.
fn outcome(device: &EngineDevice, tried: &TriedDevices) -> Option<Result<u64, String>> {
    tried.reports.iter().find_map(|report| match report {
        DeviceReport::Computed { device: name, took_ms } if *name == device.name => {
            Some(Ok(*took_ms))
        }
        DeviceReport::Failed { device: name, reason } if *name == device.name => {
            Some(Err(reason.clone()))
        }
        _ => None,
    })
}

/// If the worker ended, `was_tried` says whether on this device.
fn of_device(device: &EngineDevice, tried: &TriedDevices, was_tried: bool) -> Check {
    let part = format!("device {}", device.name);
    let EngineDevice { description, backend, free_bytes, total_bytes, .. } = device;
    let memory = match device.is_card {
        true => format!(", {} of {} MB free", free_bytes / MB, total_bytes / MB),
        // ggml reports the whole memory of the system as free.
        false => String::new(),
    };
    let what = format!("{}, {backend}{memory}", description.trim());
    let failed = |reason: &str| {
        let to_do = match device.is_card {
            true => "update its driver, or leave it out with `device` under [chat]",
            false => "pull the chat model again with `hob pull`",
        };
        Check::fail(&part, format!("{what}; it computed no token: {reason}"), to_do)
    };
    match (outcome(device, tried), &tried.failed) {
        (Some(Ok(took_ms)), _) => Check::ok(&part, format!("{what}, a token in {took_ms} ms")),
        (Some(Err(reason)), _) => failed(&reason),
        (None, Some(ended)) if was_tried => failed(&format!("its process ended: {ended}")),
        (None, Some(_)) => Check::warn(&part, format!("{what}; it was not tried"), RETRY),
        (None, _) => Check::ok(&part, what),
    }
}

/// A device that the settings name and the engine does not list.
fn unknown_device(table: &str, card_use: &CardUse, tried: &TriedDevices) -> Option<Check> {
    let devices: Vec<EngineDevice> = found(tried).cloned().collect();
    // Without any, the engine did not start, which is a finding of its own.
    let unknown = card_use.numbers(&devices).err().filter(|_| !devices.is_empty())?;
    let key = format!("{table}.device");
    let to_do = format!("change {key} in hob.toml");
    Some(Check::fail(key, unknown.to_string(), to_do))
}

/// The libraries of a portable build that have no device, with what a card would need. A machine without a card lacks nothing.
fn unused_libraries(tried: &TriedDevices) -> impl Iterator<Item = Check> {
    tried.reports.iter().filter_map(|report| {
        let DeviceReport::Unused { library } = report else { return None };
        let needed = match library.as_str() {
            "cuda" => "NVIDIA's driver (Debian: nvidia-driver), libcudart and libcublas of CUDA",
            "vulkan" => "its driver (Debian: mesa-vulkan-drivers for AMD and Intel) and libvulkan1",
            _ => "its maker's driver",
        };
        let found = format!("its library was found, and no device; a card needs {needed}");
        Some(Check::ok(format!("backend {library}"), found))
    })
}

/// Cards that variables hide from the engine, if the machine has `count` cards for this build.
fn hidden_cards(count: usize, tried: &TriedDevices, hidden: &HiddenCards) -> Option<Check> {
    let devices: Vec<EngineDevice> = found(tried).cloned().collect();
    // An engine that does not start lists no device, not even the processor.
    let remaining = hidden.remaining(&devices).filter(|_| !devices.is_empty())?;
    // Several libraries may list the same cards.
    let library = |name: &str| name.trim_end_matches(|c: char| c.is_ascii_digit()).to_owned();
    let of_library =
        |name: &String| remaining.iter().filter(|other| library(other) == library(name)).count();
    let most = remaining.iter().map(of_library).max().unwrap_or_default();
    (most < count).then(|| {
        let found = format!(
            "models may use {most} of {count}, because {} is set; hob counts no memory of the others",
            hidden.variables()
        );
        Check::ok("cards", found)
    })
}

/// A card of this machine that the engine cannot use. `used` has the cards for which this hob was built.
fn unused_card(gpus: &[Gpu], used: &[Gpu], tried: &TriedDevices) -> Option<Check> {
    if found(tried).any(|device| device.is_card) {
        return None;
    }
    if let Some((found, to_do)) = other_build(gpus, !used.is_empty()) {
        return Some(Check::warn("card", found, to_do));
    }
    let gpu = used.first()?;
    let names: Vec<&str> = used.iter().map(|gpu| gpu.name.as_str()).collect();
    let names = names.join(", ");
    let to_do = match gpu.vendor {
        Vendor::Nvidia => {
            "install NVIDIA's driver (Debian: nvidia-driver) and, for Vulkan, libvulkan1"
        }
        Vendor::Amd | Vendor::Intel => "install the Vulkan driver: mesa-vulkan-drivers, libvulkan1",
        Vendor::Apple | Vendor::Other => "install the maker's Vulkan driver, and libvulkan1",
    };
    Some(Check::warn("card", format!("{names}; no driver that this hob can use was found"), to_do))
}

#[cfg(test)]
mod tests {
    use hob_core::machine::{GpuApi, GpuMemory};

    use super::super::check::Verdict;
    use super::*;

    fn device(name: &str, is_card: bool) -> DeviceReport {
        DeviceReport::Found(EngineDevice {
            name: name.to_owned(),
            description: "Fast One".to_owned(),
            backend: "Vulkan".to_owned(),
            is_card,
            free_bytes: 7_000 * MB,
            total_bytes: 8_000 * MB,
        })
    }

    #[test]
    fn each_device_has_a_finding_with_its_token() {
        let computed = DeviceReport::Computed { device: "CPU".to_owned(), took_ms: 9 };
        let reason = "out of memory".to_owned();
        let failed = DeviceReport::Failed { device: "Vulkan0".to_owned(), reason };
        let both = vec![device("Vulkan0", true), device("CPU", false)];
        let with = |more: &[DeviceReport], ended: Option<&str>| TriedDevices {
            reports: [both.as_slice(), more].concat(),
            failed: ended.map(str::to_owned),
        };
        let rows = [
            (with(&[], None), false, [Verdict::Ok, Verdict::Ok]),
            (with(&[failed, computed.clone()], None), true, [Verdict::Fail, Verdict::Ok]),
            (with(&[computed], Some("signal: 11")), true, [Verdict::Fail, Verdict::Ok]),
            // The driver of the first device has ended the process, and the second one is not to blame.
            (with(&[], Some("signal: 11")), true, [Verdict::Fail, Verdict::Warn]),
            (with(&[], Some("signal: 11")), false, [Verdict::Warn, Verdict::Warn]),
        ];
        for (tried, has_model, expected) in rows {
            let checks = of_devices(&tried, has_model);
            let verdicts: Vec<Verdict> = checks.iter().map(|check| check.verdict).collect();
            assert_eq!(verdicts, expected, "{checks:?}");
            assert!(checks[0].found.starts_with("Fast One, Vulkan, 7000 of 8000 MB free"));
        }
        let nothing =
            TriedDevices { failed: Some("exit status: 1".to_owned()), ..TriedDevices::default() };
        assert_eq!(of_devices(&nothing, true)[0].verdict, Verdict::Fail);
    }

    #[test]
    fn a_named_device_that_the_engine_does_not_list_is_a_finding() {
        let tried = TriedDevices { reports: vec![device("Vulkan0", true)], failed: None };
        let check = |text: &str, tried: &TriedDevices| {
            let card_use: CardUse = text.parse().expect("devices");
            unknown_device("chat", &card_use, tried)
        };
        let found = check("Vulkan0,CUDA0", &tried).expect("a finding");
        assert_eq!((found.verdict, found.part.as_str()), (Verdict::Fail, "chat.device"));
        assert!(found.found.starts_with("there is no device "), "{found:?}");
        for text in ["vulkan0", "cpu", "all"] {
            assert!(check(text, &tried).is_none(), "{text}");
        }
        assert!(check("CUDA0", &TriedDevices::default()).is_none(), "the engine did not start");
    }

    #[test]
    fn a_library_without_a_device_says_what_a_card_needs() {
        let unused = |library: &str| DeviceReport::Unused { library: library.to_owned() };
        let reports = vec![device("CPU", false), unused("vulkan"), unused("cuda"), unused("sycl")];
        let tried = TriedDevices { reports, failed: None };
        let checks: Vec<Check> = unused_libraries(&tried).collect();
        let needs = ["libvulkan1", "nvidia-driver), libcudart", "its maker's driver"];
        assert_eq!(checks.len(), needs.len());
        for (check, needed) in checks.iter().zip(needs) {
            assert_eq!(check.verdict, Verdict::Ok, "{check:?}");
            assert!(check.found.contains(needed), "{check:?}");
        }
        assert_eq!(of_devices(&tried, false).len(), 1, "it is no device");
    }

    #[test]
    fn cards_that_a_variable_hides_are_counted_and_the_variable_is_named() {
        let cuda = HiddenCards::by(|name| (name == "CUDA_VISIBLE_DEVICES").then(|| "1".to_owned()));
        let tried = |names: &[&str]| TriedDevices {
            reports: names.iter().map(|name| device(name, *name != "CPU")).collect(),
            failed: None,
        };
        let rows: [(&[&str], usize, Option<&str>); 5] = [
            (&["CUDA0"], 2, Some("1 of 2, because CUDA_VISIBLE_DEVICES is set")),
            (&["CPU"], 1, Some("0 of 1, because ")),
            (&[], 1, None),
            (&["CUDA0"], 1, None),
            (&["CUDA0", "Vulkan0", "Vulkan1"], 2, None),
        ];
        for (names, count, expected) in rows {
            let found = hidden_cards(count, &tried(names), &cuda).map(|check| check.found);
            assert_eq!(found.is_some(), expected.is_some(), "{names:?}: {found:?}");
            let part = expected.unwrap_or_default();
            assert!(found.as_deref().unwrap_or_default().contains(part), "{found:?}");
        }
        assert!(hidden_cards(2, &tried(&["CUDA0"]), &HiddenCards::default()).is_none());
    }

    #[test]
    fn a_card_that_the_engine_does_not_find_needs_a_driver_or_another_build() {
        let memory = GpuMemory::Unified { limit_bytes: 8_000 * MB };
        let gpu = |vendor, api| Gpu::new("Fast One", vendor, api, memory);
        let cpu = TriedDevices { reports: vec![device("CPU", false)], failed: None };
        let card = TriedDevices { reports: vec![device("Vulkan0", true)], failed: None };
        let both = [gpu(Vendor::Amd, GpuApi::Vulkan), gpu(Vendor::Nvidia, GpuApi::Cuda)];
        let (amd, nvidia, none) = (&both[..1], &both[1..], &both[..0]);
        let rows = [
            (amd, amd, &cpu, Some("mesa-vulkan-drivers")),
            (amd, none, &cpu, Some("FEATURES=vulkan")),
            (nvidia, nvidia, &cpu, Some("nvidia-driver")),
            (nvidia, none, &cpu, Some("FEATURES=cuda")),
            (&both[..], nvidia, &cpu, Some("nvidia-driver")),
            (nvidia, nvidia, &card, None),
            (none, none, &cpu, None),
        ];
        for (gpus, used, tried, expected) in rows {
            let to_do = unused_card(gpus, used, tried).and_then(|check| check.to_do);
            assert_eq!(to_do.is_some(), expected.is_some(), "{gpus:?}");
            let part = expected.unwrap_or_default();
            assert!(to_do.unwrap_or_default().contains(part), "{gpus:?}: {part}");
        }
    }
}
