//! Many figures in a few: the least, the greatest, the middle, and one in a hundred.
//! Percentiles are figures that were measured (nearest rank), never something between two.

use serde::Serialize;

/// Below this many, the interval of a 99th percentile has no upper end.
const P99_NEEDS: usize = 368;

#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct Spread {
    pub n: usize,
    pub min: f64,
    pub p50: f64,
    /// Absent where there are too few to tell.
    pub p99: Option<f64>,
    pub max: f64,
}

impl Spread {
    /// None of no figures.
    pub fn of(mut figures: Vec<f64>) -> Option<Spread> {
        figures.sort_unstable_by(f64::total_cmp);
        let (min, max) = (*figures.first()?, *figures.last()?);
        let p99 = (figures.len() >= P99_NEEDS).then(|| at(&figures, 99));
        Some(Spread { n: figures.len(), min, p50: at(&figures, 50), p99, max })
    }
}

/// The least figure that this many in a hundred do not exceed.
fn at(sorted: &[f64], percent: usize) -> f64 {
    let rank = (sorted.len() * percent).div_ceil(100).max(1);
    sorted[rank - 1]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn percentiles_are_figures_that_were_measured() {
        let rows = [(1, 50, 1.0), (2, 50, 1.0), (3, 50, 2.0), (100, 99, 99.0), (1000, 99, 990.0)];
        for (n, percent, expected) in rows {
            let sorted: Vec<f64> = (1..=n).map(f64::from).collect();
            assert!((at(&sorted, percent) - expected).abs() < f64::EPSILON, "{percent} % of {n}");
        }
    }

    #[test]
    fn a_spread_says_no_more_than_it_knows() {
        assert_eq!(Spread::of(Vec::new()), None);
        let few = Spread { n: 3, min: 1.0, p50: 2.0, p99: None, max: 9.0 };
        assert_eq!(Spread::of(vec![9.0, 1.0, 2.0]), Some(few));
        let enough = Spread::of((0..P99_NEEDS).map(|n| n as f64).collect());
        assert_eq!(enough.and_then(|spread| spread.p99), Some(364.0));
    }
}
