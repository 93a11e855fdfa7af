//! Puzzles against a solver that enumerates, and answers in the words of each.

use super::clue::{Clue, Placement, Relation, Value};
use super::solver::Puzzle;
use super::*;
use crate::{Answer, Verdict};

/// All orders of the numbers below `count`.
fn orders(count: usize) -> Vec<Vec<usize>> {
    if count == 0 {
        return vec![Vec::new()];
    }
    let mut all = Vec::new();
    for shorter in orders(count - 1) {
        for at in 0..count {
            let mut order = shorter.clone();
            order.insert(at, count - 1);
            all.push(order);
        }
    }
    all
}

/// Attribute after attribute, and only orders that no clue refutes so far.
fn enumerate(
    puzzle: &Puzzle,
    orders: &[Vec<usize>],
    placed: &mut Placement,
    found: &mut Vec<Placement>,
) {
    if placed.len() == puzzle.attributes {
        found.push(placed.clone());
        return;
    }
    for order in orders {
        placed.push(order.clone());
        let is_placed = |value: Value| value.attribute < placed.len();
        let is_refuted = puzzle.clues.iter().any(|clue| {
            let is_known = match clue {
                Clue::At(value, _) | Clue::NotAt(value, _) => is_placed(*value),
                Clue::Pair(one, _, other) => is_placed(*one) && is_placed(*other),
            };
            is_known && !holds(*clue, placed)
        });
        if !is_refuted && found.len() < 2 {
            enumerate(puzzle, orders, placed, found);
        }
        placed.pop();
    }
}

/// What a clue says, in arithmetic and not in sets.
fn holds(clue: Clue, placed: &Placement) -> bool {
    let house = |value: Value| placed[value.attribute][value.value] as i64;
    match clue {
        Clue::At(value, place) => house(value) == place as i64,
        Clue::NotAt(value, place) => house(value) != place as i64,
        Clue::Pair(one, relation, other) => {
            let distance = house(one) - house(other);
            match relation {
                Relation::Same => distance == 0,
                Relation::Different => distance != 0,
                Relation::DirectlyLeft => distance == -1,
                Relation::DirectlyRight => distance == 1,
                Relation::Left => distance < 0,
                Relation::Right => distance > 0,
                Relation::Next => distance.abs() == 1,
                Relation::Apart(houses) => distance.abs() == houses as i64,
            }
        }
    }
}

#[test]
fn ten_thousand_puzzles_have_one_solution_and_no_clue_too_many() {
    let all: Vec<Vec<Vec<usize>>> = (0..=4).map(orders).collect();
    let mut random = SeededRandom::new(3);
    for number in 0..10_000 {
        let (houses, attributes) = (2 + random.below(3), 2 + random.below(3));
        let (puzzle, truth) =
            generator::generate(&mut random, houses, attributes).expect("a puzzle");
        let (mut placed, mut found) = (Vec::new(), Vec::new());
        enumerate(&puzzle, &all[houses], &mut placed, &mut found);
        assert_eq!(found, std::slice::from_ref(&truth), "{number}: {puzzle:?}");
        assert_eq!(puzzle.solutions(), Some(vec![truth]), "{number}: {puzzle:?}");
        if number % 10 == 0 {
            for left_out in 0..puzzle.clues.len() {
                let mut fewer = puzzle.clone();
                fewer.clues.remove(left_out);
                assert_eq!(fewer.solutions().map(|found| found.len()), Some(2), "{number}");
            }
        }
    }
}

/// The solver alone, on puzzles that may have no solution or many.
#[test]
fn the_solver_counts_as_enumeration_does() {
    let all: Vec<Vec<Vec<usize>>> = (0..=4).map(orders).collect();
    let mut random = SeededRandom::new(5);
    for number in 0..3_000 {
        let (houses, attributes) = (2 + random.below(3), 2 + random.below(2));
        let clues = 2 + random.below(6);
        let mut value =
            || Value { attribute: random.below(attributes), value: random.below(houses) };
        let pairs: Vec<(Value, Value)> = (0..clues).map(|_| (value(), value())).collect();
        let relations = [Relation::Same, Relation::Next, Relation::Left, Relation::Apart(2)];
        let clue = |(one, other)| match random.below(6) {
            4 => Clue::At(one, random.below(houses)),
            5 => Clue::NotAt(one, random.below(houses)),
            at => Clue::Pair(one, relations[at], other),
        };
        let clues = pairs.into_iter().map(clue).collect();
        let puzzle = Puzzle { houses, attributes, clues };
        let (mut placed, mut found) = (Vec::new(), Vec::new());
        enumerate(&puzzle, &all[houses], &mut placed, &mut found);
        let solutions = puzzle.solutions().expect("within the limit");
        assert_eq!(solutions.len(), found.len(), "{number}: {puzzle:?}");
    }
}

#[test]
fn other_sizes_have_no_puzzle() {
    for size in ["", "3", "x", "1x3", "7x3", "3x7", "3x3x3"] {
        assert_eq!(item(1, size, 0), None, "{size}");
    }
}

#[test]
fn the_largest_puzzle_is_made_and_an_index_changes_it() {
    let large = item(1, "6x6", 0).expect("a puzzle");
    assert_eq!(item(1, "6x6", 0), Some(large.clone()));
    assert_ne!(item(1, "6x6", 1).map(|item| item.prompt), Some(large.prompt));
    let invented = item(1, "3x3", 3).expect("a puzzle").prompt;
    assert!(!invented.contains("color") && !invented.contains("Alice"), "{invented}");
}

#[test]
fn the_five_houses_are_graded_by_grid_or_by_word() {
    let item = item(1, "einstein", 0).expect("the puzzle");
    let grade = |text: &str| {
        let answer = Answer { content: text.to_owned(), ..Answer::default() };
        crate::grade(&item, &answer, None).verdict
    };
    assert_eq!(
        grade("The Norwegian is first … so the **German** keeps the fish."),
        Verdict::Correct
    );
    assert_eq!(grade("It is not the German, it is the Dane."), Verdict::Wrong);
    assert_eq!(grade("Nobody."), Verdict::Malformed);
}

/// The numbers and words behind a seed must not change: runs of different versions are compared.
#[test]
fn a_seed_gives_this_puzzle_on_every_machine() {
    let prompt = item(9, "3x4", 0).expect("a puzzle").prompt;
    let clues = "\
1. The house with color yellow is the house with job baker.
2. The house with pet goldfish is not the house with color white.
3. Elena's house is directly next to the house with color white.
4. The house with color red is directly next to the house with pet horse.
5. The house with color red is directly to the right of the house with pet goldfish.
6. Bruno's house is the house with job nurse.
";
    assert!(prompt.contains(clues), "{prompt}");
}

/// With any words, a right answer counts as right in each form, and the prompt alone is not an answer.
#[test]
fn the_solution_of_each_puzzle_is_read_in_its_words() {
    for number in 0..200 {
        let size = SIZES[number as usize % 7];
        let item = item(11, size, number).expect("a puzzle");
        let Checker::Grid(solution) = &item.checker else { panic!("{:?}", item.checker) };
        let numbered = || solution.houses.iter().zip(1..);
        let json: Vec<String> = numbered()
            .map(|(house, number)| {
                let fields = solution.attributes.iter().zip(house);
                let fields: Vec<String> =
                    fields.map(|(name, value)| format!("\"{name}\": \"{value}\"")).collect();
                format!("\"{number}\": {{{}}}", fields.join(", "))
            })
            .collect();
        let json = format!("{{{}}}", json.join(", "));
        let table: String = numbered()
            .map(|(house, number)| format!("| {number} | {} |\n", house.join(" | ")))
            .collect();
        let prose: String = numbered()
            .map(|(house, number)| format!("House {number}: {}.\n", house.join(", ")))
            .collect();
        for text in [json, table, prose] {
            let grade = solution.grade(&format!("{}\n\n{text}", item.prompt));
            assert_eq!(grade.verdict, Verdict::Correct, "{size} {number}: {}\n{text}", grade.why);
        }
        let grade = solution.grade(&item.prompt);
        assert!(grade.verdict != Verdict::Correct, "{}", item.prompt);
    }
}
