//! How a cell is run: warmed up until two runs agree, the client held to a truth, and then until it is sure.
//! Where the server can be started anew, it is in the middle of the runs, for what one start hides.

use std::ops::ControlFlow;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use super::{BenchError, Block, Runs};
use crate::calibrate::{Calibration, Pace, calibrate};
use crate::launch::LaunchError;
use crate::record::Attempt;
use crate::terms::Metric;

pub(crate) const WARMUP_BLOCKS_MAX: usize = 5;
/// Two runs that differ by less are warm.
const WARM_SHARE: f64 = 0.03;

/// How often a cell is run.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct StopRule {
    pub runs_min: usize,
    pub runs_max: usize,
    /// A cell is sure when half of its interval is narrower than this.
    pub half_width_pct: f64,
    /// A cell that takes longer ends with the runs that it has.
    pub budget: Duration,
    /// How often a server that can be started anew is started, the first time included.
    pub starts: u32,
}

impl Default for StopRule {
    fn default() -> StopRule {
        let budget = Duration::from_secs(900);
        StopRule { runs_min: 6, runs_max: 10, half_width_pct: 2.5, budget, starts: 2 }
    }
}

/// What is told while it goes on.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Step<'a> {
    Warmed {
        block: usize,
    },
    Calibrated(&'a Calibration),
    Ran {
        run: usize,
        half_width_pct: Option<f64>,
        left: Option<Duration>,
    },
    Restarted {
        start: u32,
    },
    /// Something is left out, and why.
    LeftOut {
        why: &'a str,
    },
    /// A context on the way to the longest.
    Tried {
        attempt: &'a Attempt,
        lo_ok: Option<u64>,
        hi_fail: Option<u64>,
        left: usize,
    },
}

/// What is run again and again.
pub trait Benchmark {
    /// Asks once.
    ///
    /// # Errors
    /// It could not begin. A server that fails is a block whose replies have faults.
    fn block(&mut self, calibration: Option<&Calibration>) -> Result<Block, BenchError>;

    /// What has to be sure, the most telling first.
    fn leading(&self) -> &[Metric];

    /// How a known server would have to answer to be like this one.
    fn pace(&self, warm: &Block) -> Option<Pace>;

    /// Told that the last block counts, and of which start of the server it is.
    fn counted(&mut self, _start: u32) {}

    /// What takes very long is warmed up less.
    fn warmups_max(&self) -> usize {
        WARMUP_BLOCKS_MAX
    }
}

impl StopRule {
    /// Runs a cell, and tells of each step. `restart` starts the server anew, where that is possible.
    ///
    /// # Errors
    /// It could not begin. A server that fails is a run with faults.
    pub fn run(
        &self,
        subject: &mut impl Benchmark,
        stop: &AtomicBool,
        restart: &mut dyn FnMut() -> Result<bool, BenchError>,
        tell: &mut dyn FnMut(Step<'_>),
    ) -> Result<Runs, BenchError> {
        let mut course = Measurement::new(self, subject, stop, tell);
        if let Some(warm) = course.warm_up()?.filter(|warm| !warm.has_failed()) {
            course.calibrate(&warm);
        }
        let mut start = 0;
        course.begun = Instant::now();
        while course.goes_on() {
            if self.is_due(start + 1, course.runs.blocks.len()) {
                match restart() {
                    Ok(false) => (),
                    Ok(true) => {
                        start += 1;
                        (course.tell)(Step::Restarted { start });
                        course.warm_up()?;
                    }
                    Err(error) => {
                        course.broken(error)?;
                        break;
                    }
                }
            }
            let block = course.subject.block(course.runs.calibration.as_ref())?;
            course.subject.counted(start);
            if course.add(Block { start, ..block }).is_break() {
                break;
            }
        }
        Ok(course.end())
    }

    /// The same of what must not be warmed up, since being cold is what is measured; each run starts anew of itself.
    ///
    /// # Errors
    /// It could not begin.
    pub fn run_unwarmed(
        &self,
        subject: &mut impl Benchmark,
        stop: &AtomicBool,
        tell: &mut dyn FnMut(Step<'_>),
    ) -> Result<Runs, BenchError> {
        let mut course = Measurement::new(self, subject, stop, tell);
        while course.goes_on() {
            let block = match course.subject.block(None) {
                Ok(block) => block,
                Err(error) => {
                    course.broken(error)?;
                    break;
                }
            };
            if course.runs.calibration.is_none() {
                course.calibrate(&block);
            }
            if course.add(block).is_break() {
                break;
            }
        }
        Ok(course.end())
    }

    /// Whether the server is to be started for the so-many-th time after so many runs: each start has as many
    /// of those that there are at least.
    fn is_due(&self, start: u32, runs: usize) -> bool {
        start < self.starts
            && runs == (self.runs_min * start as usize).div_ceil(self.starts as usize)
    }

    /// Of the runs that there are at least.
    fn left(&self, run: usize, taken: Duration) -> Option<Duration> {
        let left = u32::try_from(self.runs_min.checked_sub(run)?).ok().filter(|left| *left > 0)?;
        Some(taken / u32::try_from(run).ok().filter(|run| *run > 0)? * left)
    }
}

/// A cell on its way: what came of it so far, and whether that is enough.
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
        self.runs.blocks.len() < self.stop_rule.runs_max && !self.is_stopped()
    }

    /// The last block of it.
    fn warm_up(&mut self) -> Result<Option<Block>, BenchError> {
        let mut before: Option<Block> = None;
        for number in 1..=self.subject.warmups_max() {
            let block = self.subject.block(None)?;
            self.runs.warmup_requests += block.replies.len();
            (self.tell)(Step::Warmed { block: number });
            let leading = self.subject.leading();
            let is_over = block.has_failed()
                || before.is_some_and(|before| are_alike(&before, &block, leading))
                || self.is_stopped();
            before = Some(block);
            if is_over {
                break;
            }
        }
        Ok(before)
    }

    /// Rehearses with a server that is known and answers like this one.
    fn calibrate(&mut self, warm: &Block) {
        let Some(pace) = self.subject.pace(warm) else { return };
        self.runs.calibration = calibrate(pace, self.stop).ok();
        self.runs.calibration.iter().for_each(|known| (self.tell)(Step::Calibrated(known)));
    }

    /// Breaks where no further run is needed, or of any use.
    fn add(&mut self, block: Block) -> ControlFlow<()> {
        let has_failed = block.has_failed();
        self.runs.blocks.push(block);
        let (run, taken) = (self.runs.blocks.len(), self.begun.elapsed());
        let half_width_pct = self.runs.half_width_pct(self.subject.leading());
        (self.tell)(Step::Ran { run, half_width_pct, left: self.stop_rule.left(run, taken) });
        let is_sure = run >= self.stop_rule.runs_min
            && half_width_pct.is_some_and(|pct| pct < self.stop_rule.half_width_pct);
        if has_failed || is_sure || taken > self.stop_rule.budget {
            return ControlFlow::Break(());
        }
        ControlFlow::Continue(())
    }

    /// The server did not come back: what was measured before is kept. Of whoever was stopped nothing is to be said.
    ///
    /// # Errors
    /// Nothing was measured yet.
    fn broken(&mut self, error: BenchError) -> Result<(), BenchError> {
        if matches!(error, BenchError::Launch(LaunchError::Stopped)) && self.is_stopped() {
            return Ok(());
        }
        if self.runs.blocks.is_empty() {
            return Err(error);
        }
        self.runs.broken = Some(format!("the server did not come back: {error}"));
        Ok(())
    }

    fn end(mut self) -> Runs {
        self.runs.was_stopped = self.is_stopped();
        if self.runs.was_stopped {
            // The last was cut off in the middle.
            self.runs.blocks.pop_if(|block| block.was_stopped());
        }
        self.runs
    }
}

/// By the first figure that both have.
fn are_alike(before: &Block, after: &Block, leading: &[Metric]) -> bool {
    let pairs = leading.iter().filter_map(|m| before.figure(*m).zip(after.figure(*m)));
    pairs.take(1).any(|(before, after)| (after - before).abs() < before * WARM_SHARE)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::runs::Reply;

    /// Each reply takes a little longer, so that nothing is sure before the last run.
    struct Slower(f64);

    impl Benchmark for Slower {
        fn block(&mut self, _: Option<&Calibration>) -> Result<Block, BenchError> {
            self.0 *= 1.5;
            let figures = [(Metric::TtftMs, self.0)].into();
            Ok(Block { replies: vec![Reply { figures, ..Reply::default() }], ..Block::default() })
        }

        fn leading(&self) -> &[Metric] {
            &[Metric::TtftMs]
        }

        fn pace(&self, _: &Block) -> Option<Pace> {
            None
        }
    }

    fn run(restart: &mut dyn FnMut() -> Result<bool, BenchError>) -> Result<Runs, BenchError> {
        let stop_rule = StopRule { runs_min: 6, runs_max: 6, ..StopRule::default() };
        stop_rule.run(&mut Slower(1.0), &AtomicBool::new(false), restart, &mut |_| ())
    }

    #[test]
    fn what_was_measured_before_a_server_did_not_come_back_is_kept() {
        let whole = run(&mut || Ok(true)).expect("runs");
        assert_eq!((whole.blocks.len(), whole.starts(), whole.broken), (6, 2, None));
        let broken = run(&mut || Err(BenchError::NoWeights)).expect("half of the runs");
        assert_eq!((broken.blocks.len(), broken.starts()), (3, 1));
        let why = broken.broken.expect("a reason");
        assert!(why.contains("the server did not come back"), "{why}");
    }
}
