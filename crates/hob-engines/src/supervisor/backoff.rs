//! How long to wait before a worker starts again. Pure: its caller passes how long the last one ran.
//! The wait doubles while workers die early, and is reset by a worker that ran long.

use std::time::Duration;

/// Doubles from `first` to `longest`, and is reset by a worker that was ready for `reset_after`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Backoff {
    pub first: Duration,
    pub longest: Duration,
    pub reset_after: Duration,
}

impl Default for Backoff {
    fn default() -> Backoff {
        Backoff {
            first: Duration::from_millis(200),
            longest: Duration::from_secs(10),
            reset_after: Duration::from_secs(60),
        }
    }
}

/// A [`Backoff`] and its current wait.
#[derive(Debug)]
pub(super) struct Waits {
    backoff: Backoff,
    next: Duration,
}

impl Waits {
    pub(super) fn new(backoff: Backoff) -> Waits {
        Waits { backoff, next: backoff.first }
    }

    /// The wait after a worker that was ready for `up`, or that never was.
    pub(super) fn after(&mut self, up: Option<Duration>) -> Duration {
        if up.is_some_and(|up| up >= self.backoff.reset_after) {
            self.next = self.backoff.first;
        }
        let wait = self.next;
        self.next = (wait * 2).min(self.backoff.longest);
        wait
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn waits_double_up_to_the_longest_and_are_reset_after_a_minute() {
        let mut waits = Waits::new(Backoff::default());
        let after = |up_s: Option<u64>, waits: &mut Waits| {
            waits.after(up_s.map(Duration::from_secs)).as_millis()
        };
        let doubling: Vec<u128> = (0..8).map(|_| after(None, &mut waits)).collect();
        assert_eq!(doubling, [200, 400, 800, 1600, 3200, 6400, 10_000, 10_000]);
        assert_eq!(after(Some(59), &mut waits), 10_000);
        assert_eq!(after(Some(60), &mut waits), 200);
        assert_eq!(after(Some(1), &mut waits), 400);
    }
}
