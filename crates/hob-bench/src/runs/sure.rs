//! How a cell is run: warmed up until two runs agree, the client held to a truth, and then until it is sure.
//! Where the server can be started anew, it is in the middle of the runs, for what one start hides.

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
pub struct Care {
    pub runs_min: usize,
    pub runs_max: usize,
    /// A cell is sure when half of its interval is narrower than this.
    pub half_width_pct: f64,
    /// A cell that takes longer ends with the runs that it has.
    pub budget: Duration,
    /// How often a server that can be started anew is started, the first time included.
    pub starts: u32,
}

impl Default for Care {
    fn default() -> Care {
        let budget = Duration::from_secs(900);
        Care { runs_min: 6, runs_max: 10, half_width_pct: 2.5, budget, starts: 2 }
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
pub trait Subject {
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

impl Care {
    /// Runs a cell, and tells of each step. `restart` starts the server anew, where that is possible.
    ///
    /// # Errors
    /// It could not begin. A server that fails is a run with faults.
    pub fn run(
        &self,
        subject: &mut impl Subject,
        stop: &AtomicBool,
        restart: &mut dyn FnMut() -> Result<bool, BenchError>,
        tell: &mut dyn FnMut(Step<'_>),
    ) -> Result<Runs, BenchError> {
        let mut runs = Runs::default();
        let warm = warm_up(subject, stop, &mut runs.warmup_requests, tell)?;
        if let Some(pace) =
            warm.filter(|warm| !warm.has_failed()).and_then(|warm| subject.pace(&warm))
        {
            runs.calibration = calibrate(pace, stop).ok();
            runs.calibration.iter().for_each(|calibration| tell(Step::Calibrated(calibration)));
        }
        let (begun, mut start) = (Instant::now(), 0);
        while runs.blocks.len() < self.runs_max && !stop.load(Ordering::Relaxed) {
            if self.is_due(start + 1, runs.blocks.len()) && restart()? {
                start += 1;
                tell(Step::Restarted { start });
                warm_up(subject, stop, &mut runs.warmup_requests, tell)?;
            }
            let block = Block { start, ..subject.block(runs.calibration.as_ref())? };
            let has_failed = block.has_failed();
            subject.counted(start);
            runs.blocks.push(block);
            let half_width_pct = runs.half_width_pct(subject.leading());
            let left = self.left(runs.blocks.len(), begun.elapsed());
            tell(Step::Ran { run: runs.blocks.len(), half_width_pct, left });
            let is_sure = runs.blocks.len() >= self.runs_min
                && half_width_pct.is_some_and(|pct| pct < self.half_width_pct);
            if has_failed || is_sure || begun.elapsed() > self.budget {
                break;
            }
        }
        runs.was_stopped = stop.load(Ordering::Relaxed);
        if runs.was_stopped {
            // The last was cut off in the middle.
            runs.blocks.pop_if(|block| block.was_stopped());
        }
        Ok(runs)
    }

    /// Whether the server is to be started for the so-many-th time after so many runs: each start has as many
    /// of those that there are at least.
    fn is_due(&self, start: u32, runs: usize) -> bool {
        start < self.starts
            && runs == (self.runs_min * start as usize).div_ceil(self.starts as usize)
    }

    /// The same of what must not be warmed up, since being cold is what is measured; each run starts anew of itself.
    ///
    /// # Errors
    /// It could not begin.
    pub fn run_unwarmed(
        &self,
        subject: &mut impl Subject,
        stop: &AtomicBool,
        tell: &mut dyn FnMut(Step<'_>),
    ) -> Result<Runs, BenchError> {
        let (mut runs, begun) = (Runs::default(), Instant::now());
        while runs.blocks.len() < self.runs_max && !stop.load(Ordering::Relaxed) {
            let block = match subject.block(None) {
                Err(BenchError::Launch(LaunchError::Stopped)) => break,
                block => block?,
            };
            let (has_failed, pace) = (block.has_failed(), subject.pace(&block));
            if let Some(pace) = pace.filter(|_| runs.calibration.is_none()) {
                runs.calibration = calibrate(pace, stop).ok();
                runs.calibration.iter().for_each(|known| tell(Step::Calibrated(known)));
            }
            runs.blocks.push(block);
            let half_width_pct = runs.half_width_pct(subject.leading());
            let left = self.left(runs.blocks.len(), begun.elapsed());
            tell(Step::Ran { run: runs.blocks.len(), half_width_pct, left });
            let is_sure = runs.blocks.len() >= self.runs_min
                && half_width_pct.is_some_and(|pct| pct < self.half_width_pct);
            if has_failed || is_sure || begun.elapsed() > self.budget {
                break;
            }
        }
        runs.was_stopped = stop.load(Ordering::Relaxed);
        if runs.was_stopped {
            runs.blocks.pop_if(|block| block.was_stopped());
        }
        Ok(runs)
    }

    /// Of the runs that there are at least.
    fn left(&self, run: usize, taken: Duration) -> Option<Duration> {
        let left = u32::try_from(self.runs_min.checked_sub(run)?).ok().filter(|left| *left > 0)?;
        Some(taken / u32::try_from(run).ok().filter(|run| *run > 0)? * left)
    }
}

/// The last block of it.
fn warm_up(
    subject: &mut impl Subject,
    stop: &AtomicBool,
    requests: &mut usize,
    tell: &mut dyn FnMut(Step<'_>),
) -> Result<Option<Block>, BenchError> {
    let mut before: Option<Block> = None;
    for number in 1..=subject.warmups_max() {
        let block = subject.block(None)?;
        *requests += block.replies.len();
        tell(Step::Warmed { block: number });
        let leading = subject.leading();
        let is_over = block.has_failed()
            || before.is_some_and(|before| are_alike(&before, &block, leading))
            || stop.load(Ordering::Relaxed);
        before = Some(block);
        if is_over {
            break;
        }
    }
    Ok(before)
}

/// By the first figure that both have.
fn are_alike(before: &Block, after: &Block, leading: &[Metric]) -> bool {
    let pairs = leading.iter().filter_map(|m| before.figure(*m).zip(after.figure(*m)));
    pairs.take(1).any(|(before, after)| (after - before).abs() < before * WARM_SHARE)
}
