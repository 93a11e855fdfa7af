//! Finds JSON in an answer: in a fence, or bare between other words.
//! Each opening brace is tried once, and a value that was read is skipped, so the time grows with the length.

use serde_json::{Deserializer, Value};

/// Values that are tried. More openings are prose or garbage.
const TRIES_MAX: usize = 200;
/// Bytes that all failed tries together may read.
const READ_BYTES_MAX: usize = 4 << 20;

/// Objects and arrays of the text, the last one first. Parts of a value do not count as values.
pub(crate) fn json_values(text: &str) -> Vec<Value> {
    let (mut found, mut at, mut tries, mut read) = (Vec::new(), 0, 0, 0);
    while let Some(open) = text[at..].find(['{', '[']).map(|offset| at + offset) {
        if tries == TRIES_MAX || read > READ_BYTES_MAX {
            break;
        }
        tries += 1;
        let mut values = Deserializer::from_str(&text[open..]).into_iter::<Value>();
        match values.next() {
            Some(Ok(value)) => {
                at = open + values.byte_offset().max(1);
                found.push(value);
            }
            _ => {
                read += text.len() - open;
                at = open + 1;
            }
        }
    }
    found.reverse();
    found
}
