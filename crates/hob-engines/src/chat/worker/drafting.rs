//! Guesses tokens of one answer before the model chooses them. The model checks several in one pass, which reads the
//! weights only once. The answer stays the same, because only tokens that the model chooses itself are used.

mod chances;
mod lookup;

use std::collections::VecDeque;

use chances::{Chances, DraftKind};
use lookup::{Lookup, continued};

/// With so many equal tokens before it, a guess from the text is better than one from the grammar.
const SURE_TOKENS: usize = 5;

/// What an answer says about the tokens that may follow.
pub(super) trait DraftRules {
    /// At most `room` tokens that follow because hardly anything else may.
    fn forced(&mut self, room: usize) -> Vec<u32>;

    /// How many of these tokens may follow, one after another.
    fn allowed(&mut self, tokens: &[u32]) -> usize;
}

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
    /// Guesses at most `room` tokens that follow `tokens`. The answer may refuse some.
    pub(super) fn guess(&mut self, tokens: &[u32], room: usize, rules: &mut impl DraftRules) {
        self.expected.clear();
        if room == 0 {
            return;
        }
        let form = rules.forced(room);
        let found = self.lookup.find(tokens);
        // The form of an answer is surer than a few equal tokens. After more of them, the values are known too.
        if let Some(found) = found.filter(|found| form.is_empty() || found.equal >= SURE_TOKENS) {
            let mut draft = continued(tokens, found.next, room);
            draft.truncate(rules.allowed(&draft));
            if draft.len() >= form.len() {
                self.kind = DraftKind::of_match(found.equal);
                self.expected = draft.into();
                return;
            }
        }
        self.kind = DraftKind::Form;
        self.expected = form.into();
    }

    /// Expects what a small model guessed.
    pub(super) fn expect(&mut self, mut draft: Vec<u32>, rules: &mut impl DraftRules) {
        draft.truncate(rules.allowed(&draft));
        self.kind = DraftKind::Model;
        self.expected = draft.into();
    }

    /// The estimated probability of each token that a small model would guess.
    pub(super) fn chance_of_model(&mut self) -> f64 {
        self.chances.recover_model();
        self.chances.of(DraftKind::Model)
    }

    /// How many tokens the last guess has, and the estimated probability of each.
    pub(super) fn offer(&self) -> (usize, f64) {
        (self.expected.len(), self.chances.of(self.kind))
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

    /// Allows so many tokens, and forces these.
    struct Rules(usize, Vec<u32>);

    impl DraftRules for Rules {
        fn forced(&mut self, room: usize) -> Vec<u32> {
            self.1.iter().take(room).copied().collect()
        }

        fn allowed(&mut self, tokens: &[u32]) -> usize {
            tokens.len().min(self.0)
        }
    }

    fn free() -> Rules {
        Rules(usize::MAX, Vec::new())
    }

    #[test]
    fn a_copy_is_guessed_with_growing_confidence() {
        let mut drafting = Drafting::default();
        let text: Vec<u32> = (0..60).collect();
        let mut tokens = [&text[..], &text[..3]].concat();
        drafting.guess(&tokens, 16, &mut free());
        assert_eq!(drafting.first(2), [3, 4]);
        let (count, first) = drafting.offer();
        assert_eq!(count, 16);
        for &token in &text[3..40] {
            drafting.hear(token);
            tokens.push(token);
            drafting.guess(&tokens, 16, &mut free());
        }
        let (_, last) = drafting.offer();
        assert!(last > 0.9 && first < 0.5, "{first} {last}");
    }

    #[test]
    fn wrong_guesses_lower_the_chance_and_end_the_guess() {
        let mut drafting = Drafting::default();
        let tokens = [1, 2, 3, 4, 5, 1, 2, 3];
        drafting.guess(&tokens, 4, &mut free());
        let (_, before) = drafting.offer();
        drafting.hear(9);
        assert!(drafting.first(4).is_empty());
        drafting.guess(&tokens, 4, &mut free());
        let (_, after) = drafting.offer();
        assert!(after < before, "{after} {before}");
    }

    #[test]
    fn only_what_may_come_is_guessed() {
        let tokens = [1, 2, 3, 4, 5, 1, 2, 3];
        let guessed = |tokens: &[u32], room, mut rules: Rules| {
            let mut drafting = Drafting::default();
            drafting.guess(tokens, room, &mut rules);
            drafting.first(9)
        };
        assert_eq!(guessed(&tokens, 9, Rules(2, Vec::new())), [4, 5]);
        assert_eq!(guessed(&tokens, 1, free()), [4]);
        assert!(guessed(&tokens, 0, free()).is_empty());
        assert!(guessed(&tokens[..3], 9, free()).is_empty(), "nothing came twice");
    }

    #[test]
    fn what_a_grammar_forces_is_guessed_unless_much_of_the_text_came_before() {
        let short = [1, 2, 3, 4, 5, 1, 2, 3];
        let long = [1, 2, 3, 4, 5, 6, 7, 1, 2, 3, 4, 5];
        let mut drafting = Drafting::default();
        drafting.guess(&short, 9, &mut Rules(9, vec![8, 8]));
        assert_eq!(drafting.first(9), [8, 8]);
        let mut drafting = Drafting::default();
        drafting.guess(&long, 2, &mut Rules(9, vec![8, 8]));
        assert_eq!(drafting.first(9), [6, 7]);
        drafting.guess(&long, 2, &mut Rules(1, vec![8, 8]));
        assert_eq!(drafting.first(9), [8, 8], "the grammar forbids the text's");
    }
}
