//! Guessed tokens: the text of an earlier pass over the beginning of the same sound.
//! The decoder computes several of them in one step, and each counts only if the search chooses it.

use std::collections::VecDeque;

/// Guesses of one step. The logits after each of them take 0.2 MB.
const GUESSES_MAX: usize = 32;

/// The guesses of one pass.
#[derive(Debug)]
pub(super) struct Draft<'a> {
    /// The whole text that is guessed.
    tokens: &'a [u32],
    /// The logits after guesses that the last step has computed, the next ones first.
    ahead: VecDeque<Vec<f32>>,
    is_used: bool,
}

impl<'a> Draft<'a> {
    /// Guesses that the text begins with these tokens, and no more of them than the text has room for.
    pub(super) fn new(tokens: &'a [u32], room: usize) -> Draft<'a> {
        let tokens = &tokens[..tokens.len().min(room)];
        Draft { tokens, ahead: VecDeque::new(), is_used: false }
    }

    /// The logits after this text, if they were computed with an earlier one.
    pub(super) fn take(&mut self, said: &[u32]) -> Option<Vec<f32>> {
        if !self.tokens.starts_with(said) {
            self.ahead.clear();
        }
        self.ahead.pop_front()
    }

    /// What probably follows this text, as far as one step computes it.
    pub(super) fn after(&self, said: &[u32]) -> &'a [u32] {
        let rest = self.tokens.strip_prefix(said).unwrap_or_default();
        &rest[..rest.len().min(GUESSES_MAX)]
    }

    /// Takes the logits of one step: first those after `tokens` tokens that are certain, which it returns, then those after
    /// guesses. `vocab` logits are after each.
    pub(super) fn keep(&mut self, mut logits: Vec<f32>, tokens: usize, vocab: usize) -> Vec<f32> {
        let guessed = logits.split_off(tokens * vocab);
        self.is_used |= !guessed.is_empty();
        self.ahead = guessed.chunks(vocab).map(<[f32]>::to_vec).collect();
        logits
    }

    /// Whether a step has computed guesses.
    pub(super) fn is_used(&self) -> bool {
        self.is_used
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The logits after a text that ends with this token, in a vocabulary of two.
    fn row(token: u32) -> Vec<f32> {
        vec![token as f32; 2]
    }

    /// One step after `said`, as the decoder computes it.
    fn step(draft: &mut Draft<'_>, said: &[u32]) -> Vec<f32> {
        let guesses = draft.after(said);
        let tokens = said.last().into_iter().chain(guesses);
        let logits: Vec<f32> = tokens.flat_map(|token| row(*token)).collect();
        draft.keep(logits, 1, 2)
    }

    #[test]
    fn guesses_that_are_right_need_no_step() {
        let mut draft = Draft::new(&[5, 6, 7], 9);
        assert_eq!(draft.take(&[5]), None);
        assert!(!draft.is_used());
        assert_eq!(step(&mut draft, &[5]), row(5));
        assert!(draft.is_used());
        assert_eq!(draft.take(&[5, 6]), Some(row(6)));
        assert_eq!(draft.take(&[5, 6, 7]), Some(row(7)));
        // The text goes on after the draft.
        assert_eq!(draft.take(&[5, 6, 7, 8]), None);
        assert!(draft.after(&[5, 6, 7, 8]).is_empty());
        assert_eq!(step(&mut draft, &[5, 6, 7, 8]), row(8));
    }

    #[test]
    fn the_step_of_the_prompt_computes_guesses_too() {
        let mut draft = Draft::new(&[5, 6], 9);
        // The prompt ends with the token 4.
        let tokens = [&[4][..], draft.after(&[])].concat();
        let logits = tokens.into_iter().flat_map(row).collect();
        assert_eq!(draft.keep(logits, 1, 2), row(4));
        assert!(draft.is_used());
        assert_eq!(draft.take(&[5]), Some(row(5)));
        assert_eq!(draft.take(&[5, 6]), Some(row(6)));
        assert_eq!(draft.take(&[5, 6, 8]), None);
    }

    #[test]
    fn a_guess_that_is_wrong_ends_the_draft() {
        for said in [&[5, 9][..], &[9, 6]] {
            let mut draft = Draft::new(&[5, 6, 7], 9);
            step(&mut draft, &said[..1]);
            assert_eq!(draft.take(said), None);
            assert!(draft.after(said).is_empty());
            let later = [said, &[7]].concat();
            step(&mut draft, said);
            assert_eq!(draft.take(&later), None);
        }
    }

    #[test]
    fn a_step_computes_no_more_guesses_than_its_maximum_and_the_room() {
        let tokens: Vec<u32> = (0..100).collect();
        for (room, counts) in [(0, [0, 0]), (1, [0, 0]), (20, [19, 0]), (80, [32, 32])] {
            let draft = Draft::new(&tokens, room);
            assert_eq!([1, 33].map(|said| draft.after(&tokens[..said]).len()), counts, "{room}");
        }
    }

    #[test]
    fn a_long_draft_is_computed_in_several_steps() {
        let tokens: Vec<u32> = (0..80).collect();
        let mut draft = Draft::new(&tokens, 100);
        let mut steps = 0;
        for said in 1..=tokens.len() {
            let said = &tokens[..said];
            let logits = draft.take(said).unwrap_or_else(|| {
                steps += 1;
                step(&mut draft, said)
            });
            assert_eq!(logits, row(said[said.len() - 1]));
        }
        assert_eq!(steps, 3);
    }
}
