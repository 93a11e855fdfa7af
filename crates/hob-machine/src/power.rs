//! Reads what slows a machine down: battery power, thermal throttling and power limits.
//! Reads Linux' files. On other systems the values are unknown.

use std::path::{Path, PathBuf};

use crate::files::{number, read};

const SUPPLIES: &str = "/sys/class/power_supply";
/// Power limits of CPUs (RAPL) and of cards (hwmon), both in microwatts.
const LIMITS: &str = "/sys/class/powercap";
const SENSORS: &str = "/sys/class/hwmon";
const CPUS: &str = "/sys/devices/system/cpu";
/// Throttling counters of each hardware thread, on x86.
const COUNTS: [&str; 2] =
    ["thermal_throttle/core_throttle_count", "thermal_throttle/package_throttle_count"];

/// Returns whether the machine runs on battery power now. Returns `None` if no power supply reports it.
pub fn on_battery() -> Option<bool> {
    of_supplies(Path::new(SUPPLIES))
}

/// Returns how often CPUs were throttled since the system started. Threads that share a CPU count the same event, so only
/// an increase has a meaning. Returns `None` without counters, as in most virtual machines.
pub fn throttle_count() -> Option<u64> {
    of_cpus(Path::new(CPUS))
}

/// Returns the power limits, in watts, of the CPU packages and of the cards.
pub fn power_caps_w() -> Vec<f64> {
    let mut caps_w = caps_w(Path::new(LIMITS), Path::new(SENSORS));
    caps_w.extend(crate::nvidia::power_limits_w());
    caps_w
}

fn caps_w(limits: &Path, sensors: &Path) -> Vec<f64> {
    let cap = |folder: &PathBuf, name: &str| number(folder.join(name)).map(|uw| uw as f64 / 1e6);
    let of_cpus = folders(limits);
    let of_cpus = of_cpus.iter().filter_map(|one| cap(one, "constraint_0_power_limit_uw"));
    let of_cards = folders(sensors);
    of_cpus.chain(of_cards.iter().filter_map(|one| cap(one, "power1_cap"))).collect()
}

fn of_supplies(root: &Path) -> Option<bool> {
    let supplies = folders(root);
    let mains = supplies.iter().filter(|supply| is_kind(supply, "Mains"));
    let mains: Vec<u64> = mains.filter_map(|supply| number(supply.join("online"))).collect();
    if mains.iter().any(|online| *online > 0) {
        return Some(false);
    }
    let batteries = supplies.iter().filter(|supply| is_kind(supply, "Battery"));
    let states: Vec<String> = batteries.map(|supply| read(supply.join("status"))).collect();
    let says = |state: &str| states.iter().any(|said| said.trim() == state);
    if says("Discharging") {
        return Some(true);
    }
    // If mains power is off and the battery does not discharge, another source supplies it, such as USB.
    if ["Charging", "Full", "Not charging"].into_iter().any(says) {
        return Some(false);
    }
    (!mains.is_empty()).then_some(true)
}

/// Checks the kind of a supply. Skips batteries of mice and headsets, whose scope is `Device`.
fn is_kind(supply: &Path, kind: &str) -> bool {
    let said = |name: &str| read(supply.join(name));
    said("type").trim() == kind && said("scope").trim() != "Device"
}

fn of_cpus(root: &Path) -> Option<u64> {
    let of_cpu = |cpu: &PathBuf| COUNTS.map(|name| number(cpu.join(name)));
    folders(root).iter().flat_map(of_cpu).flatten().reduce(u64::saturating_add)
}

fn folders(root: &Path) -> Vec<PathBuf> {
    let entries = fs_err::read_dir(root).into_iter().flatten().flatten();
    entries.map(|entry| entry.path()).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::files::folder_with;

    #[test]
    fn mains_count_more_than_batteries_and_a_mouse_s_not_at_all() {
        let mains = |online| [("AC/type", "Mains\n"), ("AC/online", online)];
        let battery = |status| [("BAT0/type", "Battery\n"), ("BAT0/status", status)];
        let mouse = [
            ("mouse/type", "Battery\n"),
            ("mouse/scope", "Device\n"),
            ("mouse/status", "Discharging\n"),
        ];
        let rows = [
            (mains("1\n").to_vec(), Some(false)),
            ([mains("1\n"), battery("Discharging\n")].concat(), Some(false)),
            ([mains("0\n"), battery("Discharging\n")].concat(), Some(true)),
            ([mains("0\n"), battery("Charging\n")].concat(), Some(false)),
            ([mains("0\n"), battery("Unknown\n")].concat(), Some(true)),
            (battery("Discharging\n").to_vec(), Some(true)),
            (battery("Full\n").to_vec(), Some(false)),
            (battery("Unknown\n").to_vec(), None),
            (mouse.to_vec(), None),
            (Vec::new(), None),
        ];
        for (files, expected) in rows {
            let root = folder_with(&files);
            assert_eq!(of_supplies(root.path()), expected, "{files:?}");
        }
        assert_eq!(of_supplies(Path::new("/nowhere")), None);
    }

    #[test]
    fn power_limits_are_read_in_watts() {
        let limits = folder_with(&[("intel-rapl:0/constraint_0_power_limit_uw", "15000000\n")]);
        let sensors =
            folder_with(&[("hwmon3/power1_cap", "180000000\n"), ("hwmon4/name", "nvme\n")]);
        assert_eq!(caps_w(limits.path(), sensors.path()), [15.0, 180.0]);
        assert!(caps_w(Path::new("/nowhere"), Path::new("/nowhere")).is_empty());
    }

    #[test]
    fn throttling_is_counted_over_all_processors() {
        let root = folder_with(&[
            ("cpu0/thermal_throttle/core_throttle_count", "2\n"),
            ("cpu0/thermal_throttle/package_throttle_count", "3\n"),
            ("cpu1/thermal_throttle/core_throttle_count", "4\n"),
            ("cpufreq/boost", "1\n"),
        ]);
        assert_eq!(of_cpus(root.path()), Some(9));
        assert_eq!(of_cpus(folder_with(&[("cpu0/online", "1\n")]).path()), None);
    }
}
