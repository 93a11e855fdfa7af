//! A circuit breaker for graphics cards: models avoid them for a while after they were lost several times.
//! Pure: callers pass the time. Drivers do not say which card was lost, so all cards of a machine share one breaker.

use std::collections::VecDeque;
use std::time::{Duration, Instant};

/// This many losses within [`WINDOW`] open the circuit. A single loss may be a driver that was updated.
const LOSSES_MAX: usize = 2;
const WINDOW: Duration = Duration::from_secs(600);
/// How long models avoid the cards. Then one load tries them again.
pub const CARDS_REST: Duration = Duration::from_secs(300);

/// The last losses.
#[derive(Clone, Debug, Default)]
pub struct CardLosses {
    recent: VecDeque<Instant>,
    rests_until: Option<Instant>,
}

impl CardLosses {
    /// Notes that a worker lost its card, and when that worker was started. Returns whether models avoid the cards from now
    /// on. A reset of a driver ends all workers on its cards, so those from before the last loss are part of it.
    pub fn record(&mut self, now: Instant, started: Instant) -> bool {
        if self.recent.back().is_some_and(|last| started < *last) {
            return self.is_resting(now);
        }
        self.recent.retain(|at| now.saturating_duration_since(*at) < WINDOW);
        self.recent.push_back(now);
        // After a rest the earlier losses still count, so one more loss is enough.
        if self.recent.len() > LOSSES_MAX {
            self.recent.pop_front();
        }
        if self.recent.len() == LOSSES_MAX {
            self.rests_until = Some(now + CARDS_REST);
        }
        self.is_resting(now)
    }

    /// Whether models avoid the cards now.
    pub fn is_resting(&self, now: Instant) -> bool {
        self.rests_until.is_some_and(|until| now < until)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn cards_rest_after_two_losses_and_are_tried_again() {
        let start = Instant::now();
        let at = |seconds| start + Duration::from_secs(seconds);
        let mut losses = CardLosses::default();
        assert!(!losses.is_resting(start));
        let lost = |losses: &mut CardLosses, seconds| losses.record(at(seconds), at(seconds));
        assert!(!lost(&mut losses, 0), "one loss is tried again");
        assert!(!lost(&mut losses, 601), "the first one was long ago");
        assert!(lost(&mut losses, 700));
        assert!(losses.is_resting(at(999)) && !losses.is_resting(at(1000)));
        assert!(lost(&mut losses, 1001), "one more loss is enough");
        assert!(!lost(&mut losses, 5000), "and after a quiet time it is not");
    }

    #[test]
    fn all_models_that_one_reset_ends_count_once() {
        let start = Instant::now();
        let at = |seconds| start + Duration::from_secs(seconds);
        let mut losses = CardLosses::default();
        assert!(!losses.record(at(100), at(0)));
        assert!(!losses.record(at(101), at(50)), "it was on the card too");
        assert!(!losses.record(at(300), at(60)), "it noticed at its next request");
        assert!(losses.record(at(310), at(102)), "it was loaded after the reset");
    }
}
