//! What may be said of measurements, and of how many it takes to say it.
//! A percentile of too few is a wish, so there is none.

mod binomial;
mod chance;
mod order;
mod ratio;
mod sides;
mod student;

pub use chance::Chance;
pub use order::{Budget, Percentile, budget, wilson95};
pub use ratio::{Finding, PAIRS_MIN, Ratio};
pub use sides::RUNS_MIN;

/// Measurements of one thing, in any unit.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Sample {
    /// Sorted, and all of them numbers.
    values: Vec<f64>,
}

impl Sample {
    /// What is no number counts for nothing.
    pub fn new(values: impl IntoIterator<Item = f64>) -> Sample {
        let mut values: Vec<f64> = values.into_iter().filter(|value| !value.is_nan()).collect();
        values.sort_by(f64::total_cmp);
        Sample { values }
    }

    pub fn count(&self) -> usize {
        self.values.len()
    }

    /// Half of the values are at most this. None of none.
    pub fn p50(&self) -> Option<f64> {
        self.nearest_rank(0.50)
    }

    /// None of fewer than 20: one in twenty is then nobody.
    pub fn p95(&self) -> Option<f64> {
        self.nearest_rank(0.95).filter(|_| self.count() >= 20)
    }

    /// The least value that so large a part of all is at most: no value that was not measured.
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
