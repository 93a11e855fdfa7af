//! The worker that times the engine for `hob fit calibrate`. It reports line by line, and can be stopped at any time.
//! Native code runs in it alone, with the same threads as a chat worker.

use std::path::{Path, PathBuf};
use std::time::Duration;

use hob_core::KvType;
use hob_core::fit::ComputeSite;
use hob_engines::chat::{CardUse, LlamaOptions};
use hob_engines::timing::{EngineTiming, Threads, time_kernels, time_model};
use tokio::io::{AsyncBufReadExt, BufReader};
use tokio::time::{Instant, timeout_at};

use super::chat::{threads, weights};
use super::own_program;
use super::worker_process::{next_report, reporting_process};
use crate::failure::{CliResult, Failure};
use crate::printer::worker_line;
use crate::worker_args::TimingWorkerArgs;

/// Time limit of a whole calibration.
pub(crate) const CALIBRATION_TIME_MAX: Duration = Duration::from_secs(28);
/// Each model on a card has this much more time: 4 GB take seconds to load.
pub(crate) const CARD_TIME_MAX: Duration = Duration::from_secs(30);
const BATCH_TOKENS: u32 = 512;
/// More than any model has.
const ALL_LAYERS: u32 = 9_999;

/// What to time.
#[derive(Clone, Debug)]
pub(crate) enum TimingJob<'a> {
    /// The kernels of this many quants, the most common first.
    Kernels {
        quant_count: usize,
    },
    Model {
        path: &'a Path,
        context_tokens: u32,
        site: ComputeSite,
    },
}

/// Starts the timing worker and reads its figures until it ends or `until` has passed. Dropping the future kills the
/// worker.
///
/// # Errors
/// The worker does not start.
pub(crate) async fn run_timing_worker(
    job: &TimingJob<'_>,
    until: Instant,
) -> CliResult<Vec<EngineTiming>> {
    let mut command = reporting_process(&own_program()?);
    command.args(["worker", "timing"]);
    match job {
        TimingJob::Kernels { quant_count } => command.arg("--types").arg(quant_count.to_string()),
        TimingJob::Model { path, context_tokens, site } => {
            command.arg("--model").arg(path).arg("--context").arg(context_tokens.to_string());
            command.args((*site != ComputeSite::Cpu).then_some("--on-card"))
        }
    };
    let failed = |error| Failure::io("the timing worker does not start", &error);
    let mut child = command.spawn().map_err(failed)?;
    let mut timed = Vec::new();
    let Some(stdout) = child.stdout.take() else { return Ok(timed) };
    let mut lines = BufReader::new(stdout).split(b'\n');
    while let Ok(Some(report)) = timeout_at(until, next_report(&mut lines)).await {
        timed.push(report);
    }
    Ok(timed)
}

/// Entry point of `hob worker timing`.
pub(crate) fn work_timing(args: &TimingWorkerArgs) -> CliResult<()> {
    let (threads, threads_batch) = threads(0);
    let mut report = |timed: EngineTiming| worker_line(&timed);
    let Some(path) = &args.model else {
        let threads = Threads { decode: threads, prefill: threads_batch };
        time_kernels(threads, args.types, &mut report);
        return Ok(());
    };
    let (card_use, gpu_layers) = match args.on_card {
        true => (CardUse::Allowed, ALL_LAYERS),
        // Otherwise the engine would compute long prompts on a card.
        false => (CardUse::Avoided, 0),
    };
    let options = LlamaOptions {
        path: PathBuf::from(path),
        context_tokens: args.context,
        parallel: 1,
        kv_type: KvType::F16,
        threads,
        threads_batch,
        batch_tokens: BATCH_TOKENS,
        gpu_layers: Some(gpu_layers),
        cpu_moe_layers: 0,
        card_use,
        weights: weights(path),
    };
    time_model(options, args.context, &mut report).map_err(Failure::engine)
}

/// Default number of decoding threads of a chat worker.
pub(crate) fn decoding_threads() -> u32 {
    threads(0).0
}
