//! Logic grids: houses in a row, attributes, and clues with exactly one solution, of which none can be dropped.
//! The size is `HOUSESxATTRIBUTES`, such as `3x3`, from 2x2 to 6x6.

mod clue;
mod einstein;
mod generator;
mod solver;
#[cfg(test)]
mod tests;
mod words;

use std::collections::BTreeMap;

use hob_core::statistics::SeededRandom;

use einstein::einstein_item;

use crate::checkers::GridSolution;
use crate::draw::hash;
use crate::{Checker, Item};
use clue::Placement;
use solver::SIDE_MAX;
use words::Names;

pub const SIZES: &[&str] = &["2x2", "2x3", "3x3", "3x5", "4x4", "5x5", "6x6", EINSTEIN];

const FAMILY: &str = "logic-grid";
/// The size of the classic puzzle. It is the same for each index, so one item is enough.
pub(crate) const EINSTEIN: &str = "einstein";
/// Every fourth puzzle has invented words: familiar puzzles are in training data.
const INVENTED_EVERY: u32 = 4;
/// Tokens of the answer: a few for each cell, and some reasoning in the open.
const TOKENS_MIN: u32 = 256;
const TOKENS_PER_CELL: u32 = 48;

/// `None` where the size is not of this form. The size `einstein` is the puzzle of the five houses, once.
pub fn item(seed: u64, size: &str, index: u32) -> Option<Item> {
    if size == EINSTEIN {
        return Some(einstein_item(index));
    }
    let (houses, attributes) = size.split_once('x')?;
    let side = |text: &str| text.parse().ok().filter(|side| (2..=SIDE_MAX).contains(side));
    let (houses, attributes): (usize, usize) = (side(houses)?, side(attributes)?);
    let mut random = SeededRandom::new(seed ^ hash(&[FAMILY, size]) ^ (u64::from(index) << 32));
    let names = match index % INVENTED_EVERY {
        3 => Names::invented(&mut random, houses, attributes),
        _ => Names::familiar(&mut random, houses, attributes),
    };
    let (puzzle, placement) = generator::generate(&mut random, houses, attributes)?;
    let clues: Vec<String> = puzzle.clues.iter().map(|clue| names.sentence(*clue)).collect();
    let cells = u32::try_from(houses * attributes).unwrap_or(u32::MAX);
    Some(Item {
        schema: Some(names.schema(houses)),
        ..Item::new(
            (FAMILY, size, index),
            prompt(&names, houses, &clues),
            Checker::Grid(solution(&names, &placement)),
            TOKENS_MIN + TOKENS_PER_CELL * cells,
        )
    })
}

/// What belongs to each house.
fn solution(names: &Names, placement: &Placement) -> GridSolution {
    let houses = placement.first().map_or(0, Vec::len);
    let value = |attribute: usize, house: usize| {
        let at = placement[attribute].iter().position(|place| *place == house);
        names.values[attribute][at.unwrap_or_default()].clone()
    };
    let house = |house: usize| {
        (0..names.attributes.len()).map(|attribute| value(attribute, house)).collect()
    };
    GridSolution {
        attributes: names.attributes.clone(),
        houses: (0..houses).map(house).collect(),
        synonyms: BTreeMap::new(),
        question: None,
    }
}

fn prompt(names: &Names, houses: usize, clues: &[String]) -> String {
    let numbered: Vec<String> =
        clues.iter().enumerate().map(|(at, clue)| format!("{}. {clue}", at + 1)).collect();
    format!(
        "There are {houses} houses in a row, numbered 1 to {houses} from left to right, as seen from the street. Each house differs from the others in each of these:\n\n{}\n\nClues:\n{}\n\nWhat belongs to each house? End with one JSON object of this form, with all houses:\n{}",
        names.lists(),
        numbered.join("\n"),
        names.form(houses),
    )
}
