//! The cells that one reading of an answer found: for each house and attribute what was said, or nothing.
//! Several readings can be laid over each other.

use super::words::{Said, Words};

#[derive(Clone, Debug, PartialEq)]
pub(super) struct Cells {
    /// By house and attribute.
    cells: Vec<Vec<Option<Said>>>,
}

impl Cells {
    pub(super) fn none(words: &Words) -> Cells {
        Cells { cells: vec![vec![None; words.attributes()]; words.houses()] }
    }

    pub(super) fn get(&self, house: usize, attribute: usize) -> Option<&Said> {
        self.cells[house][attribute].as_ref()
    }

    pub(super) fn set(&mut self, house: usize, attribute: usize, said: Said) {
        if let Some(cell) = self.cells.get_mut(house).and_then(|row| row.get_mut(attribute)) {
            *cell = Some(said);
        }
    }

    pub(super) fn count(&self) -> usize {
        self.cells.iter().flatten().flatten().count()
    }

    pub(super) fn is_complete(&self) -> bool {
        self.cells.iter().flatten().all(Option::is_some)
    }

    /// Puts the cells of `upper` over these. A cell that `upper` does not have stays.
    pub(super) fn lay(&mut self, upper: Cells) {
        for (cell, above) in self.cells.iter_mut().flatten().zip(upper.cells.into_iter().flatten())
        {
            if above.is_some() {
                *cell = above;
            }
        }
    }
}
