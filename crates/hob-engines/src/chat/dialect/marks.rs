//! Finding marks in text that arrives in pieces: what may leave, and what may still become a mark.
//! White space before a mark belongs to the mark, so it is held with it.

/// The least length of `text` behind which a mark may have begun: what follows is white space and
/// then the beginning of a mark, or only white space.
pub(super) fn settled_len<'a>(text: &str, marks: impl Iterator<Item = &'a str>) -> usize {
    let begun = marks.map(|mark| text.len() - begun_len(text, mark)).min().unwrap_or(text.len());
    text[..begun].trim_end().len()
}

/// How many bytes at the end of `text` are a beginning of `mark`, but not all of it.
fn begun_len(text: &str, mark: &str) -> usize {
    let is_begun = |len: &usize| mark.is_char_boundary(*len) && text.ends_with(&mark[..*len]);
    (1..mark.len()).rev().find(is_begun).unwrap_or(0)
}

/// What the beginning of a text says of a mark.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Opening {
    /// The text begins with it.
    Yes,
    /// The text is a beginning of it, or empty.
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
