//! The rules of `hob bench compare` for the page's script, so that the script compares runs in the same way.
//! The script cannot compare paired runs, so the latest pair of each cell is compared here.

use std::collections::{BTreeMap, BTreeSet};

use hob_core::statistics::{RUNS_MIN, Ratio};
use rayon::prelude::*;
use serde::Serialize;

use super::Material;
use super::cells::Cells;
use super::comparison::metrics_with_direction;
use super::runs::Run;
use crate::compare::{
    CompareOptions, Comparison, IfDifferent, Pairing, SAME_PROMPTS, SampledRecord,
    THRESHOLD_UNPAIRED_PCT, aspects, compare, counts_tokens,
};
use crate::record::Record;
use crate::terms::Metric;

/// Maximum pairs that are compared when the page is built. A reader can choose all others.
const PAIRS_MAX: usize = 24;

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
    /// What the page says above a comparison, by pairing.
    banner: BTreeMap<&'static str, &'static str>,
    /// Why runs with the same prompts are not compared if a server does not report what it had cached.
    same_prompts: &'static str,
    /// The latest pair of each cell.
    pairs: Vec<Comparison>,
    /// Number of pairs that are not among them.
    pairs_left_out: usize,
}

pub(super) fn rules(material: &Material, all: &[Run<'_>]) -> Rules {
    let sizes: BTreeSet<usize> = all.iter().flat_map(|run| run.compared_by.run_counts()).collect();
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
        figures: metrics_with_direction().map(Metric::name).collect(),
        counts_tokens: metrics_with_direction()
            .filter(|metric| counts_tokens(*metric))
            .map(Metric::name)
            .collect(),
        ranks: ranks.collect(),
        runs_min: RUNS_MIN,
        threshold_pct: THRESHOLD_UNPAIRED_PCT,
        banner: [("paired", Pairing::Paired.banner()), ("unpaired", Pairing::Unpaired.banner())]
            .into(),
        same_prompts: SAME_PROMPTS,
        pairs: shown.par_iter().with_max_len(1).map(|pair| compared(material, *pair)).collect(),
        pairs_left_out: pairs.len() - shown.len(),
    }
}

fn compared(material: &Material, pair: [&Record; 2]) -> Comparison {
    let [base, new] = pair.map(|record| [sampled(material, record)]);
    compare(&base, &new, &CompareOptions::default())
}

fn sampled(material: &Material, record: &Record) -> SampledRecord {
    let samples = material.samples.get(&record.id).cloned().unwrap_or_default();
    SampledRecord { record: record.clone(), samples }
}
