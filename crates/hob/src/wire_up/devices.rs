//! The worker that tries the engine's devices for `hob doctor`. It reports line by line.
//! Drivers of graphics cards run in it alone, so a broken one ends no other process.

use std::io::Write;
use std::ops::ControlFlow;
use std::path::Path;
use std::process::Stdio;
use std::time::Duration;

use hob_core::KvType;
use hob_engines::chat::{CardUse, DeviceReport, LlamaOptions, WeightStorage, try_devices};
use tokio::io::{AsyncBufReadExt, BufReader};
use tokio::process::Command;
use tokio::time::{Instant, timeout_at};

use super::chat::{threads, weights};
use super::own_program;
use crate::failure::{CliResult, Failure};
use crate::worker_args::DevicesWorkerArgs;

/// Longer than a driver needs to compile its kernels, and a model to load from a slow disk, on a few devices.
const DEVICES_TIME_MAX: Duration = Duration::from_secs(180);
/// For one token.
const CONTEXT_TOKENS: u32 = 256;
const BATCH_TOKENS: u32 = 32;

/// What the worker reported, and how it ended if it did not end well.
#[derive(Clone, Debug, Default)]
pub(crate) struct TriedDevices {
    pub(crate) reports: Vec<DeviceReport>,
    pub(crate) failed: Option<String>,
}

/// Lists the engine's devices. With a model, each computes a token.
///
/// # Errors
/// The worker does not start.
pub(crate) async fn run_devices_worker(model: Option<&Path>) -> CliResult<TriedDevices> {
    let mut command = Command::new(own_program()?);
    command
        .args(["worker", "devices"])
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .stderr(Stdio::null())
        .kill_on_drop(true);
    if let Some(model) = model {
        command.arg("--model").arg(model);
    }
    let failed = |error| Failure::io("the worker for devices does not start", &error);
    let mut child = command.spawn().map_err(failed)?;
    let mut tried = TriedDevices::default();
    let until = Instant::now() + DEVICES_TIME_MAX;
    if let Some(stdout) = child.stdout.take() {
        let mut lines = BufReader::new(stdout).split(b'\n');
        while let Ok(Ok(Some(line))) = timeout_at(until, lines.next_segment()).await {
            // Lines that a driver prints are ignored. They may not be UTF-8.
            tried.reports.extend(serde_json::from_slice::<DeviceReport>(&line).ok());
        }
    }
    tried.failed = match timeout_at(until, child.wait()).await {
        Ok(Ok(status)) => (!status.success()).then(|| status.to_string()),
        Ok(Err(error)) => Some(error.to_string()),
        Err(_) => Some(format!("no result within {} s", DEVICES_TIME_MAX.as_secs())),
    };
    Ok(tried)
}

/// Entry point of `hob worker devices`. A model that the system's memory can hardly hold is not loaded.
pub(crate) fn work_devices(args: &DevicesWorkerArgs) -> CliResult<()> {
    let (threads, threads_batch) = threads(0);
    let model = args.model.as_ref().filter(|path| weights(path) == WeightStorage::Copied);
    let options = model.map(|path| LlamaOptions {
        path: path.clone(),
        context_tokens: CONTEXT_TOKENS,
        parallel: 1,
        kv_type: KvType::F16,
        threads,
        threads_batch,
        batch_tokens: BATCH_TOKENS,
        gpu_layers: None,
        cpu_moe_layers: 0,
        card_use: CardUse::Allowed,
        weights: WeightStorage::Copied,
    });
    try_devices(options.as_ref(), &mut |report| print_report(&report)).map_err(Failure::engine)
}

/// Prints a report on its own line. If the reader is gone, no more reports are needed.
fn print_report(report: &DeviceReport) -> ControlFlow<()> {
    let line = serde_json::to_string(report).unwrap_or_default();
    let mut stdout = std::io::stdout().lock();
    match writeln!(stdout, "{line}").and_then(|()| stdout.flush()) {
        Ok(()) => ControlFlow::Continue(()),
        Err(_) => ControlFlow::Break(()),
    }
}
