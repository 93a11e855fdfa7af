//! Counts the energy of the CPU packages and of NVIDIA cards, of the whole machine and not of one program.
//! Packages have counters (RAPL). Cards tell their power, which is summed up while it is read.

use std::collections::BTreeMap;
use std::io::{BufRead, BufReader};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::mpsc::sync_channel;
use std::sync::{Arc, Mutex};
use std::thread;
use std::time::{Duration, Instant};

use hob_core::locked;

use crate::files::{OUTPUT_TIME_MAX, number, read};

const ZONES: &str = "/sys/class/powercap";
/// Prints the number of each card and its power in watts, one line a card, five times a second.
const CARDS: [&str; 4] =
    ["nvidia-smi", "--query-gpu=index,power.draw", "--format=csv,noheader,nounits", "-lms=200"];
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
    /// `None` after it was dropped.
    child: Option<Child>,
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
        let cards = Cards::start(Command::new(program).args(rest), OUTPUT_TIME_MAX);
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
    fn start(command: &mut Command, first_line_max: Duration) -> Option<Cards> {
        let quiet = command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::null());
        let mut child = quiet.spawn().ok()?;
        let lines = BufReader::new(child.stdout.take()?).lines().map_while(Result::ok);
        let joules = Arc::new(Mutex::new(0.0));
        let sum = Arc::clone(&joules);
        let (sender, first) = sync_channel(1);
        thread::spawn(move || {
            let mut last = LastPower::default();
            for line in lines {
                let used = last.joules(&line, Instant::now());
                // Only the first message is read.
                let _unread = sender.try_send(used.is_some());
                *locked(&sum) += used.unwrap_or(0.0);
            }
        });
        let cards = Cards { child: Some(child), joules };
        // A machine without cards gets a sentence instead of numbers. With a broken driver, the program never answers.
        first.recv_timeout(first_line_max).unwrap_or(false).then_some(cards)
    }

    fn joules(&self) -> f64 {
        *locked(&self.joules)
    }
}

/// What each card drew at its last line, by its number.
#[derive(Default)]
struct LastPower(BTreeMap<u32, (Instant, f64)>);

impl LastPower {
    /// Joules of a card since its line before; 0 for its first line. `None`: the line does not state the power of a card.
    fn joules(&mut self, line: &str, now: Instant) -> Option<f64> {
        let (card, power_w) = line.split_once(',')?;
        let is_power = |watts: &f64| watts.is_finite() && *watts >= 0.0;
        let power_w = power_w.trim().parse().ok().filter(is_power)?;
        let before = self.0.insert(card.trim().parse().ok()?, (now, power_w));
        let joules = |(then, power_w): (Instant, f64)| power_w * (now - then).as_secs_f64();
        Some(before.map_or(0.0, joules))
    }
}

impl Drop for Cards {
    fn drop(&mut self) {
        let Some(mut child) = self.child.take() else { return };
        // An error means that it has ended.
        let _gone = child.kill();
        // A program that waits inside a broken driver cannot be killed, so this does not wait for its end.
        thread::spawn(move || drop(child.wait()));
    }
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
        let mut hangs = Command::new("/bin/sh");
        hangs.args(["-c", "exec sleep 600"]);
        assert!(Cards::start(&mut hangs, Duration::from_millis(100)).is_none());
    }

    #[test]
    fn the_power_of_cards_is_summed_up() {
        let script = "while echo 0, 100.0; do echo 1, 50.5; sleep 0.02; done";
        let cards = ["/bin/sh", "-c", script, ""];
        let mut meter = EnergyMeter::of(Path::new("/nowhere"), cards).expect("cards");
        let started = Instant::now();
        while meter.joules() < 1.0 {
            assert!(started.elapsed().as_secs() < 60, "{}", meter.joules());
            thread::yield_now();
        }
        // Both cards draw 150.5 W together since the program began.
        assert!(meter.joules() <= 150.5 * (started.elapsed().as_secs_f64() + 1.0));
    }

    #[test]
    fn each_card_draws_its_power_until_its_own_next_line() {
        let (mut last, begun) = (LastPower::default(), Instant::now());
        let mut joules = |line: &str, ms: u64| last.joules(line, begun + Duration::from_millis(ms));
        assert_eq!((joules("0, 100.0", 0), joules("1, 50.0", 1)), (Some(0.0), Some(0.0)));
        assert_eq!((joules("0, 80.0", 200), joules("1, 50.0", 201)), (Some(20.0), Some(10.0)));
        assert_eq!((joules("0, [N/A]", 400), joules("No devices were found", 401)), (None, None));
    }
}
