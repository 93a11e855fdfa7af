//! A circuit breaker for graphics cards: models avoid them for a while after they were lost several times.
//! Pure: callers pass the time. Drivers do not say which card was lost, so all cards of a machine share one breaker.

use std::collections::VecDeque;
use std::time::{Duration, Instant};

/// This many losses within [`WINDOW`] open the circuit. A single loss may be a driver that was updated.
const LOSSES_MAX: usize = 2;
const WINDOW: Duration = Duration::from_secs(600);
/// How long models avoid the cards. Then one model tries them first.
pub const CARDS_REST: Duration = Duration::from_secs(300);
/// How long the other models wait for that trial. It includes the load.
const TRIAL: Duration = Duration::from_secs(120);

/// The last losses.
#[derive(Clone, Debug, Default)]
pub struct CardLosses {
    recent: VecDeque<Instant>,
    rests_until: Option<Instant>,
    trial: Option<Trial>,
}

/// The only model that may use the cards after a rest: the circuit is half-open.
#[derive(Clone, Debug)]
struct Trial {
    model: String,
    until: Instant,
}

impl CardLosses {
    /// Notes that a worker lost its card, and when that worker was started. Returns whether models avoid the cards from now
    /// on. A worker that was started before the last loss is part of it: a reset of a driver ends all workers on its cards.
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
        let has_failed_trial = self.trial.take().is_some_and(|trial| now < trial.until);
        if self.recent.len() == LOSSES_MAX || has_failed_trial {
            self.rests_until = Some(now + CARDS_REST);
        }
        self.is_resting(now)
    }

    /// Whether this model may be loaded on the cards now. After a rest, the first model that is loaded there tries them: see
    /// [`CardLosses::begin_trial`]. The others follow if no card is lost meanwhile.
    pub fn allows(&mut self, now: Instant, model: &str) -> bool {
        let Some(rested_until) = self.rests_until else { return true };
        if now < rested_until {
            return false;
        }
        match &self.trial {
            Some(trial) if now < trial.until => trial.model == model,
            Some(_) => {
                self.rests_until = None;
                self.trial = None;
                true
            }
            None => true,
        }
    }

    /// Notes that this model is being loaded on the cards. A model that may use them and has no room there leaves the trial
    /// to the next one.
    pub fn begin_trial(&mut self, now: Instant, model: &str) {
        let has_rested = self.rests_until.is_some_and(|until| until <= now);
        if has_rested && self.trial.is_none() {
            self.trial = Some(Trial { model: model.to_owned(), until: now + TRIAL });
        }
    }

    fn is_resting(&self, now: Instant) -> bool {
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
        assert!(losses.allows(start, "a"));
        let lost = |losses: &mut CardLosses, seconds| losses.record(at(seconds), at(seconds));
        assert!(!lost(&mut losses, 0), "one loss is tried again");
        assert!(!lost(&mut losses, 601), "the first one was long ago");
        assert!(lost(&mut losses, 700));
        assert!(!losses.allows(at(999), "a") && losses.allows(at(1000), "a"));
        assert!(lost(&mut losses, 1001), "one more loss is enough");
        assert!(!lost(&mut losses, 5000), "and after a quiet time it is not");
    }

    #[test]
    fn after_a_rest_one_model_tries_the_cards_before_the_others() {
        let start = Instant::now();
        let at = |seconds| start + Duration::from_secs(seconds);
        let mut losses = CardLosses::default();
        let lost = |losses: &mut CardLosses, seconds| losses.record(at(seconds), at(seconds));
        assert!(!lost(&mut losses, 0));
        assert!(lost(&mut losses, 590));
        assert!(losses.allows(at(1200), "b"), "it finds no room there, and leaves the trial to a");
        losses.begin_trial(at(1250), "a");
        assert!(losses.allows(at(1250), "a") && losses.allows(at(1260), "a"), "it is the trial");
        assert!(!losses.allows(at(1260), "b"), "it waits for the trial");
        // The earlier losses are long ago, and the trial's loss is enough.
        assert!(lost(&mut losses, 1300));
        assert!(!losses.allows(at(1599), "a") && losses.allows(at(1600), "b"));
        losses.begin_trial(at(1600), "b");
        losses.begin_trial(at(1610), "a");
        assert!(!losses.allows(at(1719), "a") && losses.allows(at(1720), "a"), "it went well");
        assert!(!lost(&mut losses, 2100), "one loss is tried again");
        assert!(losses.allows(at(2101), "b") && losses.allows(at(2101), "a"));
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
