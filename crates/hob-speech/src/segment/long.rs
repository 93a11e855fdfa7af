//! Cuts text that has no sentence boundary:
//! after a semicolon, else after a comma, else between words, else anywhere between characters.

use super::{End, Segment};

/// A part should not be shorter than this many bytes: a cut right at the beginning is useless.
const PART_BYTES_MIN: usize = 120;

/// Cuts `text[start..end]`, which continues after `end`, at its last good position.
pub(super) fn cut(text: &str, start: usize, end: usize) -> Segment {
    let window = &text[start..end];
    let places: [(End, &[char]); 3] = [
        (End::Clause, &[';', ':', '；', '：']),
        (End::Comma, &[',', '—', '–', '、', '，']),
        (End::Word, &[' ', '\n', '\t']),
    ];
    for (kind, marks) in places {
        if let Some(stop) = last_behind(window, marks) {
            return Segment { range: start..start + stop, end: kind };
        }
    }
    Segment { range: start..end, end: End::Word }
}

/// The position after the last of `marks` that is wide or has whitespace after it, and that has enough text before it.
fn last_behind(window: &str, marks: &[char]) -> Option<usize> {
    window
        .rmatch_indices(marks)
        .map(|(at, mark)| (at + mark.len(), mark))
        .take_while(|(stop, _)| *stop >= PART_BYTES_MIN)
        .find(|(stop, mark)| {
            // Wide marks stand between words without spaces.
            let is_wide = matches!(*mark, "；" | "：" | "、" | "，");
            is_wide || mark.trim().is_empty() || window[*stop..].starts_with(char::is_whitespace)
        })
        .map(|(stop, _)| stop)
}
