//! The solution of a grid, and the grade of an answer: the whole grid is right, or a share of its cells.
//! A share counts only as far as it is better than chance.

use serde::{Deserialize, Serialize};

use super::grid_text::{ReadGrid, read_grid};
use crate::Grade;

/// What belongs to each house.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct GridSolution {
    /// Names of the attributes.
    pub attributes: Vec<String>,
    /// By house, from left to right; in each the values in the order of the attributes.
    pub houses: Vec<Vec<String>>,
    /// A question that one word answers, instead of the grid.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub question: Option<GridQuestion>,
}

/// A question about the grid: the answer is one of the candidates.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct GridQuestion {
    pub answer: String,
    pub candidates: Vec<String>,
}

impl GridSolution {
    pub(crate) fn grade(&self, content: &str) -> Grade {
        let read = read_grid(self, content);
        if let (Some(question), None) = (&self.question, &read) {
            return question.grade(content);
        }
        let Some(ReadGrid { cells }) = read else {
            return Grade::malformed("no grid can be read: neither JSON, nor a table, nor a list");
        };
        let (mut right, mut first_wrong) = (0, None);
        for (house, row) in self.houses.iter().enumerate() {
            for (attribute, expected) in row.iter().enumerate() {
                let said = cells[house][attribute].as_deref();
                if said.is_some_and(|said| said == fold(expected)) {
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
        let expected = &self.houses[house][attribute];
        let said = said.map_or("nothing".to_owned(), |said| format!("'{said}'"));
        Grade::partial(
            (share - chance) / (1.0 - chance),
            format!(
                "house {}, {}: '{expected}' was expected, {said} was read; {right} of {all} cells are right",
                house + 1,
                self.attributes[attribute],
            ),
        )
    }
}

impl GridQuestion {
    /// The candidate that is named last is the answer.
    fn grade(&self, content: &str) -> Grade {
        let text = fold(content);
        let last = |candidate: &&String| text.rfind(fold(candidate).as_str());
        let said = self.candidates.iter().filter(|one| last(one).is_some()).max_by_key(last);
        match said {
            None => Grade::malformed("no candidate is named"),
            Some(said) if *said == self.answer => Grade::correct("the right one is named last"),
            Some(said) => {
                Grade::wrong(format!("'{}' was expected, '{said}' is named last", self.answer))
            }
        }
    }
}

/// Lower case without markup, so that `**Red**` is `red`.
pub(super) fn fold(text: &str) -> String {
    let kept = text.chars().filter(|sign| !matches!(sign, '*' | '_' | '`' | '"'));
    kept.flat_map(char::to_lowercase).collect::<String>().trim().to_owned()
}
