//! Moves a known end over a token that says a part of its text. Models split such a text in other ways than the end does. A
//! search for a new end takes milliseconds.

use super::Vocabulary;
use crate::chat::json_context::JsonContext;

/// What is left of an end.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct MovedEnd {
    pub(super) tokens: Vec<u32>,
    /// The token has the same bytes as the end, so the rest of the end still closes the answer. Otherwise the token has spaces
    /// that the end does not have, and the grammar must be asked.
    pub(super) is_exact: bool,
}

/// The rest of `end` after `token`, which begins in this context. `None` if `end` does not begin with its text.
pub(super) fn moved(
    vocabulary: &Vocabulary,
    end: &[u32],
    token: u32,
    mut context: JsonContext,
) -> Option<MovedEnd> {
    let mut tokens = end.iter();
    let mut rest: &[u8] = &[];
    let mut is_exact = true;
    for &byte in vocabulary.plain_text(token)? {
        if rest.is_empty() {
            rest = vocabulary.plain_text(*tokens.next()?)?;
        }
        if rest.first() == Some(&byte) {
            rest = &rest[1..];
        } else if byte == b' ' && context.is_outside() {
            is_exact = false;
        } else {
            return None;
        }
        context = context.after(&[byte]);
    }
    let mut left = vocabulary.tokenize_greedily(rest);
    // A vocabulary without a token for each byte cannot say every rest.
    is_exact &= left.iter().map(|&token| vocabulary.text(token).len()).sum::<usize>() == rest.len();
    left.extend(tokens);
    Some(MovedEnd { tokens: left, is_exact })
}

#[cfg(test)]
mod tests {
    use super::super::tests::small_vocabulary;
    use super::*;

    /// The text of the rest, and whether it is exact.
    fn rest(end: &str, said: &str) -> Option<(String, bool)> {
        let vocabulary = small_vocabulary();
        let end = vocabulary.tokenize_greedily(end.as_bytes());
        let said = vocabulary.tokenize_greedily(said.as_bytes());
        assert_eq!(said.len(), 1, "one token");
        let MovedEnd { tokens, is_exact } =
            moved(&vocabulary, &end, said[0], JsonContext::default())?;
        let text: Vec<u8> =
            tokens.iter().flat_map(|&token| vocabulary.text(token)).copied().collect();
        Some((String::from_utf8(text).expect("text"), is_exact))
    }

    #[test]
    fn a_token_takes_its_text_from_the_end() {
        for (end, said, left) in [
            ("{\"b\":12}", "{", "\"b\":12}"),
            ("{\"a\":{\"x\":1}}", "{\"", "a\":{\"x\":1}}"),
            ("\":1}", "\":", "1}"),
            ("}]}", "}", "]}"),
            ("}", "}", ""),
        ] {
            assert_eq!(rest(end, said), Some((left.to_owned(), true)), "{said} of {end}");
        }
    }

    #[test]
    fn spaces_that_the_end_does_not_have_are_left_out_between_texts() {
        assert_eq!(rest("\"b\":1}", " \""), Some(("b\":1}".to_owned(), false)));
        assert_eq!(rest(",\"b\":1}", ", "), Some(("\"b\":1}".to_owned(), false)));
        assert_eq!(rest("and\":1}", " and"), Some(("\":1}".to_owned(), false)));
    }

    #[test]
    fn another_text_does_not_move_the_end() {
        assert_eq!(rest("\"b\":1}", "the"), None);
        assert_eq!(rest("1}", "12"), None);
        assert_eq!(rest("}", "}}"), None, "the end is shorter");
        let vocabulary = small_vocabulary();
        let end = vocabulary.end_token();
        assert_eq!(moved(&vocabulary, &[end], end, JsonContext::default()), None, "it has no text");
    }
}
