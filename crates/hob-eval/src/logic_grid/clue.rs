//! A clue: what it says of the houses, and whether it holds.
//! All clues are statements about houses, so that the solver needs only sets of houses.

/// One value of one attribute: `attribute` and `value` are indexes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Value {
    pub(super) attribute: usize,
    pub(super) value: usize,
}

/// The house of each value: `[attribute][value]`, counted from 0.
pub(super) type Placement = Vec<Vec<usize>>;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Clue {
    At(Value, usize),
    NotAt(Value, usize),
    Pair(Value, Relation, Value),
}

/// Where the first value of a pair lives, seen from the second one.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Relation {
    Same,
    Different,
    DirectlyLeft,
    DirectlyRight,
    Left,
    Right,
    Next,
    /// The houses differ by this number, which is 2 or 3.
    Apart(usize),
}

impl Relation {
    /// The houses that the second value may have when the first one has `house`, as a set of bits.
    pub(super) fn partners(self, house: usize, houses: usize) -> u8 {
        let (here, all) = (1_u8 << house, (1_u8 << houses) - 1);
        let partners = match self {
            Relation::Same => here,
            Relation::Different => !here,
            Relation::DirectlyLeft => here << 1,
            Relation::DirectlyRight => here >> 1,
            Relation::Left => !(here | (here - 1)),
            Relation::Right => here - 1,
            Relation::Next => here << 1 | here >> 1,
            Relation::Apart(distance) => here << distance | here >> distance,
        };
        partners & all
    }
}

impl Clue {
    pub(super) fn holds(self, placement: &Placement, houses: usize) -> bool {
        let house = |value: Value| placement[value.attribute][value.value];
        match self {
            Clue::At(value, place) => house(value) == place,
            Clue::NotAt(value, place) => house(value) != place,
            Clue::Pair(first, relation, second) => {
                relation.partners(house(first), houses) >> house(second) & 1 == 1
            }
        }
    }
}
