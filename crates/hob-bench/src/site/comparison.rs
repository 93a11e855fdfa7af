//! What the script of the results page needs to compare any two runs: why a run cannot be compared, and its figures.
//! They come from `compare`, which compares in the terminal.

use std::collections::BTreeMap;

use serde::Serialize;

use crate::compare::{aspects, has_direction, is_cache_unknown, runs, seed, why_not_comparable};
use crate::record::{RawSample, Record};
use crate::terms::Metric;

/// Significant digits of an embedded figure.
const DIGITS: i32 = 9;

/// One run, as the script compares it.
#[derive(Debug, Serialize)]
pub(super) struct ComparedBy {
    /// Why this run can be compared with no other.
    not_comparable: Option<String>,
    /// As text: a script's numbers have only 53 bits.
    seed: Option<String>,
    /// Whether the prompts may have been cached.
    is_cache_unknown: bool,
    /// In the order of `Rules::aspects`.
    aspects: Vec<Option<String>>,
    values: BTreeMap<&'static str, Values>,
}

#[derive(Debug, Serialize)]
struct Values {
    median: f64,
    ci95: Option<[f64; 2]>,
    /// The figure of each run, where the samples give it.
    runs: Vec<f64>,
}

impl ComparedBy {
    pub(super) fn from_record(record: &Record, samples: Option<&Vec<RawSample>>) -> ComparedBy {
        let samples = samples.map_or(&[][..], Vec::as_slice);
        let values = |metric: Metric| {
            let spread = record.metrics.get(metric)?;
            let by_run = runs(record, samples, metric).unwrap_or_default();
            let values = Values {
                median: rounded(spread.figure()?)?,
                ci95: spread
                    .ci95
                    .filter(|_| spread.p50.is_some())
                    .and_then(|[low, high]| Some([rounded(low)?, rounded(high)?])),
                runs: by_run.into_values().filter_map(rounded).collect(),
            };
            Some((metric.name(), values))
        };
        ComparedBy {
            not_comparable: why_not_comparable(record),
            seed: seed(record).map(|seed| seed.to_string()),
            is_cache_unknown: is_cache_unknown(record),
            aspects: aspects(record).into_iter().map(|aspect| aspect.value).collect(),
            values: metrics_with_direction().filter_map(values).collect(),
        }
    }

    /// For each figure, of how many runs its value is known.
    pub(super) fn run_counts(&self) -> impl Iterator<Item = usize> {
        self.values.values().map(|values| values.runs.len())
    }
}

/// Metrics where higher or lower is better.
pub(super) fn metrics_with_direction() -> impl Iterator<Item = Metric> {
    Metric::ALL.iter().copied().filter(|metric| has_direction(*metric))
}

/// None: the value is not finite.
fn rounded(value: f64) -> Option<f64> {
    if value == 0.0 {
        return Some(0.0);
    }
    let scale = 10_f64.powi(DIGITS - 1 - value.abs().log10().floor() as i32);
    Some((value * scale).round() / scale).filter(|rounded| rounded.is_finite())
}
