//! How far the same thing is from itself: what a difference has to exceed before anybody believes it.
//! Learned from records of one thing, each against each.

use std::collections::BTreeMap;

use super::{Kept, Wish, compare};
use crate::terms::Metric;

/// By figure, in percent.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Noise(BTreeMap<Metric, f64>);

impl Noise {
    /// As far as the intervals of their differences reach.
    ///
    /// # Errors
    /// Two of them are not of one thing; why is said.
    pub fn learned(same: &[Kept]) -> Result<Noise, String> {
        let mut noise = Noise::default();
        for (at, first) in same.iter().enumerate() {
            for second in &same[at + 1..] {
                noise.learn(first, second)?;
            }
        }
        Ok(noise)
    }

    fn learn(&mut self, first: &Kept, second: &Kept) -> Result<(), String> {
        let sides = [first, second].map(std::slice::from_ref);
        let found = compare(sides[0], sides[1], &Wish::default());
        if let Some(reason) = found.refusals.first() {
            return Err(reason.clone());
        }
        for figure in &found.figures {
            let ends = figure.change_ci95_pct.into_iter().flatten().chain(figure.change_pct);
            let far = ends.map(either_way_pct).fold(0.0, f64::max);
            let known = self.0.entry(figure.metric).or_default();
            *known = known.max(far);
        }
        Ok(())
    }

    pub fn of(&self, metric: Metric) -> Option<f64> {
        self.0.get(&metric).copied()
    }
}

/// A fifth less is a quarter more, seen from the other side: thresholds count the more.
fn either_way_pct(change_pct: f64) -> f64 {
    let times = 1.0 + change_pct / 100.0;
    (times.max(1.0 / times) - 1.0) * 100.0
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn less_and_more_are_one_distance() {
        for (change_pct, expected) in [(25.0, 25.0), (-20.0, 25.0), (0.0, 0.0)] {
            assert!((either_way_pct(change_pct) - expected).abs() < 1e-9, "{change_pct}");
        }
    }
}
