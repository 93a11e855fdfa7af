//! A circuit breaker for each target, fed by the answers to requests, never by a server's model list.
//! After failures the circuit opens; then one probe tries the target, and an answer closes the circuit.

use std::collections::VecDeque;
use std::time::{Duration, Instant};

use super::CoolDown;

/// Consecutive failures that open the circuit.
const CONSECUTIVE_MAX: u32 = 3;
/// The circuit also opens if half of the answers within [`WINDOW`] failed, and there are at least this many.
const WINDOW_ANSWERS_MIN: usize = 6;
/// Older answers do not count.
const WINDOW: Duration = Duration::from_secs(30);
/// The default of the first cool-down; each that follows is twice as long.
pub const FIRST_COOL_DOWN: Duration = Duration::from_secs(5);
/// Doubling ends here, or at the first cool-down if that is longer. Jitter then changes the time by up to a fifth.
const COOL_DOWN_MAX: Duration = Duration::from_secs(120);
/// The longest cool-down, also of those that servers name, because quotas last up to a day.
const NAMED_MAX: Duration = Duration::from_secs(24 * 3600);
/// After this time a probe without an outcome is replaced by another.
const PROBE_MAX: Duration = Duration::from_secs(30);
/// A target that failed less than this time ago counts as loaded. It has few requests in flight, because each fails
/// immediately, and would otherwise look idle.
const RECENT: Duration = Duration::from_secs(10);

/// The state of one target's circuit, from its recent answers.
#[derive(Clone, Debug, Default)]
pub struct CircuitBreaker {
    /// Time of each answer, and whether it succeeded.
    recent: VecDeque<(Instant, bool)>,
    consecutive_failures: u32,
    open_until: Option<Instant>,
    /// Consecutive cool-downs; each is twice as long as the last.
    cool_downs: u32,
    /// The running probe, and its start.
    probe: Option<(Probe, Instant)>,
    probes: u64,
    last_failure: Option<Instant>,
}

/// One attempt's right to try a target whose circuit is half open. If this attempt fails, the circuit opens again
/// immediately. A failure of any other attempt only counts.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Probe(u64);

/// A failure, with everything that decides how long the cool-down is.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct BreakerFailure {
    pub cool_down: CoolDown,
    /// The attempt's probe, if it was one.
    pub probe: Option<Probe>,
    /// Length of the first cool-down.
    pub first_cool_down: Duration,
    /// A random number from -1 to 1, so that the cool-downs of several targets do not end at the same moment.
    pub jitter: f64,
}

/// Whether a target may be asked.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum BreakerState {
    Closed,
    /// One request may ask the target. Its answer closes the circuit, and its failure opens it.
    HalfOpen(Probe),
    OpenUntil(Instant),
}

impl CircuitBreaker {
    /// Whether a request may be sent now. Takes the probe if the circuit is half open.
    pub fn acquire(&mut self, now: Instant) -> BreakerState {
        let state = self.state(now);
        if let BreakerState::HalfOpen(probe) = state {
            self.probes += 1;
            self.probe = Some((probe, now));
        }
        state
    }

    /// The state, without taking a probe.
    pub fn state(&self, now: Instant) -> BreakerState {
        match (self.open_until, self.probe) {
            (None, _) => BreakerState::Closed,
            (Some(until), _) if now < until => BreakerState::OpenUntil(until),
            (Some(_), Some((_, since))) if now < since + PROBE_MAX => {
                BreakerState::OpenUntil(since + PROBE_MAX)
            }
            (Some(_), _) => BreakerState::HalfOpen(Probe(self.probes)),
        }
    }

    /// Records a complete answer, which closes the circuit.
    pub fn record_success(&mut self, now: Instant) {
        self.remember(now, true);
        self.consecutive_failures = 0;
        self.close();
        self.cool_downs = 0;
    }

    /// Closes the circuit, because an answer began.
    pub fn close(&mut self) {
        self.open_until = None;
        self.probe = None;
    }

    /// Records a failure, and opens the circuit if that follows from it.
    pub fn record_failure(&mut self, now: Instant, failure: &BreakerFailure) {
        let BreakerFailure { cool_down, probe, first_cool_down, jitter } = *failure;
        let was_probe = self.end_probe(probe);
        match cool_down {
            CoolDown::No => {}
            CoolDown::For(time) => {
                self.last_failure = Some(now);
                self.remember(now, false);
                self.open(now, time);
            }
            // One outage ends many answers at the same time. Those after the first say nothing new.
            CoolDown::Counts if self.open_until.is_some_and(|until| now < until) => {
                self.last_failure = Some(now);
            }
            CoolDown::Counts => {
                self.last_failure = Some(now);
                self.remember(now, false);
                self.consecutive_failures += 1;
                let is_consecutive = self.consecutive_failures >= CONSECUTIVE_MAX;
                if was_probe || is_consecutive || self.is_half_failing() {
                    let time = first_cool_down.saturating_mul(1 << self.cool_downs.min(31));
                    self.cool_downs += 1;
                    let jitter = 1.0 + 0.2 * jitter.clamp(-1.0, 1.0);
                    let longest = first_cool_down.clamp(COOL_DOWN_MAX, NAMED_MAX);
                    self.open(now, time.min(longest).mul_f64(jitter));
                }
            }
        }
    }

    /// The client gave up during a probe, which says nothing about the target.
    pub fn abandon_probe(&mut self, probe: Probe) {
        self.end_probe(Some(probe));
    }

    /// Ends the running probe if it is this one, and says whether it was.
    fn end_probe(&mut self, probe: Option<Probe>) -> bool {
        let running = self.probe.map(|(probe, _)| probe);
        let is_it = probe.is_some() && probe == running;
        if is_it {
            self.probe = None;
        }
        is_it
    }

    pub fn failed_recently(&self, now: Instant) -> bool {
        self.last_failure.is_some_and(|at| now.saturating_duration_since(at) < RECENT)
    }

    fn open(&mut self, now: Instant, time: Duration) {
        let until = now + time.min(NAMED_MAX);
        self.open_until = Some(self.open_until.map_or(until, |known| known.max(until)));
        self.recent.clear();
        self.consecutive_failures = 0;
    }

    fn remember(&mut self, now: Instant, succeeded: bool) {
        const KEPT_MAX: usize = 256;
        self.recent.push_back((now, succeeded));
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
        let failed = self.recent.iter().filter(|(_, succeeded)| !succeeded).count();
        self.recent.len() >= WINDOW_ANSWERS_MIN && failed * 2 >= self.recent.len()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn seconds(seconds: u64) -> Duration {
        Duration::from_secs(seconds)
    }

    fn failure(cool_down: CoolDown) -> BreakerFailure {
        BreakerFailure { cool_down, probe: None, first_cool_down: FIRST_COOL_DOWN, jitter: 0.0 }
    }

    fn failed_probe(probe: Probe) -> BreakerFailure {
        BreakerFailure { probe: Some(probe), ..failure(CoolDown::Counts) }
    }

    fn take_probe(breaker: &mut CircuitBreaker, now: Instant) -> Probe {
        match breaker.acquire(now) {
            BreakerState::HalfOpen(probe) => probe,
            other => panic!("no probe, but {other:?}"),
        }
    }

    #[test]
    fn three_failures_in_a_row_open_the_circuit_and_one_answer_closes_it() {
        let (mut breaker, start) = (CircuitBreaker::default(), Instant::now());
        for _ in 0..2 {
            breaker.record_failure(start, &failure(CoolDown::Counts));
            assert_eq!(breaker.acquire(start), BreakerState::Closed);
        }
        breaker.record_failure(start, &failure(CoolDown::Counts));
        assert_eq!(breaker.acquire(start), BreakerState::OpenUntil(start + seconds(5)));
        let later = start + seconds(5);
        take_probe(&mut breaker, later);
        assert!(matches!(breaker.acquire(later), BreakerState::OpenUntil(_)), "and only one");
        breaker.record_success(later);
        assert_eq!(breaker.acquire(later), BreakerState::Closed);
    }

    #[test]
    fn a_failed_probe_doubles_the_cool_down_up_to_two_minutes() {
        let (mut breaker, mut now) = (CircuitBreaker::default(), Instant::now());
        (0..3).for_each(|_| breaker.record_failure(now, &failure(CoolDown::Counts)));
        for cool_down_s in [5, 10, 20, 40, 80, 120, 120] {
            assert_eq!(breaker.state(now), BreakerState::OpenUntil(now + seconds(cool_down_s)));
            now += seconds(cool_down_s);
            let probe = take_probe(&mut breaker, now);
            breaker.record_failure(now, &failed_probe(probe));
        }
    }

    #[test]
    fn a_short_first_cool_down_reaches_two_minutes_and_a_long_one_is_kept() {
        for (first_s, expected) in [
            (1, &[1, 2, 4, 8, 16, 32, 64, 120, 120][..]),
            (300, &[300; 3]),
            (u64::MAX, &[24 * 3600; 2]),
        ] {
            let (mut breaker, mut now) = (CircuitBreaker::default(), Instant::now());
            let failure =
                BreakerFailure { first_cool_down: seconds(first_s), ..failure(CoolDown::Counts) };
            (0..2).for_each(|_| breaker.record_failure(now, &failure));
            let mut probe = None;
            for cool_down_s in expected {
                breaker.record_failure(now, &BreakerFailure { probe, ..failure });
                let until = now + seconds(*cool_down_s);
                assert_eq!(breaker.state(now), BreakerState::OpenUntil(until), "{cool_down_s} s");
                now = until;
                probe = Some(take_probe(&mut breaker, now));
            }
        }
    }

    #[test]
    fn half_of_six_failing_opens_it_too() {
        let (mut breaker, now) = (CircuitBreaker::default(), Instant::now());
        for _ in 0..3 {
            breaker.record_success(now);
            breaker.record_failure(now, &failure(CoolDown::Counts));
        }
        assert!(matches!(breaker.state(now), BreakerState::OpenUntil(_)));
    }

    #[test]
    fn one_outage_that_ends_many_answers_is_one_failure() {
        let (mut breaker, now) = (CircuitBreaker::default(), Instant::now());
        (0..18).for_each(|_| breaker.record_failure(now, &failure(CoolDown::Counts)));
        assert_eq!(breaker.state(now), BreakerState::OpenUntil(now + FIRST_COOL_DOWN));
    }

    #[test]
    fn an_answer_that_began_closes_the_circuit() {
        let (mut breaker, now) = (CircuitBreaker::default(), Instant::now());
        (0..3).for_each(|_| breaker.record_failure(now, &failure(CoolDown::Counts)));
        let later = now + FIRST_COOL_DOWN;
        take_probe(&mut breaker, later);
        breaker.close();
        assert_eq!(breaker.acquire(later), BreakerState::Closed);
    }

    #[test]
    fn old_failures_are_forgotten() {
        let (mut breaker, start) = (CircuitBreaker::default(), Instant::now());
        for round in 0..6 {
            let now = start + seconds(40 * round);
            breaker.record_success(now);
            breaker.record_failure(now, &failure(CoolDown::Counts));
            assert_eq!(breaker.state(now), BreakerState::Closed, "round {round}");
        }
    }

    #[test]
    fn a_cool_down_that_a_server_names_ends_within_a_day() {
        let (mut breaker, start) = (CircuitBreaker::default(), Instant::now());
        breaker.record_failure(start, &failure(CoolDown::For(Duration::MAX)));
        assert_eq!(breaker.state(start), BreakerState::OpenUntil(start + NAMED_MAX));
    }

    #[test]
    fn a_named_time_is_kept_and_an_abandoned_probe_can_be_taken_again() {
        let (mut breaker, start) = (CircuitBreaker::default(), Instant::now());
        breaker.record_failure(start, &failure(CoolDown::For(seconds(30))));
        assert_eq!(breaker.state(start), BreakerState::OpenUntil(start + seconds(30)));
        let later = start + seconds(30);
        let probe = take_probe(&mut breaker, later);
        breaker.abandon_probe(probe);
        let lost = take_probe(&mut breaker, later);
        let found = take_probe(&mut breaker, later + PROBE_MAX);
        assert!(lost != found, "a lost probe does not lock it");
    }

    #[test]
    fn only_the_attempt_that_took_a_probe_ends_it() {
        let (mut breaker, start) = (CircuitBreaker::default(), Instant::now());
        (0..3).for_each(|_| breaker.record_failure(start, &failure(CoolDown::Counts)));
        let later = start + FIRST_COOL_DOWN;
        let first = take_probe(&mut breaker, later);
        // Answers that began before the cool-down fail now.
        breaker.record_failure(later, &failure(CoolDown::No));
        breaker.record_failure(later, &failure(CoolDown::Counts));
        assert_eq!(breaker.state(later), BreakerState::OpenUntil(later + PROBE_MAX), "it goes on");
        let second_at = later + PROBE_MAX;
        let second = take_probe(&mut breaker, second_at);
        breaker.abandon_probe(first);
        assert_eq!(breaker.state(second_at), BreakerState::OpenUntil(second_at + PROBE_MAX));
        breaker.record_failure(second_at, &failed_probe(second));
        let doubled = BreakerState::OpenUntil(second_at + seconds(10));
        assert_eq!(breaker.state(second_at), doubled);
    }

    #[test]
    fn the_request_s_own_fault_does_not_count() {
        let (mut breaker, now) = (CircuitBreaker::default(), Instant::now());
        (0..9).for_each(|_| breaker.record_failure(now, &failure(CoolDown::No)));
        assert_eq!(
            (breaker.acquire(now), breaker.failed_recently(now)),
            (BreakerState::Closed, false)
        );
        breaker.record_failure(now, &failure(CoolDown::Counts));
        assert!(breaker.failed_recently(now) && !breaker.failed_recently(now + RECENT));
    }
}
