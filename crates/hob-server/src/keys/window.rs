//! Counts the requests of the last minute in slots of half a second: no period of 60 s exceeds the limit.
//! Callers pass the time.

use std::num::NonZeroU32;
use std::time::{Duration, Instant};

const SLOT: Duration = Duration::from_millis(500);
/// One more than a minute has, because the first and the last slot are partly outside.
const SLOTS: usize = 121;

/// A sliding window.
#[derive(Debug)]
pub(super) struct Window {
    begun: Instant,
    /// The newest slot so far, counted from `begun`.
    newest: u64,
    /// Slot `n` is at index `n % SLOTS`.
    taken: [u32; SLOTS],
}

impl Window {
    pub(super) fn new(now: Instant) -> Window {
        Window { begun: now, newest: 0, taken: [0; SLOTS] }
    }

    /// Admits one request, if there were fewer than `per_minute`.
    ///
    /// # Errors
    /// The time until the next request is admitted. A rejected request counts nothing.
    pub(super) fn take(&mut self, per_minute: NonZeroU32, now: Instant) -> Result<(), Duration> {
        self.move_to(self.slot(now));
        let taken: u64 = self.taken.iter().copied().map(u64::from).sum();
        if taken >= u64::from(per_minute.get()) {
            return Err(self.free_at(per_minute, taken).saturating_duration_since(now));
        }
        self.taken[place(self.newest)] += 1;
        Ok(())
    }

    /// The request that was admitted at `taken` does not count.
    pub(super) fn give_back(&mut self, taken: Instant) {
        let slot = self.slot(taken).min(self.newest);
        if self.newest - slot < SLOTS as u64 {
            let count = &mut self.taken[place(slot)];
            *count = count.saturating_sub(1);
        }
    }

    fn slot(&self, now: Instant) -> u64 {
        (now.saturating_duration_since(self.begun).as_millis() / SLOT.as_millis()) as u64
    }

    /// Clears slots that are older than a minute. Time does not go backwards.
    fn move_to(&mut self, slot: u64) {
        for new in (self.newest + 1..=slot).take(SLOTS) {
            self.taken[place(new)] = 0;
        }
        self.newest = self.newest.max(slot);
    }

    /// When so many of the `left` requests have left the window that there are fewer than `per_minute`.
    fn free_at(&self, per_minute: NonZeroU32, mut left: u64) -> Instant {
        let oldest = self.newest.saturating_sub(SLOTS as u64 - 1);
        let last = (oldest..=self.newest).find(|slot| {
            left -= u64::from(self.taken[place(*slot)]);
            left < u64::from(per_minute.get())
        });
        let leaves = last.unwrap_or(self.newest) + SLOTS as u64;
        self.begun + SLOT * u32::try_from(leaves).unwrap_or(u32::MAX)
    }
}

fn place(slot: u64) -> usize {
    (slot % SLOTS as u64) as usize
}

#[cfg(test)]
mod tests {
    use super::*;

    const MINUTE: Duration = Duration::from_secs(60);

    fn at_once(window: &mut Window, per_minute: NonZeroU32, now: Instant) -> usize {
        (0..1000).take_while(|_| window.take(per_minute, now).is_ok()).count()
    }

    fn window(per_minute: u32) -> (Window, NonZeroU32, Instant) {
        let start = Instant::now();
        (Window::new(start), NonZeroU32::new(per_minute).expect("some"), start)
    }

    #[test]
    fn no_minute_holds_more_than_the_limit() {
        for per_minute in [1, 3, 10, 60] {
            let (mut window, limit, start) = window(per_minute);
            let step = Duration::from_millis(70);
            let asked = (0..4000).map(|n| start + step * n);
            let let_in: Vec<Instant> =
                asked.filter(|now| window.take(limit, *now).is_ok()).collect();
            for (index, first) in let_in.iter().enumerate() {
                let minute = let_in[index..].iter().take_while(|one| **one < *first + MINUTE);
                assert!(minute.count() <= per_minute as usize, "{per_minute}");
            }
            assert!(let_in.len() >= 4 * per_minute as usize, "{per_minute}: {}", let_in.len());
        }
    }

    #[test]
    fn a_minutes_requests_may_come_at_once_and_the_wait_is_true() {
        let (mut window, limit, start) = window(10);
        let start = start + 3 * MINUTE + Duration::from_millis(123);
        assert_eq!(at_once(&mut window, limit, start), 10);
        let wait = window.take(limit, start + Duration::from_secs(20)).expect_err("none left");
        assert!(wait > Duration::from_secs(40) && wait <= Duration::from_secs(41), "{wait:?}");
        let just_before = start + Duration::from_secs(20) + wait - Duration::from_millis(1);
        assert!(window.take(limit, just_before).is_err());
        assert_eq!(at_once(&mut window, limit, just_before + Duration::from_millis(1)), 10);
    }

    #[test]
    fn the_wait_is_true_for_a_limit_that_became_lower() {
        let (mut window, limit, start) = window(3);
        for seconds in [0, 10, 20] {
            assert_eq!(window.take(limit, start + Duration::from_secs(seconds)), Ok(()));
        }
        let asked = start + MINUTE / 2;
        let wait = window.take(NonZeroU32::MIN, asked).expect_err("three are too many");
        assert!(window.take(NonZeroU32::MIN, asked + wait - Duration::from_millis(1)).is_err());
        assert_eq!(window.take(NonZeroU32::MIN, asked + wait), Ok(()));
    }

    #[test]
    fn a_returned_request_no_longer_counts() {
        let (mut window, limit, start) = window(1);
        assert_eq!(window.take(limit, start), Ok(()));
        window.give_back(start);
        assert_eq!(window.take(limit, start + MINUTE / 2), Ok(()));
        window.give_back(start);
        let taken = window.take(limit, start + MINUTE);
        assert!(taken.is_err(), "that one had been given back already");
    }

    #[test]
    fn any_number_is_a_limit() {
        let (mut window, limit, start) = window(u32::MAX);
        assert_eq!(at_once(&mut window, limit, start), 1000);
    }
}
