//! What the script needs to compare any two runs: the rules of `compare`, and each run's values.
//! The latest pair of each cell is compared here, so that paired runs are used where there are any.

use std::collections::{BTreeMap, BTreeSet};

use hob_core::statistics::{RUNS_MIN, Ratio};
use serde::Serialize;

use super::Material;
use super::cells::Cells;
use super::runs::Run;
use crate::compare::{
    CompareOptions, Comparison, IfDifferent, Pairing, SAME_PROMPTS, SampledRecord,
    THRESHOLD_UNPAIRED_PCT, aspects, compare, counts_tokens, has_direction, is_cache_unknown, runs,
    seed, unfit,
};
use crate::parallel::parallel_map;
use crate::record::{RawSample, Record};
use crate::terms::Metric;

/// Number of pairs that are compared when the page is built. A reader can choose all others.
const PAIRS_MAX: usize = 24;
/// Significant digits of an embedded figure.
const DIGITS: i32 = 9;

/// What decides whether a run can be compared, and its values.
#[derive(Debug, Serialize)]
pub(super) struct ComparedBy {
    /// Why this run can be compared with no other.
    unfit: Option<String>,
    /// As text: a script's numbers have only 53 bits.
    seed: Option<String>,
    /// Whether nothing proves that its prompts were new to the server.
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
                median: rounded(spread.figure()?),
                ci95: spread.ci95.filter(|_| spread.p50.is_some()).map(|ends| ends.map(rounded)),
                runs: by_run.into_values().map(rounded).collect(),
            };
            Some((metric.name(), values))
        };
        ComparedBy {
            unfit: unfit(record),
            seed: seed(record).map(|seed| seed.to_string()),
            is_cache_unknown: is_cache_unknown(record),
            aspects: aspects(record).into_iter().map(|aspect| aspect.value).collect(),
            values: directed().filter_map(values).collect(),
        }
    }
}

/// Metrics of which more or less is better.
fn directed() -> impl Iterator<Item = Metric> {
    Metric::ALL.iter().copied().filter(|metric| has_direction(*metric))
}

fn rounded(value: f64) -> f64 {
    if value == 0.0 || !value.is_finite() {
        return 0.0;
    }
    let scale = 10_f64.powi(DIGITS - 1 - value.abs().log10().floor() as i32);
    (value * scale).round() / scale
}

/// The rules of `compare`, for the script.
#[derive(Debug, Serialize)]
pub(super) struct Rules {
    /// What two runs must share, and what follows where they do not.
    aspects: Vec<(&'static str, IfDifferent)>,
    /// Metrics in the order in which they are shown.
    figures: Vec<&'static str>,
    /// Figures that depend on who counted the tokens.
    counts_tokens: Vec<&'static str>,
    /// By "n,m" runs: which of the sorted ratios begins the 95 % interval.
    ranks: BTreeMap<String, usize>,
    runs_min: usize,
    threshold_pct: f64,
    banner: BTreeMap<&'static str, &'static str>,
    same_prompts: &'static str,
    /// The latest pair of each cell.
    pairs: Vec<Comparison>,
    /// Number of pairs that are not among them.
    pairs_left_out: usize,
}

pub(super) fn rules(material: &Material, all: &[Run<'_>]) -> Rules {
    let sizes: BTreeSet<usize> = all
        .iter()
        .flat_map(|run| run.compared_by.values.values().map(|values| values.runs.len()))
        .collect();
    let ranks = sizes.iter().flat_map(|n| sizes.iter().map(move |m| (*n, *m)));
    let ranks = ranks.filter_map(|(n, m)| Some((format!("{n},{m}"), Ratio::rank_from_end(n, m)?)));
    let aspects_of = |run: &Run<'_>| -> Vec<(&'static str, IfDifferent)> {
        aspects(run.record).into_iter().map(|aspect| (aspect.what, aspect.if_different)).collect()
    };
    let records: Vec<&Record> = all.iter().map(|run| run.record).collect();
    let pairs = Cells::from_records(&records).latest_pairs();
    let shown = &pairs[..pairs.len().min(PAIRS_MAX)];
    Rules {
        aspects: all.first().map_or_else(Vec::new, aspects_of),
        figures: directed().map(Metric::name).collect(),
        counts_tokens: directed()
            .filter(|metric| counts_tokens(*metric))
            .map(Metric::name)
            .collect(),
        ranks: ranks.collect(),
        runs_min: RUNS_MIN,
        threshold_pct: THRESHOLD_UNPAIRED_PCT,
        banner: [("paired", Pairing::Paired.banner()), ("unpaired", Pairing::Unpaired.banner())]
            .into(),
        same_prompts: SAME_PROMPTS,
        pairs: parallel_map(shown, |[base, new]| {
            let sides = [base, new].map(|record| [sampled(material, record)]);
            compare(&sides[0], &sides[1], &CompareOptions::default())
        }),
        pairs_left_out: pairs.len() - shown.len(),
    }
}

fn sampled(material: &Material, record: &Record) -> SampledRecord {
    let samples = material.samples.get(&record.id).cloned().unwrap_or_default();
    SampledRecord { record: record.clone(), samples }
}
