//! A retry budget for each server. It is small, so that a failing server does not get twice as many requests
//! from all clients at the same time.

use std::collections::VecDeque;
use std::time::{Duration, Instant};

const WINDOW: Duration = Duration::from_secs(60);
/// One retry is allowed for this many requests in the window.
const REQUESTS_PER_RETRY: usize = 10;
/// This many retries are always allowed.
const RETRIES_MIN: usize = 3;
/// Maximum number of counted requests. They allow 409 retries a minute.
const COUNTED_MAX: usize = 4096;

/// Requests and retries of the last minute.
#[derive(Clone, Debug, Default)]
pub struct RetryBudget {
    requests: VecDeque<Instant>,
    retries: VecDeque<Instant>,
}

impl RetryBudget {
    pub fn count_request(&mut self, now: Instant) {
        drop_expired(&mut self.requests, now);
        if self.requests.len() < COUNTED_MAX {
            self.requests.push_back(now);
        }
    }

    /// Takes one retry from the budget, if one is left.
    pub fn try_take(&mut self, now: Instant) -> bool {
        drop_expired(&mut self.requests, now);
        drop_expired(&mut self.retries, now);
        let allowed =
            self.retries.len() < (self.requests.len() / REQUESTS_PER_RETRY).max(RETRIES_MIN);
        if allowed {
            self.retries.push_back(now);
        }
        allowed
    }
}

fn drop_expired(times: &mut VecDeque<Instant>, now: Instant) {
    while times.front().is_some_and(|at| now.saturating_duration_since(*at) > WINDOW) {
        times.pop_front();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn retries_are_a_tenth_of_requests_and_at_least_three() {
        let (mut budget, now) = (RetryBudget::default(), Instant::now());
        let tries =
            |budget: &mut RetryBudget, now| (0..1000).filter(|_| budget.try_take(now)).count();
        assert_eq!(tries(&mut budget, now), 3);
        (0..100).for_each(|_| budget.count_request(now));
        assert_eq!(tries(&mut budget, now), 7, "ten in all");
        let later = now + WINDOW + Duration::from_secs(1);
        assert_eq!(tries(&mut budget, later), 3, "all is forgotten");
    }
}
