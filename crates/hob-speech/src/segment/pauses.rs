//! Pauses that the user writes: "[pause:1.5s]", "[pause:300ms]".
//! Anything else in brackets is text.

use super::ahead::{Ahead, Known};

/// Longer pauses are cut to this length.
pub(crate) const PAUSE_MS_MAX: u32 = 60_000;

const OPENING: &str = "[pause:";

/// How many bytes after the opening to search for the end.
const LENGTH_BYTES_MAX: usize = 16;

/// A pause, and the bytes of its mark.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct PauseMark {
    pub(crate) ms: u32,
    pub(crate) bytes: usize,
}

/// The mark at byte `at`.
pub(super) fn mark_at(ahead: Ahead<'_>, at: usize) -> Known<Option<PauseMark>> {
    for (offset, expect) in OPENING.char_indices() {
        match ahead.char_at(at + offset)? {
            Some(c) if c.eq_ignore_ascii_case(&expect) => {}
            _ => return Ok(None),
        }
    }
    let start = at + OPENING.len();
    let end = ahead.skip(start, LENGTH_BYTES_MAX, |c| c.is_ascii_alphanumeric() || c == '.')?;
    if ahead.char_at(end)? != Some(']') {
        return Ok(None);
    }
    Ok(length_ms(&ahead.text[start..end]).map(|ms| PauseMark { ms, bytes: end + 1 - at }))
}

fn length_ms(text: &str) -> Option<u32> {
    let lower = text.to_ascii_lowercase();
    let (number, unit_ms) = match lower.strip_suffix("ms") {
        Some(number) => (number, 1.0),
        None => (lower.strip_suffix('s')?, 1000.0),
    };
    let is_plain = number.bytes().all(|b| b.is_ascii_digit() || b == b'.');
    let length: f64 = number.parse().ok().filter(|_| is_plain)?;
    Some((length * unit_ms).min(f64::from(PAUSE_MS_MAX)).round() as u32)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(text: &str, expect: Option<(u32, usize)>) {
        let found = mark_at(Ahead { text, ended: true }, 0).expect("all is there");
        assert_eq!(found.map(|mark| (mark.ms, mark.bytes)), expect, "{text}");
    }

    #[test]
    fn marks_have_a_length_and_a_unit() {
        check("[pause:1.5s] on", Some((1500, 12)));
        check("[PAUSE:300ms]", Some((300, 13)));
        check("[pause:0s]", Some((0, 10)));
        check("[pause:900s]", Some((PAUSE_MS_MAX, 12)));
        for text in [
            "[pause:1.5]",
            "[pause:s]",
            "[pause:infs]",
            "[pause:1.2.3s]",
            "[pause]",
            "[pause:-1s]",
            "[pause:1s",
        ] {
            check(text, None);
        }
    }

    #[test]
    fn an_unfinished_mark_needs_more_text() {
        let mark = "[pause:2s]";
        for cut in 0..mark.len() {
            assert!(mark_at(Ahead { text: &mark[..cut], ended: false }, 0).is_err(), "{cut}");
        }
    }
}
