//! Summary figures of measurements, and how many measurements each figure needs.
//! With too few measurements there is no percentile.

mod binomial;
mod order;
mod ratio;
mod seeded_random;
mod sides;
mod student;

pub use order::Percentile;
pub use ratio::{Finding, PAIRS_MIN, Ratio};
pub use seeded_random::SeededRandom;
pub use sides::RUNS_MIN;

/// Minimum number of values in which two groups can be distinguished.
/// Fewer than 10 of 1,000 samples (16 values from one uniform, normal or exponential distribution) pass the test.
const MODES_COUNT_MIN: usize = 16;
const MODES_RATIO_MIN: f64 = 1.3;
const MODES_GAP_MIN: f64 = 0.75;

/// Probability in each tail of a 95 % interval.
const TAIL: f64 = 0.025;
/// The normal distribution has [`TAIL`] above this many standard deviations.
const Z: f64 = 1.959_963_984_540_054;

/// Measurements of one quantity, in any unit.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Sample {
    /// Sorted, without NaN.
    values: Vec<f64>,
}

impl Sample {
    /// Drops values that are not numbers.
    pub fn new(values: impl IntoIterator<Item = f64>) -> Sample {
        let mut values: Vec<f64> = values.into_iter().filter(|value| !value.is_nan()).collect();
        values.sort_by(f64::total_cmp);
        Sample { values }
    }

    pub fn count(&self) -> usize {
        self.values.len()
    }

    /// Half of the values are at most this. `None` without values.
    pub fn p50(&self) -> Option<f64> {
        self.nearest_rank(0.50)
    }

    /// `None` with fewer than 20 values: one in twenty is then less than one value.
    pub fn p95(&self) -> Option<f64> {
        self.nearest_rank(0.95).filter(|_| self.count() >= 20)
    }

    /// Whether the values form two distant groups, each with at least a fifth of them. The median is then typical of
    /// neither group. `false` with fewer than 16 values.
    pub fn is_bimodal(&self) -> bool {
        let (values, share) = (&self.values, self.count().div_ceil(5));
        let median = |group: &[f64]| group[group.len() / 2];
        let parts = |split: usize| {
            let (low, high) = values.split_at(split);
            let (low_p50, high_p50) = (median(low), median(high));
            let gap = high[0] - low[split - 1];
            high_p50 >= MODES_RATIO_MIN * low_p50 && gap >= MODES_GAP_MIN * (high_p50 - low_p50)
        };
        values.len() >= MODES_COUNT_MIN && (share..=values.len() - share).any(parts)
    }

    /// The smallest measured value that at least this part of all values does not exceed.
    fn nearest_rank(&self, part: f64) -> Option<f64> {
        let rank = (part * self.count() as f64).ceil() as usize;
        self.values.get(rank.saturating_sub(1)).copied()
    }
}

#[cfg(test)]
mod tests {
    use proptest::collection::vec;
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn percentiles_are_values_that_were_measured() {
        let sample = Sample::new((1..=20).rev().map(f64::from));
        assert_eq!((sample.count(), sample.p50(), sample.p95()), (20, Some(10.0), Some(19.0)));
        let few = Sample::new([3.0, f64::NAN, 1.0, 2.0]);
        assert_eq!((few.count(), few.p50(), few.p95()), (3, Some(2.0), None));
        assert_eq!(Sample::default().p50(), None);
    }

    #[test]
    fn two_groups_far_apart_are_bimodal() {
        let mixed = |low: usize, high: usize| {
            let low = (0..low).map(|i| 100.0 + i as f64);
            Sample::new(low.chain((0..high).map(|i| 400.0 + i as f64)))
        };
        let rows = [(10, 10, true), (16, 4, true), (17, 3, false), (20, 0, false), (7, 7, false)];
        for (low, high, expected) in rows {
            assert_eq!(mixed(low, high).is_bimodal(), expected, "{low} and {high}");
        }
        let even = Sample::new((0..40).map(|i| 50.0 + f64::from(i)));
        assert!(!even.is_bimodal(), "one broad group");
        let near = Sample::new((0..40).map(|i| if i % 2 == 0 { 100.0 } else { 110.0 }));
        assert!(!near.is_bimodal(), "a tenth apart");
    }

    proptest! {
        #[test]
        fn so_many_are_below(values in vec(-1e9_f64..1e9, 20..200)) {
            let sample = Sample::new(values.clone());
            for (part, value) in [(0.5, sample.p50()), (0.95, sample.p95())] {
                let value = value.expect("there are enough");
                let below = values.iter().filter(|other| **other <= value).count() as f64;
                prop_assert!(below >= part * values.len() as f64);
            }
        }
    }
}
