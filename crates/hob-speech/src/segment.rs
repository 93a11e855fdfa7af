//! Text → sentences, one at a time, while the text may still be arriving.
//! Looks only as far ahead as the next decision needs, and decides nothing from text that has not arrived. So the
//! result does not depend on how the text was cut on its way.

mod ahead;
mod lines;
mod long;
mod pauses;
mod stops;

use std::ops::Range;

use hob_core::{Language, is_full_stop};

pub(crate) use self::ahead::NeedMore;
use self::ahead::{Ahead, Known};
pub(crate) use self::pauses::{PAUSE_MS_MAX, PauseMark};

/// A sentence without any boundary is cut at this many bytes, about half a minute of speech. This limits the work for
/// one unit of any text (the part-of-speech tagger takes 0.4 ms per word).
pub(crate) const SENTENCE_BYTES_MAX: usize = 480;

/// A part of the text that is read in one go.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Segment {
    /// The bytes of the text, possibly with whitespace around it.
    pub(crate) range: Range<usize>,
    pub(crate) end: End,
}

/// Why a segment ends.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum End {
    /// It was too long, and was cut between words.
    Word,
    /// It was too long, and was cut after a comma or a dash.
    Comma,
    /// It was too long, and was cut after a semicolon or a colon.
    Clause,
    Sentence,
    /// A list item, a table row, a short line.
    Line,
    /// A heading, an empty line, the end of the text.
    Paragraph,
}

/// Returns the next segment of `text` at or after byte `at`, where no pause mark stands; `None` if only whitespace is
/// left. `ended` means that no more text will come.
pub(crate) fn next_segment(
    (text, language): (&str, Language),
    at: usize,
    ended: bool,
) -> Result<Option<Segment>, NeedMore> {
    let ahead = Ahead { text, ended };
    let Some(start) = skip_whitespace(ahead, at)? else {
        return Ok(None);
    };
    let limit = start + SENTENCE_BYTES_MAX;
    let mut i = start;
    while i < limit {
        let Some(c) = ahead.char_at(i)? else {
            return Ok(Some(Segment { range: start..i, end: End::Paragraph }));
        };
        let found = match c {
            '\n' | '\u{2028}' | '\u{2029}' => lines::line_ends(ahead, start, i)?,
            '.' | '!' | '?' | '…' => stops::stop_ends((ahead, language), start, i)?,
            '[' if i > start && pauses::mark_at(ahead, i)?.is_some() => Some((i, End::Sentence)),
            _ if is_full_stop(c) => Some((stops::behind_closers(ahead, i)?, End::Sentence)),
            _ => None,
        };
        if let Some((stop, end)) = found {
            return Ok(Some(Segment { range: start..stop, end }));
        }
        i += c.len_utf8();
    }
    Ok(Some(long::cut(text, start, i)))
}

/// The pause that the user wrote at byte `at` of `text`. It belongs to no segment.
pub(crate) fn pause_mark(
    text: &str,
    at: usize,
    ended: bool,
) -> Result<Option<PauseMark>, NeedMore> {
    pauses::mark_at(Ahead { text, ended }, at)
}

/// Whether a sentence ends where `before` ends in a full stop and `after` follows, which begins with a space. "at 5 p.m."
/// goes on before "on Monday", and ends before "Then". `before` is the sentence so far, and `after` its next few words.
pub fn is_sentence_end(before: &str, after: &str, language: Language) -> bool {
    let at = before.trim_end_matches('.').len();
    if at == before.len() {
        return false;
    }
    let text = [before, after].concat();
    let end = stops::stop_ends((Ahead { text: &text, ended: true }, language), 0, at);
    matches!(end, Ok(Some(_)))
}

/// Skips separators only. Marks without a meaning, such as a rule or an empty bullet, are left to the normaliser.
fn skip_whitespace(ahead: Ahead<'_>, mut at: usize) -> Known<Option<usize>> {
    while let Some(c) = ahead.char_at(at)? {
        if !c.is_whitespace() {
            return Ok(Some(at));
        }
        at += c.len_utf8();
    }
    Ok(None)
}

#[cfg(test)]
mod tests;
