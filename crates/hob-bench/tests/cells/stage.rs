//! Runs experiments against a mock server for the tests of this folder, and collects the records.
//! Few runs, because a scripted server always behaves the same.

use std::sync::atomic::AtomicBool;
use std::time::Duration;

use hob_bench::chat::{ChatWorkload, Prompts, SHAPES, Shape, ThinkingChoice};
use hob_bench::drive::{Arrivals, RequestLimits};
use hob_bench::experiment::{Axis, Experiment, RunSize, Workload};
use hob_bench::mock::{MockServer, Script};
use hob_bench::record::{RawSample, Record};
use hob_bench::runs::{BenchError, RecordContext, Step, StopRule};
use hob_bench::target::{Api, Target};
use hob_bench::workbench::Workbench;

pub(crate) fn mock(pairs: &str) -> MockServer {
    let quick = "ttft_ms=5,itl_ms=1,cache=true";
    let script =
        Script::default().with(quick).and_then(|script| script.with(pairs)).expect("a script");
    MockServer::start_local(script).expect("a free port")
}

/// Records in the order in which they were kept, and what was left out.
#[derive(Default)]
pub(crate) struct Kept {
    pub(crate) records: Vec<Record>,
    pub(crate) samples: Vec<Vec<RawSample>>,
    pub(crate) left_out: Vec<String>,
}

/// Prompts of two users, who ask twice each in a run.
pub(crate) fn experiment(prompts: Prompts) -> Experiment {
    let shapes = vec![Shape { max_tokens: 16, ..SHAPES[0] }];
    let chat = ChatWorkload { shapes, thinking: ThinkingChoice::Auto, prompts };
    let run_size = RunSize { rounds: 2, span_s: 0.5 };
    Experiment { workload: Workload::Chat(chat), axis: load(&[2]), run_size }
}

/// An experiment whose runs end with these rounds.
pub(crate) fn in_rounds(rounds: usize, workload: Workload, axis: Axis) -> Experiment {
    Experiment { workload, axis, run_size: RunSize { rounds, span_s: 0.0 } }
}

pub(crate) fn load(users: &[usize]) -> Axis {
    Axis::Load(users.iter().map(|users| Arrivals::Closed { users: *users }).collect())
}

/// The cells of cold prompts, at a server with this script.
pub(crate) fn cold(script: &str, runs: usize) -> Vec<(Record, Vec<RawSample>)> {
    measured(&mock(script), None, &experiment(Prompts::Cold), runs).expect("cells")
}

/// All cells of chat, in order, by this protocol.
pub(crate) fn measured(
    mock: &MockServer,
    api: Option<Api>,
    experiment: &Experiment,
    runs: usize,
) -> Result<Vec<(Record, Vec<RawSample>)>, BenchError> {
    let target = Target::find(&mock.url(), api, None, None).expect("a server");
    let Kept { records, samples, .. } = kept_of(target, runs, |bench| experiment.measure(bench))?;
    Ok(records.into_iter().zip(samples).collect())
}

impl Kept {
    /// Requests of each record.
    pub(crate) fn requests(&self) -> Vec<usize> {
        self.samples.iter().map(Vec::len).collect()
    }
}

/// Runs `work` with this number of runs for each cell.
pub(crate) fn kept(
    mock: &MockServer,
    runs: usize,
    work: impl FnOnce(&mut Workbench<'_>) -> Result<Vec<Record>, BenchError>,
) -> Result<Kept, BenchError> {
    kept_of(Target::find(&mock.url(), None, None, None).expect("a server"), runs, work)
}

fn kept_of(
    target: Target,
    runs: usize,
    work: impl FnOnce(&mut Workbench<'_>) -> Result<Vec<Record>, BenchError>,
) -> Result<Kept, BenchError> {
    let (stop, mut kept, mut left_out) = (AtomicBool::new(false), Kept::default(), Vec::new());
    let mut bench = Workbench {
        target,
        started: None,
        context: RecordContext { seed: 7, ..RecordContext::default() },
        stop_rule: StopRule { runs_min: runs, runs_max: runs, ..StopRule::default() },
        limits: RequestLimits { silence: Duration::from_secs(60), ..RequestLimits::default() },
        stop: &stop,
        tell: &mut |_, step| {
            if let Step::LeftOut { why } = step {
                left_out.push(why.to_owned());
            }
        },
        keep: &mut |record, samples| {
            kept.records.push(record.clone());
            kept.samples.push(samples.to_vec());
            Ok(())
        },
    };
    let returned = work(&mut bench)?;
    assert_eq!(returned, kept.records, "what is returned is what was kept, in this order");
    Ok(Kept { left_out, ..kept })
}
