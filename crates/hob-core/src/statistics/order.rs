//! Intervals from ranks for medians and percentiles. They hold for any distribution.
//! With too few values for an upper end there is no interval.

use super::{Sample, TAIL, binomial};

/// A percentile and its interval.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Percentile {
    pub value: f64,
    pub low: f64,
    pub high: f64,
}

impl Sample {
    /// The 95 % interval of the median. `None` with fewer than 6 values.
    pub fn median_interval(&self) -> Option<[f64; 2]> {
        let n = self.count();
        let k = binomial::cumulative(n, 0.5).take(n / 2).take_while(|below| *below <= TAIL).count();
        if k == 0 {
            return None;
        }
        Some([self.values[k - 1], self.values[n - k]])
    }

    /// The percentile for this part of the values, such as 0.95, with its 95 % interval. `None` with too few values for a
    /// two-sided interval: 0.95 needs 72, and 0.99 needs 368.
    pub fn percentile(&self, part: f64) -> Option<Percentile> {
        let n = self.count();
        let (mut low, mut high) = (0, None);
        // The value at `rank` is above the percentile if fewer than `rank` values are below the percentile. `below` is the
        // probability of that.
        for (rank, below) in (1..=n).zip(binomial::cumulative(n, part)) {
            if below <= TAIL {
                low = rank;
            } else if 1.0 - below <= TAIL {
                high = Some(rank);
                break;
            }
        }
        let (low, high) = (Some(low).filter(|low| *low > 0)?, high?);
        let value = self.nearest_rank(part)?;
        Some(Percentile { value, low: self.values[low - 1], high: self.values[high - 1] })
    }

    pub fn min(&self) -> Option<f64> {
        self.values.first().copied()
    }

    pub fn max(&self) -> Option<f64> {
        self.values.last().copied()
    }

    pub fn mean(&self) -> Option<f64> {
        let sum: f64 = self.values.iter().sum();
        (!self.values.is_empty()).then(|| sum / self.count() as f64)
    }

    /// With an even number of values: the mean of the two in the middle.
    pub fn median(&self) -> Option<f64> {
        let n = self.count();
        let (low, high) = (self.values.get(n.checked_sub(1)? / 2)?, self.values.get(n / 2)?);
        Some(f64::midpoint(*low, *high))
    }

    /// Half of the interval's width, in percent of the median.
    pub fn half_width_pct(&self) -> Option<f64> {
        let [low, high] = self.median_interval()?;
        let median = self.median().filter(|median| *median != 0.0)?;
        Some((high - low) / 2.0 / median.abs() * 100.0)
    }
}

#[cfg(test)]
mod tests {
    use proptest::collection::vec;
    use proptest::prelude::*;

    use super::*;

    fn up_to(n: u32) -> Sample {
        Sample::new((1..=n).map(f64::from))
    }

    #[test]
    fn intervals_of_the_median_begin_at_six() {
        assert_eq!(up_to(5).median_interval(), None);
        assert_eq!(up_to(6).median_interval(), Some([1.0, 6.0]));
        assert_eq!(up_to(9).median_interval(), Some([2.0, 8.0]));
        assert_eq!(up_to(10).median_interval(), Some([2.0, 9.0]));
        assert_eq!((up_to(6).median(), up_to(5).median()), (Some(3.5), Some(3.0)));
        assert_eq!(Sample::default().median(), None);
    }

    #[test]
    fn a_percentile_appears_with_its_interval_and_not_before() {
        for (part, n) in [(0.95, 72), (0.99, 368), (0.999, 3688)] {
            assert_eq!(up_to(n - 1).percentile(part), None, "{part}");
            let percentile = up_to(n).percentile(part).expect("enough");
            assert_eq!(percentile.high, f64::from(n));
            assert!(percentile.low < percentile.value && percentile.value <= percentile.high);
        }
        let many = up_to(200_000).percentile(0.99).expect("enough");
        assert_eq!(many.value, 198_000.0);
        assert!(many.low > 197_900.0 && many.high < 198_100.0);
    }

    proptest! {
        #[test]
        fn the_median_lies_within_its_interval(values in vec(-1e6_f64..1e6, 6..80)) {
            let sample = Sample::new(values);
            let [low, high] = sample.median_interval().expect("enough");
            let median = sample.median().expect("some");
            prop_assert!(low <= median && median <= high);
        }
    }
}
