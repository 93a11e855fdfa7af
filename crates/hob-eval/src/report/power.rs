//! How many items a difference needs, and which difference a number of items can show.
//! The normal approximation of McNemar's test: Connor, Biometrics 43 (1987), 207–211.

use super::estimate::Z;

/// Number of paired items that show `difference` in accuracy with the probability `power`, at 5 % two-sided.
///
/// `share` is the share of items on which just one of the two arms is right (0 to 1). It is at least the difference.
/// The formula is n = (z_α √ψ + z_β √(ψ − δ²))² / δ², with ψ the share and δ the difference. 1/δ comes on top,
/// because the exact test is stricter than the normal one (the continuity correction, to the first order).
/// `power` is cut to 0.5..0.999. The answer is `u32::MAX` for a difference of 0.
pub fn items_needed(share: f64, difference: f64, power: f64) -> u32 {
    if difference.is_nan() || difference == 0.0 || power.is_nan() {
        return u32::MAX;
    }
    let difference = difference.abs().min(1.0);
    let share = share.max(difference).min(1.0);
    let spread = (share - difference * difference).max(0.0).sqrt();
    let root = (Z * share.sqrt() + quantile(power) * spread) / difference;
    (root * root + 1.0 / difference).ceil() as u32
}

/// The least difference in accuracy, 0 to 1, that `items` show with the probability `power`. `None` when even the
/// greatest possible difference, which is `share`, needs more items.
pub fn smallest_difference(items: u32, share: f64, power: f64) -> Option<f64> {
    let share = share.clamp(0.0, 1.0);
    let is_enough = |difference: f64| items_needed(share, difference, power) <= items;
    if !is_enough(share) {
        return None;
    }
    let (mut low, mut high) = (0.0, share);
    for _ in 0..40 {
        let middle = f64::midpoint(low, high);
        if is_enough(middle) {
            high = middle;
        } else {
            low = middle;
        }
    }
    Some(high)
}

/// Quantile of the normal distribution for 0.5 to 0.999: Abramowitz and Stegun 26.2.23, within 0.000 45.
fn quantile(part: f64) -> f64 {
    let tail = 1.0 - part.clamp(0.5, 0.999);
    let t = (-2.0 * tail.ln()).sqrt();
    let up = 2.515_517 + 0.802_853 * t + 0.010_328 * t * t;
    t - up / (1.0 + 1.432_788 * t + 0.189_269 * t * t + 0.001_308 * t * t * t)
}
