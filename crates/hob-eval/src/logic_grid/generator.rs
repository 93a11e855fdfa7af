//! Makes a puzzle with exactly one solution and no clue that could be dropped.
//! Each new clue rules out a wrong solution that the solver has just found.

use hob_core::statistics::SeededRandom;

use super::clue::{Clue, Placement, Relation, Value};
use super::solver::Puzzle;

/// Fresh starts, each with another solution. A start is given up when a search reaches its limit.
const ATTEMPTS_MAX: usize = 20;
/// Draws until a clue rules out the wrong solution. Then the clue is simply the house of a value.
const DRAWS_MAX: usize = 200;

/// Draws by weight: a kind that stands here twice comes twice as often.
const KINDS: [Kind; 20] = [
    Kind::At,
    Kind::NotAt,
    Kind::Pair(Relation::Same),
    Kind::Pair(Relation::Same),
    Kind::Pair(Relation::Same),
    Kind::Pair(Relation::Same),
    Kind::Pair(Relation::Same),
    Kind::Pair(Relation::Different),
    Kind::Pair(Relation::Different),
    Kind::Pair(Relation::DirectlyLeft),
    Kind::Pair(Relation::DirectlyLeft),
    Kind::Pair(Relation::DirectlyRight),
    Kind::Pair(Relation::DirectlyRight),
    Kind::Pair(Relation::Left),
    Kind::Pair(Relation::Right),
    Kind::Pair(Relation::Next),
    Kind::Pair(Relation::Next),
    Kind::Pair(Relation::Next),
    Kind::Pair(Relation::Apart(2)),
    Kind::Pair(Relation::Apart(3)),
];

#[derive(Clone, Copy)]
enum Kind {
    At,
    NotAt,
    Pair(Relation),
}

/// A puzzle and its only solution.
pub(super) fn generate(
    random: &mut SeededRandom,
    houses: usize,
    attributes: usize,
) -> Option<(Puzzle, Placement)> {
    (0..ATTEMPTS_MAX).find_map(|_| {
        let truth: Placement = (0..attributes).map(|_| shuffled(random, houses)).collect();
        let mut puzzle = Puzzle { houses, attributes, clues: Vec::new() };
        while let Some(wrong) = puzzle.solutions()?.into_iter().find(|found| *found != truth) {
            let clue = telling(random, houses, &truth, &wrong);
            puzzle.clues.push(clue);
        }
        minimise(random, &mut puzzle)?;
        Some((puzzle, truth))
    })
}

/// The numbers below `count` in random order.
pub(super) fn shuffled(random: &mut SeededRandom, count: usize) -> Vec<usize> {
    let mut order: Vec<usize> = (0..count).collect();
    for at in (1..count).rev() {
        order.swap(at, random.below(at + 1));
    }
    order
}

/// A clue that holds in the truth and not in the wrong solution.
fn telling(random: &mut SeededRandom, houses: usize, truth: &Placement, wrong: &Placement) -> Clue {
    for _ in 0..DRAWS_MAX {
        let clue = draw(random, houses, truth.len());
        if clue.holds(truth, houses) && !clue.holds(wrong, houses) {
            return clue;
        }
    }
    let all = (0..truth.len())
        .flat_map(|attribute| (0..houses).map(move |value| Value { attribute, value }));
    let mut clues = all.map(|value| Clue::At(value, truth[value.attribute][value.value]));
    let differs = clues.find(|clue| !clue.holds(wrong, houses));
    differs.expect("two solutions differ in a value")
}

fn draw(random: &mut SeededRandom, houses: usize, attributes: usize) -> Clue {
    let mut value = || Value { attribute: random.below(attributes), value: random.below(houses) };
    let (first, second) = (value(), value());
    match KINDS[random.below(KINDS.len())] {
        Kind::At => Clue::At(first, random.below(houses)),
        Kind::NotAt => Clue::NotAt(first, random.below(houses)),
        Kind::Pair(relation) => Clue::Pair(first, relation, second),
    }
}

/// Drops clues in random order as long as the solution stays the only one. One pass is enough: a clue that was needed
/// among more clues is needed among fewer.
fn minimise(random: &mut SeededRandom, puzzle: &mut Puzzle) -> Option<()> {
    let order = shuffled(random, puzzle.clues.len());
    let mut clues: Vec<Option<Clue>> = puzzle.clues.iter().copied().map(Some).collect();
    for at in order {
        let clue = clues[at].take();
        puzzle.clues = clues.iter().flatten().copied().collect();
        if puzzle.solutions()?.len() > 1 {
            clues[at] = clue;
        }
    }
    let order = shuffled(random, clues.len());
    puzzle.clues = order.into_iter().filter_map(|at| clues[at]).collect();
    Some(())
}
