//! Admission: how many requests a model accepts at the same time, and when a refused client should come back.
//! Never waits: a request is admitted at once, or refused at once with an estimated delay.

use std::collections::BTreeMap;
use std::marker::PhantomData;
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use crate::load_times::RETRY_AFTER;
use crate::locked;
use crate::task::Work;

/// The pace is measured over about this many seconds of work; the first guess weighs as much as `GUESS_S`.
const PACE_S: f64 = 30.0;
const GUESS_S: f64 = 2.0;

/// The share of earlier answers that still counts after each further one.
const EARLIER_KEPT: f64 = 0.9;

/// Counts the requests in flight of one model, and the work that each of them still needs.
/// Clones count the same requests. `W` is the unit of the work.
#[derive(Debug)]
pub struct Admission<W> {
    shared: Arc<Mutex<Load>>,
    requests_max: usize,
    unit: PhantomData<W>,
}

#[derive(Debug)]
struct Load {
    /// In order of arrival.
    requests: BTreeMap<u64, Request>,
    next: u64,
    pace: Pace,
    /// Expected and produced work of finished requests; older requests count less.
    expected: f64,
    produced: f64,
}

/// An admitted request. Work is in units.
#[derive(Clone, Copy, Debug)]
struct Request {
    expected: f64,
    produced: f64,
    /// Whether the model works on the request. Other requests wait for their turn.
    has_started: bool,
    /// Whether the waits of the request are reported, so that its work tells how fast the model is.
    is_timed: bool,
}

/// How long the model takes for a unit of work, over all requests.
#[derive(Clone, Copy, Debug)]
struct Pace {
    busy_s: f64,
    produced: f64,
    /// The end of the time that `busy_s` covers.
    counted_to: Option<Instant>,
}

/// Refused: a request will probably be admitted after `retry_after`.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Busy {
    pub retry_after: Duration,
}

impl<W> Clone for Admission<W> {
    fn clone(&self) -> Admission<W> {
        let (shared, requests_max) = (Arc::clone(&self.shared), self.requests_max);
        Admission { shared, requests_max, unit: PhantomData }
    }
}

impl<W: Work> Admission<W> {
    /// `unit_s` is a first guess of the seconds that one unit of work takes.
    pub fn new(requests_max: usize, unit_s: f64) -> Admission<W> {
        let load = Load {
            requests: BTreeMap::new(),
            next: 0,
            pace: Pace::guess(unit_s),
            expected: W::TEN_ANSWERS,
            produced: W::TEN_ANSWERS,
        };
        Admission { shared: Arc::new(Mutex::new(load)), requests_max, unit: PhantomData }
    }

    /// Admits a request that is expected to need this much work.
    ///
    /// # Errors
    /// [`Busy`] when `requests_max` are in flight.
    pub fn admit(&self, expected: W) -> Result<Permit<W>, Busy> {
        let mut load = locked(&self.shared);
        if load.requests.len() >= self.requests_max {
            return Err(Busy { retry_after: load.retry_after() });
        }
        let id = load.next;
        load.next += 1;
        let expected = expected.amount();
        let request = Request { expected, produced: 0.0, has_started: false, is_timed: false };
        load.requests.insert(id, request);
        Ok(Permit { shared: Arc::clone(&self.shared), id, unit: PhantomData })
    }
}

impl<W> Admission<W> {
    pub fn in_flight(&self) -> usize {
        locked(&self.shared).requests.len()
    }

    pub fn requests_max(&self) -> usize {
        self.requests_max
    }

    /// Work still owed to the requests in flight, in units.
    pub fn backlog(&self) -> f64 {
        let load = locked(&self.shared);
        // Folded, because the sum of no floats is -0, and metrics would show that.
        load.requests.values().fold(0.0, |all, request| all + load.remaining_work(request))
    }
}

impl Pace {
    fn guess(unit_s: f64) -> Pace {
        let produced = if unit_s > 0.0 { GUESS_S / unit_s } else { 1.0 };
        Pace { busy_s: unit_s * produced, produced, counted_to: None }
    }

    fn unit_s(&self) -> f64 {
        self.busy_s / self.produced
    }

    /// A request waited for the model for `time`, until `now`. Overlapping waits count once.
    fn waited(&mut self, time: Duration, now: Instant) {
        let uncounted = self.counted_to.map_or(time, |to| time.min(now.duration_since(to)));
        self.counted_to = Some(self.counted_to.map_or(now, |to| to.max(now)));
        let new_s = uncounted.as_secs_f64();
        let kept = (-new_s / PACE_S).exp();
        self.busy_s = self.busy_s * kept + new_s;
        self.produced *= kept;
    }
}

impl Load {
    /// Work that a request still needs. Finished requests tell how far expectations are off.
    fn remaining_work(&self, request: &Request) -> f64 {
        (request.expected * self.produced / self.expected - request.produced).max(0.0)
    }

    /// Time until the first request in flight ends. Started requests share the model's time; the
    /// others come after them.
    fn retry_after(&self) -> Duration {
        let left = |request: &Request| self.remaining_work(request);
        let started = self.requests.values().filter(|request| request.has_started).map(left);
        let (sharing, least) =
            started.fold((0, f64::INFINITY), |(count, least), left| (count + 1, least.min(left)));
        let work = if sharing > 0 {
            f64::from(sharing) * least
        } else {
            self.requests.values().next().map_or(0.0, left)
        };
        let (shortest, longest) = RETRY_AFTER;
        let wait_s = (work * self.pace.unit_s()).clamp(0.0, longest.as_secs_f64());
        Duration::from_secs_f64(wait_s).max(shortest)
    }
}

/// An admitted request. Dropping it ends the request, and takes its remaining work off the backlog.
#[derive(Debug)]
pub struct Permit<W> {
    shared: Arc<Mutex<Load>>,
    id: u64,
    unit: PhantomData<W>,
}

impl<W: Work> Permit<W> {
    /// The model has begun to work on it.
    pub fn record_start(&mut self) {
        self.change(|request, _| request.has_started = true);
    }

    /// The model produced this much more.
    pub fn record_output(&mut self, work: W) {
        let work = work.amount();
        self.change(|request, pace| {
            request.has_started = true;
            request.produced += work;
            pace.produced += if request.is_timed { work } else { 0.0 };
        });
    }

    /// The request waited for the model for `time`, until `now`. Measures how fast the model is.
    pub fn record_wait(&mut self, time: Duration, now: Instant) {
        self.change(|request, pace| {
            request.is_timed = true;
            pace.waited(time, now);
        });
    }

    /// The answer is complete. Measures how far the expectation was off.
    pub fn finished(self) {
        let mut load = locked(&self.shared);
        let Some(request) = load.requests.get(&self.id).copied() else { return };
        load.expected = EARLIER_KEPT * load.expected + request.expected;
        load.produced = EARLIER_KEPT * load.produced + request.produced;
    }

    fn change(&mut self, change: impl FnOnce(&mut Request, &mut Pace)) {
        let load = &mut *locked(&self.shared);
        if let Some(request) = load.requests.get_mut(&self.id) {
            change(request, &mut load.pace);
        }
    }
}

impl<W> Drop for Permit<W> {
    fn drop(&mut self) {
        locked(&self.shared).requests.remove(&self.id);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::task::{SoundSeconds, Tokens};

    fn refused_s(admission: &Admission<SoundSeconds>) -> f64 {
        admission.admit(SoundSeconds(1.0)).expect_err("full").retry_after.as_secs_f64()
    }

    #[test]
    fn a_request_beyond_the_limit_gets_the_time_when_the_first_one_ends() {
        let admission = Admission::new(2, 0.5);
        let first = admission.admit(SoundSeconds(10.0)).expect("admitted");
        let _second = admission.admit(SoundSeconds(30.0)).expect("admitted");
        assert_eq!(refused_s(&admission), 5.0, "10 s of sound at 0.5");
        assert_eq!(admission.backlog(), 40.0);
        drop(first);
        assert_eq!((admission.in_flight(), admission.backlog()), (1, 30.0));
        assert!(admission.admit(SoundSeconds(1.0)).is_ok());
    }

    #[test]
    fn started_requests_share_the_model_and_the_others_come_after_them() {
        let admission = Admission::new(3, 0.5);
        let mut started = [10.0, 8.0].map(|s| admission.admit(SoundSeconds(s)).expect("admitted"));
        started.iter_mut().for_each(Permit::record_start);
        let _waits = admission.admit(SoundSeconds(1.0)).expect("admitted");
        assert_eq!(refused_s(&admission), 8.0, "twice 8 s of sound at 0.5");
        started[1].record_output(SoundSeconds(4.0));
        assert_eq!(
            refused_s(&admission),
            4.0,
            "work without a reported wait does not change the pace"
        );
        started[0].record_wait(Duration::ZERO, Instant::now());
        started[0].record_output(SoundSeconds(4.0));
        assert_eq!(refused_s(&admission), 2.0, "4 s made in no time are a faster model");
    }

    #[test]
    fn work_beyond_what_was_expected_is_no_debt() {
        let admission = Admission::new(1, 1.0);
        let mut permit = admission.admit(SoundSeconds(10.0)).expect("admitted");
        permit.record_output(SoundSeconds(4.0));
        assert_eq!(admission.backlog(), 6.0);
        permit.record_output(SoundSeconds(100.0));
        assert_eq!(admission.backlog(), 0.0);
    }

    #[test]
    fn the_pace_is_measured_while_a_request_waits() {
        let admission = Admission::new(2, 0.1);
        let begun = Instant::now();
        let mut permits = [10.0, 10.0].map(|s| admission.admit(SoundSeconds(s)).expect("admitted"));
        // Both wait for the whole time, and each second of sound takes two.
        for second in (2..=160).step_by(2) {
            let now = begun + Duration::from_secs(second);
            permits[0].record_wait(Duration::from_secs(2), now);
            permits[1].record_wait(Duration::from_secs(2), now);
            permits[0].record_output(SoundSeconds(1.0));
        }
        let unit_s = locked(&admission.shared).pace.unit_s();
        assert!((unit_s - 2.0).abs() < 0.2, "{unit_s}");
    }

    #[test]
    fn texts_that_are_spoken_faster_than_expected_lower_the_estimate() {
        let admission = Admission::new(1, 1.0);
        for _ in 0..30 {
            let mut permit = admission.admit(SoundSeconds(10.0)).expect("admitted");
            permit.record_output(SoundSeconds(5.0));
            permit.finished();
        }
        let _held = admission.admit(SoundSeconds(10.0)).expect("admitted");
        assert!((admission.backlog() - 5.0).abs() < 0.5, "{}", admission.backlog());
    }

    #[test]
    fn waits_stay_between_one_second_and_two_minutes() {
        let admission = Admission::new(1, 1.0);
        let short = admission.admit(SoundSeconds(0.0)).expect("admitted");
        assert_eq!(refused_s(&admission), RETRY_AFTER.0.as_secs_f64());
        drop(short);
        let _long = admission.admit(SoundSeconds(1e9)).expect("admitted");
        assert_eq!(refused_s(&admission), RETRY_AFTER.1.as_secs_f64());
    }

    /// The weight of the first guess is in the unit of the work: ten answers, and not a hundred tokens.
    #[test]
    fn one_short_chat_answer_changes_the_estimate_little() {
        let admission = Admission::new(1, 0.02);
        let mut permit = admission.admit(Tokens(256.0)).expect("admitted");
        permit.record_output(Tokens(5.0));
        permit.finished();
        let _held = admission.admit(Tokens(256.0)).expect("admitted");
        assert!(admission.backlog() > 200.0, "{}", admission.backlog());
    }
}
