//! A number of tokens for each day. Days are in UTC, so that a limit means the same everywhere and does
//! not move with daylight saving time. Callers pass the time.

use std::num::NonZeroU64;
use std::time::Duration;

const DAY: Duration = Duration::from_secs(86_400);

/// The tokens spent on a day.
#[derive(Debug)]
pub(super) struct Budget {
    per_day: NonZeroU64,
    spent: u64,
    /// Reserved for running answers.
    reserved: u64,
    /// Start of the day of `spent`, since 1970.
    midnight: Duration,
}

impl Budget {
    /// `spent` tokens were spent on the day of `now`.
    pub(super) fn new(per_day: NonZeroU64, spent: u64, now: Duration) -> Budget {
        Budget { per_day, spent, reserved: 0, midnight: midnight_before(now) }
    }

    /// Whether tokens are left.
    ///
    /// # Errors
    /// The time until there are tokens again.
    pub(super) fn check(&mut self, now: Duration) -> Result<(), Duration> {
        self.turn_to(now);
        if self.spent < self.per_day.get() {
            return Ok(());
        }
        Err((self.midnight + DAY).saturating_sub(now))
    }

    /// Tokens that are neither spent nor reserved.
    pub(super) fn left(&mut self, now: Duration) -> u64 {
        self.turn_to(now);
        self.per_day.get().saturating_sub(self.spent).saturating_sub(self.reserved)
    }

    /// Reserves up to `wanted` tokens for an answer, and returns how many.
    pub(super) fn reserve(&mut self, wanted: u64, now: Duration) -> u64 {
        let reserved = wanted.min(self.left(now));
        self.reserved += reserved;
        reserved
    }

    /// The answer has ended: releases its reservation.
    pub(super) fn release(&mut self, reserved: u64) {
        self.reserved = self.reserved.saturating_sub(reserved);
    }

    /// Records the tokens of an answer that has ended. They may be more than were left.
    pub(super) fn spend(&mut self, tokens: u64, now: Duration) {
        self.turn_to(now);
        self.spent = self.spent.saturating_add(tokens);
    }

    /// Setting the clock back by a day does not reopen that day. A clock that was years ahead and was corrected
    /// keeps the spent tokens but changes the day; otherwise the budget would be closed for years.
    fn turn_to(&mut self, now: Duration) {
        let midnight = midnight_before(now);
        if midnight > self.midnight {
            (self.midnight, self.spent) = (midnight, 0);
        } else if self.midnight - midnight > DAY {
            self.midnight = midnight;
        }
    }
}

/// The last midnight in UTC; both are times since 1970. Unix time has no leap seconds.
pub(super) fn midnight_before(now: Duration) -> Duration {
    Duration::from_secs(now.as_secs() - now.as_secs() % DAY.as_secs())
}

#[cfg(test)]
mod tests {
    use super::*;

    const NOON: Duration = Duration::from_secs(20_000 * 86_400 + 43_200);
    const HALF_DAY: Duration = Duration::from_secs(43_200);

    fn budget(spent: u64) -> Budget {
        Budget::new(NonZeroU64::new(100).expect("some"), spent, NOON)
    }

    #[test]
    fn the_last_token_is_the_end_until_midnight() {
        let mut budget = budget(0);
        budget.spend(99, NOON);
        assert_eq!(budget.check(NOON), Ok(()), "who has one may ask for more");
        budget.spend(50, NOON);
        assert_eq!(budget.check(NOON), Err(HALF_DAY));
        let midnight = NOON + HALF_DAY;
        let just_before = midnight - Duration::from_millis(1);
        assert_eq!(budget.check(just_before), Err(Duration::from_millis(1)));
        assert_eq!(budget.check(midnight), Ok(()));
        budget.spend(100, midnight);
        assert_eq!(budget.check(midnight), Err(DAY));
    }

    #[test]
    fn reserved_tokens_are_not_given_to_another_answer() {
        let mut budget = budget(30);
        assert_eq!((budget.reserve(50, NOON), budget.left(NOON)), (50, 20));
        assert_eq!((budget.reserve(50, NOON), budget.left(NOON)), (20, 0));
        budget.spend(60, NOON);
        budget.release(50);
        assert_eq!((budget.left(NOON), budget.check(NOON)), (0, Ok(())));
        budget.release(20);
        assert_eq!(budget.left(NOON), 10);
    }

    #[test]
    fn a_clock_that_was_years_ahead_closes_the_budget_until_midnight_and_no_longer() {
        let mut budget = budget(0);
        let years_ahead = NOON + 4_000 * DAY;
        budget.spend(100, years_ahead);
        assert_eq!(budget.check(NOON), Err(HALF_DAY));
        assert_eq!(budget.check(NOON + HALF_DAY), Ok(()));
    }

    #[test]
    fn a_clock_that_goes_back_gives_nothing_back() {
        let mut budget = budget(100);
        assert_eq!(budget.check(NOON - DAY), Err(HALF_DAY + DAY));
        assert_eq!(budget.check(NOON), Err(HALF_DAY));
        budget.spend(u64::MAX, NOON);
        assert_eq!(budget.check(NOON), Err(HALF_DAY));
    }
}
