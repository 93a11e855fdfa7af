//! A retry budget for each server. It is small, so that a failing server does not get twice as many requests
//! from all clients at once.

use std::collections::VecDeque;
use std::time::{Duration, Instant};

const WINDOW: Duration = Duration::from_secs(60);
/// One retry for this many requests within the window…
const ONE_IN: usize = 10;
/// … and always at least this many.
const ALWAYS: usize = 3;
/// Requests beyond this number are not counted: a tenth of them is enough.
const COUNTED_MAX: usize = 4096;

/// Requests and retries of the last minute.
#[derive(Clone, Debug, Default)]
pub struct RetryBudget {
    requests: VecDeque<Instant>,
    retries: VecDeque<Instant>,
}

impl RetryBudget {
    pub fn asked(&mut self, now: Instant) {
        forget(&mut self.requests, now);
        if self.requests.len() < COUNTED_MAX {
            self.requests.push_back(now);
        }
    }

    /// Takes one retry from the budget, if one is left.
    pub fn retry(&mut self, now: Instant) -> bool {
        forget(&mut self.requests, now);
        forget(&mut self.retries, now);
        let allowed = self.retries.len() < (self.requests.len() / ONE_IN).max(ALWAYS);
        if allowed {
            self.retries.push_back(now);
        }
        allowed
    }
}

fn forget(times: &mut VecDeque<Instant>, now: Instant) {
    while times.front().is_some_and(|at| now.saturating_duration_since(*at) > WINDOW) {
        times.pop_front();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_tenth_is_tried_again_and_at_least_three() {
        let (mut budget, now) = (RetryBudget::default(), Instant::now());
        let tries = |budget: &mut RetryBudget, now| (0..1000).filter(|_| budget.retry(now)).count();
        assert_eq!(tries(&mut budget, now), 3);
        (0..100).for_each(|_| budget.asked(now));
        assert_eq!(tries(&mut budget, now), 7, "ten in all");
        let later = now + WINDOW + Duration::from_secs(1);
        assert_eq!(tries(&mut budget, later), 3, "all is forgotten");
    }
}
