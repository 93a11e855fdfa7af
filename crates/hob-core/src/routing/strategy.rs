//! The order in which an alias tries its targets. Ties are broken by the order in `hob.toml`, so that users can
//! predict the result; with `least-wait` by the conversation, so that a server finds its prompt in the cache.

use crate::enum_table;

enum_table! {
    /// How an alias chooses among its targets.
    #[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
    pub enum Strategy: name or UnknownStrategy("a strategy") {
        /// In the order of the configuration.
        #[default]
        Order = "order",
        /// Loaded models first.
        Warm = "warm",
        /// Least load first. Among equals, the target that saw the beginning of this conversation before.
        LeastWait = "least-wait",
        /// At random, by weight; then in the order of the configuration.
        Weighted = "weighted",
    }
}

/// What is known about a target when a request arrives.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct TargetFacts {
    pub is_warm: bool,
    /// Requests in flight per slot.
    pub load: f64,
    /// Whether the target failed a moment ago. A target that fails at once looks idle, but is not.
    pub failed_recently: bool,
    pub weight: f64,
}

/// The load that a recent failure counts as.
const FAILED_LOAD: f64 = 1000.0;

/// The indexes of `targets` in the order in which to try them. `beginning` is a hash of the
/// conversation's beginning, and `chance` a random number from 0 to 1.
pub fn order(
    strategy: Strategy,
    targets: &[TargetFacts],
    beginning: u64,
    chance: f64,
) -> Vec<usize> {
    let mut places: Vec<usize> = (0..targets.len()).collect();
    match strategy {
        Strategy::Order => {}
        Strategy::Warm => places.sort_by_key(|&place| !targets[place].is_warm),
        Strategy::LeastWait => {
            // The sort keeps this order among equals. So one conversation begins at the same target each time, and finds its
            // prompt in that target's cache.
            let count = places.len().max(1);
            places.rotate_left((beginning % count as u64) as usize);
            places.sort_by(|&a, &b| {
                effective_load(&targets[a]).total_cmp(&effective_load(&targets[b]))
            });
        }
        Strategy::Weighted => {
            if let Some(chosen) = draw_by_weight(targets, chance) {
                places.retain(|&place| place != chosen);
                places.insert(0, chosen);
            }
        }
    }
    places
}

fn effective_load(target: &TargetFacts) -> f64 {
    target.load + if target.failed_recently { FAILED_LOAD } else { 0.0 }
}

fn draw_by_weight(targets: &[TargetFacts], chance: f64) -> Option<usize> {
    let total: f64 = targets.iter().map(|target| target.weight.max(0.0)).sum();
    let mut left = chance.clamp(0.0, 1.0) * total;
    targets.iter().position(|target| {
        left -= target.weight.max(0.0);
        left < 0.0
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn facts(is_warm: bool, load: f64, failed_recently: bool, weight: f64) -> TargetFacts {
        TargetFacts { is_warm, load, failed_recently, weight }
    }

    #[test]
    fn each_strategy_has_its_order() {
        let targets = [
            facts(false, 0.0, true, 1.0),
            facts(true, 0.9, false, 0.0),
            facts(true, 0.5, false, 3.0),
        ];
        assert_eq!(order(Strategy::Order, &targets, 7, 0.9), [0, 1, 2]);
        assert_eq!(order(Strategy::Warm, &targets, 7, 0.9), [1, 2, 0]);
        assert_eq!(
            order(Strategy::LeastWait, &targets, 7, 0.9),
            [2, 1, 0],
            "a target that fails is not idle"
        );
        assert_eq!(order(Strategy::Weighted, &targets, 7, 0.2), [0, 1, 2]);
        assert_eq!(order(Strategy::Weighted, &targets, 7, 0.3), [2, 0, 1]);
        assert_eq!(
            order(Strategy::Weighted, &targets, 7, 1.0),
            [0, 1, 2],
            "a rounding error chooses no target"
        );
    }

    #[test]
    fn a_conversation_stays_where_its_beginning_is_known() {
        let idle = [facts(true, 0.0, false, 1.0); 3];
        assert_eq!(
            order(Strategy::LeastWait, &idle, 4, 0.0),
            order(Strategy::LeastWait, &idle, 4, 0.9)
        );
        assert_eq!(order(Strategy::LeastWait, &idle, 4, 0.0)[0], 1);
    }

    #[test]
    fn targets_are_drawn_as_often_as_their_weights_say() {
        let targets = [facts(true, 0.0, false, 1.0), facts(true, 0.0, false, 3.0)];
        let first = |chance| order(Strategy::Weighted, &targets, 0, chance)[0];
        let ones = (0..1000).filter(|draw| first(f64::from(*draw) / 1000.0) == 1).count();
        assert_eq!(ones, 750);
    }

    #[test]
    fn names_are_read_back() {
        for strategy in Strategy::ALL {
            assert_eq!(strategy.to_string().parse(), Ok(strategy));
        }
        assert!("fastest".parse::<Strategy>().is_err());
    }
}
