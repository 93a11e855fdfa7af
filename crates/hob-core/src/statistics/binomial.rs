//! How likely so many of so many are: what every interval of ranks and shares here is made of.
//! Summed in logarithms, because half to the power of thousands is no number.

/// The chance of at most `k` of `n`, each with the chance `p`.
pub(super) fn cdf(k: usize, n: usize, p: f64) -> f64 {
    if k >= n {
        return 1.0;
    }
    let (yes, no) = (p.ln(), (1.0 - p).ln());
    let mut ways = 0.0;
    let mut sum = 0.0;
    for i in 0..=k {
        if i > 0 {
            ways += ((n + 1 - i) as f64).ln() - (i as f64).ln();
        }
        sum += (ways + i as f64 * yes + (n - i) as f64 * no).exp();
    }
    sum.min(1.0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn chances_by_hand() {
        // Of 6 tosses none: 1/64; at most one: 7/64. Of 7 none: 1/128.
        let rows =
            [(0, 6, 0.5, 1.0 / 64.0), (1, 6, 0.5, 7.0 / 64.0), (6, 6, 0.5, 1.0), (0, 2, 0.1, 0.81)];
        for (k, n, p, expected) in rows {
            assert!((cdf(k, n, p) - expected).abs() < 1e-12, "{k} of {n} at {p}");
        }
        assert!((cdf(2000, 4000, 0.5) - 0.5).abs() < 0.01);
    }
}
