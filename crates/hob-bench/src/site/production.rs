//! What real requests waited, beside what a warm bench says: the two are one ratio apart.
//! The ledger's owner sums it up; here only names meet.

use crate::record::{Kind, Record};
use crate::terms::Metric;

/// Fewer requests say nothing of what is usual.
pub const GAP_NEEDS: usize = 20;

/// What the ledger knows, by model.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Production {
    pub served: Vec<Served>,
}

/// Requests of the last 30 days that one model answered.
#[derive(Clone, Debug, PartialEq)]
pub struct Served {
    /// As it is served here.
    pub model: String,
    pub requests: usize,
    /// To the first token, or the first sound; loading, queueing and failing in it.
    pub first_p50_ms: f64,
    /// None of too few.
    pub first_p95_ms: Option<f64>,
}

/// A bench figure and what real requests waited.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Gap<'a> {
    pub(super) served: &'a Served,
    pub(super) metric: Metric,
    pub(super) warm_ms: f64,
}

impl Gap<'_> {
    pub(super) fn ratio(&self) -> f64 {
        self.served.first_p50_ms / self.warm_ms
    }
}

impl Production {
    /// None of another machine's figures, of imported ones, of crowds, of failures, and of too few requests.
    pub(super) fn gap(&self, record: &Record) -> Option<Gap<'_>> {
        let is_alone = record.workload.concurrency.is_none_or(|users| users == 1);
        let is_warm = !matches!(record.kind, Kind::Cold | Kind::MaxContext);
        if !is_alone || !is_warm || record.harness.is_none() || !record.is_valid() {
            return None;
        }
        let metric = [Metric::TtfatMs, Metric::TtftMs, Metric::TtfaMs];
        let found =
            metric.into_iter().find_map(|metric| Some((metric, record.metrics.figure(metric)?)));
        let (metric, warm_ms) = found.filter(|(_, ms)| *ms > 0.0)?;
        let served =
            self.served.iter().find(|served| is_same(&served.model, &record.model.name))?;
        (served.requests >= GAP_NEEDS).then_some(Gap { served, metric, warm_ms })
    }
}

/// With and without a maker before it, and a version that says nothing.
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
