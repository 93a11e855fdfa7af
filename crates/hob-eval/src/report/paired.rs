//! Two arms over the same items: the difference in score, McNemar's test, and the ratio of times.
//! Items that only one arm has are left out, and their number is reported.

use std::collections::BTreeMap;

use hob_core::statistics::{PAIRS_MIN, Ratio};
use serde::Serialize;

use super::{Estimate, ItemOutcome};
use crate::Verdict;

/// With fewer, no exact test reaches 5 %: five heads in a row have the two-sided probability 1/16.
const DIFFERING_MIN: usize = 6;

const P_MAX: f64 = 0.05;

/// The second arm against the first.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Paired {
    /// Number of items that both arms have.
    pub items: usize,
    /// Outcomes of the first and of the second arm that have no partner.
    pub left_out: [usize; 2],
    /// Mean score of the second less that of the first, −1 to 1. Where all items differ equally, or none does, the
    /// interval is that of the rule of three.
    pub score_difference: Estimate,
    /// Items with different scores.
    pub differing: usize,
    /// Items that only the first arm has right.
    pub only_first: usize,
    pub only_second: usize,
    /// McNemar's exact two-sided probability that equal arms differ as much as these.
    pub mcnemar_p: f64,
    /// Total time of the second over that of the first, as the geometric mean of the items. `None` with fewer than two
    /// items whose times are above 0: one item has no interval.
    pub time_ratio: Option<Estimate>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum ScoreFinding {
    /// The second arm has the higher score, by more than the threshold.
    Better,
    Worse,
    /// Any difference is within the threshold.
    Same,
    Inconclusive,
}

impl Paired {
    /// `None` without an item in common. A second outcome of one item in one arm has no partner.
    pub fn of(first: &[ItemOutcome], second: &[ItemOutcome], seed: u64) -> Option<Paired> {
        let mut open: BTreeMap<&str, &ItemOutcome> = BTreeMap::new();
        for outcome in second {
            open.entry(&outcome.item).or_insert(outcome);
        }
        let pairs: Vec<(&ItemOutcome, &ItemOutcome)> =
            first.iter().filter_map(|one| Some((one, open.remove(one.item.as_str())?))).collect();
        let items = pairs.len();
        let differences: Vec<f64> = pairs.iter().map(|(a, b)| b.score - a.score).collect();
        let score_difference = difference(&differences, seed)?;
        let right = |outcome: &ItemOutcome| outcome.verdict == Verdict::Correct;
        let only_first = pairs.iter().filter(|(a, b)| right(a) && !right(b)).count();
        let only_second = pairs.iter().filter(|(a, b)| right(b) && !right(a)).count();
        let times: Vec<(f64, f64)> = pairs.iter().map(|(a, b)| (a.total_ms, b.total_ms)).collect();
        let time_ratio = Ratio::of_pairs(&times, seed).filter(|ratio| ratio.pairs > 1);
        let time_ratio = time_ratio.map(|ratio| Estimate {
            value: ratio.times,
            low: ratio.low,
            high: ratio.high,
        });
        Some(Paired {
            items,
            left_out: [first.len() - items, second.len() - items],
            score_difference,
            differing: differences.iter().filter(|difference| **difference != 0.0).count(),
            only_first,
            only_second,
            mcnemar_p: mcnemar(only_first, only_second),
            time_ratio,
        })
    }

    /// Whether the interval of the difference leaves out 0. Needs 8 items, and different scores in 6 of them. Where only
    /// correct and wrong answers differ, McNemar's test, which is exact, must show it too.
    pub fn is_shown(&self) -> bool {
        let Estimate { low, high, .. } = self.score_difference;
        let is_enough = self.items >= PAIRS_MIN && self.differing >= DIFFERING_MIN;
        let is_by_verdict = self.differing == self.only_first + self.only_second;
        is_enough && (low > 0.0 || high < 0.0) && (!is_by_verdict || self.mcnemar_p <= P_MAX)
    }

    /// `threshold` is the least difference in score that matters, such as 0.05.
    pub fn finding(&self, threshold: f64) -> ScoreFinding {
        let Estimate { value, low, high } = self.score_difference;
        let unseen = unseen(self.items);
        if self.is_shown() && value > threshold {
            ScoreFinding::Better
        } else if self.is_shown() && value < -threshold {
            ScoreFinding::Worse
        } else if low >= -threshold && high <= threshold && unseen <= threshold {
            ScoreFinding::Same
        } else {
            ScoreFinding::Inconclusive
        }
    }
}

/// The mean, with a width also where all differences are equal.
fn difference(differences: &[f64], seed: u64) -> Option<Estimate> {
    let found = Estimate::of_mean(differences, seed)?;
    let width = if found.high > found.low { 0.0 } else { unseen(differences.len()) };
    let (low, high) = (found.low - width, found.high + width);
    Some(Estimate { low, high, ..found }.within(-1.0, 1.0))
}

/// The rule of three: what was seen in none of n items can still be true of 3 in n.
fn unseen(items: usize) -> f64 {
    3.0 / items.max(1) as f64
}

/// Twice the binomial tail of the smaller count at 1/2, at most 1 (McNemar 1947).
pub(crate) fn mcnemar(b: usize, c: usize) -> f64 {
    (2.0 * half_tail(b.min(c), b + c)).min(1.0)
}

/// The chance of at most `k` heads in `n` tosses. Summed in logarithms.
pub(crate) fn half_tail(k: usize, n: usize) -> f64 {
    let (mut ways, mut tail) = (0.0, 0.0_f64);
    for i in 0..=k {
        if i > 0 {
            ways += ((n + 1 - i) as f64).ln() - (i as f64).ln();
        }
        tail += (ways - n as f64 * std::f64::consts::LN_2).exp();
    }
    tail.min(1.0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn mcnemar_by_hand() {
        // 0 of 5: 2/32. 1 of 8: 2 · 9/256. 2 of 10: 2 · 56/1024. Equal counts: 1.
        let rows = [
            (0, 0, 1.0),
            (0, 5, 0.0625),
            (5, 0, 0.0625),
            (1, 7, 0.070_312_5),
            (8, 2, 0.109_375),
            (4, 4, 1.0),
            (0, 6, 0.031_25),
        ];
        for (b, c, expected) in rows {
            assert!((mcnemar(b, c) - expected).abs() < 1e-12, "{b} and {c}: {}", mcnemar(b, c));
        }
        assert!(mcnemar(40_000, 41_000) < 0.001, "no overflow with many items");
    }
}
