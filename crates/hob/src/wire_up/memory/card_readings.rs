//! What the drivers of graphics cards reported last. Drivers answer slowly, and broken ones not for long: a caller that may use
//! an older report never waits for a question of another caller.

use std::sync::{Mutex, TryLockError};
use std::time::{Duration, Instant};

use hob_core::budget::Bytes;
use hob_core::locked;

/// Maximum age of a recent report.
const RECENT: Duration = Duration::from_millis(500);
/// Maximum age of a fresh report. Refused requests may come faster than a driver answers.
const FRESH: Duration = Duration::from_millis(100);
/// Reports of a slow driver may be older: so many times as old as the driver took. A driver that hangs is asked seldom.
const TIMES_RECENT: u32 = 20;
const TIMES_FRESH: u32 = 2;

/// How old the reports of drivers may be. The system's memory is always read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Reading {
    /// Half a second, or older if the driver is slow or is being asked.
    Recent,
    /// A tenth of a second, or older if the driver is slow.
    Fresh,
    Now,
}

/// The last report.
#[derive(Debug)]
pub(super) struct CardReadings {
    last: Mutex<Option<CardReport>>,
    /// Locked while a driver is asked.
    asking: Mutex<()>,
}

#[derive(Clone, Debug)]
struct CardReport {
    free: Bytes,
    at: Instant,
    /// How long the drivers took.
    took: Duration,
}

impl CardReadings {
    pub(super) const fn new() -> CardReadings {
        CardReadings { last: Mutex::new(None), asking: Mutex::new(()) }
    }

    /// Free bytes on cards from an earlier answer that is new enough.
    pub(super) fn usable(&self, reading: Reading) -> Option<Bytes> {
        let last = locked(&self.last).clone();
        last.filter(|report| report.is_usable(reading)).map(|report| report.free)
    }

    /// Free bytes on cards, from `ask` or from an earlier answer. Without a usable one, it waits while another caller asks.
    pub(super) fn read(&self, reading: Reading, ask: impl FnOnce() -> Bytes) -> Bytes {
        if let Some(free) = self.usable(reading) {
            return free;
        }
        let older = || locked(&self.last).clone().filter(|_| reading == Reading::Recent);
        let _asking = match self.asking.try_lock() {
            Ok(asking) => asking,
            Err(TryLockError::Poisoned(asking)) => asking.into_inner(),
            Err(TryLockError::WouldBlock) => match older() {
                Some(report) => return report.free,
                None => locked(&self.asking),
            },
        };
        // Another caller may have asked meanwhile.
        if let Some(free) = self.usable(reading) {
            return free;
        }
        let asked = Instant::now();
        let free = ask();
        let report = CardReport { free: free.clone(), at: Instant::now(), took: asked.elapsed() };
        *locked(&self.last) = Some(report);
        free
    }
}

impl CardReport {
    fn is_usable(&self, reading: Reading) -> bool {
        let age_max = match reading {
            Reading::Recent => RECENT.max(self.took * TIMES_RECENT),
            Reading::Fresh => FRESH.max(self.took * TIMES_FRESH),
            Reading::Now => return false,
        };
        self.at.elapsed() < age_max
    }
}

#[cfg(test)]
mod tests {
    use std::sync::mpsc::sync_channel;
    use std::thread;

    use hob_core::fit::Pool;

    use super::*;

    fn free(bytes: u64) -> Bytes {
        Bytes::from([(Pool::Vram(0), bytes)])
    }

    fn age(readings: &CardReadings, took: Duration) {
        let mut last = locked(&readings.last);
        let report = last.as_mut().expect("a report");
        report.took = took;
        report.at = report.at.checked_sub(2 * RECENT).expect("a time");
    }

    #[test]
    fn a_recent_report_is_used_again_and_a_slow_driver_is_asked_seldom() {
        let readings = CardReadings::new();
        assert_eq!(readings.read(Reading::Recent, || free(3)), free(3));
        assert_eq!(readings.read(Reading::Recent, || free(4)), free(3));
        assert_eq!(readings.read(Reading::Now, || free(5)), free(5));
        age(&readings, Duration::ZERO);
        assert_eq!(readings.read(Reading::Recent, || free(6)), free(6));
        age(&readings, RECENT);
        assert_eq!(readings.read(Reading::Recent, || free(7)), free(6));
        assert_eq!(readings.read(Reading::Fresh, || free(8)), free(8));
    }

    #[test]
    fn nothing_waits_for_a_driver_that_hangs_if_there_is_an_older_report() {
        let readings = CardReadings::new();
        readings.read(Reading::Now, || free(3));
        age(&readings, Duration::ZERO);
        thread::scope(|scope| {
            let (asked, is_asked) = sync_channel(1);
            let (answer, answered) = sync_channel::<u64>(1);
            let readings = &readings;
            let hanging = scope.spawn(move || {
                readings.read(Reading::Now, || {
                    asked.send(()).expect("the test waits");
                    free(answered.recv().expect("an answer"))
                })
            });
            is_asked.recv().expect("the driver is asked");
            assert_eq!(readings.read(Reading::Recent, || free(4)), free(3));
            answer.send(5).expect("the driver waits");
            assert_eq!(hanging.join().expect("no panic"), free(5));
        });
        assert_eq!(readings.read(Reading::Recent, || free(6)), free(5));
    }
}
