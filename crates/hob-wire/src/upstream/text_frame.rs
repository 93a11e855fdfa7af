//! What stands around the text of a piece of an answer. Most pieces of a stream differ in their text only,
//! so they are read without parsing their JSON again.

use std::ops::Range;

use crate::error::is_plain;

/// What a text is in an answer.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) enum TextRole {
    #[default]
    Answer,
    Thinking,
}

/// The JSON before and behind the text of an earlier piece, which held nothing else that matters.
#[derive(Debug, Default)]
pub(super) struct TextFrame {
    role: TextRole,
    before: String,
    behind: String,
}

impl TextFrame {
    /// Keeps the frame of the text at `place`, which is between two quotation marks and has no escapes.
    pub(super) fn learn(&mut self, role: TextRole, piece: &str, place: Range<usize>) {
        self.role = role;
        piece[..place.start].clone_into(&mut self.before);
        piece[place.end..].clone_into(&mut self.behind);
    }

    /// The text of a piece in the same frame. A text with escapes, or without any character, has to be parsed.
    pub(super) fn text_of<'a>(&self, piece: &'a str) -> Option<(TextRole, &'a str)> {
        if self.before.is_empty() {
            return None;
        }
        let text = piece.strip_prefix(&*self.before)?.strip_suffix(&*self.behind)?;
        (!text.is_empty() && is_plain(text)).then_some((self.role, text))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_a_plain_text_in_the_same_frame_is_taken() {
        let mut frame = TextFrame::default();
        assert_eq!(frame.text_of(r#"{"a":"x","b":1}"#), None, "nothing was learned yet");
        frame.learn(TextRole::Thinking, r#"{"a":"x","b":1}"#, 6..7);
        for (piece, expected) in [
            (r#"{"a":"wörd } ","b":1}"#, Some("wörd } ")),
            (r#"{"a":"","b":1}"#, None),
            (r#"{"a":"\n","b":1}"#, None),
            (r#"{"a":"x","c":"y","b":1}"#, None),
            ("{\"a\":\"\n\",\"b\":1}", None),
            (r#"{"a":"x","b":2}"#, None),
            (r#"{"a":"b":1}"#, None),
        ] {
            let expected = expected.map(|text| (TextRole::Thinking, text));
            assert_eq!(frame.text_of(piece), expected, "{piece}");
        }
    }
}
