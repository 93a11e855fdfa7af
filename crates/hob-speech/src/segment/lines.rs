//! Decides whether a line break is heard or only wraps a long line.
//! Breaks at empty lines, lists, headings, tables and verses are heard.

use super::End;
use super::ahead::{Ahead, Known};

/// How far to skip spaces in search of the next line's first character.
const BLANKS_MAX: usize = 256;

/// A line with fewer characters was not wrapped because of its length.
const WRAPPED_CHARS_MIN: usize = 40;

/// What the line break at byte `at` ends, in a sentence that began at `start`.
pub(super) fn line_ends(ahead: Ahead<'_>, start: usize, at: usize) -> Known<Option<(usize, End)>> {
    let width = ahead.char_at(at)?.map_or(1, char::len_utf8);
    let next = ahead.skip(at + width, BLANKS_MAX, |c| c.is_whitespace() && !is_break(c))?;
    let Some(first) = ahead.char_at(next)? else {
        return Ok(Some((at, End::Paragraph)));
    };
    if is_break(first) || ahead.text[at..].starts_with('\u{2029}') {
        return Ok(Some((at, End::Paragraph)));
    }
    let line = last_line(&ahead.text[start..at]);
    if is_heading(line) {
        return Ok(Some((at, End::Paragraph)));
    }
    if starts_block(ahead, next, first)? || is_table_row(line) {
        return Ok(Some((at, End::Line)));
    }
    let is_short = line.chars().nth(WRAPPED_CHARS_MIN).is_none();
    let goes_on = first.is_lowercase() || line.trim_end().ends_with([',', ';', '-', '—', '–']);
    Ok((is_short && !goes_on).then_some((at, End::Line)))
}

fn is_break(c: char) -> bool {
    matches!(c, '\n' | '\u{2028}' | '\u{2029}')
}

fn last_line(sentence: &str) -> &str {
    sentence.rsplit(is_break).next().unwrap_or(sentence)
}

fn is_heading(line: &str) -> bool {
    let text = line.trim_start().trim_start_matches('#');
    text.len() < line.trim_start().len() && text.starts_with(' ')
}

fn is_table_row(line: &str) -> bool {
    line.trim().starts_with('|')
}

/// Whether the line that begins with `first` at byte `at` is a list item, heading, quotation, table row, rule or code
/// fence.
fn starts_block(ahead: Ahead<'_>, at: usize, first: char) -> Known<bool> {
    Ok(match first {
        '>' | '|' | '•' | '◦' | '▪' | '‣' | '·' => true,
        '#' => {
            let text = ahead.skip(at, 7, |c| c == '#')?;
            ahead.char_at(text)?.is_none_or(char::is_whitespace)
        }
        '-' | '*' | '+' | '_' | '=' | '–' => {
            let width = first.len_utf8();
            let text = ahead.skip(at, 3 * width, |c| c == first)?;
            let item = text == at + width && first != '_' && first != '=';
            let rule = text == at + 3 * width;
            rule || (item && ahead.char_at(text)?.is_none_or(char::is_whitespace))
        }
        '`' | '~' => ahead.skip(at, 3, |c| c == first)? == at + 3,
        '0'..='9' => {
            let text = ahead.skip(at, 4, |c| c.is_ascii_digit())?;
            matches!(ahead.char_at(text)?, Some('.' | ')'))
                && ahead.char_at(text + 1)?.is_none_or(char::is_whitespace)
        }
        _ => false,
    })
}
