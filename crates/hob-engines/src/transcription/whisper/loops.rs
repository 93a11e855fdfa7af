//! Finds texts that repeat themselves, which the decoder writes when it has lost the sound.
//! People repeat themselves, too: "no, no, no, no", in any script.

use super::tokens::Tokens;

/// Times that a sequence of tokens must follow itself to be a loop.
const LOOP_REPEATS: usize = 4;
/// The same for a short word, which may be said a few times.
const SHORT_REPEATS: usize = 2 * LOOP_REPEATS;
/// So many tokens are a short word.
const SHORT_TOKENS: usize = 2;
/// So many characters, with the space and the comma, are a short word in any script. "हाँ," has 5 tokens.
const SHORT_CHARS: usize = 8;

/// Whether the tokens end with a sequence that follows itself several times.
pub(super) fn has_loop(vocabulary: &Tokens, tokens: &[u32]) -> bool {
    let is_repeated = |length: usize, repeats: usize| {
        let Some(from) = tokens.len().checked_sub(length * repeats) else { return false };
        let (first, rest) = tokens[from..].split_at(length);
        rest.chunks(length).all(|chunk| chunk == first)
    };
    let longest = tokens.len() / LOOP_REPEATS;
    (1..=longest).any(|length| {
        let is_short = || is_short_word(vocabulary, &tokens[tokens.len() - length..]);
        is_repeated(length, LOOP_REPEATS) && (!is_short() || is_repeated(length, SHORT_REPEATS))
    })
}

/// Whether these tokens are one short word. They may begin inside it.
fn is_short_word(vocabulary: &Tokens, tokens: &[u32]) -> bool {
    let bytes = tokens.iter().flat_map(|token| vocabulary.bytes(*token));
    let has_one_word = bytes.filter(|byte| **byte == b' ').count() <= 1;
    let is_short = (1..=SHORT_CHARS).contains(&vocabulary.characters(tokens));
    tokens.len() <= SHORT_TOKENS || has_one_word && is_short
}

#[cfg(test)]
mod tests {
    use super::super::tokens::tests::small_vocabulary;
    use super::*;

    #[test]
    fn a_loop_is_a_sequence_that_follows_itself() {
        let vocabulary = Tokens::new(Vec::new(), 51_865);
        for (tokens, expected) in [
            (vec![], false),
            (vec![1, 2, 3, 4], false),
            (vec![1, 1, 1, 1], false),
            (vec![9, 1, 1, 1, 1, 1, 1, 1, 1], true),
            ([1, 2, 3].repeat(4), true),
            ([1, 2, 3].repeat(3), false),
            ([vec![7, 8], [1, 2, 3, 4].repeat(4)].concat(), true),
            ([[1, 2, 3].repeat(4), vec![5]].concat(), false),
        ] {
            assert_eq!(has_loop(&vocabulary, &tokens), expected, "{tokens:?}");
        }
    }

    #[test]
    fn a_short_word_may_be_said_a_few_times_in_any_script() {
        // A token for each byte.
        let vocabulary = Tokens::new(small_vocabulary(), 51_865);
        for (text, repeats, expected) in [
            (" नहीं,", 4, false),
            (" नहीं,", 7, false),
            (" नहीं,", 8, true),
            ("ไม่", 7, false),
            (" we go on,", 4, true),
            (" a b c", 4, true),
        ] {
            let tokens = vocabulary.encode(&text.repeat(repeats));
            assert_eq!(has_loop(&vocabulary, &tokens), expected, "{text:?} {repeats}");
        }
    }
}
