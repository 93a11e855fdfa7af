//! Guesses tokens of one answer before the model chooses them. The model checks several in one pass, which reads the
//! weights only once. The answer stays the same, because only tokens that the model chooses itself are used.

mod chances;
mod lookup;
mod trail;

use std::collections::VecDeque;
use std::fmt;

use chances::{Chances, DraftKind};
use lookup::{Found, Lookup, continued};
use trail::Trail;

use crate::chat::scheduler::FormOffer;

/// With so many equal tokens before it, a guess from the text is better than one from the grammar.
const SURE_TOKENS: usize = 5;

/// What an answer says about the tokens that may follow.
pub(super) trait DraftRules {
    /// At most `room` tokens that follow because hardly anything else may.
    fn forced(&mut self, room: usize) -> Vec<u32>;

    /// How many of these tokens may follow, one after another.
    fn allowed(&mut self, tokens: &[u32]) -> usize;

    /// How many bytes a token adds to the answer.
    fn bytes(&self, token: u32) -> usize;
}

#[derive(Debug, Default)]
pub(super) struct Drafting {
    lookup: Lookup,
    /// The text that the answer copies, if it does.
    trail: Option<Trail>,
    /// Tokens of which the trail knows.
    followed: usize,
    chances: Chances,
    /// The tokens that are expected next.
    expected: VecDeque<u32>,
    /// So many of them are in the text that a grammar prescribes. The others are of this kind.
    formed: usize,
    kind: DraftKind,
    /// Guessed tokens that the model checked, and those of them that it chose.
    pub(super) checked: u32,
    pub(super) right: u32,
}

impl Drafting {
    /// Guesses at most `room` tokens that follow `tokens`. The answer may refuse some.
    pub(super) fn guess(&mut self, tokens: &[u32], room: usize, rules: &mut impl DraftRules) {
        self.expected.clear();
        self.formed = 0;
        if room == 0 {
            return;
        }
        let form = rules.forced(room);
        let source = self.source(tokens);
        // The form of an answer is surer than a few equal tokens. After more of them, the values are known too.
        if let Some((found, kind)) =
            source.filter(|(found, _)| form.is_empty() || found.equal >= SURE_TOKENS)
        {
            let mut draft = continued(tokens, found.next, room);
            draft.truncate(rules.allowed(&draft));
            if draft.len() >= form.len() {
                self.kind = kind;
                // The text of the form is as sure as ever. Its tokens are those of the earlier place.
                self.formed = within(&draft, &form, rules);
                self.expected = draft.into();
                return;
            }
        }
        self.kind = DraftKind::Form;
        self.expected = form.into();
    }

    /// Where the text goes on that the answer probably continues.
    fn source(&mut self, tokens: &[u32]) -> Option<(Found, DraftKind)> {
        let found = self.lookup.find(tokens);
        self.follow(tokens);
        let trail = self.trail.filter(|trail| trail.next().is_some_and(|at| at < tokens.len()));
        let copied = trail.and_then(Trail::next).map(|next| Found::at(tokens, next));
        let is_back = trail.is_some_and(Trail::is_in_step);
        // Among places that are equally alike, the one in the text that is being copied.
        let equal = found.map_or(0, |found| found.equal);
        let best = copied.filter(|copied| is_back && copied.equal >= equal).or(found);
        if let Some(best) = best.filter(|best| best.equal >= SURE_TOKENS) {
            self.trail = Some(Trail::at(best.next));
            return Some((best, DraftKind::of_match(best.equal)));
        }
        if let Some(copied) = copied.filter(|_| is_back) {
            return Some((copied, DraftKind::Resumed));
        }
        let short = found.map(|found| (found, DraftKind::of_match(found.equal)));
        let replaced = copied.map(|copied| (copied, DraftKind::Replaced));
        short.filter(|(_, kind)| *kind != DraftKind::Pair).or(replaced).or(short)
    }

    /// Moves the trail by the tokens of the answer since the last guess.
    fn follow(&mut self, tokens: &[u32]) {
        let first = self.followed.min(tokens.len());
        for (at, &token) in tokens.iter().enumerate().skip(first) {
            self.trail = self.trail.and_then(|trail| trail.after(&tokens[..at], token));
        }
        self.followed = tokens.len();
    }

    /// Expects what a small model guessed.
    pub(super) fn expect(&mut self, mut draft: Vec<u32>, rules: &mut impl DraftRules) {
        draft.truncate(rules.allowed(&draft));
        self.formed = 0;
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

    /// Whether nothing is guessed, or only by two equal tokens.
    pub(super) fn is_faint(&self) -> bool {
        self.expected.is_empty() || self.kind == DraftKind::Pair
    }

    /// The tokens of the last guess that a grammar prescribes, if others follow them.
    pub(super) fn form_offer(&self) -> FormOffer {
        FormOffer { tokens: self.formed, chance: self.chances.of(DraftKind::Form) }
    }

    /// How many guesses of each kind were right, whether they were checked or not.
    pub(super) fn guesses(&self) -> impl fmt::Display {
        &self.chances
    }

    /// The first tokens of the last guess.
    pub(super) fn first(&self, count: usize) -> Vec<u32> {
        self.expected.iter().take(count).copied().collect()
    }

    /// Learns from a token that the model chose.
    pub(super) fn hear(&mut self, token: u32) {
        let Some(expected) = self.expected.pop_front() else { return };
        let kind = if self.formed > 0 { DraftKind::Form } else { self.kind };
        self.formed = self.formed.saturating_sub(1);
        self.chances.learn(kind, expected == token);
        if expected != token {
            self.expected.clear();
        }
    }
}

/// How many tokens of a draft are within the text of a form, which both begin with.
fn within(draft: &[u32], form: &[u32], rules: &impl DraftRules) -> usize {
    let mut left: usize = form.iter().map(|&token| rules.bytes(token)).sum();
    let is_within = |token: &&u32| {
        let rest = left.checked_sub(rules.bytes(**token));
        left = rest.unwrap_or(0);
        rest.is_some()
    };
    draft.iter().take_while(is_within).count()
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

        fn bytes(&self, _token: u32) -> usize {
            1
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
        assert!(!drafting.is_faint() && Drafting::default().is_faint());
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
        assert_eq!(guessed(&[1, 2, 3, 9, 1, 2], 1, free()), [3]);
    }

    #[test]
    fn guesses_go_on_after_a_word_that_differs() {
        let mut drafting = Drafting::default();
        let mut tokens: Vec<u32> = (0..40).chain(0..8).collect();
        drafting.guess(&tokens, 4, &mut free());
        assert_eq!(drafting.first(4), [8, 9, 10, 11]);
        for (token, guess) in [(90, [9, 10]), (9, [10, 11]), (12, [13, 14]), (91, [14, 15])] {
            drafting.hear(token);
            tokens.push(token);
            drafting.guess(&tokens, 2, &mut free());
            assert_eq!(drafting.first(2), guess, "after {token}");
        }
    }

    #[test]
    fn among_equal_places_the_text_that_is_copied_goes_on() {
        let copied = [50, 51, 52, 53, 54, 1, 2, 3, 4, 5, 60];
        let later = [70, 1, 2, 3, 4, 5, 80];
        let mut tokens = [&copied[..], &later, &copied[..5]].concat();
        let mut drafting = Drafting::default();
        drafting.guess(&tokens, 1, &mut free());
        for token in [90, 2, 3, 4, 5] {
            tokens.push(token);
            drafting.guess(&tokens, 1, &mut free());
        }
        assert_eq!(drafting.first(1), [60]);
    }

    #[test]
    fn the_form_of_a_longer_guess_keeps_its_own_chance() {
        let tokens = [1, 2, 3, 4, 5, 6, 7, 8, 1, 2, 3, 4, 5];
        let mut drafting = Drafting::default();
        let guess = |drafting: &mut Drafting| {
            drafting.guess(&tokens, 3, &mut Rules(9, vec![6, 7]));
            (drafting.form_offer(), drafting.offer().1)
        };
        let (form, chance) = guess(&mut drafting);
        assert_eq!(form.tokens, 2);
        for token in [6, 7, 99] {
            drafting.hear(token);
        }
        let (form_after, chance_after) = guess(&mut drafting);
        assert!(form_after.chance > form.chance && chance_after < chance);
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
