//! Measures the time from a start to the first answer: a new process for each sample, with its weights on the disk or in memory.
//! It also measures the swap from one model to another on a running server.

mod cache;
mod client;

use std::path::PathBuf;
use std::sync::atomic::AtomicBool;

use hob_core::statistics::Sample;
use jiff::Timestamp;

use client::ColdClient;

use crate::client_check::{CheckLoad, ClientCheck};
use crate::record::{
    Connection, CountSource, Doubt, Record, RecordKind, RecordedModel, RecordedWorkload,
};
use crate::runs::{BenchError, Benchmark, CellSummary, Reply, Run, Runs, those_that_apply};
use crate::server::StartedServer;
use crate::terms::{Metric, known};
use crate::voice::VoiceWorkload;
use crate::workbench::Workbench;

/// At most this share of the weights may be in memory at a cold start. Samples of the file show the share.
const COLD_SHARE_MAX: f64 = 0.05;
/// At least this share must be in memory at a start with a warm page cache.
const WARM_SHARE_MIN: f64 = 0.95;

/// The states to start from, and the request after the start.
#[derive(Clone, Debug)]
pub struct StartOptions {
    pub states: Vec<StartState>,
    pub request: ColdRequest,
    /// Requests after the first one of each start, for the warm time.
    pub warm: usize,
    pub weights: WeightsFile,
}

/// The file of weights that is dropped from memory or read into it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum WeightsFile {
    /// The file that is known for this server.
    OfTheServer,
    /// The known file belongs to another model, so this model's file is unknown.
    Unknown,
}

/// Where the model is before the start.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum StartState {
    /// The file of the model is only on the disk.
    PageCacheCold,
    /// The file of the model is in the kernel's page cache.
    PageCacheWarm,
    /// Another model of the same server answered the last request.
    ModelSwap { with: String },
}

/// A text to synthesise.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ColdSpeech {
    /// None: the target's model.
    pub model: Option<String>,
    pub voice: String,
    pub text: String,
}

/// The request after the start: a chat question, a text to synthesise, or a spoken question.
#[derive(Clone, Debug)]
pub enum ColdRequest {
    Chat,
    Speech(ColdSpeech),
    /// The first question of a workload, in a session of its own.
    Conversation(VoiceWorkload),
}

impl StartState {
    pub fn name(&self) -> &'static str {
        match self {
            StartState::PageCacheCold => "page_cache_cold",
            StartState::PageCacheWarm => "page_cache_warm",
            StartState::ModelSwap { .. } => "model_swap",
        }
    }
}

/// Measures each state, and stores its record.
///
/// # Errors
/// The state needs a server that this client starts or the file of its weights, the server does not start, or a record
/// cannot be stored.
pub(crate) fn measure(
    bench: &mut Workbench<'_>,
    options: &StartOptions,
) -> Result<Vec<Record>, BenchError> {
    if let ColdRequest::Speech(ColdSpeech { model: Some(name), .. }) = &options.request {
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
        records.extend(measure_start(bench, options, state)?);
    }
    Ok(records)
}

/// Measures repeated starts from one state.
fn measure_start(
    bench: &mut Workbench<'_>,
    options: &StartOptions,
    state: &StartState,
) -> Result<Option<Record>, BenchError> {
    let begun = Timestamp::now();
    let asker = bench.asker();
    let mut client = ColdClient::new(asker.clone(), &options.request);
    // Finds out which fields the server accepts, before the measurement.
    let _first = client.ask_until_ready()?;
    let Workbench { started, stop_rule, stop, tell, .. } = bench;
    let cold_by = match state {
        StartState::ModelSwap { with } => {
            ColdBy::Swap(Box::new(ColdClient::for_model(&asker, with, &options.request)))
        }
        _ => ColdBy::Restart(
            started.as_mut().ok_or(BenchError::NotStarted { what: "a cold start" })?,
        ),
    };
    let leading = match state {
        StartState::ModelSwap { .. } => [Metric::SwapMs, Metric::ColdFirstMs],
        _ => [Metric::ColdFirstMs, Metric::LoadMs],
    };
    let (warm, resident) = (options.warm, Vec::new());
    let mut cold =
        RepeatedStarts { client, cold_by, state, warm, stop, start: 0, leading, resident };
    let runs = stop_rule.run_unwarmed(&mut cold, stop, &mut |step| tell(state.name(), step))?;
    let summary = summarise(state, &runs, begun, cold.proof(), &leading);
    bench.close(summary, |record| {
        record.resources.cold_first_ms = record.metrics.figure(Metric::ColdFirstMs);
        let load_ms = record.metrics.figure(Metric::LoadMs);
        record.resources.load_s = load_ms.map(|ms| ms / 1e3).or(record.resources.load_s);
    })
}

/// How the model gets cold before each request.
#[derive(Debug)]
enum ColdBy<'s, 'a> {
    Restart(&'s mut StartedServer),
    /// Another model answers a request first.
    Swap(Box<ColdClient<'a>>),
}

/// Repeated starts from one state.
#[derive(Debug)]
struct RepeatedStarts<'s, 'a> {
    client: ColdClient<'a>,
    cold_by: ColdBy<'s, 'a>,
    state: &'s StartState,
    /// Requests after the first one of each start.
    warm: usize,
    stop: &'a AtomicBool,
    /// Number of the next start.
    start: u32,
    leading: [Metric; 2],
    /// Share of the weights in memory before each start; None if unknown.
    resident: Vec<Option<f64>>,
}

impl RepeatedStarts<'_, '_> {
    /// Ends the old server, prepares the file, and starts a new server.
    fn begin(&mut self) -> Result<Run, BenchError> {
        let mut run = Run::default();
        match &mut self.cold_by {
            ColdBy::Restart(started) => {
                started.end()?;
                self.resident.push(prepared(self.state, started.weights.as_ref())?);
                started.restart(self.stop)?;
                run.start = self.start;
                self.start += 1;
                run.together.insert(Metric::LoadMs, started.load().as_secs_f64() * 1e3);
            }
            ColdBy::Swap(other) => {
                let answered = other.ask_until_ready()?;
                if answered.has_failed() {
                    run.replies.push(answered);
                }
            }
        }
        Ok(run)
    }

    /// Whether the weights were in the state that the record names.
    fn proof(&self) -> StateProof {
        let (is_wrong, what): (fn(f64) -> bool, _) = match self.state {
            StartState::PageCacheCold => (|share| share > COLD_SHARE_MAX, "were still in memory"),
            StartState::PageCacheWarm => (|share| share < WARM_SHARE_MIN, "were in memory"),
            StartState::ModelSwap { .. } => return StateProof { is_proven: false, wrong: None },
        };
        let wrong = self.resident.iter().flatten().find(|share| is_wrong(**share));
        let percent = wrong.map(|share| share * 100.0);
        StateProof {
            is_proven: wrong.is_none() && self.resident.iter().all(Option::is_some),
            wrong: percent
                .map(|pct| format!("{pct:.0} % of the weights {what} when the server started")),
        }
    }
}

/// What is known about the state.
#[derive(Debug)]
struct StateProof {
    is_proven: bool,
    wrong: Option<String>,
}

/// Brings the file of weights into the state, and returns the share of it that is in memory; None if unknown.
fn prepared(state: &StartState, weights: Option<&PathBuf>) -> Result<Option<f64>, BenchError> {
    let prepared = match (state, weights) {
        (StartState::PageCacheCold, None) => return Err(BenchError::NoWeights),
        (StartState::PageCacheCold, Some(file)) => cache::drop_from_memory(file),
        (StartState::PageCacheWarm, Some(file)) => cache::read_into_memory(file),
        (StartState::PageCacheWarm | StartState::ModelSwap { .. }, _) => Ok(None),
    };
    prepared.map_err(BenchError::Weights)
}

impl Benchmark for RepeatedStarts<'_, '_> {
    fn measure_run(&mut self, _client_check: Option<&ClientCheck>) -> Result<Run, BenchError> {
        let mut run = self.begin()?;
        if run.replies.iter().any(Reply::has_failed) {
            return Ok(run);
        }
        let first = self.client.ask_until_ready()?;
        let (whole, first_content) = self.client.whole_and_first_content();
        let cold_ms = first.figures.get(&whole).copied();
        let first_content_ms = first.figures.get(&first_content).copied();
        let has_failed = first.has_failed();
        run.replies.push(first);
        if has_failed {
            return Ok(run);
        }
        let mut warm_ms = Vec::new();
        for _ in 0..self.warm {
            let warm = self.client.ask_until_ready()?;
            warm_ms.extend(warm.figures.get(&whole).copied());
            // The figures of a run are those of its first request, but its errors are those of all.
            run.replies.extend(Some(warm).filter(Reply::has_failed));
        }
        let warm_ms = Sample::new(warm_ms).median();
        let is_swap = matches!(self.cold_by, ColdBy::Swap(_));
        let rows = [
            (Metric::ColdFirstMs, cold_ms),
            (Metric::SwapMs, first_content_ms.filter(|_| is_swap)),
            (Metric::WarmMs, warm_ms),
            (Metric::ColdX, cold_ms.zip(warm_ms).map(|(cold, warm)| cold / warm)),
        ];
        run.together.extend(known(rows));
        Ok(run)
    }

    fn leading(&self) -> &[Metric] {
        &self.leading
    }

    fn pace(&self, warm: &Run) -> Option<CheckLoad> {
        let ttft_ms = warm.figure(Metric::TtftMs).or(warm.figure(Metric::TtfaMs))?;
        Some(CheckLoad::with_medians(1, ttft_ms, warm.figure(Metric::TpotMs)))
    }
}

fn summarise<'r>(
    state: &StartState,
    runs: &'r Runs,
    started: Timestamp,
    proof: StateProof,
    leading: &'r [Metric],
) -> CellSummary<'r> {
    let is_swap = matches!(state, StartState::ModelSwap { .. });
    let counts = runs.answered().find_map(|reply| reply.count_source);
    let doubts = [
        (!proof.is_proven && !is_swap, Doubt::CacheUnverified),
        (counts == Some(CountSource::Chunks), Doubt::CountsNotUsage),
    ];
    CellSummary {
        kind: RecordKind::Cold,
        runs,
        started,
        workload: RecordedWorkload {
            shape: Some(state.name().to_owned()),
            version: Some(1),
            cache_verified: (!is_swap).then_some(proof.is_proven),
            ..RecordedWorkload::closed_loop(1, Connection::Fresh)
        },
        stopping_metrics: leading,
        count_source: counts,
        more_invalid_reasons: proof.wrong.into_iter().collect(),
        doubts: those_that_apply(doubts),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::canned_server::CannedServer;
    use crate::drive::RequestLimits;
    use crate::target::{Api, Target};
    use crate::workbench::Asker;

    #[test]
    fn a_failed_request_after_the_first_is_counted() {
        let said = r#"{"choices":[{"delta":{"content":"Hi"},"finish_reason":"stop"}]}"#;
        let mut asked = 0;
        // The other model answers, then this one, but only once.
        let server = CannedServer::start(move |_| {
            asked += 1;
            if asked > 2 { (500, String::new()) } else { (200, format!("data: {said}\n\n")) }
        });
        let stop = AtomicBool::new(false);
        let target = Target::for_tests(&server.url(), Api::OpenAi);
        let asker = Asker { target, limits: RequestLimits::default(), seed: 7, stop: &stop };
        let other = ColdClient::for_model(&asker, "other", &ColdRequest::Chat);
        let mut cold = RepeatedStarts {
            client: ColdClient::new(asker, &ColdRequest::Chat),
            cold_by: ColdBy::Swap(Box::new(other)),
            state: &StartState::ModelSwap { with: "other".to_owned() },
            warm: 1,
            stop: &stop,
            start: 0,
            leading: [Metric::SwapMs, Metric::ColdFirstMs],
            resident: Vec::new(),
        };
        let run = cold.measure_run(None).expect("a run");
        let have_failed: Vec<bool> = run.replies.iter().map(Reply::has_failed).collect();
        assert_eq!(have_failed, [false, true], "{:?}", run.replies);
        assert_eq!(server.end().len(), 3);
    }
}
