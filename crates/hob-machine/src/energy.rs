//! Counts the energy of the CPU packages and of NVIDIA cards, of the whole machine and not of one program.
//! Packages have counters (RAPL). Cards tell their power, which is summed up while it is read.

use std::io::{BufRead, BufReader};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::{Arc, Mutex};
use std::thread;
use std::time::Instant;

use hob_core::locked;

use crate::files::{number, read};

const ZONES: &str = "/sys/class/powercap";
/// Prints the power of each card in watts, one line a card, five times a second.
const CARDS: [&str; 4] =
    ["nvidia-smi", "--query-gpu=power.draw", "--format=csv,noheader,nounits", "-lms=200"];
const J_PER_UJ: f64 = 1e-6;

/// Energy since it was started.
#[derive(Debug)]
pub struct EnergyMeter {
    packages: Vec<Package>,
    cards: Option<Cards>,
}

/// The counter of a CPU package.
#[derive(Debug)]
struct Package {
    folder: PathBuf,
    last_uj: u64,
    used_uj: u64,
}

/// A program that prints the power of cards. It ends with the meter.
#[derive(Debug)]
struct Cards {
    child: Child,
    joules: Arc<Mutex<f64>>,
}

impl EnergyMeter {
    /// `None` if this machine does not tell any energy: most virtual machines, and Linux without the right to read the
    /// counters, which usually only root has.
    pub fn start() -> Option<EnergyMeter> {
        EnergyMeter::of(Path::new(ZONES), CARDS)
    }

    fn of(zones: &Path, [program, rest @ ..]: [&str; 4]) -> Option<EnergyMeter> {
        let zones = fs_err::read_dir(zones).into_iter().flatten().flatten();
        let packages: Vec<Package> = zones.filter_map(|zone| Package::start(zone.path())).collect();
        let cards = Cards::start(Command::new(program).args(rest));
        (!packages.is_empty() || cards.is_some()).then_some(EnergyMeter { packages, cards })
    }

    /// Joules since the start. A counter that turns over more than once between two calls loses a turn; it takes an
    /// hour or more for one.
    pub fn joules(&mut self) -> f64 {
        let packages: f64 = self.packages.iter_mut().map(Package::joules).sum();
        packages + self.cards.as_ref().map_or(0.0, Cards::joules)
    }
}

impl Package {
    /// Cores and memory have zones inside of the package's zone, which counts them already.
    fn start(folder: PathBuf) -> Option<Package> {
        let is_package = read(folder.join("name")).starts_with("package");
        let last_uj = number(folder.join("energy_uj")).filter(|_| is_package)?;
        Some(Package { folder, last_uj, used_uj: 0 })
    }

    fn joules(&mut self) -> f64 {
        if let Some(now_uj) = number(self.folder.join("energy_uj")) {
            let turn_uj = number(self.folder.join("max_energy_range_uj")).unwrap_or(0);
            let used_uj = match now_uj.checked_sub(self.last_uj) {
                Some(used_uj) => used_uj,
                None => (now_uj + turn_uj).saturating_sub(self.last_uj),
            };
            self.used_uj += used_uj;
            self.last_uj = now_uj;
        }
        self.used_uj as f64 * J_PER_UJ
    }
}

impl Cards {
    fn start(command: &mut Command) -> Option<Cards> {
        let quiet = command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::null());
        let mut child = quiet.spawn().ok()?;
        let mut lines = BufReader::new(child.stdout.take()?).lines().map_while(Result::ok);
        // A machine without cards gets a sentence instead of a number.
        let Some(first) = lines.next().and_then(|line| watts(&line)) else {
            end(&mut child);
            return None;
        };
        let joules = Arc::new(Mutex::new(0.0));
        let sum = Arc::clone(&joules);
        thread::spawn(move || {
            let (mut before, mut power_w) = (Instant::now(), first);
            for line in lines {
                let now = Instant::now();
                let used = power_w * now.duration_since(before).as_secs_f64();
                *locked(&sum) += used;
                (before, power_w) = (now, watts(&line).unwrap_or(0.0));
            }
        });
        Some(Cards { child, joules })
    }

    fn joules(&self) -> f64 {
        *locked(&self.joules)
    }
}

fn watts(line: &str) -> Option<f64> {
    line.trim().parse().ok().filter(|watts: &f64| watts.is_finite() && *watts >= 0.0)
}

impl Drop for Cards {
    fn drop(&mut self) {
        end(&mut self.child);
    }
}

fn end(child: &mut Child) {
    // An error means that it has ended.
    let _gone = child.kill();
    let _reaped = child.wait();
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::files::folder_with;

    const NO_CARDS: [&str; 4] = ["/nowhere/nvidia-smi", "", "", ""];

    #[test]
    fn packages_count_once_and_over_the_end_of_their_counter() {
        let zones = folder_with(&[
            ("intel-rapl:0/name", "package-0\n"),
            ("intel-rapl:0/energy_uj", "9000000\n"),
            ("intel-rapl:0/max_energy_range_uj", "10000000\n"),
            ("intel-rapl:0:0/name", "core\n"),
            ("intel-rapl:0:0/energy_uj", "5000000\n"),
        ]);
        let mut meter = EnergyMeter::of(zones.path(), NO_CARDS).expect("a package");
        assert_eq!(meter.joules(), 0.0);
        let set = |uj: &str| {
            fs_err::write(zones.path().join("intel-rapl:0/energy_uj"), uj).expect("written");
        };
        set("9500000");
        assert_eq!(meter.joules(), 0.5);
        set("2000000");
        assert_eq!(meter.joules(), 3.0);
    }

    #[test]
    fn a_machine_that_tells_nothing_has_no_meter() {
        let zones = folder_with(&[("intel-rapl:0/name", "package-0\n")]);
        assert!(EnergyMeter::of(zones.path(), NO_CARDS).is_none());
        let refusal = ["/bin/echo", "NVIDIA-SMI has failed", "", ""];
        assert!(EnergyMeter::of(Path::new("/nowhere"), refusal).is_none());
    }

    #[test]
    fn the_power_of_cards_is_summed_up() {
        let script = "while echo 100.0; do echo 50.5; sleep 0.02; done";
        let cards = ["/bin/sh", "-c", script, ""];
        let mut meter = EnergyMeter::of(Path::new("/nowhere"), cards).expect("cards");
        let started = Instant::now();
        while meter.joules() < 1.0 {
            assert!(started.elapsed().as_secs() < 60, "{}", meter.joules());
            thread::yield_now();
        }
        // At most 100 W since the program began.
        assert!(meter.joules() <= 100.0 * (started.elapsed().as_secs_f64() + 1.0));
    }
}
