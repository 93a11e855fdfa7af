//! Compares one metric of two sides: the ratio with its 95 % interval, and the verdict.
//! Pure: the input is pairs of runs, runs of each side, or two medians.

use std::collections::BTreeMap;

use hob_core::statistics::{Finding, PAIRS_MIN, RUNS_MIN, Ratio, Sample};
use serde::Serialize;

use super::aspect::counts_tokens;
use super::{CompareOptions, NoiseFloor, Pairing, SampledRecord, has_direction, runs};
use crate::record::Spread;
use crate::terms::{Better, Metric};

/// The rule that decides the verdict of each metric.
#[derive(Clone, Debug, PartialEq)]
pub struct Rule {
    pub pairing: Pairing,
    /// Smallest difference that matters.
    pub threshold_pct: f64,
    /// How much equal runs differ. Replaces the threshold where it is larger.
    pub noise: NoiseFloor,
    /// Seed of the bootstrap.
    pub seed: u64,
}

/// Seed of the bootstrap. It is constant, so the same runs always give the same interval.
const SEED: u64 = 7;

impl Rule {
    pub fn for_pairing(pairing: Pairing, options: &CompareOptions) -> Rule {
        Rule {
            pairing,
            threshold_pct: options.threshold_pct.unwrap_or_else(|| pairing.threshold_pct()),
            noise: options.noise.clone(),
            seed: SEED,
        }
    }

    fn threshold_pct(&self, metric: Metric) -> f64 {
        self.noise
            .noise_pct(metric)
            .map_or(self.threshold_pct, |noise| noise.max(self.threshold_pct))
    }
}

/// One metric of both sides.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct ComparedMetric {
    pub metric: Metric,
    /// Median of the runs.
    pub base: Option<f64>,
    pub new: Option<f64>,
    /// Change from base to new in percent; negative if the new value is smaller.
    pub change_pct: Option<f64>,
    /// 95 % interval of the change.
    pub change_ci95_pct: Option<[f64; 2]>,
    pub threshold_pct: f64,
    pub basis: RatioBasis,
    pub verdict: MetricVerdict,
    /// The verdict as a word: faster, slower, better, worse, same, inconclusive.
    pub finding: &'static str,
    /// Why the verdict is `Inconclusive`.
    pub reason: Option<String>,
}

/// The data behind a ratio.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum RatioBasis {
    /// Runs of both sides, measured alternately.
    Pairs,
    /// Runs of each side.
    Runs,
    /// Two medians and their intervals: the samples are missing or do not contain the figure.
    Medians,
}

/// Whether the new side is better. Depends on whether less or more of the metric is better.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum MetricVerdict {
    Better,
    Worse,
    Same,
    Inconclusive,
}

impl MetricVerdict {
    /// Times and rates become "faster" or "slower".
    fn word(self, metric: Metric) -> &'static str {
        let unit = metric.definition().unit;
        let is_speed = unit.ends_with("ms") || unit.ends_with("/s");
        match (self, is_speed) {
            (MetricVerdict::Better, true) => "faster",
            (MetricVerdict::Worse, true) => "slower",
            (MetricVerdict::Better, false) => "better",
            (MetricVerdict::Worse, false) => "worse",
            (MetricVerdict::Same, _) => "same",
            (MetricVerdict::Inconclusive, _) => "inconclusive",
        }
    }

    fn from_finding(finding: Finding, better: Better) -> MetricVerdict {
        match (finding, better) {
            (Finding::Same, _) => MetricVerdict::Same,
            (Finding::Less, Better::Less) | (Finding::More, Better::More) => MetricVerdict::Better,
            (Finding::Less, Better::More) | (Finding::More, Better::Less) => MetricVerdict::Worse,
            _ => MetricVerdict::Inconclusive,
        }
    }
}

/// Compares one metric from pairs of runs (base, new) that were measured alternately. Fewer than eight pairs are inconclusive.
pub fn compare_pairs(metric: Metric, pairs: &[(f64, f64)], rule: &Rule) -> ComparedMetric {
    let median = |of: fn(&(f64, f64)) -> f64| Sample::new(pairs.iter().map(of)).median();
    let medians = [median(|pair| pair.0), median(|pair| pair.1)];
    let blank = ComparedMetric::blank(metric, medians, rule, RatioBasis::Pairs);
    if let Some(zero) = blank.same_if_zeros(pairs.iter().flat_map(|(a, b)| [*a, *b])) {
        return zero;
    }
    let Some(ratio) = Ratio::of_pairs(pairs, rule.seed) else {
        return blank.undecided("there are no pairs".to_owned());
    };
    match ratio.pairs {
        few if few < PAIRS_MIN => {
            blank.undecided(format!("{few} pairs of runs are too few (at least {PAIRS_MIN})"))
        }
        _ => blank.decided(&ratio),
    }
}

/// Compares all metrics that both sides have. Skips metrics for which neither more nor less is better.
pub(super) fn figures(
    base: &[SampledRecord],
    new: &[SampledRecord],
    rule: &Rule,
    counts_differ: Option<&str>,
) -> Vec<ComparedMetric> {
    let has = |side: &[SampledRecord], metric: &Metric| {
        side.iter().all(|record| record.record.metrics.figure(*metric).is_some())
    };
    Metric::ALL
        .iter()
        .filter(|metric| has_direction(**metric) && has(base, metric) && has(new, metric))
        .map(|metric| match counts_differ {
            Some(reason) if counts_tokens(*metric) => {
                let medians = [median_of(base, *metric), median_of(new, *metric)];
                ComparedMetric::blank(*metric, medians, rule, RatioBasis::Medians)
                    .undecided(format!("not compared: {reason}"))
            }
            _ => compare_metric(*metric, base, new, rule),
        })
        .collect()
}

fn compare_metric(
    metric: Metric,
    base: &[SampledRecord],
    new: &[SampledRecord],
    rule: &Rule,
) -> ComparedMetric {
    let runs_of = |record: &SampledRecord| runs::runs(&record.record, &record.samples, metric);
    let of = |side: &[SampledRecord]| side.iter().map(runs_of).collect();
    let sides: (Option<Vec<_>>, Option<Vec<_>>) = (of(base), of(new));
    let (Some(a), Some(b)) = sides else { return from_medians(metric, base, new, rule) };
    if rule.pairing == Pairing::Paired {
        let pairs: Vec<(f64, f64)> =
            a[0].iter().filter_map(|(run, first)| Some((*first, *b[0].get(run)?))).collect();
        return compare_pairs(metric, &pairs, rule);
    }
    let flat = |side: Vec<BTreeMap<u32, f64>>| -> Vec<f64> {
        side.into_iter().flat_map(BTreeMap::into_values).collect()
    };
    compare_unpaired(metric, &flat(a), &flat(b), rule)
}

/// Compares one metric from the runs of each side, which were measured at different times.
fn compare_unpaired(metric: Metric, base: &[f64], new: &[f64], rule: &Rule) -> ComparedMetric {
    let median = |side: &[f64]| Sample::new(side.iter().copied()).median();
    let blank = ComparedMetric::blank(metric, [median(base), median(new)], rule, RatioBasis::Runs);
    if let Some(zero) = blank.same_if_zeros(base.iter().chain(new).copied()) {
        return zero;
    }
    let few = base.len().min(new.len());
    match Ratio::of_sides(base, new) {
        Some(ratio) => blank.decided(&ratio),
        None if few < RUNS_MIN => {
            blank.undecided(format!("{few} runs are too few (at least {RUNS_MIN} of each)"))
        }
        None => blank.undecided("one value is 0, so there is no ratio".to_owned()),
    }
}

fn median_of(side: &[SampledRecord], metric: Metric) -> Option<f64> {
    Sample::new(side.iter().filter_map(|record| record.record.metrics.figure(metric))).median()
}

/// Decides only if the intervals of the medians do not overlap.
fn from_medians(
    metric: Metric,
    base: &[SampledRecord],
    new: &[SampledRecord],
    rule: &Rule,
) -> ComparedMetric {
    let medians = [median_of(base, metric), median_of(new, metric)];
    let blank = ComparedMetric::blank(metric, medians, rule, RatioBasis::Medians);
    let ([base], [new]) = (base, new) else {
        return blank.undecided("the individual runs are unknown".to_owned());
    };
    let ends = |record: &SampledRecord| record.record.metrics.get(metric).and_then(Spread::bounds);
    let (Some((a, [a_low, a_high])), Some((b, [b_low, b_high]))) = (ends(base), ends(new)) else {
        return blank.undecided("only medians are known, without intervals".to_owned());
    };
    if [a_low, a, b_low, b].iter().any(|value| *value <= 0.0) {
        return blank.undecided("one value is 0, so there is no ratio".to_owned());
    }
    let ratio = Ratio { times: b / a, low: b_low / a_high, high: b_high / a_low, pairs: 1 };
    let decided = blank.decided(&ratio);
    match decided.verdict {
        MetricVerdict::Better | MetricVerdict::Worse => decided,
        _ if ratio.low > 1.0 || ratio.high < 1.0 => decided.undecided(
            "the individual runs are unknown, and the gap between the intervals is too small"
                .to_owned(),
        ),
        _ => decided
            .undecided("the individual runs are unknown, and the intervals overlap".to_owned()),
    }
}

impl Spread {
    fn bounds(&self) -> Option<(f64, [f64; 2])> {
        self.p50.zip(self.ci95)
    }
}

fn percent(times: f64) -> f64 {
    (times - 1.0) * 100.0
}

impl ComparedMetric {
    fn blank(
        metric: Metric,
        medians: [Option<f64>; 2],
        rule: &Rule,
        basis: RatioBasis,
    ) -> ComparedMetric {
        ComparedMetric {
            metric,
            base: medians[0],
            new: medians[1],
            change_pct: None,
            change_ci95_pct: None,
            threshold_pct: rule.threshold_pct(metric),
            basis,
            verdict: MetricVerdict::Inconclusive,
            finding: MetricVerdict::Inconclusive.word(metric),
            reason: None,
        }
    }

    fn with_verdict(self, verdict: MetricVerdict, reason: Option<String>) -> ComparedMetric {
        ComparedMetric { verdict, finding: verdict.word(self.metric), reason, ..self }
    }

    fn with_ratio(mut self, ratio: &Ratio) -> ComparedMetric {
        self.change_pct = Some(percent(ratio.times));
        self.change_ci95_pct = Some([percent(ratio.low), percent(ratio.high)]);
        self
    }

    fn decided(self, ratio: &Ratio) -> ComparedMetric {
        let compared = self.with_ratio(ratio);
        let finding = ratio.beyond(compared.threshold_pct / 100.0);
        let verdict = MetricVerdict::from_finding(finding, compared.metric.definition().better);
        let reason = (verdict == MetricVerdict::Inconclusive).then(|| {
            "the interval includes both a difference that matters and no difference".to_owned()
        });
        compared.with_verdict(verdict, reason)
    }

    fn undecided(self, reason: String) -> ComparedMetric {
        self.with_verdict(MetricVerdict::Inconclusive, Some(reason))
    }

    /// Returns `Same` if all values are 0, because zeros have no ratio.
    fn same_if_zeros(&self, mut values: impl Iterator<Item = f64>) -> Option<ComparedMetric> {
        let are_zeros = self.base.is_some() && values.all(|value| value == 0.0);
        are_zeros.then(|| self.clone().with_verdict(MetricVerdict::Same, None))
    }

    /// Whether there was enough data to compare.
    pub fn is_compared(&self) -> bool {
        self.change_ci95_pct.is_some() || self.verdict == MetricVerdict::Same
    }

    /// The size of the change in percent, if the verdict is `Worse`.
    pub fn regression_pct(&self) -> Option<f64> {
        self.change_pct.filter(|_| self.verdict == MetricVerdict::Worse).map(f64::abs)
    }
}
