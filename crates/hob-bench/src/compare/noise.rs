//! How much equal runs differ: a difference must exceed this noise to count.
//! It is learned from several records of one cell, compared in pairs.

use std::collections::BTreeMap;

use super::{CompareOptions, SampledRecord, compare};
use crate::terms::Metric;

/// Noise of each figure in percent.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct NoiseFloor(BTreeMap<Metric, f64>);

impl NoiseFloor {
    /// The largest ends of the 95 % intervals between any two of these records.
    ///
    /// # Errors
    /// Two records must not be compared; the error is the reason.
    pub fn learned(same: &[SampledRecord]) -> Result<NoiseFloor, String> {
        let mut noise = NoiseFloor::default();
        for (at, first) in same.iter().enumerate() {
            for second in &same[at + 1..] {
                noise.learn(first, second)?;
            }
        }
        Ok(noise)
    }

    fn learn(&mut self, first: &SampledRecord, second: &SampledRecord) -> Result<(), String> {
        let sides = [first, second].map(std::slice::from_ref);
        let found = compare(sides[0], sides[1], &CompareOptions::default());
        if let Some(reason) = found.refusals.first() {
            return Err(reason.clone());
        }
        for figure in &found.figures {
            let ends = figure.change_ci95_pct.into_iter().flatten().chain(figure.change_pct);
            let far = ends.map(distance_pct).fold(0.0, f64::max);
            let known = self.0.entry(figure.metric).or_default();
            *known = known.max(far);
        }
        Ok(())
    }

    pub fn noise_pct(&self, metric: Metric) -> Option<f64> {
        self.0.get(&metric).copied()
    }
}

/// The same distance in both directions: 20 % less is 25 % more from the other side. The larger one counts.
fn distance_pct(change_pct: f64) -> f64 {
    let times = 1.0 + change_pct / 100.0;
    (times.max(1.0 / times) - 1.0) * 100.0
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_increase_and_a_decrease_have_the_same_distance() {
        for (change_pct, expected) in [(25.0, 25.0), (-20.0, 25.0), (0.0, 0.0)] {
            assert!((distance_pct(change_pct) - expected).abs() < 1e-9, "{change_pct}");
        }
    }
}
