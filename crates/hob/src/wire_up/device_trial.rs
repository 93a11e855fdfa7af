//! The worker that lists the engine's devices and tries them. It reports line by line.
//! If a driver ends the process, the reports before that remain.

use hob_core::KvType;
use hob_engines::chat::{CardUse, LlamaOptions, WeightStorage, try_devices};

use super::chat::{threads, weights};
use crate::failure::{CliResult, Failure};
use crate::printer::worker_line;
use crate::worker_args::DevicesWorkerArgs;

/// More than enough: a trial computes one token.
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
    try_devices(options.as_ref(), &mut |report| worker_line(&report)).map_err(Failure::engine)
}
