//! Admission: how much work a model accepts before it says "later", and how much later.
//! Never waits: a request is let in at once or refused at once with an honest delay.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

/// Clients are told to come back between these bounds (openai-python gives up above 120 s).
const RETRY_AFTER: (Duration, Duration) = (Duration::from_secs(1), Duration::from_secs(120));

/// The pace is that of about so many seconds of work; the first guess weighs as much as `GUESS_S`.
const PACE_S: f64 = 30.0;
const GUESS_S: f64 = 2.0;

/// What was expected and made before the first answer, and how much of what was before each further one
/// still counts: short answers teach little.
const EXPECTED_FIRST: f64 = 100.0;
const EXPECTED_KEPT: f64 = 0.9;

/// Counts what is in flight for one model, and how much work each of them still has to get.
#[derive(Clone, Debug)]
pub struct Admission {
    shared: Arc<Mutex<Load>>,
    requests_max: usize,
}

#[derive(Debug)]
struct Load {
    /// In the order in which they came.
    requests: BTreeMap<u64, Request>,
    next: u64,
    pace: Pace,
    /// Of finished requests, with those of long ago counting less.
    expected: f64,
    made: f64,
}

/// One that was let in.
#[derive(Clone, Copy, Debug)]
struct Request {
    expected: f64,
    made: f64,
    /// The model works for it; others wait for their turn.
    has_started: bool,
    /// Its waits are told, so that what is made for it says how fast the model is.
    is_timed: bool,
}

/// How long the model takes for a unit of work, whoever it is for.
#[derive(Clone, Copy, Debug)]
struct Pace {
    busy_s: f64,
    made: f64,
    /// Until when the time is counted in which somebody waited for the model.
    counted_to: Option<Instant>,
}

/// Refused: a place will be free after about `retry_after`.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Busy {
    pub retry_after: Duration,
}

impl Admission {
    /// `unit_s` is the first guess of the seconds that a unit of work takes (a second of sound, a
    /// token), before anything was measured.
    pub fn new(requests_max: usize, unit_s: f64) -> Admission {
        let load = Load {
            requests: BTreeMap::new(),
            next: 0,
            pace: Pace::guess(unit_s),
            expected: EXPECTED_FIRST,
            made: EXPECTED_FIRST,
        };
        Admission { shared: Arc::new(Mutex::new(load)), requests_max }
    }

    /// Lets a request in that is expected to make this much work.
    ///
    /// # Errors
    /// [`Busy`] when `requests_max` are in flight already.
    pub fn admit(&self, expected: f64) -> Result<Permit, Busy> {
        let mut load = self.load();
        if load.requests.len() >= self.requests_max {
            return Err(Busy { retry_after: load.retry_after() });
        }
        let id = load.next;
        load.next += 1;
        load.requests
            .insert(id, Request { expected, made: 0.0, has_started: false, is_timed: false });
        Ok(Permit { shared: Arc::clone(&self.shared), id })
    }

    pub fn in_flight(&self) -> usize {
        self.load().requests.len()
    }

    pub fn requests_max(&self) -> usize {
        self.requests_max
    }

    /// Work still owed to those in flight.
    pub fn backlog_s(&self) -> f64 {
        let load = self.load();
        // Folded, because the sum of no floats is -0, and metrics would show that.
        load.requests.values().fold(0.0, |all, request| all + load.left(request))
    }

    fn load(&self) -> MutexGuard<'_, Load> {
        lock(&self.shared)
    }
}

impl Pace {
    fn guess(unit_s: f64) -> Pace {
        let made = if unit_s > 0.0 { GUESS_S / unit_s } else { 1.0 };
        Pace { busy_s: unit_s * made, made, counted_to: None }
    }

    fn unit_s(&self) -> f64 {
        self.busy_s / self.made
    }

    /// Somebody waited for the model for `time`, until `now`. What overlaps was counted already.
    fn waited(&mut self, time: Duration, now: Instant) {
        let uncounted = self.counted_to.map_or(time, |to| time.min(now.duration_since(to)));
        self.counted_to = Some(self.counted_to.map_or(now, |to| to.max(now)));
        let new_s = uncounted.as_secs_f64();
        let kept = (-new_s / PACE_S).exp();
        self.busy_s = self.busy_s * kept + new_s;
        self.made *= kept;
    }
}

impl Load {
    /// Work that is still owed, by what came of finished ones.
    fn left(&self, request: &Request) -> f64 {
        (request.expected * self.made / self.expected - request.made).max(0.0)
    }

    /// When the first of those in flight will be done: those that have started share the model's
    /// time, and the others come after them.
    fn retry_after(&self) -> Duration {
        let left = |request: &Request| self.left(request);
        let started = self.requests.values().filter(|request| request.has_started).map(left);
        let (sharing, least) =
            started.fold((0, f64::INFINITY), |(count, least), left| (count + 1, least.min(left)));
        let work = if sharing > 0 {
            f64::from(sharing) * least
        } else {
            self.requests.values().next().map_or(0.0, left)
        };
        let wait_s = (work * self.pace.unit_s()).clamp(0.0, RETRY_AFTER.1.as_secs_f64());
        Duration::from_secs_f64(wait_s).clamp(RETRY_AFTER.0, RETRY_AFTER.1)
    }
}

/// A place among those in flight; dropping it gives the place and what is left of its work back.
#[derive(Debug)]
pub struct Permit {
    shared: Arc<Mutex<Load>>,
    id: u64,
}

impl Permit {
    /// The model has begun to work for it.
    pub fn started(&mut self) {
        self.change(|request, _| request.has_started = true);
    }

    /// This much more work was made.
    pub fn made(&mut self, work: f64) {
        self.change(|request, pace| {
            request.has_started = true;
            request.made += work;
            pace.made += if request.is_timed { work } else { 0.0 };
        });
    }

    /// It waited for the model for `time`, until `now`; teaches how fast this machine is.
    pub fn waited(&mut self, time: Duration, now: Instant) {
        self.change(|request, pace| {
            request.is_timed = true;
            pace.waited(time, now);
        });
    }

    /// The answer is complete; teaches how much work comes of what was expected.
    pub fn finished(self) {
        let mut load = lock(&self.shared);
        let Some(request) = load.requests.get(&self.id).copied() else { return };
        load.expected = EXPECTED_KEPT * load.expected + request.expected;
        load.made = EXPECTED_KEPT * load.made + request.made;
    }

    fn change(&mut self, change: impl FnOnce(&mut Request, &mut Pace)) {
        let load = &mut *lock(&self.shared);
        if let Some(request) = load.requests.get_mut(&self.id) {
            change(request, &mut load.pace);
        }
    }
}

impl Drop for Permit {
    fn drop(&mut self) {
        lock(&self.shared).requests.remove(&self.id);
    }
}

/// A panic between lock and unlock cannot leave the numbers half-changed in a way that matters, so a
/// poisoned lock is used as it is.
fn lock(load: &Mutex<Load>) -> MutexGuard<'_, Load> {
    load.lock().unwrap_or_else(PoisonError::into_inner)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn refused_s(admission: &Admission) -> f64 {
        admission.admit(1.0).expect_err("full").retry_after.as_secs_f64()
    }

    #[test]
    fn the_last_place_is_given_and_the_next_is_told_when_the_first_will_be_done() {
        let admission = Admission::new(2, 0.5);
        let first = admission.admit(10.0).expect("a free place");
        let _second = admission.admit(30.0).expect("a free place");
        assert_eq!(refused_s(&admission), 5.0, "10 s of sound at 0.5");
        assert_eq!(admission.backlog_s(), 40.0);
        drop(first);
        assert_eq!((admission.in_flight(), admission.backlog_s()), (1, 30.0));
        assert!(admission.admit(1.0).is_ok());
    }

    #[test]
    fn those_that_have_started_share_the_model_and_the_others_come_after_them() {
        let admission = Admission::new(3, 0.5);
        let mut started = [10.0, 8.0].map(|s| admission.admit(s).expect("a free place"));
        started.iter_mut().for_each(Permit::started);
        let _waits = admission.admit(1.0).expect("a free place");
        assert_eq!(refused_s(&admission), 8.0, "twice 8 s of sound at 0.5");
        started[1].made(4.0);
        assert_eq!(refused_s(&admission), 4.0, "work whose time is not told teaches no pace");
        started[0].waited(Duration::ZERO, Instant::now());
        started[0].made(4.0);
        assert_eq!(refused_s(&admission), 2.0, "4 s made in no time are a faster model");
    }

    #[test]
    fn work_beyond_what_was_expected_is_no_debt() {
        let admission = Admission::new(1, 1.0);
        let mut permit = admission.admit(10.0).expect("a free place");
        permit.made(4.0);
        assert_eq!(admission.backlog_s(), 6.0);
        permit.made(100.0);
        assert_eq!(admission.backlog_s(), 0.0);
    }

    #[test]
    fn the_pace_is_learnt_from_the_time_in_which_somebody_waited() {
        let admission = Admission::new(2, 0.1);
        let begun = Instant::now();
        let mut permits = [10.0, 10.0].map(|s| admission.admit(s).expect("a free place"));
        // Both wait for the whole time, and each second of sound takes two.
        for second in (2..=160).step_by(2) {
            let now = begun + Duration::from_secs(second);
            permits[0].waited(Duration::from_secs(2), now);
            permits[1].waited(Duration::from_secs(2), now);
            permits[0].made(1.0);
        }
        let unit_s = lock(&admission.shared).pace.unit_s();
        assert!((unit_s - 2.0).abs() < 0.2, "{unit_s}");
    }

    #[test]
    fn texts_that_are_spoken_faster_than_expected_are_expected_so() {
        let admission = Admission::new(1, 1.0);
        for _ in 0..30 {
            let mut permit = admission.admit(10.0).expect("a free place");
            permit.made(5.0);
            permit.finished();
        }
        let _held = admission.admit(10.0).expect("a free place");
        assert!((admission.backlog_s() - 5.0).abs() < 0.5, "{}", admission.backlog_s());
    }

    #[test]
    fn waits_stay_between_one_second_and_two_minutes() {
        let admission = Admission::new(1, 1.0);
        let short = admission.admit(0.0).expect("a free place");
        assert_eq!(refused_s(&admission), RETRY_AFTER.0.as_secs_f64());
        drop(short);
        let _long = admission.admit(1e9).expect("a free place");
        assert_eq!(refused_s(&admission), RETRY_AFTER.1.as_secs_f64());
    }
}
