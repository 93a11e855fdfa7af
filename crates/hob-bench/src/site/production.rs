//! How long real requests waited, for comparison with the warm figure of the bench.
//! The caller summarises the request log; this file only matches model names.

use serde::Serialize;

use crate::record::{Record, RecordKind};
use crate::terms::Metric;

/// Minimum number of requests. Fewer do not show what is usual.
pub const GAP_NEEDS: usize = 20;

/// The request log, summarised by model.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Production {
    pub served: Vec<ServedModelFigures>,
}

/// Requests that one model answered in the last 30 days.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct ServedModelFigures {
    /// The name under which it is served.
    pub model: String,
    pub requests: usize,
    /// Until the first token or sound. Loading, queueing and failed attempts are included.
    pub first_p50_ms: f64,
    /// Absent where there are too few requests.
    pub first_p95_ms: Option<f64>,
    /// Turns of spoken conversations: their times begin with the end of the question.
    #[serde(skip)]
    pub are_turns: bool,
}

/// A figure of the bench, and the real requests of the same model.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub(super) struct Gap<'a> {
    pub(super) served: &'a ServedModelFigures,
    /// The metric of `warm_ms`.
    pub(super) metric: Metric,
    pub(super) warm_ms: f64,
}

impl Production {
    /// The gap of a record. Absent for imported runs, several users, failed runs and too few requests.
    pub(super) fn gap(&self, record: &Record) -> Option<Gap<'_>> {
        let is_alone = record.workload.concurrency.is_none_or(|users| users == 1);
        let is_warm = !matches!(record.kind, RecordKind::Cold | RecordKind::MaxContext);
        if !is_alone || !is_warm || record.harness.is_none() || !record.is_valid() {
            return None;
        }
        let metric = [Metric::TtfatMs, Metric::TtftMs, Metric::TtfaMs];
        let found =
            metric.into_iter().find_map(|metric| Some((metric, record.metrics.figure(metric)?)));
        let (metric, warm_ms) = found.filter(|(_, ms)| *ms > 0.0)?;
        let are_turns = record.kind == RecordKind::Voice;
        let mut alike = self.served.iter().filter(|served| served.are_turns == are_turns);
        let served = alike.find(|served| is_same(&served.model, &record.model.name))?;
        (served.requests >= GAP_NEEDS).then_some(Gap { served, metric, warm_ms })
    }
}

/// Ignores the maker before a slash, letter case and `:latest`.
fn is_same(served: &str, measured: &str) -> bool {
    let bare = |name: &str| {
        let name = name.rsplit('/').next().unwrap_or(name).to_lowercase();
        name.strip_suffix(":latest").unwrap_or(&name).to_owned()
    };
    bare(served) == bare(measured)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_same_model_may_have_a_maker_or_a_version_in_its_name() {
        let rows = [
            ("smollm2", "smollm2", true),
            ("HuggingFaceTB/SmolLM2", "smollm2:latest", true),
            ("smollm2", "smollm3", false),
            ("qwen3:8b", "qwen3:4b", false),
        ];
        for (served, measured, expected) in rows {
            assert_eq!(is_same(served, measured), expected, "{served} and {measured}");
        }
    }
}
