//! Reads how busy this machine is: time spent waiting for cores, load, and CPU time stolen by the host.
//! Reads Linux' files. On other systems all values are `None`.

use crate::files::read;

/// The load at this moment.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct SystemLoad {
    /// Percent of the last ten seconds in which some task waited for a core.
    pub waiting_percent: Option<f64>,
    /// Load average of the last minute.
    pub load1: Option<f64>,
}

impl SystemLoad {
    pub fn now() -> SystemLoad {
        SystemLoad {
            waiting_percent: waiting(&read("/proc/pressure/cpu")),
            load1: read("/proc/loadavg").split(' ').next().and_then(|load| load.parse().ok()),
        }
    }
}

/// CPU time of all cores since the system started, in ticks.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct CpuTime {
    total: u64,
    /// Time that the host took from this virtual machine.
    stolen: u64,
}

impl CpuTime {
    pub fn now() -> CpuTime {
        CpuTime::parsed(&read("/proc/stat"))
    }

    fn parsed(stat: &str) -> CpuTime {
        let all = stat.lines().find_map(|line| line.strip_prefix("cpu ")).unwrap_or_default();
        let ticks: Vec<u64> = all.split_whitespace().filter_map(|tick| tick.parse().ok()).collect();
        // The last two fields (guest time) are already part of the first ones.
        CpuTime {
            total: ticks.iter().take(8).sum(),
            stolen: ticks.get(7).copied().unwrap_or_default(),
        }
    }

    /// Returns the stolen share of all CPU time since `earlier`. Returns `None` if no time has passed.
    pub fn stolen_share_since(self, earlier: CpuTime) -> Option<f64> {
        let total = self.total.saturating_sub(earlier.total);
        let stolen = self.stolen.saturating_sub(earlier.stolen);
        (total > 0).then(|| stolen as f64 / total as f64)
    }
}

fn waiting(text: &str) -> Option<f64> {
    let some = text.lines().find_map(|line| line.strip_prefix("some "))?;
    some.split(' ').find_map(|field| field.strip_prefix("avg10="))?.parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn files_of_linux() {
        assert_eq!(waiting("some avg10=12.50 avg60=3.00\nfull avg10=0.00\n"), Some(12.5));
        assert_eq!(waiting(""), None);
        let earlier = CpuTime::parsed("cpu  10 0 10 70 0 0 0 10 5 5\ncpu0 1 1 1\n");
        assert_eq!(earlier, CpuTime { total: 100, stolen: 10 });
        let later = CpuTime::parsed("cpu  10 0 10 160 0 0 0 20 5 5\n");
        assert_eq!(later.stolen_share_since(earlier), Some(0.1));
        assert_eq!(CpuTime::parsed("").stolen_share_since(CpuTime::default()), None);
    }
}
