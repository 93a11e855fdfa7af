//! How much wider an interval of few values must be: Student's quantile, and the bias of a bootstrap.
//! Only for two-sided 95 %.

use super::Z;

/// Series of Cornish and Fisher: within 1 in 1,000 from seven degrees of freedom on.
fn quantile(degrees: usize) -> f64 {
    let nu = degrees as f64;
    let (z3, z5, z7) = (Z.powi(3), Z.powi(5), Z.powi(7));
    let first = (z3 + Z) / 4.0;
    let second = (5.0 * z5 + 16.0 * z3 + 3.0 * Z) / 96.0;
    let third = (3.0 * z7 + 19.0 * z5 + 17.0 * z3 - 15.0 * Z) / 384.0;
    Z + first / nu + second / nu.powi(2) + third / nu.powi(3)
}

/// A bootstrap divides by n where n − 1 is right. One value has no width.
pub(super) fn bootstrap_widening(n: usize) -> f64 {
    match n.checked_sub(1) {
        None | Some(0) => 1.0,
        Some(degrees) => quantile(degrees) / Z * (n as f64 / degrees as f64).sqrt(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn quantiles_by_the_table() {
        for (degrees, expected) in [(7, 2.3646), (9, 2.2622), (19, 2.0930), (99, 1.9842)] {
            assert!((quantile(degrees) - expected).abs() < 0.002, "{degrees}");
        }
        assert!((bootstrap_widening(8) - 1.2897).abs() < 0.002);
        assert_eq!((bootstrap_widening(0), bootstrap_widening(1)), (1.0, 1.0));
    }
}
