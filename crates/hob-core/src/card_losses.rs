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
    /// Notes that a card was lost. Returns whether models avoid the cards from now on.
    pub fn record(&mut self, now: Instant) -> bool {
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
        assert!(!losses.record(at(0)), "one loss is tried again");
        assert!(!losses.record(at(601)), "the first one was long ago");
        assert!(losses.record(at(700)));
        assert!(losses.is_resting(at(999)) && !losses.is_resting(at(1000)));
        assert!(losses.record(at(1001)), "one more loss is enough");
        assert!(!losses.record(at(5000)), "and after a quiet time it is not");
    }
}
