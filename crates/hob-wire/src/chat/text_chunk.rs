//! The JSON around the text of a chunk. Most chunks of an answer differ in their text only, so that JSON is written once,
//! and copied for each further piece.

use crate::error::{is_plain, json};

/// The field of a delta that holds the text.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum TextField {
    Content,
    Reasoning,
}

/// An event without its text.
#[derive(Debug)]
pub(super) struct TextChunk {
    before: String,
    behind: String,
}

impl TextChunk {
    /// `event` is a whole event. The last of its members that are an empty text is the place of the text.
    pub(super) fn around(event: &str) -> TextChunk {
        let (before, behind) = event.rsplit_once(r#":"""#).expect("the delta has an empty text");
        TextChunk { before: format!("{before}:"), behind: behind.to_owned() }
    }

    /// Appends the event with this text.
    pub(super) fn write(&self, out: &mut String, text: &str) {
        const QUOTES_BYTES: usize = 2;
        out.reserve(self.before.len() + QUOTES_BYTES + text.len() + self.behind.len());
        out.push_str(&self.before);
        if is_plain(text) {
            out.push('"');
            out.push_str(text);
            out.push('"');
        } else {
            out.push_str(&json(&text));
        }
        out.push_str(&self.behind);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_text_stands_in_the_last_empty_member() {
        let chunk =
            TextChunk::around(r#"{"model":"","a":"\":\"\"","delta":{"content":""},"b":null}"#);
        for (text, expected) in [("wörd", r#""wörd""#), ("a\"\\\n\u{1}", r#""a\"\\\n\u0001""#)] {
            let mut out = "before".to_owned();
            chunk.write(&mut out, text);
            let expected = format!(
                r#"before{{"model":"","a":"\":\"\"","delta":{{"content":{expected}}},"b":null}}"#
            );
            assert_eq!(out, expected);
        }
    }

    proptest::proptest! {
        #[test]
        fn every_text_is_written_as_json(text in "\\PC*|[\\x00-\\x7f]*") {
            let mut out = String::new();
            TextChunk::around(r#":"""#).write(&mut out, &text);
            proptest::prop_assert_eq!(out, format!(":{}", json(&text)));
        }
    }
}
