//! Detects that an answer repeats one passage without an end, as small models do.
//! Used only for answers whose request has no token limit.

use std::collections::VecDeque;

/// Maximum tokens of a repeated passage.
const PASSAGE_TOKENS_MAX: usize = 64;
/// Repeated tokens, and repetitions of a passage, before hob ends the answer.
const REPEATED_TOKENS_MIN: u32 = 512;
const TIMES_MIN: u32 = 16;

#[derive(Clone, Debug, Default)]
pub(super) struct Repetition {
    /// Recent tokens, the latest first.
    recent: VecDeque<u32>,
    /// For each passage length, the number of consecutive tokens that equal the token that long ago.
    equal: Vec<u32>,
}

impl Repetition {
    /// Whether the answer, with this token, repeats itself without an end.
    pub(super) fn push(&mut self, token: u32) -> bool {
        self.equal.resize(PASSAGE_TOKENS_MAX, 0);
        let mut is_endless = false;
        for ((equal, before), length) in self.equal.iter_mut().zip(&self.recent).zip(1u32..) {
            *equal = if *before == token { *equal + 1 } else { 0 };
            is_endless |= *equal >= REPEATED_TOKENS_MIN.max(TIMES_MIN * length);
        }
        self.recent.push_front(token);
        self.recent.truncate(PASSAGE_TOKENS_MAX);
        is_endless
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// After how many tokens the answer is ended.
    fn ended(tokens: impl IntoIterator<Item = u32>) -> Option<usize> {
        let mut repetition = Repetition::default();
        tokens.into_iter().position(|token| repetition.push(token)).map(|at| at + 1)
    }

    #[test]
    fn a_passage_that_goes_on_for_ever_is_ended() {
        assert_eq!(ended(vec![7; 2000]), Some(513));
        assert_eq!(ended((0..20_000).map(|at| at % 10)), Some(522));
        assert_eq!(ended((0..20_000).map(|at| at % 64)), Some(64 * 17));
    }

    #[test]
    fn lists_tables_and_long_passages_are_not() {
        assert_eq!(ended(vec![7; 512]), None);
        // A passage that is longer than those that are looked for.
        assert_eq!(ended((0..20_000).map(|at| at % 65)), None);
        // Rows that are alike but for a number.
        assert_eq!(ended((0..20_000).map(|at| if at % 10 == 0 { at } else { at % 10 })), None);
    }
}
