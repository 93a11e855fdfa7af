//! The ratio of two quantities that were measured separately: each value of one against each of the other.
//! The interval comes from ranks (Mann and Whitney, Hodges and Lehmann), so it holds for any distribution.

use super::{Ratio, TAIL, Z};

/// With fewer values on a side there is no interval.
pub const RUNS_MIN: usize = 6;
/// A larger side is reduced to this many of its quantiles, because every pair is computed.
const RUNS_MAX: usize = 200;
/// Up to this many pairs the probabilities are exact; above, the normal distribution is used.
const EXACT_PAIRS_MAX: usize = 2_500;

impl Ratio {
    /// The second divided by the first. `None` with fewer than [`RUNS_MIN`] values on a side, or with values of 0 or
    /// less.
    pub fn of_sides(first: &[f64], second: &[f64]) -> Option<Ratio> {
        let (first, second) = (logs(first)?, logs(second)?);
        let mut apart: Vec<f64> =
            second.iter().flat_map(|b| first.iter().map(move |a| b - a)).collect();
        apart.sort_by(f64::total_cmp);
        let pairs = apart.len();
        let rank = rank(first.len(), second.len());
        let middle = f64::midpoint(apart[(pairs - 1) / 2], apart[pairs / 2]);
        let (low, high) = (apart[rank - 1], apart[pairs - rank]);
        Some(Ratio { times: middle.exp(), low: low.exp(), high: high.exp(), pairs })
    }

    /// The rank, from either end of the sorted differences of `n` and `m` values, at which the interval begins.
    /// `None` with fewer than [`RUNS_MIN`] values on a side.
    pub fn rank_from_end(n: usize, m: usize) -> Option<usize> {
        (n.min(m) >= RUNS_MIN).then(|| rank(n.min(RUNS_MAX), m.min(RUNS_MAX)))
    }
}

fn logs(values: &[f64]) -> Option<Vec<f64>> {
    if values.len() < RUNS_MIN || !values.iter().all(|value| *value > 0.0) {
        return None;
    }
    let mut logs: Vec<f64> = values.iter().map(|value| value.ln()).collect();
    logs.sort_by(f64::total_cmp);
    if logs.len() > RUNS_MAX {
        let step = (logs.len() - 1) as f64 / (RUNS_MAX - 1) as f64;
        logs = (0..RUNS_MAX).map(|at| logs[(at as f64 * step).round() as usize]).collect();
    }
    Some(logs)
}

fn rank(n: usize, m: usize) -> usize {
    if n * m > EXACT_PAIRS_MAX {
        let (a, b) = (n as f64, m as f64);
        let half = Z * (a * b * (a + b + 1.0) / 12.0).sqrt();
        return ((a * b / 2.0 - half).floor() as usize).max(1);
    }
    let mut below = 0.0;
    let within = probabilities(n, m).into_iter().take_while(|probability| {
        below += probability;
        below <= TAIL
    });
    within.count().max(1)
}

/// Probabilities that 0, 1, 2 … pairs have the second value below the first, if both sides have the same distribution.
fn probabilities(n: usize, m: usize) -> Vec<f64> {
    // Those for i and j values follow from those without the greatest value. It belongs to the first side with the
    // probability i / (i + j), and is then above all j values of the second side.
    let mut before: Vec<Vec<f64>> = vec![vec![1.0]; m + 1];
    for i in 1..=n {
        let mut row: Vec<Vec<f64>> = vec![vec![1.0]];
        for j in 1..=m {
            let (total, mut sum) = ((i + j) as f64, vec![0.0; i * j + 1]);
            for (at, probability) in before[j].iter().enumerate() {
                sum[at + j] += probability * i as f64 / total;
            }
            for (at, probability) in row[j - 1].iter().enumerate() {
                sum[at] += probability * j as f64 / total;
            }
            row.push(sum);
        }
        before = row;
    }
    before.swap_remove(m)
}

#[cfg(test)]
mod tests {
    use proptest::collection::vec;
    use proptest::prelude::*;

    use super::super::{Finding, SeededRandom};
    use super::*;

    #[test]
    fn ranks_equal_those_of_the_published_table() {
        // Critical values of Mann and Whitney for 5 %, two-sided, plus one.
        for (n, m, critical) in [(6, 6, 5), (6, 10, 11), (8, 8, 13), (10, 10, 23), (20, 20, 127)] {
            assert_eq!(Ratio::rank_from_end(n, m), Some(critical + 1), "{n} and {m}");
            assert_eq!(Ratio::rank_from_end(m, n), Some(critical + 1), "{m} and {n}");
        }
        assert_eq!(Ratio::rank_from_end(5, 50), None);
        let exact = rank(50, 50) as f64;
        let normal = 1250.0 - Z * (2500.0_f64 * 101.0 / 12.0).sqrt();
        assert!((exact - normal).abs() < 3.0, "{exact} and {normal}");
    }

    #[test]
    fn too_few_values_and_zero_have_no_ratio() {
        let six = [1.0, 2.0, 3.0, 4.0, 5.0, 6.0];
        assert_eq!(Ratio::of_sides(&six[1..], &six), None);
        assert_eq!(Ratio::of_sides(&six, &[0.0, 1.0, 1.0, 1.0, 1.0, 1.0]), None);
        let many: Vec<f64> = (1..=5_000).map(f64::from).collect();
        let ratio = Ratio::of_sides(&many, &many).expect("enough");
        assert!((ratio.times - 1.0).abs() < 1e-9 && ratio.pairs == RUNS_MAX * RUNS_MAX);
    }

    #[test]
    fn equal_sides_are_called_different_once_in_twenty() {
        let mut random = SeededRandom::new(7);
        let mut side = |times: f64| -> Vec<f64> {
            (0..8).map(|_| times * (100.0 + 4.0 * (random.unit() - 0.5))).collect()
        };
        let (mut outside, mut found) = (0, 0);
        for _ in 0..1000 {
            let same = Ratio::of_sides(&side(1.0), &side(1.0)).expect("enough");
            outside += u32::from(same.low > 1.0 || same.high < 1.0);
            let slower = Ratio::of_sides(&side(1.0), &side(1.05)).expect("enough");
            found += u32::from(slower.beyond(0.02) == Finding::More);
        }
        assert!((20..=78).contains(&outside), "{outside} of 1000");
        assert!(found > 990, "{found} of 1000");
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(64))]

        #[test]
        fn a_ratio_lies_in_its_interval_and_inverts_with_its_sides(a in vec(1.0_f64..1e6, 6..20), b in vec(1.0_f64..1e6, 6..20)) {
            let ratio = Ratio::of_sides(&a, &b).expect("enough");
            prop_assert!(ratio.low <= ratio.times && ratio.times <= ratio.high);
            let back = Ratio::of_sides(&b, &a).expect("enough");
            prop_assert!((ratio.times * back.times - 1.0).abs() < 1e-6);
            prop_assert!((ratio.low * back.high - 1.0).abs() < 1e-6);
        }
    }
}
