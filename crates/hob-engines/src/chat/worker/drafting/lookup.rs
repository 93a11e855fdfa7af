//! Guesses the next tokens from the prompt and the answer so far: what followed the last time that the same tokens came.
//! Answers that quote, edit or repeat a text are guessed well.

use std::collections::HashMap;

/// Tokens that must be equal for a guess from several places.
const KEY_TOKENS: usize = 3;
/// Tokens that must be equal for a guess at all. It is rarely right, but costs little where a pass has room for a token.
const PAIR_TOKENS: usize = 2;
/// Earlier places that are compared, the latest first.
const PLACES_MAX: usize = 16;
/// Equal tokens that are counted. More say nothing more.
const MATCH_TOKENS_MAX: usize = 32;

/// No earlier place.
const NOWHERE: u32 = u32::MAX;

/// Where each sequence of two and of three tokens ended last. It grows with the tokens of one stream, which the context limits.
#[derive(Clone, Debug, Default)]
pub(super) struct Lookup {
    last: HashMap<[u32; KEY_TOKENS], u32>,
    last_pair: HashMap<[u32; PAIR_TOKENS], u32>,
    /// For each place, the place before it with the same tokens.
    earlier: Vec<u32>,
}

/// A place where the same tokens came earlier.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Found {
    /// The token that came next then.
    pub(super) next: usize,
    /// How many tokens before it are equal.
    pub(super) equal: usize,
}

impl Found {
    pub(super) fn at(tokens: &[u32], next: usize) -> Found {
        Found { next, equal: equal_before(tokens, next) }
    }
}

impl Lookup {
    /// The place whose tokens before it are most like the end of `tokens`; of equals, the latest. `tokens` begins with the
    /// tokens of earlier calls.
    pub(super) fn find(&mut self, tokens: &[u32]) -> Option<Found> {
        self.add(tokens);
        let key = key(tokens, tokens.len());
        let Some(&(mut place)) = key.and_then(|key| self.last.get(&key)) else {
            let place = *self.last_pair.get(tokens.last_chunk::<PAIR_TOKENS>()?)?;
            return Some(Found { next: place as usize, equal: PAIR_TOKENS });
        };
        let mut best: Option<Found> = None;
        for _ in 0..PLACES_MAX {
            let found = Found::at(tokens, place as usize);
            if best.is_none_or(|best| found.equal > best.equal) {
                best = Some(found);
            }
            place = self.earlier[place as usize];
            if place == NOWHERE || best.is_some_and(|best| best.equal == MATCH_TOKENS_MAX) {
                break;
            }
        }
        best
    }

    /// Adds all places but the end, after which nothing came yet.
    fn add(&mut self, tokens: &[u32]) {
        for place in self.earlier.len()..tokens.len() {
            let before = key(tokens, place).and_then(|key| self.last.insert(key, place as u32));
            self.earlier.push(before.unwrap_or(NOWHERE));
            if let Some(&pair) = tokens[..place].last_chunk::<PAIR_TOKENS>() {
                self.last_pair.insert(pair, place as u32);
            }
        }
    }
}

/// The last tokens before `place`.
fn key(tokens: &[u32], place: usize) -> Option<[u32; KEY_TOKENS]> {
    tokens[..place].last_chunk().copied()
}

/// How many tokens before `place` equal those at the end.
fn equal_before(tokens: &[u32], place: usize) -> usize {
    let pairs = tokens[..place].iter().rev().zip(tokens.iter().rev());
    pairs.take(MATCH_TOKENS_MAX).take_while(|(a, b)| a == b).count()
}

/// At most `count` tokens from `next` on. A text that repeats itself goes on repeating itself.
pub(super) fn continued(tokens: &[u32], next: usize, count: usize) -> Vec<u32> {
    let mut draft = Vec::with_capacity(count);
    for at in next..next + count {
        draft.push(match tokens.get(at) {
            Some(&token) => token,
            None => draft[at - tokens.len()],
        });
    }
    draft
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_tokens_after_the_same_tokens_are_guessed() {
        let mut lookup = Lookup::default();
        let tokens = [1, 2, 3, 4, 5, 6, 9, 9, 2, 3, 4];
        assert_eq!(lookup.find(&tokens), Some(Found { next: 4, equal: 3 }));
        assert_eq!(continued(&tokens, 4, 3), [5, 6, 9]);
        // It goes on, and the known places stay.
        let longer = [&tokens[..], &[5]].concat();
        assert_eq!(lookup.find(&longer), Some(Found { next: 5, equal: 4 }));
        assert_eq!(lookup.find(&[&longer[..], &[7]].concat()), None);
    }

    #[test]
    fn the_place_with_most_equal_tokens_is_taken_and_of_equals_the_latest() {
        let tokens = [8, 1, 2, 3, 10, 7, 1, 2, 3, 20, 7, 1, 2, 3, 30, 8, 1, 2, 3];
        assert_eq!(Lookup::default().find(&tokens), Some(Found { next: 4, equal: 4 }));
        let without = &tokens[1..];
        let latest = [&without[..14], &[9, 1, 2, 3]].concat();
        assert_eq!(Lookup::default().find(&latest), Some(Found { next: 13, equal: 3 }));
    }

    #[test]
    fn two_equal_tokens_give_a_guess_if_no_more_are_equal() {
        let tokens = [1, 2, 3, 4, 5, 9, 3, 4];
        assert_eq!(Lookup::default().find(&tokens), Some(Found { next: 4, equal: 2 }));
        assert_eq!(Lookup::default().find(&tokens[..7]), None);
    }

    #[test]
    fn short_and_new_texts_have_no_guess() {
        for tokens in [&[][..], &[1], &[1, 2, 3], &[1, 2, 3, 4, 5, 6]] {
            assert_eq!(Lookup::default().find(tokens), None, "{tokens:?}");
        }
    }

    #[test]
    fn a_text_that_repeats_itself_is_guessed_beyond_its_end() {
        let tokens = [1, 2, 3, 1, 2, 3];
        let found = Lookup::default().find(&tokens).expect("a place");
        assert_eq!(found, Found { next: 3, equal: 3 });
        assert_eq!(continued(&tokens, found.next, 8), [1, 2, 3, 1, 2, 3, 1, 2]);
        assert_eq!(Lookup::default().find(&[7; 5]), Some(Found { next: 4, equal: 4 }));
    }
}
