//! How long a model takes to load: measured times, and the delay that waiting clients are given.
//! Pure: callers pass how long each load took, and how long the current one has run.

use std::collections::VecDeque;
use std::time::Duration;

/// Number of loads that are remembered. Older ones say little about today's disk and CPU.
const LOADS_MAX: usize = 10;
/// Reading speed of a machine that was not measured.
const BYTES_PER_S_GUESS: u64 = 500_000_000;
/// Time to start a process and to compute a first token.
const START_GUESS: Duration = Duration::from_secs(2);
/// Added to a delay, because a client that retries too early has to wait again.
const MARGIN: Duration = Duration::from_secs(1);
/// Bounds of the delay that clients are given (openai-python gives up above 120 s).
pub(crate) const RETRY_AFTER: (Duration, Duration) =
    (Duration::from_secs(1), Duration::from_secs(120));

/// The last loads of one model.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LoadTimes {
    estimate: Duration,
    /// Kept apart: its files came from the disk. Later loads read them from the system's cache.
    first: Option<Duration>,
    later: VecDeque<Duration>,
}

impl LoadTimes {
    /// `estimate` is the expected time before the first measurement.
    pub fn new(estimate: Duration) -> LoadTimes {
        LoadTimes { estimate, first: None, later: VecDeque::new() }
    }

    /// The expected time for a model whose size is the only known fact.
    pub fn guess(bytes: u64) -> Duration {
        let reading_ms = bytes.saturating_mul(1000) / BYTES_PER_S_GUESS;
        START_GUESS.saturating_add(Duration::from_millis(reading_ms))
    }

    pub fn record_load(&mut self, took: Duration) {
        if self.first.is_none() {
            self.first = Some(took);
            return;
        }
        if self.later.len() == LOADS_MAX {
            self.later.pop_front();
        }
        self.later.push_back(took);
    }

    /// The 90th percentile of the later loads. Before them: the first load, or the estimate.
    pub fn expected(&self) -> Duration {
        let mut sorted: Vec<Duration> = self.later.iter().copied().collect();
        sorted.sort_unstable();
        // The nearest rank, counted from 1.
        let rank = (sorted.len() * 9).div_ceil(10);
        let of_later = rank.checked_sub(1).and_then(|index| sorted.get(index).copied());
        of_later.or(self.first).unwrap_or(self.estimate)
    }

    /// The delay for a model whose load has not started.
    pub fn retry_after(&self) -> Duration {
        retry_after(self.expected())
    }
}

/// The delay if a model is expected to be ready after `left`: rounded up to whole seconds, plus `MARGIN`, within
/// the bounds of `RETRY_AFTER`.
pub fn retry_after(left: Duration) -> Duration {
    let left = left.min(RETRY_AFTER.1);
    let whole_s = left.as_secs() + u64::from(left.subsec_nanos() > 0);
    Duration::from_secs(whole_s).saturating_add(MARGIN).clamp(RETRY_AFTER.0, RETRY_AFTER.1)
}

#[cfg(test)]
mod tests {
    use super::*;

    const fn s(seconds: u64) -> Duration {
        Duration::from_secs(seconds)
    }

    #[test]
    fn measured_loads_replace_the_estimate() {
        let mut times = LoadTimes::new(LoadTimes::guess(4_000_000_000));
        assert_eq!(times.expected(), s(10));
        times.record_load(s(40));
        assert_eq!(times.expected(), s(40));
        times.record_load(s(3));
        assert_eq!(times.expected(), s(3), "the first one came from the disk");
    }

    #[test]
    fn one_slow_load_in_ten_does_not_change_the_delay() {
        let mut times = LoadTimes::new(s(2));
        for took in [99, 1, 2, 3, 4, 5, 6, 7, 8, 9, 50] {
            times.record_load(s(took));
        }
        assert_eq!(times.expected(), s(9));
        times.record_load(s(60));
        assert_eq!(times.expected(), s(50), "the oldest was forgotten, and two were slow");
    }

    #[test]
    fn a_delay_is_in_whole_seconds_plus_one_within_bounds() {
        let ms = Duration::from_millis;
        for (left, expected) in [(ms(0), 1), (ms(1), 2), (ms(2300), 4), (s(500), 120)] {
            assert_eq!(retry_after(left), s(expected), "{left:?}");
        }
        assert_eq!(LoadTimes::new(s(7)).retry_after(), s(8));
        assert_eq!(retry_after(Duration::MAX), s(120));
    }
}
