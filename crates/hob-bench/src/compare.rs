//! Compares measurements figure by figure: the ratio, its 95 % interval, and whether the difference matters.
//! Measurements of different workloads are refused with a reason. Only runs that took turns are called paired.

mod aspect;
mod figure;
mod noise;
mod pairing;
mod report;
mod runs;
mod side;
#[cfg(test)]
mod tests;

pub use aspect::{
    Aspect, IfDifferent, SAME_PROMPTS, aspects, counts_tokens, is_cache_unknown, seed,
    why_not_comparable,
};
pub use figure::{ComparedMetric, MetricVerdict, RatioBasis, Rule, compare_pairs};
pub use noise::NoiseFloor;
pub use report::{CompareReport, ComparedCell, ReportVerdict, USER_FIGURES, report};
pub use runs::runs;
use serde::Serialize;
pub use side::{SampledRecord, Side};

use crate::terms::{Better, Metric};

/// The least difference that matters if both were measured alternately.
pub const THRESHOLD_PAIRED_PCT: f64 = 2.0;
/// The least difference that matters otherwise: a machine differs from day to day.
pub const THRESHOLD_UNPAIRED_PCT: f64 = 5.0;

/// How the two sides were measured.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Pairing {
    /// Runs of both sides alternated, in one campaign on one machine.
    Paired,
    Unpaired,
}

impl Pairing {
    pub fn threshold_pct(self) -> f64 {
        match self {
            Pairing::Paired => THRESHOLD_PAIRED_PCT,
            Pairing::Unpaired => THRESHOLD_UNPAIRED_PCT,
        }
    }

    /// The line above a table.
    pub fn banner(self) -> &'static str {
        match self {
            Pairing::Paired => "Paired: runs of both sides alternated.",
            Pairing::Unpaired => {
                "Unpaired: measured at different times, so the difference includes every other change of the machine."
            }
        }
    }
}

/// The result for one cell. With a refusal there are no figures.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Comparison {
    pub base: Side,
    pub new: Side,
    pub pairing: Pairing,
    /// Why the two must not be compared, in sentences.
    pub refusals: Vec<String>,
    /// Other differences that a reader has to know.
    pub marks: Vec<String>,
    pub figures: Vec<ComparedMetric>,
}

/// Which figures a report has and judges.
#[derive(Clone, Debug, Default, PartialEq)]
pub enum MetricSelection {
    #[default]
    All,
    Only(Vec<Metric>),
}

#[derive(Clone, Debug, Default, PartialEq)]
pub struct CompareOptions {
    /// The least difference that matters, in percent. None: the default of the pairing.
    pub threshold_pct: Option<f64>,
    /// Raises the threshold of a figure.
    pub noise: NoiseFloor,
    pub figures: MetricSelection,
    /// Refuses records of two machines, whose difference is not a regression.
    pub requires_same_machine: bool,
}

/// Compares `new` with `base`; each side is one record or several of the same cell.
pub fn compare(
    base: &[SampledRecord],
    new: &[SampledRecord],
    options: &CompareOptions,
) -> Comparison {
    let pairing = pairing::pairing(base, new);
    let differences = aspect::differences(base, new, pairing);
    let rule = Rule::for_pairing(pairing, options);
    let figures = match differences.refusals.is_empty() {
        true => figure::figures(base, new, &rule, differences.counts_differ.as_deref()),
        false => Vec::new(),
    };
    Comparison {
        base: Side::from_records(base),
        new: Side::from_records(new),
        pairing,
        refusals: differences.refusals,
        marks: differences.marks,
        figures,
    }
}

/// Whether more or less of this figure is better.
pub fn has_direction(metric: Metric) -> bool {
    metric.definition().better != Better::Neither
}
