//! The worker that lists the engine's devices and tries them. It reports line by line.
//! If a driver ends the process, the reports before that remain.

use std::io::Write;
use std::ops::ControlFlow;

use hob_core::KvType;
use hob_engines::chat::{CardUse, DeviceReport, LlamaOptions, WeightStorage, try_devices};

use super::chat::{threads, weights};
use crate::failure::{CliResult, Failure};
use crate::worker_args::DevicesWorkerArgs;

/// For one token.
const CONTEXT_TOKENS: u32 = 256;
const BATCH_TOKENS: u32 = 32;

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
