//! A number of tokens for each day. Days are in UTC, so that a limit means the same everywhere and does
//! not move with daylight saving time. Callers pass the time.

use std::num::NonZeroU64;
use std::time::Duration;

const DAY: Duration = Duration::from_secs(86_400);

/// The tokens that a key has used today.
#[derive(Debug)]
pub(super) struct DailyTokens {
    spent: u64,
    /// Reserved for running answers.
    reserved: u64,
    /// Start of the day of `spent`, since 1970.
    midnight: Duration,
}

impl DailyTokens {
    /// `spent` tokens were spent on the day of `now`.
    pub(super) fn new(spent: u64, now: Duration) -> DailyTokens {
        DailyTokens { spent, reserved: 0, midnight: midnight_before(now) }
    }

    /// Whether tokens are left.
    ///
    /// # Errors
    /// The time until there are tokens again.
    pub(super) fn check(&mut self, per_day: NonZeroU64, now: Duration) -> Result<(), Duration> {
        self.turn_to(now);
        if self.spent < per_day.get() {
            return Ok(());
        }
        Err((self.midnight + DAY).saturating_sub(now))
    }

    /// Tokens that are neither spent nor reserved.
    pub(super) fn left(&mut self, per_day: NonZeroU64, now: Duration) -> u64 {
        self.turn_to(now);
        per_day.get().saturating_sub(self.spent).saturating_sub(self.reserved)
    }

    /// Reserves up to `wanted` tokens for an answer, and returns how many.
    pub(super) fn reserve(&mut self, wanted: u64, per_day: NonZeroU64, now: Duration) -> u64 {
        let reserved = wanted.min(self.left(per_day, now));
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

    /// Begins a new day, if `now` is in one. Setting the clock back by a day does not reopen that day. A clock that was
    /// years ahead and was corrected keeps the spent tokens but changes the day; otherwise the key would have no tokens
    /// for years.
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
    const PER_DAY: NonZeroU64 = NonZeroU64::new(100).expect("some");

    fn tokens(spent: u64) -> DailyTokens {
        DailyTokens::new(spent, NOON)
    }

    #[test]
    fn the_last_token_is_the_end_until_midnight() {
        let mut tokens = tokens(0);
        tokens.spend(99, NOON);
        assert_eq!(tokens.check(PER_DAY, NOON), Ok(()), "who has one may ask for more");
        tokens.spend(50, NOON);
        assert_eq!(tokens.check(PER_DAY, NOON), Err(HALF_DAY));
        let midnight = NOON + HALF_DAY;
        let just_before = midnight - Duration::from_millis(1);
        assert_eq!(tokens.check(PER_DAY, just_before), Err(Duration::from_millis(1)));
        assert_eq!(tokens.check(PER_DAY, midnight), Ok(()));
        tokens.spend(100, midnight);
        assert_eq!(tokens.check(PER_DAY, midnight), Err(DAY));
    }

    #[test]
    fn reserved_tokens_are_not_given_to_another_answer() {
        let mut tokens = tokens(30);
        assert_eq!((tokens.reserve(50, PER_DAY, NOON), tokens.left(PER_DAY, NOON)), (50, 20));
        assert_eq!((tokens.reserve(50, PER_DAY, NOON), tokens.left(PER_DAY, NOON)), (20, 0));
        tokens.spend(60, NOON);
        tokens.release(50);
        assert_eq!((tokens.left(PER_DAY, NOON), tokens.check(PER_DAY, NOON)), (0, Ok(())));
        tokens.release(20);
        assert_eq!(tokens.left(PER_DAY, NOON), 10);
    }

    #[test]
    fn a_clock_that_was_years_ahead_closes_the_budget_until_midnight_and_no_longer() {
        let mut tokens = tokens(0);
        let years_ahead = NOON + 4_000 * DAY;
        tokens.spend(100, years_ahead);
        assert_eq!(tokens.check(PER_DAY, NOON), Err(HALF_DAY));
        assert_eq!(tokens.check(PER_DAY, NOON + HALF_DAY), Ok(()));
    }

    #[test]
    fn a_clock_that_goes_back_gives_nothing_back() {
        let mut tokens = tokens(100);
        assert_eq!(tokens.check(PER_DAY, NOON - DAY), Err(HALF_DAY + DAY));
        assert_eq!(tokens.check(PER_DAY, NOON), Err(HALF_DAY));
        tokens.spend(u64::MAX, NOON);
        assert_eq!(tokens.check(PER_DAY, NOON), Err(HALF_DAY));
    }
}
