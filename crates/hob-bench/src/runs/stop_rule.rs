//! Runs a cell: warms up until two runs agree, checks the client, then measures until the interval is narrow enough.
//! A server that hob can restart is restarted between the runs, because a single start hides variation.

use std::ops::ControlFlow;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use super::{BenchError, Run, Runs};
use crate::client_check::{CheckLoad, ClientCheck, check_client};
use crate::launch::LaunchError;
use crate::record::Attempt;
use crate::terms::Metric;
use crate::timeline::RequestFault;

pub(crate) const WARMUP_RUNS_MAX: usize = 5;
/// Warm-up ends when two runs differ by less than this share.
const WARM_SHARE: f64 = 0.03;

/// How often a cell is run.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct StopRule {
    pub runs_min: usize,
    pub runs_max: usize,
    /// A cell is done when its half interval is narrower than this.
    pub half_width_pct: f64,
    /// A cell that takes longer after its warm-up ends with its runs so far.
    pub budget: Duration,
    /// Number of starts of a server that hob can restart, with the first one.
    pub starts: u32,
}

impl Default for StopRule {
    fn default() -> StopRule {
        let budget = Duration::from_secs(900);
        StopRule { runs_min: 6, runs_max: 10, half_width_pct: 2.5, budget, starts: 2 }
    }
}

/// A progress report.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Step<'a> {
    Warmed {
        run: usize,
    },
    ClientChecked(&'a ClientCheck),
    Ran {
        run: usize,
        half_width_pct: Option<f64>,
        left: Option<Duration>,
    },
    Restarted {
        start: u32,
    },
    /// An item of an evaluation is answered and graded.
    Answered {
        id: &'a str,
        verdict: &'static str,
        total_ms: f64,
        done: usize,
        all: usize,
        left: Duration,
    },
    /// A part is left out, with the reason.
    LeftOut {
        why: &'a str,
    },
    /// An attempt in the search for the longest context.
    Tried {
        attempt: &'a Attempt,
        lo_ok: Option<u64>,
        hi_fail: Option<u64>,
        left: usize,
    },
}

/// A measurement that can be repeated.
pub trait Benchmark {
    /// Sends one run of requests.
    ///
    /// # Errors
    /// Requests cannot be sent. A failing server gives a run whose replies have faults.
    fn measure_run(&mut self, client_check: Option<&ClientCheck>) -> Result<Run, BenchError>;

    /// The figures of the stopping rule, the most important first.
    fn leading(&self) -> &[Metric];

    /// A mock server's pace that is like this server's.
    fn pace(&self, warm: &Run) -> Option<CheckLoad>;

    /// Called when the last run counts, with the number of the server's start.
    fn keep_run(&mut self, _start: u32) {}

    /// Maximum number of warm-up runs; less for very long requests.
    fn warmups_max(&self) -> usize {
        WARMUP_RUNS_MAX
    }
}

impl StopRule {
    /// Runs a cell, and reports each step. `restart` restarts the server and returns false if hob cannot.
    ///
    /// # Errors
    /// Requests cannot be sent. A failing server gives a run with faults.
    pub fn run(
        &self,
        subject: &mut impl Benchmark,
        stop: &AtomicBool,
        restart: &mut dyn FnMut() -> Result<bool, BenchError>,
        tell: &mut dyn FnMut(Step<'_>),
    ) -> Result<Runs, BenchError> {
        let mut measurement = Measurement::new(self, subject, stop, tell);
        if let Some(warm) = measurement.warm_up()?.filter(|warm| !warm.has_failed()) {
            measurement.check_client(&warm);
        }
        let mut start = 0;
        measurement.begun = Instant::now();
        while measurement.goes_on() {
            if self.is_due(start + 1, measurement.runs.runs.len()) {
                match restart() {
                    Ok(false) => (),
                    Ok(true) => {
                        start += 1;
                        (measurement.tell)(Step::Restarted { start });
                        measurement.warm_up()?;
                    }
                    Err(error) => {
                        measurement.broken(error)?;
                        break;
                    }
                }
            }
            let run = measurement.subject.measure_run(measurement.runs.client_check.as_ref())?;
            measurement.subject.keep_run(start);
            if measurement.add(Run { start, ..run }).is_break() {
                break;
            }
        }
        Ok(measurement.end())
    }

    /// Runs a cell of cold starts: without warm-up, because each run restarts the server itself.
    ///
    /// # Errors
    /// Requests cannot be sent.
    pub fn run_unwarmed(
        &self,
        subject: &mut impl Benchmark,
        stop: &AtomicBool,
        tell: &mut dyn FnMut(Step<'_>),
    ) -> Result<Runs, BenchError> {
        let mut measurement = Measurement::new(self, subject, stop, tell);
        while measurement.goes_on() {
            let run = match measurement.subject.measure_run(None) {
                Ok(run) => run,
                Err(error) => {
                    measurement.broken(error)?;
                    break;
                }
            };
            if measurement.runs.client_check.is_none() {
                measurement.check_client(&run);
            }
            if measurement.add(run).is_break() {
                break;
            }
        }
        Ok(measurement.end())
    }

    /// Whether start number `start` is due after `runs` runs. Starts share the minimum number of runs equally.
    fn is_due(&self, start: u32, runs: usize) -> bool {
        start < self.starts
            && runs == (self.runs_min * start as usize).div_ceil(self.starts as usize)
    }

    /// Estimated time for the rest of the minimum number of runs.
    fn time_left(&self, run: usize, taken: Duration) -> Option<Duration> {
        let left = u32::try_from(self.runs_min.checked_sub(run)?).ok().filter(|left| *left > 0)?;
        Some(taken / u32::try_from(run).ok().filter(|run| *run > 0)? * left)
    }
}

/// A running measurement of a cell.
struct Measurement<'c, 't, S> {
    stop_rule: &'c StopRule,
    subject: &'c mut S,
    stop: &'c AtomicBool,
    tell: &'c mut (dyn FnMut(Step<'_>) + 't),
    runs: Runs,
    begun: Instant,
}

impl<'c, 't, S: Benchmark> Measurement<'c, 't, S> {
    fn new(
        stop_rule: &'c StopRule,
        subject: &'c mut S,
        stop: &'c AtomicBool,
        tell: &'c mut (dyn FnMut(Step<'_>) + 't),
    ) -> Measurement<'c, 't, S> {
        Measurement { stop_rule, subject, stop, tell, runs: Runs::default(), begun: Instant::now() }
    }

    fn is_stopped(&self) -> bool {
        self.stop.load(Ordering::Relaxed)
    }

    fn goes_on(&self) -> bool {
        self.runs.runs.len() < self.stop_rule.runs_max && !self.is_stopped()
    }

    /// Warms up, and returns the last run.
    fn warm_up(&mut self) -> Result<Option<Run>, BenchError> {
        let mut before: Option<Run> = None;
        for number in 1..=self.subject.warmups_max() {
            let run = self.subject.measure_run(None)?;
            self.runs.warmup_requests += run.replies.len();
            (self.tell)(Step::Warmed { run: number });
            let leading = self.subject.leading();
            let is_over = run.has_failed()
                || before.is_some_and(|before| are_alike(&before, &run, leading))
                || self.is_stopped();
            before = Some(run);
            if is_over {
                break;
            }
        }
        Ok(before)
    }

    /// Checks the client with a mock server that answers at the same pace.
    fn check_client(&mut self, warm: &Run) {
        let Some(pace) = self.subject.pace(warm) else { return };
        self.runs.client_check = check_client(pace, self.stop).ok();
        self.runs.client_check.iter().for_each(|known| (self.tell)(Step::ClientChecked(known)));
    }

    /// Breaks if no further run is needed or useful.
    fn add(&mut self, run: Run) -> ControlFlow<()> {
        let has_failed = run.has_failed();
        self.runs.runs.push(run);
        let (number, taken) = (self.runs.runs.len(), self.begun.elapsed());
        let half_width_pct = self.runs.half_width_pct(self.subject.leading());
        let left = self.stop_rule.time_left(number, taken);
        (self.tell)(Step::Ran { run: number, half_width_pct, left });
        let is_narrow = number >= self.stop_rule.runs_min
            && half_width_pct.is_some_and(|pct| pct < self.stop_rule.half_width_pct);
        if has_failed || is_narrow || taken > self.stop_rule.budget {
            return ControlFlow::Break(());
        }
        ControlFlow::Continue(())
    }

    /// The server did not restart: earlier runs stay. If the user stopped the measurement, this is not an error.
    ///
    /// # Errors
    /// There is no earlier run.
    fn broken(&mut self, error: BenchError) -> Result<(), BenchError> {
        let is_a_stop = matches!(
            error,
            BenchError::Launch(LaunchError::Stopped) | BenchError::Fault(RequestFault::Stopped)
        );
        if is_a_stop && self.is_stopped() {
            return Ok(());
        }
        if self.runs.runs.is_empty() {
            return Err(error);
        }
        self.runs.broken = Some(format!("the server did not restart: {error}"));
        Ok(())
    }

    fn end(mut self) -> Runs {
        self.runs.was_stopped = self.is_stopped();
        if self.runs.was_stopped {
            // The last run is incomplete.
            self.runs.runs.pop_if(|run| run.was_stopped());
        }
        self.runs
    }
}

/// Compares the first figure that both runs have.
fn are_alike(before: &Run, after: &Run, leading: &[Metric]) -> bool {
    let pairs = leading.iter().filter_map(|m| before.figure(*m).zip(after.figure(*m)));
    pairs.take(1).any(|(before, after)| (after - before).abs() < before * WARM_SHARE)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::runs::Reply;

    /// Each reply takes longer, so the interval stays wide until the last run. After a stop it sends no request.
    struct Slower<'a> {
        ms: f64,
        stop: &'a AtomicBool,
    }

    impl Benchmark for Slower<'_> {
        fn measure_run(&mut self, _: Option<&ClientCheck>) -> Result<Run, BenchError> {
            if self.stop.load(Ordering::Relaxed) {
                return Ok(Run::default());
            }
            self.ms *= 1.5;
            let figures = [(Metric::TtftMs, self.ms)].into();
            Ok(Run { replies: vec![Reply { figures, ..Reply::default() }], ..Run::default() })
        }

        fn leading(&self) -> &[Metric] {
            &[Metric::TtftMs]
        }

        fn pace(&self, _: &Run) -> Option<CheckLoad> {
            None
        }
    }

    fn run(
        stop: &AtomicBool,
        restart: &mut dyn FnMut() -> Result<bool, BenchError>,
    ) -> Result<Runs, BenchError> {
        let stop_rule = StopRule { runs_min: 6, runs_max: 6, ..StopRule::default() };
        stop_rule.run(&mut Slower { ms: 1.0, stop }, stop, restart, &mut |_| ())
    }

    #[test]
    fn runs_before_a_failed_restart_are_kept() {
        let goes_on = AtomicBool::new(false);
        let whole = run(&goes_on, &mut || Ok(true)).expect("runs");
        assert_eq!((whole.runs.len(), whole.starts(), whole.broken), (6, 2, None));
        let broken = run(&goes_on, &mut || Err(BenchError::NoWeights)).expect("half of the runs");
        assert_eq!((broken.runs.len(), broken.starts()), (3, 1));
        let why = broken.broken.expect("a reason");
        assert!(why.contains("the server did not restart"), "{why}");
    }

    #[test]
    fn a_stop_during_a_restart_leaves_no_run_without_requests() {
        let stop = AtomicBool::new(false);
        let stopped = run(&stop, &mut || {
            stop.store(true, Ordering::Relaxed);
            Ok(true)
        });
        let stopped = stopped.expect("half of the runs");
        assert_eq!((stopped.runs.len(), stopped.was_stopped), (3, true));
    }

    #[test]
    fn a_request_that_was_stopped_does_not_mean_that_the_server_did_not_restart() {
        let stop = AtomicBool::new(false);
        let stopped = run(&stop, &mut || {
            stop.store(true, Ordering::Relaxed);
            Err(BenchError::Fault(RequestFault::Stopped))
        });
        let stopped = stopped.expect("half of the runs");
        assert_eq!((stopped.runs.len(), stopped.broken), (3, None));
    }
}
