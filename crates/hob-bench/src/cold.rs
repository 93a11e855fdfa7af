//! From a start to the first answer: a new process for each sample, its weights on the disk or in memory already;
//! or, without a start, one model taking another's place.

mod asking;
mod cache;

use std::path::PathBuf;
use std::sync::atomic::AtomicBool;

use hob_core::statistics::Sample;
use jiff::Timestamp;

use asking::Asking;

use crate::calibrate::{Calibration, Pace};
use crate::record::{Connection, CountSource, Doubt, Kind, Loop, Record, RecordedModel, Workload};
use crate::runs::{Account, BenchError, Benchmark, Block, Reply, Runs};
use crate::server::StartedServer;
use crate::terms::Metric;
use crate::workbench::Workbench;

/// Of the weights, as it is looked at in places.
const COLD_SHARE_MAX: f64 = 0.05;
const WARM_SHARE_MIN: f64 = 0.95;
const TPOT_MS_ASSUMED: f64 = 20.0;

/// The states to start from, and what is asked then.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct StartOptions {
    pub states: Vec<State>,
    pub of: Of,
    /// Requests behind the first of each start, for how fast it is once it is warm.
    pub warm: usize,
    pub weights: WeightsFile,
}

/// Whose file the machine is to forget or to remember.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum WeightsFile {
    /// The one that is known of the server.
    OfTheServer,
    /// That one is of another model than is asked, and this one's is not known.
    Unknown,
}

/// What the machine still knows of the model.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum State {
    /// Its file is on the disk only.
    PageCacheCold,
    /// Its file is in the kernel's memory.
    PageCacheWarm,
    /// Another model of the same server answered last.
    ModelSwap { with: String },
}

/// What is to be said, and by whom.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Spoken {
    /// None: the target's own.
    pub model: Option<String>,
    pub voice: String,
    pub text: String,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Of {
    Words,
    Speech(Spoken),
}

impl State {
    pub fn name(&self) -> &'static str {
        match self {
            State::PageCacheCold => "page_cache_cold",
            State::PageCacheWarm => "page_cache_warm",
            State::ModelSwap { .. } => "model_swap",
        }
    }
}

/// Measures each state that is wished for; each is kept once it is done.
///
/// # Errors
/// A server has to be started for it and was there already, it does not start, or a record cannot be kept.
pub(crate) fn measure(
    bench: &mut Workbench<'_>,
    options: &StartOptions,
) -> Result<Vec<Record>, BenchError> {
    if let Of::Speech(Spoken { model: Some(name), .. }) = &options.of {
        bench.context.model = RecordedModel { name: name.clone(), ..RecordedModel::default() };
    }
    if let (WeightsFile::Unknown, Some(started)) = (options.weights, &mut bench.started) {
        started.weights = None;
    }
    let mut records = Vec::new();
    for state in &options.states {
        if bench.is_stopped() {
            break;
        }
        records.extend(one(bench, options, state)?);
    }
    Ok(records)
}

fn one(
    bench: &mut Workbench<'_>,
    options: &StartOptions,
    state: &State,
) -> Result<Option<Record>, BenchError> {
    let begun = Timestamp::now();
    let asker = bench.asker();
    let mut asking = Asking::new(asker.clone(), &options.of);
    // Finds out how it wants to be asked, before that is measured.
    let _greeted = asking.ask()?;
    let Workbench { started, stop_rule, stop, tell, .. } = bench;
    let place = match state {
        State::ModelSwap { with } => {
            Place::Beside(Box::new(Asking::of_model(&asker, with, &options.of)))
        }
        _ => Place::Start(started.as_mut().ok_or(BenchError::NotStarted { what: "a cold start" })?),
    };
    let mut cold = Cold::new(asking, place, state, options.warm, stop);
    let runs = stop_rule.run_unwarmed(&mut cold, stop, &mut |step| tell(state.name(), step))?;
    let (said, leading) = (cold.said(), cold.leading().to_vec());
    let account = account(state, &runs, begun, said, &leading);
    bench.close(account, |record| {
        record.resources.cold_first_ms = record.metrics.figure(Metric::ColdFirstMs);
        let load_ms = record.metrics.figure(Metric::LoadMs);
        record.resources.load_s = load_ms.map(|ms| ms / 1e3).or(record.resources.load_s);
    })
}

/// Where the model comes from.
#[derive(Debug)]
enum Place<'s, 'a> {
    Start(&'s mut StartedServer),
    /// Who takes its place before each question.
    Beside(Box<Asking<'a>>),
}

/// One state, again and again.
#[derive(Debug)]
struct Cold<'s, 'a> {
    asking: Asking<'a>,
    place: Place<'s, 'a>,
    state: &'s State,
    warm: usize,
    stop: &'a AtomicBool,
    start: u32,
    leading: [Metric; 2],
    /// Of the weights, before each start; none where nobody knows.
    resident: Vec<Option<f64>>,
}

impl<'s, 'a> Cold<'s, 'a> {
    fn new(
        asking: Asking<'a>,
        place: Place<'s, 'a>,
        state: &'s State,
        warm: usize,
        stop: &'a AtomicBool,
    ) -> Cold<'s, 'a> {
        let leading = match state {
            State::ModelSwap { .. } => [Metric::SwapMs, Metric::ColdFirstMs],
            _ => [Metric::ColdFirstMs, Metric::LoadMs],
        };
        Cold { asking, place, state, warm, stop, start: 0, leading, resident: Vec::new() }
    }

    /// The old one is gone, the file is where it should be, the new one is ready.
    fn begin(&mut self) -> Result<Block, BenchError> {
        let mut block = Block::default();
        match &mut self.place {
            Place::Start(started) => {
                started.end()?;
                self.resident.push(prepared(self.state, started.weights.as_ref())?);
                started.again(self.stop)?;
                block.start = self.start;
                self.start += 1;
                block.together.insert(Metric::LoadMs, started.load().as_secs_f64() * 1e3);
            }
            Place::Beside(other) => {
                let answered = other.ask()?;
                if answered.has_failed() {
                    block.replies.push(answered);
                }
            }
        }
        Ok(block)
    }

    /// Why the state is not what it is called, or that nobody knows.
    fn said(&self) -> Said {
        let (is_wrong, what): (fn(f64) -> bool, _) = match self.state {
            State::PageCacheCold => (|share| share > COLD_SHARE_MAX, "was in memory still"),
            State::PageCacheWarm => (|share| share < WARM_SHARE_MIN, "was in memory, and no more"),
            State::ModelSwap { .. } => return Said { is_proven: false, wrong: None },
        };
        let wrong = self.resident.iter().flatten().find(|share| is_wrong(**share));
        let percent = wrong.map(|share| share * 100.0);
        Said {
            is_proven: wrong.is_none() && self.resident.iter().all(Option::is_some),
            wrong: percent
                .map(|pct| format!("{pct:.0} % of the weights {what} when it was started")),
        }
    }
}

/// What is known of the state.
#[derive(Debug)]
struct Said {
    is_proven: bool,
    wrong: Option<String>,
}

fn prepared(state: &State, weights: Option<&PathBuf>) -> Result<Option<f64>, BenchError> {
    let prepared = match (state, weights) {
        (State::PageCacheCold, None) => return Err(BenchError::NoWeights),
        (State::PageCacheCold, Some(file)) => cache::forget(file),
        (State::PageCacheWarm, Some(file)) => cache::remember(file),
        (State::PageCacheWarm | State::ModelSwap { .. }, _) => Ok(None),
    };
    prepared.map_err(BenchError::Weights)
}

impl Benchmark for Cold<'_, '_> {
    fn block(&mut self, _calibration: Option<&Calibration>) -> Result<Block, BenchError> {
        let mut block = self.begin()?;
        if block.replies.iter().any(Reply::has_failed) {
            return Ok(block);
        }
        let first = self.asking.ask()?;
        let (whole, noticed) = self.asking.leading();
        let cold_ms = first.figures.get(&whole).copied();
        let noticed_ms = first.figures.get(&noticed).copied();
        let has_failed = first.has_failed();
        block.replies.push(first);
        if has_failed {
            return Ok(block);
        }
        let mut warm_ms = Vec::new();
        for _ in 0..self.warm {
            warm_ms.extend(self.asking.ask()?.figures.get(&whole).copied());
        }
        let warm_ms = Sample::new(warm_ms).median();
        let is_swap = matches!(self.place, Place::Beside(_));
        let rows = [
            (Metric::ColdFirstMs, cold_ms),
            (Metric::SwapMs, noticed_ms.filter(|_| is_swap)),
            (Metric::WarmMs, warm_ms),
            (Metric::ColdX, cold_ms.zip(warm_ms).map(|(cold, warm)| cold / warm)),
        ];
        block.together.extend(rows.into_iter().filter_map(|(metric, ms)| Some((metric, ms?))));
        Ok(block)
    }

    fn leading(&self) -> &[Metric] {
        &self.leading
    }

    fn pace(&self, warm: &Block) -> Option<Pace> {
        let ttft_ms = warm.figure(Metric::TtftMs).or(warm.figure(Metric::TtfaMs))?;
        Some(Pace::like(1, ttft_ms, warm.figure(Metric::TpotMs).unwrap_or(TPOT_MS_ASSUMED)))
    }
}

fn account<'r>(
    state: &State,
    runs: &'r Runs,
    started: Timestamp,
    said: Said,
    leading: &'r [Metric],
) -> Account<'r> {
    let is_swap = matches!(state, State::ModelSwap { .. });
    let counts = runs.answered().find_map(|reply| reply.count_source);
    let doubts = [
        (!said.is_proven && !is_swap, Doubt::CacheUnverified),
        (counts == Some(CountSource::Chunks), Doubt::CountsNotUsage),
    ];
    Account {
        kind: Kind::Cold,
        runs,
        started,
        workload: Workload {
            shape: Some(state.name().to_owned()),
            version: Some(1),
            r#loop: Some(Loop::Closed),
            concurrency: Some(1),
            cache_verified: (!is_swap).then_some(said.is_proven),
            connection: Some(Connection::Fresh),
            ..Workload::default()
        },
        leading,
        count_source: counts,
        invalid: said.wrong.into_iter().collect(),
        doubts: doubts.into_iter().filter_map(|(is_so, doubt)| is_so.then_some(doubt)).collect(),
    }
}
