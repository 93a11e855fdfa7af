//! The solution of a grid, and the grade of an answer: the whole grid is right, or a share of its cells.
//! A share counts only as far as it is better than chance.

mod cells;
mod json;
mod prose;
mod question;
mod readings;
mod table;
#[cfg(test)]
mod tests;
mod words;

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use crate::Grade;
use crate::reading::{tail, without_thoughts};
use cells::Cells;
pub use question::GridQuestion;
use words::{Said, Words};

/// Maximum houses, and maximum attributes, of a grid that can be graded.
pub(crate) const SIDE_MAX: usize = 12;
pub(crate) const SYNONYMS_MAX: usize = 400;

/// What belongs to each house.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct GridSolution {
    /// Names of the attributes.
    pub attributes: Vec<String>,
    /// By house, from left to right; in each the values in the order of the attributes.
    pub houses: Vec<Vec<String>>,
    /// Other words for a value. Case, a plural "s" and "colour" for "color" need none.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub synonyms: BTreeMap<String, Vec<String>>,
    /// A question that one word answers, instead of the grid.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub question: Option<GridQuestion>,
}

impl GridSolution {
    pub(crate) fn grade(&self, content: &str) -> Grade {
        if !self.is_gradable() {
            return Grade::malformed(format!(
                "the solution is not a grid: expected up to {SIDE_MAX} houses with a value for each of up to \
                 {SIDE_MAX} attributes"
            ));
        }
        let text = without_thoughts(tail(content));
        let cells = readings::read(&self.words(), &text);
        let by_word = || self.question.as_ref()?.grade(&text, &self.synonyms);
        match (cells.is_complete(), cells.count()) {
            (true, _) => self.grade_cells(&cells),
            (false, 0) => by_word().unwrap_or_else(|| {
                Grade::malformed("no grid can be read: neither JSON, nor a table, nor a list")
            }),
            (false, _) => by_word().unwrap_or_else(|| self.grade_cells(&cells)),
        }
    }

    /// A file of the user's can hold anything.
    pub(crate) fn is_gradable(&self) -> bool {
        let is_side = |length: usize| (1..=SIDE_MAX).contains(&length);
        is_side(self.houses.len())
            && is_side(self.attributes.len())
            && self.houses.iter().all(|house| house.len() == self.attributes.len())
            && self.synonyms.values().map(Vec::len).sum::<usize>() <= SYNONYMS_MAX
    }

    fn words(&self) -> Words {
        let mut words = Words::new(self.houses.len(), &self.attributes);
        for house in 0..self.houses.len() {
            for attribute in 0..self.attributes.len() {
                let value = &self.houses[house][attribute];
                // A value that two houses share stands for the first of them.
                if self.owner(house, attribute) == house {
                    let synonyms = self.synonyms.get(value).into_iter().flatten();
                    let all = synonyms.chain([value]);
                    all.for_each(|word| words.add(word, (attribute, house)));
                }
            }
        }
        words
    }

    /// The first house that has the value of this one.
    fn owner(&self, house: usize, attribute: usize) -> usize {
        let value = &self.houses[house][attribute];
        self.houses.iter().position(|other| other[attribute] == *value).unwrap_or(house)
    }

    fn grade_cells(&self, cells: &Cells) -> Grade {
        let (mut right, mut first_wrong) = (0, None);
        for house in 0..self.houses.len() {
            for attribute in 0..self.attributes.len() {
                let said = cells.get(house, attribute);
                if said == Some(&Said::Value(self.owner(house, attribute))) {
                    right += 1;
                } else {
                    first_wrong = first_wrong.or(Some((house, attribute, said)));
                }
            }
        }
        let Some((house, attribute, said)) = first_wrong else {
            return Grade::correct("every cell is right");
        };
        let all = (self.houses.len() * self.attributes.len()) as f64;
        let chance = 1.0 / self.houses.len().max(2) as f64;
        let share = f64::from(right) / all;
        let said = match said {
            None => "nothing".to_owned(),
            Some(Said::Value(owner)) => format!("'{}'", self.houses[*owner][attribute]),
            Some(Said::Other(text)) => format!("'{text}'"),
        };
        Grade::partial(
            (share - chance) / (1.0 - chance),
            format!(
                "house {}, {}: '{}' was expected, {said} was read; {right} of {all} cells are right",
                house + 1,
                self.attributes[attribute],
                self.houses[house][attribute],
            ),
        )
    }
}
