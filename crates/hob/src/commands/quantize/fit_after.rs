//! What `hob fit` says of a chat model that was written, and the measured speed to compare it with.
//! Both speeds are those of the processor, with short contexts.

use std::path::Path;
use std::time::Duration;

use hob_core::fit::{ComputeSite, FitOptions, Placement, Plan, Use, assess};
use hob_core::machine::Machine;
use hob_engines::timing::EngineTiming;
use hob_models::Gguf;
use serde::Serialize;
use tokio::time::Instant;

use super::MB;
use crate::failure::CliResult;
use crate::wire_up::{TimingJob, run_timing_worker};

/// Tokens of the longer of two contexts, for the speed.
const SPEED_CONTEXT: u32 = 512;
/// For a large model on a busy machine. A small one takes seconds.
const SPEED_TIME_MAX: Duration = Duration::from_secs(180);

/// A prediction for the result.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub(super) struct FitAfter {
    /// Bytes of the weights, as they were predicted before the model was written.
    pub(super) expected_bytes: u64,
    /// With the context that `hob fit` assumes.
    pub(super) memory_bytes: Option<u64>,
    pub(super) context_tokens: Option<u32>,
    pub(super) fits: Option<bool>,
    /// Tokens a second of this machine's processor. `None`: its memory's speed is unknown, or another machine was named.
    pub(super) tok_s: Option<f64>,
}

impl FitAfter {
    pub(super) fn of(
        target: &Path,
        expected_bytes: u64,
        (machine, is_here): (&Machine, bool),
    ) -> FitAfter {
        let model = Gguf::open(target).and_then(|header| header.model("the result")).ok();
        let plans = |context_tokens: Option<u32>| -> Vec<Plan> {
            let options = FitOptions { context_tokens, ..FitOptions::default() };
            let assessed = model.as_ref().and_then(|model| assess(machine, model, &options).ok());
            assessed.map_or(Vec::new(), |assessed| assessed.plans)
        };
        let usual = plans(None).into_iter().next();
        let in_ram = |plan: &Plan| plan.placement == Placement::Ram;
        let short = plans(Some(SPEED_CONTEXT)).into_iter().find(in_ram);
        let rate = short.and_then(|plan| plan.decode_requested).filter(|_| is_here);
        FitAfter {
            expected_bytes,
            memory_bytes: usual.as_ref().map(|plan| plan.uses.iter().map(Use::kept_bytes).sum()),
            context_tokens: usual.as_ref().map(|plan| plan.context_tokens),
            fits: usual.as_ref().map(|plan| plan.uses.iter().all(Use::fits)),
            tok_s: rate.map(|rate| rate.tok_s),
        }
    }

    /// A line of the report.
    pub(super) fn summary(&self) -> String {
        let size = format!("weights of {:.0} MB were predicted", self.expected_bytes as f64 / MB);
        let Some((bytes, tokens)) = self.memory_bytes.zip(self.context_tokens) else { return size };
        let fits = if self.fits == Some(false) { ", which this machine does not have" } else { "" };
        let needs = bytes as f64 / MB;
        format!(
            "{size}; needs {needs:.0} MB of memory with {tokens} tokens of context{fits} (hob fit)"
        )
    }
}

/// Tokens a second, one at a time. `None` if the limit passed before a figure was there.
pub(super) async fn speed(path: &Path) -> CliResult<Option<f64>> {
    let job = TimingJob::Model { path, context_tokens: SPEED_CONTEXT, site: ComputeSite::Cpu };
    let timed = run_timing_worker(&job, Instant::now() + SPEED_TIME_MAX).await?;
    let speeds = timed.into_iter().filter_map(|timed| match timed {
        EngineTiming::Decode { median_tok_s, .. } => Some(median_tok_s),
        _ => None,
    });
    Ok(speeds.reduce(f64::max))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_prediction_says_size_and_memory() {
        let unknown = FitAfter { expected_bytes: 105_400_000, ..FitAfter::default() };
        assert_eq!(unknown.summary(), "weights of 105 MB were predicted");
        let known = FitAfter {
            memory_bytes: Some(320_000_000),
            context_tokens: Some(8192),
            fits: Some(true),
            ..unknown
        };
        let expected = "; needs 320 MB of memory with 8192 tokens of context (hob fit)";
        assert!(known.summary().ends_with(expected), "{}", known.summary());
        let large = FitAfter { fits: Some(false), ..known };
        assert!(large.summary().contains("context, which this machine does not have (hob fit)"));
    }
}
