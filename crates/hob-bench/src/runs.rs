//! The runs of one cell. A run is a group of requests, and each request has figures by name.
//! A run is the unit of every statistic. This module knows neither the workload nor the protocol.

mod cell_summary;
mod stop_rule;

use std::collections::{BTreeMap, BTreeSet};
use std::fmt;
use std::time::Duration;

use hob_core::statistics::Sample;

pub use cell_summary::{CellRecord, CellSummary, RecordContext};
pub(crate) use cell_summary::{spread, those_that_apply};
pub(crate) use stop_rule::WARMUP_RUNS_MAX;
pub use stop_rule::{Benchmark, Step, StopRule};

use crate::client_check::ClientCheck;
use crate::drive::{DriveError, DriveResult, Exchange};
use crate::launch::LaunchError;
use crate::record::{CountSource, RecordError};
use crate::target::TargetError;
use crate::terms::Metric;
use crate::timeline::{
    Flag, RequestFault, RequestFigures, SoundFault, Stalls, Timeline, TokenCounts,
};

/// Why nothing can be measured.
#[derive(Debug, thiserror::Error)]
pub enum BenchError {
    #[error(transparent)]
    Fault(#[from] RequestFault),
    #[error(transparent)]
    Sound(#[from] SoundFault),
    #[error("{server} lists no voices; choose one with --voice")]
    NoVoice { server: String },
    #[error(transparent)]
    Drive(#[from] DriveError),
    #[error(transparent)]
    Launch(#[from] LaunchError),
    #[error("{what} needs a server that hob can restart, and this one was already running")]
    NotStarted { what: &'static str },
    #[error("a cold start needs the file of the model's weights, to drop it from memory")]
    NoWeights,
    #[error("cannot read the model's weights or drop them from memory: {0}")]
    Weights(std::io::Error),
    #[error(transparent)]
    Record(#[from] RecordError),
    #[error(transparent)]
    Target(#[from] TargetError),
    #[error("the speech model {model} answered {status} to a sentence: {message}")]
    NotSpoken { model: String, status: u16, message: String },
    #[error("the sound of the speech model {model} is not a WAV file of 16-bit samples")]
    NotWav { model: String },
    #[error(
        "{item} offers tools, which a completion has not; leave such tasks out, or ask in a chat"
    )]
    ToolsNeedChat { item: String },
    #[error(
        "{item} is not a choice, so there are no options to score; ask it without --choices-by-logprob"
    )]
    NotAChoice { item: String },
    #[error(
        "the server does not report log-probabilities of a prompt ({reason}); ask for the letter instead, without --choices-by-logprob"
    )]
    NoLogprobs { reason: String },
    #[error("cannot hash {file}: {source}")]
    Unreadable { file: String, source: std::io::Error },
}

impl BenchError {
    /// Whether the server failed, and not this client, its user or another program.
    pub fn is_the_servers(&self) -> bool {
        match self {
            BenchError::Fault(fault) => *fault != RequestFault::Stopped,
            BenchError::Sound(_) => true,
            BenchError::Launch(error) => matches!(
                error,
                LaunchError::Ended { .. }
                    | LaunchError::NotReady { .. }
                    | LaunchError::Lingers { .. }
            ),
            _ => false,
        }
    }
}

/// The figures of one request.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Reply {
    /// When the request was due and when it was sent, since the run's start.
    pub sched: Duration,
    pub sent: Duration,
    pub connect: Option<Duration>,
    /// Empty if the request failed.
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
    /// The times of a request, without its answer.
    pub(crate) fn from_exchange(exchange: &Exchange) -> Reply {
        let Exchange { sched, sent, connect, .. } = *exchange;
        Reply { sched, sent, connect, ..Reply::default() }
    }

    /// With the reason why there are no figures.
    pub(crate) fn failed(self, fault: &dyn fmt::Display, was_stopped: bool) -> Reply {
        Reply { fault: Some(fault.to_string()), was_stopped, ..self }
    }

    /// The figures of a text answer.
    pub(crate) fn in_words(
        exchange: &Exchange,
        timeline: &Timeline,
        figures: Option<RequestFigures>,
    ) -> Reply {
        let reply = Reply {
            finish: timeline.finish.clone(),
            fault: timeline.fault.as_ref().map(ToString::to_string),
            was_stopped: timeline.fault == Some(RequestFault::Stopped),
            ..Reply::from_exchange(exchange)
        };
        let Some(figures) = figures else { return reply };
        Reply {
            figures: figures.by_metric,
            gaps_ms: figures.gaps_ms,
            stalls: figures.stalls,
            tokens: Some(figures.tokens),
            count_source: figures.count_source,
            flags: figures.flags,
            ..reply
        }
    }

    /// Adds figures that count from the due time instead of the sending time.
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

/// One run: a group of requests that is measured as one unit.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Run {
    /// Number of the server's start, from 0.
    pub start: u32,
    pub replies: Vec<Reply>,
    /// Figures of all requests together, such as throughput.
    pub together: BTreeMap<Metric, f64>,
    /// Processor time of all client threads, and of the busiest one.
    pub cpu: Duration,
    pub cpu_busiest: Duration,
    pub wall: Duration,
}

impl Run {
    pub(crate) fn from_drive(driven: &DriveResult, replies: Vec<Reply>) -> Run {
        let DriveResult { cpu, cpu_busiest, wall, .. } = *driven;
        Run { replies, cpu, cpu_busiest, wall, ..Run::default() }
    }

    /// The figure of this run: of all requests together, or the median of its requests.
    pub fn figure(&self, metric: Metric) -> Option<f64> {
        match metric {
            Metric::IcgMs => Sample::new(self.gaps_ms()).median(),
            _ => self.together.get(&metric).copied().or_else(|| self.per_request(metric).median()),
        }
    }

    fn per_request(&self, metric: Metric) -> Sample {
        Sample::new(self.replies.iter().filter_map(|reply| reply.figures.get(&metric).copied()))
    }

    fn gaps_ms(&self) -> impl Iterator<Item = f64> {
        self.replies.iter().flat_map(|reply| reply.gaps_ms.iter().copied())
    }

    /// Whether every request failed.
    pub fn has_failed(&self) -> bool {
        self.replies.iter().all(Reply::has_failed)
    }

    /// Whether the user stopped the measurement during this run, or before its first request.
    pub fn was_stopped(&self) -> bool {
        self.replies.is_empty() || self.replies.iter().any(|reply| reply.was_stopped)
    }
}

/// All runs of a cell.
#[derive(Clone, Debug, Default)]
pub struct Runs {
    pub runs: Vec<Run>,
    pub warmup_requests: usize,
    /// None if the server failed before the client could be checked at its pace.
    pub client_check: Option<ClientCheck>,
    /// The user stopped the measurement.
    pub was_stopped: bool,
    /// Why there are no other runs: the server did not restart, or another one failed that was measured alternately.
    pub broken: Option<String>,
}

impl Runs {
    /// The figure of each run.
    pub fn sample(&self, metric: Metric) -> Sample {
        Sample::new(self.runs.iter().filter_map(|run| run.figure(metric)))
    }

    /// The figure of each request.
    pub fn pooled(&self, metric: Metric) -> Sample {
        let of_run = |run: &Run| match metric {
            Metric::IcgMs => run.gaps_ms().collect(),
            _ => match run.together.get(&metric) {
                Some(figure) => vec![*figure],
                None => {
                    run.replies.iter().filter_map(|r| r.figures.get(&metric).copied()).collect()
                }
            },
        };
        Sample::new(self.runs.iter().flat_map(of_run))
    }

    pub fn replies(&self) -> impl Iterator<Item = &Reply> {
        self.runs.iter().flat_map(|run| &run.replies)
    }

    /// Replies with figures.
    pub fn answered(&self) -> impl Iterator<Item = &Reply> {
        self.replies().filter(|reply| !reply.figures.is_empty())
    }

    /// Who counted the tokens. None without answers.
    pub(crate) fn count_source(&self) -> Option<CountSource> {
        self.answered().next()?;
        let is_counted = |reply: &Reply| reply.count_source == Some(CountSource::Usage);
        let by_server = self.answered().all(is_counted);
        Some(if by_server { CountSource::Usage } else { CountSource::Chunks })
    }

    /// The widest half interval of the leading figures in percent; None until each of them has an interval.
    pub fn half_width_pct(&self, leading: &[Metric]) -> Option<f64> {
        let widths = leading.iter().map(|metric| self.sample(*metric));
        let mut there = widths.filter(|sample| sample.count() > 0).peekable();
        there.peek()?;
        there
            .map(|sample| sample.half_width_pct())
            .try_fold(0.0, |widest: f64, pct| Some(widest.max(pct?)))
    }

    /// Number of server starts, with the first one.
    pub fn starts(&self) -> u32 {
        self.runs.iter().map(|run| run.start + 1).max().unwrap_or(1)
    }
}
