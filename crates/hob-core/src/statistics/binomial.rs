//! Cumulative binomial probabilities, from which the intervals of ranks are made.
//! The terms are computed as logarithms, because a probability to the power of several thousand underflows.

/// Probabilities of at most 0, 1, 2 … successes in `n` trials with the probability `p` each; `p` is between 0 and 1.
/// One pass gives all of them, because a pass for each would take minutes for tens of thousands of trials.
pub(super) fn cumulative(n: usize, p: f64) -> impl Iterator<Item = f64> {
    let (yes, no) = (p.ln(), (1.0 - p).ln());
    let (mut ways, mut sum) = (0.0, 0.0_f64);
    (0..=n).map(move |i| {
        if i > 0 {
            ways += ((n + 1 - i) as f64).ln() - (i as f64).ln();
        }
        sum += (ways + i as f64 * yes + (n - i) as f64 * no).exp();
        sum.min(1.0)
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn probabilities_equal_those_computed_by_hand() {
        // Six tosses of a coin: no head, at most one, at most six. Two trials at 0.1: no success.
        let rows =
            [(0, 6, 0.5, 1.0 / 64.0), (1, 6, 0.5, 7.0 / 64.0), (6, 6, 0.5, 1.0), (0, 2, 0.1, 0.81)];
        for (k, n, p, expected) in rows {
            let found = cumulative(n, p).nth(k).expect("a probability");
            assert!((found - expected).abs() < 1e-12, "{k} of {n} at {p}");
        }
        let middle = cumulative(4000, 0.5).nth(2000).expect("a probability");
        assert!((middle - 0.5).abs() < 0.01);
        assert_eq!(cumulative(100_000, 0.99).count(), 100_001);
    }
}
