//! Finds the tokens of misaki, the library that turns English into phonemes, in the text that it received.
//! misaki joins and splits words freely, but its tokens and their whitespace together spell the text.

use std::ops::Range;

/// Returns the bytes of `text` for each token, or `None` if the tokens do not spell it. Then the caller reads the
/// words one by one instead of guessing.
pub(super) fn token_ranges<'a>(
    text: &str,
    tokens: impl Iterator<Item = (&'a str, &'a str)>,
) -> Option<Vec<Range<usize>>> {
    let mut at = 0;
    let mut ranges = Vec::new();
    for (token, whitespace) in tokens {
        if !text.get(at..)?.starts_with(token) {
            return None;
        }
        ranges.push(at..at + token.len());
        at += token.len();
        if !text[at..].starts_with(whitespace) {
            return None;
        }
        at += whitespace.len();
    }
    (at == text.len()).then_some(ranges)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(text: &str, tokens: &[(&str, &str)], expect: Option<&[Range<usize>]>) {
        let ranges = token_ranges(text, tokens.iter().copied());
        assert_eq!(ranges.as_deref(), expect, "{text}");
    }

    #[test]
    fn tokens_that_spell_the_text_have_ranges() {
        check("Hi, you", &[("Hi", ""), (",", " "), ("you", "")], Some(&[0..2, 2..3, 4..7]));
        check("é a", &[("é", " "), ("a", "")], Some(&[0..2, 3..4]));
        check("", &[], Some(&[]));
    }

    #[test]
    fn tokens_that_do_not_are_refused() {
        check("Hi you", &[("Hi", ""), ("you", "")], None);
        check("Hi you", &[("Hi", " ")], None);
        check("Hi", &[("Ho", "")], None);
        check("Hi", &[("Hi", " ")], None);
    }
}
