//! The ratio of two quantities that were measured in pairs, side by side, with its interval.
//! Uses logarithms, so that twice and half weigh the same, and a seeded bootstrap.

use super::seeded_random::SeededRandom;
use super::student;

const RESAMPLES: usize = 10_000;
/// With fewer pairs there is no finding.
pub const PAIRS_MIN: usize = 8;

/// The second quantity divided by the first.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Ratio {
    pub times: f64,
    /// Lower end of the 95 % interval.
    pub low: f64,
    pub high: f64,
    /// Number of ratios.
    pub pairs: usize,
}

/// What the interval says about a difference.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Finding {
    /// Less than before, by more than the threshold.
    Less,
    More,
    /// Any difference is within the threshold.
    Same,
    Inconclusive,
}

impl Ratio {
    /// `None` without pairs. Pairs with a value of 0 or less have no logarithm and are left out.
    pub fn of_pairs(pairs: &[(f64, f64)], seed: u64) -> Option<Ratio> {
        let logs: Vec<f64> = pairs
            .iter()
            .filter(|(first, second)| *first > 0.0 && *second > 0.0)
            .map(|(first, second)| (second / first).ln())
            .collect();
        if logs.is_empty() {
            return None;
        }
        let n = logs.len();
        let mut random = SeededRandom::new(seed);
        let mut means: Vec<f64> = (0..RESAMPLES)
            .map(|_| (0..n).map(|_| logs[random.below(n)]).sum::<f64>() / n as f64)
            .collect();
        means.sort_by(f64::total_cmp);
        let tail = RESAMPLES / 40;
        let mean = logs.iter().sum::<f64>() / n as f64;
        // With eight pairs a plain bootstrap finds a difference in one of nine equal pairs of servers.
        let wide = student::bootstrap_widening(n);
        let end = |rank: usize| (mean + (means[rank] - mean) * wide).exp();
        let (low, high) = (end(tail), end(RESAMPLES - 1 - tail));
        Some(Ratio { times: mean.exp(), low, high, pairs: n })
    }

    /// `threshold` is the least difference that matters, such as 0.02. With fewer than [`PAIRS_MIN`] pairs:
    /// undecided.
    pub fn finding(&self, threshold: f64) -> Finding {
        match self.pairs {
            pairs if pairs < PAIRS_MIN => Finding::Inconclusive,
            _ => self.beyond(threshold),
        }
    }

    /// The finding for any ratio with a valid interval, whatever the number of pairs.
    pub fn beyond(&self, threshold: f64) -> Finding {
        let limit = threshold.ln_1p();
        let (times, low, high) = (self.times.ln(), self.low.ln(), self.high.ln());
        if low > 0.0 && times > limit {
            Finding::More
        } else if high < 0.0 && times < -limit {
            Finding::Less
        } else if low > -limit && high < limit {
            Finding::Same
        } else {
            Finding::Inconclusive
        }
    }
}

#[cfg(test)]
mod tests {
    use proptest::collection::vec;
    use proptest::prelude::*;

    use super::*;

    fn pairs(times: f64, spread: f64, n: usize, seed: u64) -> Vec<(f64, f64)> {
        let mut random = SeededRandom::new(seed);
        let mut noisy = |value: f64| value * (1.0 + spread * (random.unit() - 0.5));
        (0..n).map(|_| (noisy(100.0), noisy(100.0 * times))).collect()
    }

    #[test]
    fn findings() {
        let rows = [
            (1.05, 0.02, 12, Finding::More),
            (0.95, 0.02, 12, Finding::Less),
            (1.0, 0.01, 12, Finding::Same),
            (1.05, 0.01, 7, Finding::Inconclusive),
            (1.0, 0.6, 8, Finding::Inconclusive),
            // Certain, but too small to matter.
            (1.01, 0.001, 12, Finding::Same),
        ];
        for (times, spread, n, expected) in rows {
            let ratio = Ratio::of_pairs(&pairs(times, spread, n, 7), 1).expect("pairs");
            assert_eq!(ratio.finding(0.02), expected, "{times}: {ratio:?}");
        }
        assert_eq!(Ratio::of_pairs(&[(0.0, 1.0)], 1), None);
    }

    #[test]
    fn five_percent_are_found_and_nothing_is_not() {
        let found = |times: f64, finding: Finding| {
            let of = |seed| Ratio::of_pairs(&pairs(times, 0.04, 10, seed), seed);
            let found = (0..40).filter_map(of).filter(|ratio| ratio.finding(0.02) == finding);
            found.count()
        };
        assert!(found(1.05, Finding::More) >= 38);
        assert!(found(1.0, Finding::More) + found(1.0, Finding::Less) <= 1);
    }

    #[test]
    fn the_interval_of_few_pairs_leaves_out_the_truth_once_in_twenty() {
        let (mut outside, trials) = (0, 400);
        for seed in 0..trials {
            let ratio = Ratio::of_pairs(&pairs(1.0, 0.06, 8, seed), seed).expect("pairs");
            outside += u32::from(ratio.low > 1.0 || ratio.high < 1.0);
        }
        // Expected: 20 of 400, within four standard deviations.
        assert!((3..=37).contains(&outside), "{outside} of {trials}");
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(32))]

        #[test]
        fn the_ratio_lies_within_and_turns_over(values in vec((1.0_f64..1e6, 1.0_f64..1e6), 1..20)) {
            let ratio = Ratio::of_pairs(&values, 7).expect("pairs");
            prop_assert!(ratio.low <= ratio.times * 1.000_001 && ratio.times <= ratio.high * 1.000_001);
            let turned: Vec<(f64, f64)> = values.iter().map(|(a, b)| (*b, *a)).collect();
            let back = Ratio::of_pairs(&turned, 7).expect("pairs");
            prop_assert!((ratio.times * back.times - 1.0).abs() < 1e-6);
        }
    }
}
