//! Finds marks in text that arrives in pieces: which text can be returned, and which may still become a mark.
//! White space before a mark belongs to the mark, so it is held back with it.

/// Length of the text that cannot be part of a mark. After it comes white space, and perhaps the beginning of a mark.
pub(super) fn settled_len<'a>(text: &str, marks: impl Iterator<Item = &'a str>) -> usize {
    let begun = marks.map(|mark| text.len() - begun_len(text, mark)).min().unwrap_or(text.len());
    text[..begun].trim_end().len()
}

/// How many bytes at the end of `text` are a beginning of `mark`, but not all of it.
pub(in crate::chat) fn begun_len(text: &str, mark: &str) -> usize {
    let is_begun = |len: &usize| mark.is_char_boundary(*len) && text.ends_with(&mark[..*len]);
    (1..mark.len()).rev().find(is_begun).unwrap_or(0)
}

/// Whether a text begins with a mark.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Opening {
    /// The text begins with it.
    Yes,
    /// The text is the beginning of the mark, or empty.
    Perhaps,
    No,
}

pub(super) fn opening(text: &str, mark: &str) -> Opening {
    if text.starts_with(mark) {
        Opening::Yes
    } else if mark.starts_with(text) {
        Opening::Perhaps
    } else {
        Opening::No
    }
}
