//! Finds the JSON objects and arrays of an answer, fenced or between sentences.
//! The work is bounded: text that looks like JSON and is not is read a fixed number of times.

use std::ops::Range;

use serde_json::Value;

/// Bytes of failed attempts, as a multiple of the text's length. A text of open brackets reaches it.
const FAILED_SHARE_MAX: usize = 6;
/// Values that are kept. The last ones win.
const VALUES_MAX: usize = 64;

/// The outermost objects and arrays of the text, in order.
pub(crate) fn json_values(text: &str) -> Vec<Value> {
    json_spans(text).into_iter().map(|(_, value)| value).collect()
}

/// The outermost objects and arrays of the text, in order, with their places.
pub(crate) fn json_spans(text: &str) -> Vec<(Range<usize>, Value)> {
    let mut found = Vec::new();
    let mut at = 0;
    let mut failed = 0;
    let failed_max = FAILED_SHARE_MAX * text.len() + 1024;
    while let Some(start) = text[at..].find(['{', '[']).map(|ahead| at + ahead) {
        let rest = &text[start..];
        let mut values = serde_json::Deserializer::from_str(rest).into_iter::<Value>();
        match values.next() {
            Some(Ok(value)) => {
                if found.len() == VALUES_MAX {
                    found.remove(0);
                }
                at = start + values.byte_offset().max(1);
                found.push((start..at, value));
            }
            Some(Err(error)) => {
                failed += consumed(rest, error.line(), error.column());
                at = start + 1;
            }
            None => at = start + 1,
        }
        if failed > failed_max {
            break;
        }
    }
    found
}

/// Bytes that were read until an error.
fn consumed(text: &str, line: usize, column: usize) -> usize {
    let before: usize = text.split_inclusive('\n').take(line.saturating_sub(1)).map(str::len).sum();
    before + column + 1
}
