//! Solves a grid by propagation and backtracking, and counts up to two solutions.
//! The domain of a value is the set of houses that it can still have, as bits.

use super::clue::{Clue, Placement, Relation, Value};

/// The largest number of houses and of attributes.
pub(super) const SIDE_MAX: usize = 6;

/// Branches of one search. The hardest of 600 generated puzzles up to 6x6 took 583.
const STEPS_MAX: u32 = 20_000;

type Domains = [[u8; SIDE_MAX]; SIDE_MAX];

#[derive(Clone, Debug, PartialEq)]
pub(super) struct Puzzle {
    pub(super) houses: usize,
    pub(super) attributes: usize,
    pub(super) clues: Vec<Clue>,
}

impl Puzzle {
    /// None, one or two solutions. Two mean two or more. `None`: the search reached its limit.
    pub(super) fn solutions(&self) -> Option<Vec<Placement>> {
        let mut search = Search { puzzle: self, found: Vec::new(), steps_left: STEPS_MAX };
        search.branch([[self.all(); SIDE_MAX]; SIDE_MAX])?;
        Some(search.found)
    }

    fn all(&self) -> u8 {
        (1 << self.houses) - 1
    }

    /// Cuts the domains until nothing changes. False: a value has no house left.
    fn propagate(&self, domains: &mut Domains) -> bool {
        loop {
            let before = *domains;
            self.clues.iter().for_each(|clue| self.cut_by_clue(*clue, domains));
            domains
                .iter_mut()
                .take(self.attributes)
                .for_each(|domains| self.cut_by_others(domains));
            let mut used = domains.iter().take(self.attributes);
            if used.any(|values| values.iter().take(self.houses).any(|domain| *domain == 0)) {
                return false;
            }
            if *domains == before {
                return true;
            }
        }
    }

    fn cut_by_clue(&self, clue: Clue, domains: &mut Domains) {
        match clue {
            Clue::At(value, house) => domains[value.attribute][value.value] &= 1 << house,
            Clue::NotAt(value, house) => domains[value.attribute][value.value] &= !(1 << house),
            Clue::Pair(first, relation, second) => {
                self.cut_by_pair((first, relation, second), domains);
            }
        }
    }

    fn cut_by_pair(&self, (first, relation, second): (Value, Relation, Value), all: &mut Domains) {
        let domain = all[first.attribute][first.value];
        let partner = all[second.attribute][second.value];
        let (mut kept, mut reached) = (0, 0);
        for house in (0..self.houses).filter(|house| domain >> house & 1 == 1) {
            let partners = relation.partners(house, self.houses) & partner;
            if partners != 0 {
                kept |= 1 << house;
                reached |= partners;
            }
        }
        all[first.attribute][first.value] &= kept;
        all[second.attribute][second.value] &= reached;
    }

    /// A house that one value has, no other value has. A house that only one value can have, it has.
    fn cut_by_others(&self, domains: &mut [u8; SIDE_MAX]) {
        for at in 0..self.houses {
            let others = (0..self.houses).filter(|other| *other != at);
            let possible = others.clone().fold(0, |union, other| union | domains[other]);
            let alone = domains[at] & !possible;
            if alone != 0 {
                domains[at] = alone;
            }
            if domains[at].is_power_of_two() {
                others.for_each(|other| domains[other] &= !domains[at]);
            }
        }
    }
}

struct Search<'a> {
    puzzle: &'a Puzzle,
    found: Vec<Placement>,
    steps_left: u32,
}

impl Search<'_> {
    fn branch(&mut self, mut domains: Domains) -> Option<()> {
        self.steps_left = self.steps_left.checked_sub(1)?;
        if !self.puzzle.propagate(&mut domains) {
            return Some(());
        }
        let Some((attribute, value)) = self.narrowest(&domains) else {
            self.found.push(self.placement(&domains));
            return Some(());
        };
        for house in 0..self.puzzle.houses {
            if domains[attribute][value] >> house & 1 == 1 && self.found.len() < 2 {
                let mut guess = domains;
                guess[attribute][value] = 1 << house;
                self.branch(guess)?;
            }
        }
        Some(())
    }

    /// The value with the fewest houses, if any has more than one.
    fn narrowest(&self, domains: &Domains) -> Option<(usize, usize)> {
        let all = (0..self.puzzle.attributes)
            .flat_map(|attribute| (0..self.puzzle.houses).map(move |value| (attribute, value)));
        let open = all.filter(|(attribute, value)| domains[*attribute][*value].count_ones() > 1);
        open.min_by_key(|(attribute, value)| domains[*attribute][*value].count_ones())
    }

    fn placement(&self, domains: &Domains) -> Placement {
        let house = |domain: &u8| domain.trailing_zeros() as usize;
        let values = |values: &[u8; SIDE_MAX]| {
            values.iter().take(self.puzzle.houses).map(house).collect::<Vec<usize>>()
        };
        domains.iter().take(self.puzzle.attributes).map(values).collect()
    }
}
