//! Runs of one cell: blocks of requests, each request as figures under their names.
//! A run is the unit of every statistic here; what was asked, and by which protocol, is forgotten by now.

mod account;
mod stop_rule;

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use hob_core::statistics::Sample;

pub use account::{Account, Context, Summary};
pub(crate) use stop_rule::WARMUP_BLOCKS_MAX;
pub use stop_rule::{Benchmark, Step, StopRule};

use crate::calibrate::Calibration;
use crate::drive::{DriveError, Driven, Exchange};
use crate::launch::LaunchError;
use crate::record::{CountSource, RecordError};
use crate::target::TargetError;
use crate::terms::Metric;
use crate::timeline::{Figures, Flag, RequestFault, SoundFault, Stalls, Timeline, TokenCounts};

/// Nothing can be measured.
#[derive(Debug, thiserror::Error)]
pub enum BenchError {
    #[error(transparent)]
    Fault(#[from] RequestFault),
    #[error(transparent)]
    Sound(#[from] SoundFault),
    #[error("{server} lists no voices, so that one has to be chosen")]
    NoVoice { server: String },
    #[error(transparent)]
    Drive(#[from] DriveError),
    #[error(transparent)]
    Launch(#[from] LaunchError),
    #[error("{what} needs a server that is started anew for it, and this one was there already")]
    NotStarted { what: &'static str },
    #[error("a cold start needs the file of the model's weights, to have the machine forget it")]
    NoWeights,
    #[error("the file of the model's weights cannot be read or forgotten: {0}")]
    Weights(std::io::Error),
    #[error(transparent)]
    Record(#[from] RecordError),
    #[error(transparent)]
    Target(#[from] TargetError),
    #[error("{file} cannot be hashed: {source}")]
    Unreadable { file: String, source: std::io::Error },
}

/// One request and what came of it.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Reply {
    /// From the block's start: when it was due, and when it was sent.
    pub sched: Duration,
    pub sent: Duration,
    pub connect: Option<Duration>,
    /// None of one that failed.
    pub figures: BTreeMap<Metric, f64>,
    pub gaps_ms: Vec<f64>,
    pub stalls: Stalls,
    pub tokens: Option<TokenCounts>,
    pub count_source: Option<CountSource>,
    pub flags: BTreeSet<Flag>,
    pub finish: Option<String>,
    pub fault: Option<String>,
    pub was_stopped: bool,
}

impl Reply {
    /// Of whatever was asked: when, and nothing of the answer.
    pub(crate) fn of(exchange: &Exchange) -> Reply {
        let Exchange { sched, sent, connect, .. } = *exchange;
        Reply { sched, sent, connect, ..Reply::default() }
    }

    /// Of an answer in words.
    pub(crate) fn in_words(
        exchange: &Exchange,
        timeline: &Timeline,
        figures: Option<Figures>,
    ) -> Reply {
        let reply = Reply {
            finish: timeline.finish.clone(),
            fault: timeline.fault.as_ref().map(ToString::to_string),
            was_stopped: timeline.fault == Some(RequestFault::Stopped),
            ..Reply::of(exchange)
        };
        let Some(figures) = figures else { return reply };
        Reply {
            figures: figures.by_name(),
            gaps_ms: figures.gaps_ms,
            stalls: figures.stalls,
            tokens: Some(figures.tokens),
            count_source: figures.count_source,
            flags: figures.flags,
            ..reply
        }
    }

    /// Adds what was waited from when the request was due, and not only from when it was sent.
    pub(crate) fn count_from_due(&mut self) {
        let late_ms = self.sent.saturating_sub(self.sched).as_secs_f64() * 1e3;
        let rows = [
            (Metric::TtfbMs, Metric::TtfbSchedMs),
            (Metric::TtftMs, Metric::TtftSchedMs),
            (Metric::TtfatMs, Metric::TtfatSchedMs),
            (Metric::E2eMs, Metric::E2eSchedMs),
        ];
        for (sent, due) in rows {
            let ms = self.figures.get(&sent).map(|ms| ms + late_ms);
            self.figures.extend(ms.map(|ms| (due, ms)));
        }
    }

    pub fn has_failed(&self) -> bool {
        self.fault.is_some()
    }
}

/// One run.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Block {
    /// Which start of the server, from 0.
    pub start: u32,
    pub replies: Vec<Reply>,
    /// Figures of all requests together, such as a throughput.
    pub together: BTreeMap<Metric, f64>,
    /// Of the client: all threads that read, and the busiest of them.
    pub cpu: Duration,
    pub cpu_busiest: Duration,
    pub wall: Duration,
}

impl Block {
    pub(crate) fn of(driven: &Driven, replies: Vec<Reply>) -> Block {
        let Driven { cpu, cpu_busiest, wall, .. } = *driven;
        Block { replies, cpu, cpu_busiest, wall, ..Block::default() }
    }

    /// What this run says: of all together, or the median of its requests.
    pub fn figure(&self, metric: Metric) -> Option<f64> {
        match metric {
            Metric::IcgMs => Sample::new(self.gaps_ms()).median(),
            _ => self.together.get(&metric).copied().or_else(|| self.each(metric).median()),
        }
    }

    fn each(&self, metric: Metric) -> Sample {
        Sample::new(self.replies.iter().filter_map(|reply| reply.figures.get(&metric).copied()))
    }

    fn gaps_ms(&self) -> impl Iterator<Item = f64> {
        self.replies.iter().flat_map(|reply| reply.gaps_ms.iter().copied())
    }

    /// None of its requests was answered.
    pub fn has_failed(&self) -> bool {
        self.replies.iter().all(Reply::has_failed)
    }

    pub fn was_stopped(&self) -> bool {
        self.replies.iter().any(|reply| reply.was_stopped)
    }
}

/// All that was done for a cell.
#[derive(Clone, Debug, Default)]
pub struct Runs {
    pub blocks: Vec<Block>,
    pub warmup_requests: usize,
    /// None where the server failed before there was a pace to rehearse.
    pub calibration: Option<Calibration>,
    /// Somebody stopped it.
    pub was_stopped: bool,
    /// Why the server was not there for the rest of the runs.
    pub broken: Option<String>,
}

impl Runs {
    /// The figures of all runs.
    pub fn sample(&self, metric: Metric) -> Sample {
        Sample::new(self.blocks.iter().filter_map(|block| block.figure(metric)))
    }

    /// The figures of all requests.
    pub fn pooled(&self, metric: Metric) -> Sample {
        let of_block = |block: &Block| match metric {
            Metric::IcgMs => block.gaps_ms().collect(),
            _ => match block.together.get(&metric) {
                Some(figure) => vec![*figure],
                None => {
                    block.replies.iter().filter_map(|r| r.figures.get(&metric).copied()).collect()
                }
            },
        };
        Sample::new(self.blocks.iter().flat_map(of_block))
    }

    pub fn replies(&self) -> impl Iterator<Item = &Reply> {
        self.blocks.iter().flat_map(|block| &block.replies)
    }

    /// Those with figures.
    pub fn answered(&self) -> impl Iterator<Item = &Reply> {
        self.replies().filter(|reply| !reply.figures.is_empty())
    }

    /// Of the figures that matter most, the widest; none until each that is there has an interval.
    pub fn half_width_pct(&self, leading: &[Metric]) -> Option<f64> {
        let widths = leading.iter().map(|metric| self.sample(*metric));
        let mut there = widths.filter(|sample| sample.count() > 0).peekable();
        there.peek()?;
        there
            .map(|sample| sample.half_width_pct())
            .try_fold(0.0, |widest: f64, pct| Some(widest.max(pct?)))
    }

    /// How often the server was started for this, the first included.
    pub fn starts(&self) -> u32 {
        self.blocks.iter().map(|block| block.start + 1).max().unwrap_or(1)
    }
}
