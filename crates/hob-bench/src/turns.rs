//! Two blocks in turns, one of each: what the machine does meanwhile, it does to both.
//! Only blocks that count are paired; what was asked to warm up is left out on both sides.

use crate::calibrate::{Calibration, Pace};
use crate::runs::{BenchError, Block, Runs, Subject, WARMUP_BLOCKS_MAX};
use crate::terms::Metric;
use crate::workbench::Workbench;

/// What is asked in turns.
pub(crate) trait Turns {
    /// # Errors
    /// It could not begin.
    fn first(&mut self, calibration: Option<&Calibration>) -> Result<Block, BenchError>;

    /// # Errors
    /// It could not begin.
    fn second(&mut self, calibration: Option<&Calibration>) -> Result<Block, BenchError>;

    /// What has to be sure of the second.
    fn leading(&self) -> &[Metric];

    /// Of a known server that is like this one when it is asked the second.
    fn pace(&self, warm: &Block) -> Option<Pace>;

    /// What takes very long is warmed up less.
    fn warmups_max(&self) -> usize {
        WARMUP_BLOCKS_MAX
    }
}

/// Runs of both, as many of the one as of the other.
#[derive(Debug)]
pub(crate) struct Both {
    pub(crate) first: Runs,
    pub(crate) second: Runs,
}

impl Both {
    /// What each pair of blocks says of a figure.
    pub(crate) fn pairs(&self, metric: Metric) -> Vec<(f64, f64)> {
        let blocks = self.first.blocks.iter().zip(&self.second.blocks);
        blocks.filter_map(|(one, two)| one.figure(metric).zip(two.figure(metric))).collect()
    }
}

/// Runs both until the second is sure.
///
/// # Errors
/// It could not begin, or the server did not come back.
pub(crate) fn run(
    bench: &mut Workbench<'_>,
    name: &str,
    turns: impl Turns,
) -> Result<Both, BenchError> {
    let mut subject = InTurns { turns, latest: None, firsts: Vec::new(), warmup_requests: 0 };
    let second = bench.run(name, &mut subject)?;
    let InTurns { firsts: mut blocks, warmup_requests, .. } = subject;
    // Of a pair that was stopped in the middle, the second is gone already.
    blocks.truncate(second.blocks.len());
    let first = Runs { blocks, warmup_requests, ..second.clone() };
    Ok(Both { first, second })
}

struct InTurns<T> {
    turns: T,
    /// Of the pair that was asked last, before it is known whether it counts.
    latest: Option<Block>,
    firsts: Vec<Block>,
    warmup_requests: usize,
}

impl<T: Turns> Subject for InTurns<T> {
    /// Who fails at the first is not asked the second: the failure stands for both.
    fn block(&mut self, calibration: Option<&Calibration>) -> Result<Block, BenchError> {
        self.warmup_requests += self.latest.take().map_or(0, |block| block.replies.len());
        let first = self.turns.first(calibration)?;
        self.latest = Some(first.clone());
        if first.has_failed() { Ok(first) } else { self.turns.second(calibration) }
    }

    fn leading(&self) -> &[Metric] {
        self.turns.leading()
    }

    fn pace(&self, warm: &Block) -> Option<Pace> {
        self.turns.pace(warm)
    }

    fn counted(&mut self, start: u32) {
        self.firsts.extend(self.latest.take().map(|block| Block { start, ..block }));
    }

    fn warmups_max(&self) -> usize {
        self.turns.warmups_max()
    }
}
