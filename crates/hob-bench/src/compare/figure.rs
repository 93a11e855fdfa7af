//! One figure of two sides: its ratio with the interval, and what may be said of it.
//! Pure: pairs of blocks, runs of each, or two medians go in, and nothing is measured here.

use std::collections::BTreeMap;

use hob_core::statistics::{Finding, PAIRS_MIN, RUNS_MIN, Ratio, Sample};
use serde::Serialize;

use super::aspect::counts_tokens;
use super::{Kept, Noise, Pairing, Wish, has_direction, runs};
use crate::record::Spread;
use crate::terms::{Better, Metric};

/// How figures are judged.
#[derive(Clone, Debug, PartialEq)]
pub struct Rule {
    pub pairing: Pairing,
    /// The least difference that matters.
    pub threshold_pct: f64,
    /// What the same thing differs from itself, where that is more.
    pub noise: Noise,
    /// Of the bootstrap.
    pub seed: u64,
}

/// The same blocks give the same interval every time.
const SEED: u64 = 7;

impl Rule {
    pub fn of(pairing: Pairing, wish: &Wish) -> Rule {
        Rule {
            pairing,
            threshold_pct: wish.threshold_pct.unwrap_or_else(|| pairing.threshold_pct()),
            noise: wish.noise.clone(),
            seed: SEED,
        }
    }

    fn threshold_pct(&self, metric: Metric) -> f64 {
        self.noise.of(metric).map_or(self.threshold_pct, |noise| noise.max(self.threshold_pct))
    }
}

/// One figure of both.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Compared {
    pub metric: Metric,
    /// Medians of runs.
    pub base: Option<f64>,
    pub new: Option<f64>,
    /// The new one in percent more than the base; below zero it is less.
    pub change_pct: Option<f64>,
    /// With 95 %.
    pub change_ci95_pct: Option<[f64; 2]>,
    pub threshold_pct: f64,
    pub basis: RatioBasis,
    pub verdict: Verdict,
    /// The same in a word: faster, slower, better, worse, same, inconclusive.
    pub finding: &'static str,
    /// Why nothing is decided.
    pub reason: Option<String>,
}

/// What a ratio was made of.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum RatioBasis {
    /// Blocks of both, measured in turns.
    Pairs,
    /// Runs of each.
    Runs,
    /// Two medians and their intervals: the samples are not here, or do not say it.
    Medians,
}

/// What may be said, in the figure's own direction.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Verdict {
    Better,
    Worse,
    Same,
    Inconclusive,
}

impl Verdict {
    /// Of times and rates it is speed that changed.
    fn word(self, metric: Metric) -> &'static str {
        let term = metric.term();
        let is_speed = term.unit.ends_with("ms") || term.unit.ends_with("/s");
        match (self, is_speed) {
            (Verdict::Better, true) => "faster",
            (Verdict::Worse, true) => "slower",
            (Verdict::Better, false) => "better",
            (Verdict::Worse, false) => "worse",
            (Verdict::Same, _) => "same",
            (Verdict::Inconclusive, _) => "inconclusive",
        }
    }

    fn of(finding: Finding, better: Better) -> Verdict {
        match (finding, better) {
            (Finding::Same, _) => Verdict::Same,
            (Finding::Less, Better::Less) | (Finding::More, Better::More) => Verdict::Better,
            (Finding::Less, Better::More) | (Finding::More, Better::Less) => Verdict::Worse,
            _ => Verdict::Inconclusive,
        }
    }
}

/// Every figure whose pairs of blocks are given, in the order of `Metric`: (base, new), block by block as they took turns.
pub fn paired_figures(pairs: &BTreeMap<Metric, Vec<(f64, f64)>>, rule: &Rule) -> Vec<Compared> {
    let directed = pairs.iter().filter(|(metric, _)| has_direction(**metric));
    directed.map(|(metric, pairs)| paired(*metric, pairs, rule)).collect()
}

/// One figure of blocks that took turns. Under eight pairs nothing is decided.
pub fn paired(metric: Metric, pairs: &[(f64, f64)], rule: &Rule) -> Compared {
    let median = |of: fn(&(f64, f64)) -> f64| Sample::new(pairs.iter().map(of)).median();
    let medians = [median(|pair| pair.0), median(|pair| pair.1)];
    let blank = Compared::blank(metric, medians, rule, RatioBasis::Pairs);
    if let Some(zero) = blank.of_zeros(pairs.iter().flat_map(|(a, b)| [*a, *b])) {
        return zero;
    }
    let Some(ratio) = Ratio::of_pairs(pairs, rule.seed) else {
        return blank.undecided("there is no pair of them".to_owned());
    };
    match ratio.pairs {
        few if few < PAIRS_MIN => {
            blank.undecided(format!("{few} pairs of blocks are too few; {PAIRS_MIN} decide"))
        }
        _ => blank.decided(&ratio),
    }
}

/// All figures that both have and that say how well something was done.
pub(super) fn figures(
    base: &[Kept],
    new: &[Kept],
    rule: &Rule,
    counts_differ: Option<&str>,
) -> Vec<Compared> {
    let has = |side: &[Kept], metric: &Metric| {
        side.iter().all(|kept| kept.record.metrics.figure(*metric).is_some())
    };
    Metric::ALL
        .iter()
        .filter(|metric| has_direction(**metric) && has(base, metric) && has(new, metric))
        .map(|metric| match counts_differ {
            Some(reason) if counts_tokens(*metric) => {
                let medians = [median_of(base, *metric), median_of(new, *metric)];
                Compared::blank(*metric, medians, rule, RatioBasis::Medians)
                    .undecided(format!("not compared: {reason}"))
            }
            _ => one(*metric, base, new, rule),
        })
        .collect()
}

fn one(metric: Metric, base: &[Kept], new: &[Kept], rule: &Rule) -> Compared {
    let runs_of = |kept: &Kept| runs::runs(&kept.record, &kept.samples, metric);
    let of = |side: &[Kept]| side.iter().map(runs_of).collect();
    let sides: (Option<Vec<_>>, Option<Vec<_>>) = (of(base), of(new));
    let (Some(a), Some(b)) = sides else { return from_medians(metric, base, new, rule) };
    if rule.pairing == Pairing::Paired {
        let pairs: Vec<(f64, f64)> =
            a[0].iter().filter_map(|(run, first)| Some((*first, *b[0].get(run)?))).collect();
        return paired(metric, &pairs, rule);
    }
    let flat = |side: Vec<BTreeMap<u32, f64>>| -> Vec<f64> {
        side.into_iter().flat_map(BTreeMap::into_values).collect()
    };
    apart(metric, &flat(a), &flat(b), rule)
}

/// Runs of each that were measured apart.
pub(super) fn apart(metric: Metric, base: &[f64], new: &[f64], rule: &Rule) -> Compared {
    let median = |side: &[f64]| Sample::new(side.iter().copied()).median();
    let blank = Compared::blank(metric, [median(base), median(new)], rule, RatioBasis::Runs);
    if let Some(zero) = blank.of_zeros(base.iter().chain(new).copied()) {
        return zero;
    }
    let few = base.len().min(new.len());
    match Ratio::of_sides(base, new) {
        Some(ratio) => blank.decided(&ratio),
        None if few < RUNS_MIN => {
            blank.undecided(format!("{few} runs are too few; {RUNS_MIN} of each decide"))
        }
        None => blank.undecided("some of it is zero, which has no ratio".to_owned()),
    }
}

fn median_of(side: &[Kept], metric: Metric) -> Option<f64> {
    Sample::new(side.iter().filter_map(|kept| kept.record.metrics.figure(metric))).median()
}

/// Only where the intervals are apart is anything known.
fn from_medians(metric: Metric, base: &[Kept], new: &[Kept], rule: &Rule) -> Compared {
    let medians = [median_of(base, metric), median_of(new, metric)];
    let blank = Compared::blank(metric, medians, rule, RatioBasis::Medians);
    let ([base], [new]) = (base, new) else {
        return blank.undecided("not all of its runs are known one by one".to_owned());
    };
    let ends = |kept: &Kept| kept.record.metrics.get(metric).and_then(Spread::bounds);
    let (Some((a, [a_low, a_high])), Some((b, [b_low, b_high]))) = (ends(base), ends(new)) else {
        return blank.undecided("only medians are known, and no interval of them".to_owned());
    };
    if [a_low, a, b_low, b].iter().any(|value| *value <= 0.0) {
        return blank.undecided("some of it is zero, which has no ratio".to_owned());
    }
    let ratio = Ratio { times: b / a, low: b_low / a_high, high: b_high / a_low, pairs: 1 };
    let decided = blank.decided(&ratio);
    match decided.verdict {
        Verdict::Better | Verdict::Worse => decided,
        _ if ratio.low > 1.0 || ratio.high < 1.0 => decided.undecided(
            "no run of it is known by itself, and what lies between the intervals is too little"
                .to_owned(),
        ),
        _ => decided
            .undecided("no run of it is known by itself, and the intervals overlap".to_owned()),
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

impl Compared {
    fn blank(
        metric: Metric,
        medians: [Option<f64>; 2],
        rule: &Rule,
        basis: RatioBasis,
    ) -> Compared {
        Compared {
            metric,
            base: medians[0],
            new: medians[1],
            change_pct: None,
            change_ci95_pct: None,
            threshold_pct: rule.threshold_pct(metric),
            basis,
            verdict: Verdict::Inconclusive,
            finding: Verdict::Inconclusive.word(metric),
            reason: None,
        }
    }

    fn said(self, verdict: Verdict, reason: Option<String>) -> Compared {
        Compared { verdict, finding: verdict.word(self.metric), reason, ..self }
    }

    fn with(mut self, ratio: &Ratio) -> Compared {
        self.change_pct = Some(percent(ratio.times));
        self.change_ci95_pct = Some([percent(ratio.low), percent(ratio.high)]);
        self
    }

    fn decided(self, ratio: &Ratio) -> Compared {
        let compared = self.with(ratio);
        let finding = ratio.beyond(compared.threshold_pct / 100.0);
        let verdict = Verdict::of(finding, compared.metric.term().better);
        let reason = (verdict == Verdict::Inconclusive)
            .then(|| "the interval holds both a difference that matters and none".to_owned());
        compared.said(verdict, reason)
    }

    fn undecided(self, reason: String) -> Compared {
        self.said(Verdict::Inconclusive, Some(reason))
    }

    /// Nothing on both sides is the same, and has no ratio.
    fn of_zeros(&self, mut values: impl Iterator<Item = f64>) -> Option<Compared> {
        let is_nothing = self.base.is_some() && values.all(|value| value == 0.0);
        is_nothing.then(|| self.clone().said(Verdict::Same, None))
    }

    /// Whether there was anything to decide by.
    pub fn is_compared(&self) -> bool {
        self.change_ci95_pct.is_some() || self.verdict == Verdict::Same
    }

    /// How much worse it became for certain, and by more than matters.
    pub fn regression_pct(&self) -> Option<f64> {
        self.change_pct.filter(|_| self.verdict == Verdict::Worse).map(f64::abs)
    }
}
