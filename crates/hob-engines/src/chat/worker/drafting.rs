//! Guesses tokens of one answer before the model chooses them. The model checks several in one pass, which takes little
//! longer than a pass for one. The answer stays the same, because only tokens that the model chooses itself are used.

mod chances;
mod lookup;

use std::collections::VecDeque;

use crate::chat::scheduler::DraftOffer;

use chances::{Chances, DraftKind};
use lookup::{Lookup, continued};

#[derive(Debug, Default)]
pub(super) struct Drafting {
    lookup: Lookup,
    chances: Chances,
    /// The tokens that are expected next.
    expected: VecDeque<u32>,
    kind: DraftKind,
    /// Guessed tokens that the model checked, and those of them that it chose.
    pub(super) checked: u32,
    pub(super) right: u32,
}

impl Drafting {
    /// Guesses at most `room` tokens that follow `tokens`. `allowed` says how many of a draft may come at all.
    pub(super) fn guess(
        &mut self,
        tokens: &[u32],
        room: usize,
        allowed: impl FnOnce(&[u32]) -> usize,
    ) -> DraftOffer {
        self.expected.clear();
        if let Some(found) = self.lookup.find(tokens) {
            let mut draft = continued(tokens, found.next, room);
            draft.truncate(allowed(&draft));
            self.kind = DraftKind::of_match(found.equal);
            self.expected = draft.into();
        }
        DraftOffer { tokens: self.expected.len(), chance: self.chances.of(self.kind) }
    }

    /// The first tokens of the last guess.
    pub(super) fn first(&self, count: usize) -> Vec<u32> {
        self.expected.iter().take(count).copied().collect()
    }

    /// Learns from a token that the model chose.
    pub(super) fn hear(&mut self, token: u32) {
        let Some(expected) = self.expected.pop_front() else { return };
        self.chances.learn(self.kind, expected == token);
        if expected != token {
            self.expected.clear();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn all(draft: &[u32]) -> usize {
        draft.len()
    }

    #[test]
    fn a_copy_is_guessed_with_growing_confidence() {
        let mut drafting = Drafting::default();
        let text: Vec<u32> = (0..60).collect();
        let mut tokens = [&text[..], &text[..3]].concat();
        let first = drafting.guess(&tokens, 16, all);
        assert_eq!(drafting.first(2), [3, 4]);
        assert_eq!(first.tokens, 16);
        for &token in &text[3..40] {
            drafting.hear(token);
            tokens.push(token);
            drafting.guess(&tokens, 16, all);
        }
        let last = drafting.guess(&tokens, 16, all);
        assert!(last.chance > 0.9 && first.chance < 0.5, "{first:?} {last:?}");
    }

    #[test]
    fn wrong_guesses_lower_the_chance_and_end_the_guess() {
        let mut drafting = Drafting::default();
        let tokens = [1, 2, 3, 4, 5, 1, 2, 3];
        let before = drafting.guess(&tokens, 4, all).chance;
        drafting.hear(9);
        assert!(drafting.first(4).is_empty());
        let after = drafting.guess(&tokens, 4, all).chance;
        assert!(after < before, "{after} {before}");
    }

    #[test]
    fn only_what_may_come_is_guessed() {
        let mut drafting = Drafting::default();
        let offer = drafting.guess(&[1, 2, 3, 4, 5, 1, 2, 3], 9, |draft| draft.len().min(2));
        assert_eq!((offer.tokens, drafting.first(9)), (2, vec![4, 5]));
        assert_eq!(Drafting::default().guess(&[1, 2, 3], 9, all).tokens, 0);
    }
}
