//! A figure with its 95 % interval: Wilson's for shares and mean scores, a seeded bootstrap over items for all others.
//! The bootstrap is widened for few items, because a plain one is too narrow there. Over equal items it has no width.

use hob_core::statistics::SeededRandom;
use serde::Serialize;

const RESAMPLES: usize = 2_000;
/// Two-sided 95 % quantile of the normal distribution.
pub(super) const Z: f64 = 1.959_963_984_540_054;

/// A figure with a 95 % interval. An end can be infinite (a time until a correct answer); JSON shows `null` then.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct Estimate {
    pub value: f64,
    pub low: f64,
    pub high: f64,
}

impl Estimate {
    /// Wilson's score interval (1927) of a share. `None` without items.
    pub(crate) fn of_share(hits: usize, items: usize) -> Option<Estimate> {
        Estimate::of_points(hits as f64, items)
    }

    /// Wilson's interval of a sum of points, 0 to 1 for each item. It is wide enough: points between 0 and 1 vary
    /// less than hits with the same mean. `None` without items, and for points that are not a number.
    pub(crate) fn of_points(points: f64, items: usize) -> Option<Estimate> {
        if items == 0 || points.is_nan() {
            return None;
        }
        let (n, share) = (items as f64, points / items as f64);
        let scale = 1.0 + Z * Z / n;
        let middle = (share + Z * Z / (2.0 * n)) / scale;
        let half = Z / scale * (share * (1.0 - share) / n + Z * Z / (4.0 * n * n)).sqrt();
        // Rounding must not put the ends past the share itself.
        let (low, high) = ((middle - half).clamp(0.0, share), (middle + half).clamp(share, 1.0));
        Some(Estimate { value: share, low, high })
    }

    /// Sum of numerators over sum of denominators. Each resample draws whole items, so both stay paired.
    /// `None` when the denominators' sum is not above 0.
    pub fn of_quotient(items: &[(f64, f64)], seed: u64) -> Option<Estimate> {
        let quotient = |(up, down): (f64, f64)| (down > 0.0).then(|| up / down);
        let add = |sum: (f64, f64), item: &(f64, f64)| (sum.0 + item.0, sum.1 + item.1);
        let value = quotient(items.iter().fold((0.0, 0.0), add)).filter(|v| v.is_finite())?;
        let (n, mut random) = (items.len(), SeededRandom::new(seed));
        let mut values: Vec<f64> = (0..RESAMPLES)
            .filter_map(|_| quotient((0..n).map(|_| &items[random.below(n)]).fold((0.0, 0.0), add)))
            .collect();
        values.sort_by(f64::total_cmp);
        let tail = values.len() / 40;
        let wide = widening(n);
        let end = |rank: usize| values.get(rank).map_or(value, |end| value + (end - value) * wide);
        let (low, high) = (end(tail), end(values.len().saturating_sub(1 + tail)));
        Some(Estimate { value, low: low.min(value), high: high.max(value) })
    }

    /// `None` without values.
    pub fn of_mean(values: &[f64], seed: u64) -> Option<Estimate> {
        let items: Vec<(f64, f64)> = values.iter().map(|value| (*value, 1.0)).collect();
        Estimate::of_quotient(&items, seed)
    }

    /// Points over their costs. The interval is at least as wide as that of `share`, the mean of the points: a bootstrap
    /// over equal items has no width.
    pub(super) fn of_rate(
        points_and_costs: &[(f64, f64)],
        share: Estimate,
        seed: u64,
    ) -> Option<Estimate> {
        let found = Estimate::of_quotient(points_and_costs, seed)?;
        let cost: f64 = points_and_costs.iter().map(|(_, cost)| *cost).sum();
        let rate = |share: f64| share * points_and_costs.len() as f64 / cost;
        let (low, high) = (found.low.min(rate(share.low)), found.high.max(rate(share.high)));
        Some(Estimate { low, high, ..found })
    }

    pub fn within(self, min: f64, max: f64) -> Estimate {
        let cut = |value: f64| value.clamp(min, max);
        Estimate { value: cut(self.value), low: cut(self.low), high: cut(self.high) }
    }

    /// One divided by it: the ends change places. `None` for a value of 0 or less.
    pub(super) fn inverse(self) -> Option<Estimate> {
        let invert = |value: f64| if value > 0.0 { 1.0 / value } else { f64::INFINITY };
        let inverse =
            Estimate { value: invert(self.value), low: invert(self.high), high: invert(self.low) };
        (self.value > 0.0).then_some(inverse)
    }
}

/// A bootstrap divides by n where n − 1 is right, and Student's quantile is wider than the normal one.
/// The quantile is the first term of the series of Cornish and Fisher.
fn widening(n: usize) -> f64 {
    let degrees = n.saturating_sub(1).max(1) as f64;
    (1.0 + (Z * Z + 1.0) / (4.0 * degrees)) * (n as f64 / degrees).sqrt()
}
