//! The order in which an alias' targets are asked.
//! The order of the file is every other order's tie-breaker, so that a reader can foretell it.

use std::fmt;
use std::str::FromStr;

/// How an alias chooses among its targets.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Pick {
    /// As they are written.
    #[default]
    Order,
    /// Those in memory first.
    Warm,
    /// The least busy first; of equals, the one that saw the conversation's beginning before.
    LeastWait,
    /// By chance, according to their weights; then as they are written.
    Weighted,
}

/// What is known of a target when a request comes.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Standing {
    pub is_warm: bool,
    /// Requests that it works on, for each of its slots.
    pub load: f64,
    /// It failed a moment ago: whoever fails at once looks idle, and is not.
    pub failed_recently: bool,
    pub weight: f64,
}

/// A target that failed lately counts as this busy.
const FAILED_LOAD: f64 = 1000.0;

/// The places of `targets` in the order in which to ask them. `beginning` is a hash of the
/// conversation's beginning, and `chance` a number from 0 to 1.
pub fn order(pick: Pick, targets: &[Standing], beginning: u64, chance: f64) -> Vec<usize> {
    let mut places: Vec<usize> = (0..targets.len()).collect();
    match pick {
        Pick::Order => {}
        Pick::Warm => places.sort_by_key(|&place| !targets[place].is_warm),
        Pick::LeastWait => {
            let count = places.len().max(1);
            places.rotate_left((beginning % count as u64) as usize);
            places.sort_by(|&a, &b| busy(&targets[a]).total_cmp(&busy(&targets[b])));
        }
        Pick::Weighted => {
            if let Some(chosen) = drawn(targets, chance) {
                places.retain(|&place| place != chosen);
                places.insert(0, chosen);
            }
        }
    }
    places
}

fn busy(target: &Standing) -> f64 {
    target.load + if target.failed_recently { FAILED_LOAD } else { 0.0 }
}

fn drawn(targets: &[Standing], chance: f64) -> Option<usize> {
    let total: f64 = targets.iter().map(|target| target.weight.max(0.0)).sum();
    let mut left = chance.clamp(0.0, 1.0) * total;
    targets.iter().position(|target| {
        left -= target.weight.max(0.0);
        left < 0.0
    })
}

impl Pick {
    pub const ALL: [Pick; 4] = [Pick::Order, Pick::Warm, Pick::LeastWait, Pick::Weighted];

    pub fn name(self) -> &'static str {
        match self {
            Pick::Order => "order",
            Pick::Warm => "warm",
            Pick::LeastWait => "least-wait",
            Pick::Weighted => "weighted",
        }
    }
}

impl fmt::Display for Pick {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("'{0}' is no way to pick a target; known are order, warm, least-wait and weighted")]
pub struct UnknownPick(String);

impl FromStr for Pick {
    type Err = UnknownPick;

    fn from_str(name: &str) -> Result<Pick, UnknownPick> {
        let known = Pick::ALL.into_iter().find(|pick| pick.name() == name);
        known.ok_or_else(|| UnknownPick(name.to_owned()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn standing(is_warm: bool, load: f64, failed_recently: bool, weight: f64) -> Standing {
        Standing { is_warm, load, failed_recently, weight }
    }

    #[test]
    fn each_way_has_its_order() {
        let targets = [
            standing(false, 0.0, true, 1.0),
            standing(true, 0.9, false, 0.0),
            standing(true, 0.5, false, 3.0),
        ];
        assert_eq!(order(Pick::Order, &targets, 7, 0.9), [0, 1, 2]);
        assert_eq!(order(Pick::Warm, &targets, 7, 0.9), [1, 2, 0]);
        assert_eq!(order(Pick::LeastWait, &targets, 7, 0.9), [2, 1, 0], "who fails is not idle");
        assert_eq!(order(Pick::Weighted, &targets, 7, 0.2), [0, 1, 2]);
        assert_eq!(order(Pick::Weighted, &targets, 7, 0.3), [2, 0, 1]);
        assert_eq!(order(Pick::Weighted, &targets, 7, 1.0), [0, 1, 2], "never by a rounding error");
    }

    #[test]
    fn a_conversation_stays_where_its_beginning_is_known() {
        let idle = [standing(true, 0.0, false, 1.0); 3];
        assert_eq!(order(Pick::LeastWait, &idle, 4, 0.0), order(Pick::LeastWait, &idle, 4, 0.9));
        assert_eq!(order(Pick::LeastWait, &idle, 4, 0.0)[0], 1);
    }

    #[test]
    fn draws_are_as_the_weights_say() {
        let targets = [standing(true, 0.0, false, 1.0), standing(true, 0.0, false, 3.0)];
        let first = |chance| order(Pick::Weighted, &targets, 0, chance)[0];
        let ones = (0..1000).filter(|draw| first(f64::from(*draw) / 1000.0) == 1).count();
        assert_eq!(ones, 750);
    }

    #[test]
    fn names_are_read_back() {
        for pick in Pick::ALL {
            assert_eq!(pick.to_string().parse(), Ok(pick));
        }
        assert!("fastest".parse::<Pick>().is_err());
    }
}
