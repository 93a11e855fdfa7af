//! Whether a target is worth asking: judged by answers alone, never by a list that it still hands out.
//! After failures it rests; then one request tries it, and only an answer lets the others in again.

use std::collections::VecDeque;
use std::time::{Duration, Instant};

use super::Rest;

/// Failures in a row after which a target rests.
const IN_A_ROW: u32 = 3;
/// Or half of at least so many…
const SAMPLE: usize = 6;
/// … within this time.
const WINDOW: Duration = Duration::from_secs(30);
/// The first rest, where nobody says otherwise; each that follows is twice as long.
pub const REST_FIRST: Duration = Duration::from_secs(5);
const REST_MAX: Duration = Duration::from_secs(120);
/// Of a rest that the server itself named: quotas last a day.
const NAMED_MAX: Duration = Duration::from_secs(24 * 3600);
/// A trial that nobody heard of again leaves room for another.
const TRIAL_MAX: Duration = Duration::from_secs(30);
/// A failure that came this recently counts as load: who fails at once looks idle.
const FRESH: Duration = Duration::from_secs(10);

/// What is remembered of a target's answers.
#[derive(Clone, Debug, Default)]
pub struct Health {
    /// When, and whether it answered.
    recent: VecDeque<(Instant, bool)>,
    failures_in_a_row: u32,
    rests_until: Option<Instant>,
    /// Rests in a row; each is twice as long as the last.
    rests: u32,
    /// Whose answer decides, and since when it is waited for.
    trial: Option<(Trial, Instant)>,
    trials: u64,
    last_failure: Option<Instant>,
}

/// One attempt's right to try a target that rested: nobody else's end says anything of it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Trial(u64);

/// That a target failed, and what follows from it.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Failure {
    pub rest: Rest,
    /// The attempt's own, if it was one.
    pub trial: Option<Trial>,
    /// How long it rests the first time.
    pub first: Duration,
    /// From -1 to 1, by chance: neighbours shall not come back together.
    pub jitter: f64,
}

/// Whether a target may be asked.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Admits {
    Yes,
    /// One request, whose answer decides.
    Trial(Trial),
    /// Not before this.
    RestsUntil(Instant),
}

impl Health {
    /// Whether it may be asked now; a trial is taken by asking for it.
    pub fn admits(&mut self, now: Instant) -> Admits {
        let admits = self.looks(now);
        if let Admits::Trial(trial) = admits {
            self.trials += 1;
            self.trial = Some((trial, now));
        }
        admits
    }

    /// The same, for those who only look.
    pub fn looks(&self, now: Instant) -> Admits {
        match (self.rests_until, self.trial) {
            (None, _) => Admits::Yes,
            (Some(until), _) if now < until => Admits::RestsUntil(until),
            (Some(_), Some((_, since))) if now < since + TRIAL_MAX => {
                Admits::RestsUntil(since + TRIAL_MAX)
            }
            (Some(_), _) => Admits::Trial(Trial(self.trials)),
        }
    }

    /// An answer came to its end.
    pub fn answered(&mut self, now: Instant) {
        self.remember(now, true);
        self.failures_in_a_row = 0;
        self.rests_until = None;
        self.trial = None;
        self.rests = 0;
    }

    /// An answer began: whoever rested is well enough for others to ask it too.
    pub fn begun(&mut self) {
        self.rests_until = None;
        self.trial = None;
    }

    /// It failed.
    pub fn failed(&mut self, now: Instant, failure: &Failure) {
        let Failure { rest, trial, first, jitter } = *failure;
        let was_trial = self.ends(trial);
        match rest {
            Rest::No => {}
            Rest::For(time) => {
                self.last_failure = Some(now);
                self.remember(now, false);
                self.rest(now, time);
            }
            // The others that one outage ended say nothing new.
            Rest::Counts if self.rests_until.is_some_and(|until| now < until) => {
                self.last_failure = Some(now);
            }
            Rest::Counts => {
                self.last_failure = Some(now);
                self.remember(now, false);
                self.failures_in_a_row += 1;
                if was_trial || self.failures_in_a_row >= IN_A_ROW || self.is_half_failing() {
                    let time = first.saturating_mul(1 << self.rests.min(5)).min(REST_MAX);
                    self.rests += 1;
                    self.rest(now, time.mul_f64(1.0 + 0.2 * jitter.clamp(-1.0, 1.0)));
                }
            }
        }
    }

    /// A trial was given up by who asked, and says nothing of the target.
    pub fn given_up(&mut self, trial: Trial) {
        self.ends(Some(trial));
    }

    /// Whether this trial is the one that goes on; if so, no more.
    fn ends(&mut self, trial: Option<Trial>) -> bool {
        let goes_on = self.trial.map(|(trial, _)| trial);
        let is_it = trial.is_some() && trial == goes_on;
        if is_it {
            self.trial = None;
        }
        is_it
    }

    pub fn failed_lately(&self, now: Instant) -> bool {
        self.last_failure.is_some_and(|at| now.saturating_duration_since(at) < FRESH)
    }

    fn rest(&mut self, now: Instant, time: Duration) {
        let until = now + time.min(NAMED_MAX);
        self.rests_until = Some(self.rests_until.map_or(until, |known| known.max(until)));
        self.recent.clear();
        self.failures_in_a_row = 0;
    }

    fn remember(&mut self, now: Instant, answered: bool) {
        const KEPT_MAX: usize = 256;
        self.recent.push_back((now, answered));
        while self.recent.len() > KEPT_MAX
            || self
                .recent
                .front()
                .is_some_and(|(at, _)| now.saturating_duration_since(*at) > WINDOW)
        {
            self.recent.pop_front();
        }
    }

    fn is_half_failing(&self) -> bool {
        let failed = self.recent.iter().filter(|(_, answered)| !answered).count();
        self.recent.len() >= SAMPLE && failed * 2 >= self.recent.len()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn seconds(seconds: u64) -> Duration {
        Duration::from_secs(seconds)
    }

    fn failure(rest: Rest) -> Failure {
        Failure { rest, trial: None, first: REST_FIRST, jitter: 0.0 }
    }

    fn taken(health: &mut Health, now: Instant) -> Trial {
        match health.admits(now) {
            Admits::Trial(trial) => trial,
            other => panic!("no trial, but {other:?}"),
        }
    }

    #[test]
    fn three_failures_in_a_row_make_a_rest_and_one_answer_ends_it() {
        let (mut health, start) = (Health::default(), Instant::now());
        for _ in 0..2 {
            health.failed(start, &failure(Rest::Counts));
            assert_eq!(health.admits(start), Admits::Yes);
        }
        health.failed(start, &failure(Rest::Counts));
        assert_eq!(health.admits(start), Admits::RestsUntil(start + seconds(5)));
        let later = start + seconds(5);
        taken(&mut health, later);
        assert!(matches!(health.admits(later), Admits::RestsUntil(_)), "and only one");
        health.answered(later);
        assert_eq!(health.admits(later), Admits::Yes);
    }

    #[test]
    fn a_failed_trial_doubles_the_rest_up_to_two_minutes() {
        let (mut health, mut now) = (Health::default(), Instant::now());
        (0..3).for_each(|_| health.failed(now, &failure(Rest::Counts)));
        for rest_s in [5, 10, 20, 40, 80, 120, 120] {
            assert_eq!(health.looks(now), Admits::RestsUntil(now + seconds(rest_s)));
            now += seconds(rest_s);
            let trial = taken(&mut health, now);
            health.failed(now, &Failure { trial: Some(trial), ..failure(Rest::Counts) });
        }
    }

    #[test]
    fn half_of_six_failing_makes_a_rest_too() {
        let (mut health, now) = (Health::default(), Instant::now());
        for _ in 0..3 {
            health.answered(now);
            health.failed(now, &failure(Rest::Counts));
        }
        assert!(matches!(health.looks(now), Admits::RestsUntil(_)));
    }

    #[test]
    fn one_outage_that_ends_many_answers_is_one_failure() {
        let (mut health, now) = (Health::default(), Instant::now());
        (0..18).for_each(|_| health.failed(now, &failure(Rest::Counts)));
        assert_eq!(health.looks(now), Admits::RestsUntil(now + REST_FIRST));
    }

    #[test]
    fn an_answer_that_began_lets_others_in() {
        let (mut health, now) = (Health::default(), Instant::now());
        (0..3).for_each(|_| health.failed(now, &failure(Rest::Counts)));
        let later = now + REST_FIRST;
        taken(&mut health, later);
        health.begun();
        assert_eq!(health.admits(later), Admits::Yes);
    }

    #[test]
    fn what_was_long_ago_is_forgotten() {
        let (mut health, start) = (Health::default(), Instant::now());
        for round in 0..6 {
            let now = start + seconds(40 * round);
            health.answered(now);
            health.failed(now, &failure(Rest::Counts));
            assert_eq!(health.looks(now), Admits::Yes, "round {round}");
        }
    }

    #[test]
    fn a_server_that_names_an_age_is_back_within_a_day() {
        let (mut health, start) = (Health::default(), Instant::now());
        health.failed(start, &failure(Rest::For(Duration::MAX)));
        assert_eq!(health.looks(start), Admits::RestsUntil(start + NAMED_MAX));
    }

    #[test]
    fn a_named_time_is_kept_and_an_abandoned_trial_is_given_back() {
        let (mut health, start) = (Health::default(), Instant::now());
        health.failed(start, &failure(Rest::For(seconds(30))));
        assert_eq!(health.looks(start), Admits::RestsUntil(start + seconds(30)));
        let later = start + seconds(30);
        let trial = taken(&mut health, later);
        health.given_up(trial);
        let lost = taken(&mut health, later);
        let found = taken(&mut health, later + TRIAL_MAX);
        assert!(lost != found, "a lost trial does not lock it");
    }

    #[test]
    fn a_trial_is_ended_by_nobody_but_who_took_it() {
        let (mut health, start) = (Health::default(), Instant::now());
        (0..3).for_each(|_| health.failed(start, &failure(Rest::Counts)));
        let later = start + REST_FIRST;
        let first = taken(&mut health, later);
        // Answers that began before the rest fail now.
        health.failed(later, &failure(Rest::No));
        health.failed(later, &failure(Rest::Counts));
        assert_eq!(health.looks(later), Admits::RestsUntil(later + TRIAL_MAX), "it goes on");
        let second_at = later + TRIAL_MAX;
        let second = taken(&mut health, second_at);
        health.given_up(first);
        assert_eq!(health.looks(second_at), Admits::RestsUntil(second_at + TRIAL_MAX));
        health.failed(second_at, &Failure { trial: Some(second), ..failure(Rest::Counts) });
        assert_eq!(health.looks(second_at), Admits::RestsUntil(second_at + seconds(10)), "doubled");
    }

    #[test]
    fn the_request_s_own_fault_is_no_fault_of_the_target() {
        let (mut health, now) = (Health::default(), Instant::now());
        (0..9).for_each(|_| health.failed(now, &failure(Rest::No)));
        assert_eq!((health.admits(now), health.failed_lately(now)), (Admits::Yes, false));
        health.failed(now, &failure(Rest::Counts));
        assert!(health.failed_lately(now) && !health.failed_lately(now + FRESH));
    }
}
