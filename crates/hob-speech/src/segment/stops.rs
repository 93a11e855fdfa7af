//! Decides whether a full stop ends a sentence.
//! Not in "Dr. Smith", "3.5", "J. R.", "e.g.", "wait... what", "“Really?” she asked", "1. First"; but in "etc. But",
//! "U.S. The".

use hob_core::{Language, is_full_stop};

use super::End;
use super::ahead::{Ahead, Known};
use super::lines::line_ends;
use crate::abbreviations::{Abbreviation, Ending};
use crate::normalise::{short_form, starters};
use crate::word_table::has;

/// How many bytes of closing marks and further stops to follow after a stop.
const CLOSERS_MAX: usize = 64;

/// How many bytes of spaces to follow to see what comes next.
const BLANKS_MAX: usize = 64;

/// Longest second half of an abbreviation.
const HALF_BYTES_MAX: usize = 12;

/// The position after further stops and after the quotes and brackets that close there.
pub(super) fn behind_closers(ahead: Ahead<'_>, at: usize) -> Known<usize> {
    ahead.skip(at, CLOSERS_MAX, |c| {
        matches!(c, '.' | '!' | '?' | '…') || is_full_stop(c) || is_closer(c)
    })
}

fn is_closer(c: char) -> bool {
    "\"”’')]}»」』】）》〉*_~`".contains(c)
}

/// Where the sentence ends, if the stop at byte `at` ends the sentence that began at `start`.
pub(super) fn stop_ends(
    (ahead, language): (Ahead<'_>, Language),
    start: usize,
    at: usize,
) -> Known<Option<(usize, End)>> {
    let stops = ahead.skip(at, CLOSERS_MAX, |c| matches!(c, '.' | '!' | '?' | '…'))?;
    let behind = behind_note(ahead, behind_closers(ahead, at)?)?;
    let Some(follows) = ahead.char_at(behind)? else {
        return Ok(Some((behind, End::Sentence)));
    };
    if !follows.is_whitespace() {
        return Ok(glued_sentence(follows).then_some((behind, End::Sentence)));
    }
    let line = ahead.skip(behind, BLANKS_MAX, |c| c.is_whitespace() && c != '\n')?;
    if ahead.char_at(line)? == Some('\n')
        && let Some(found) = line_ends(ahead, start, line)?
    {
        return Ok(Some(found));
    }
    let next = ahead.skip(line, BLANKS_MAX, char::is_whitespace)?;
    let Some(first) = ahead.char_at(next)? else {
        return Ok(Some((behind, End::Sentence)));
    };
    let run = &ahead.text[at..stops];
    let closed = behind > stops;
    let ends = if run.contains(['!', '?']) {
        // "5! = 120" and "n! grows" go on.
        let is_factorial = run == "!" && word_before(&ahead.text[start..at]) == "n";
        first != '=' && !((closed || is_factorial) && first.is_lowercase())
    } else if run.len() > 1 {
        !first.is_lowercase()
    } else {
        full_stop_ends(ahead, Stop { language, start, at, closed, first, next })?
    };
    Ok(ends.then_some((behind, End::Sentence)))
}

/// The position after a note mark such as "[12]" directly after the stop.
fn behind_note(ahead: Ahead<'_>, at: usize) -> Known<usize> {
    if ahead.char_at(at)? != Some('[') {
        return Ok(at);
    }
    let digits = ahead.skip(at + 1, 4, |c| c.is_ascii_digit())?;
    let is_note = digits > at + 1 && ahead.char_at(digits)? == Some(']');
    Ok(if is_note { digits + 1 } else { at })
}

/// Scripts without spaces continue directly after the stop.
fn glued_sentence(follows: char) -> bool {
    matches!(follows as u32, 0x3040..=0x30ff | 0x3400..=0x9fff | 0xac00..=0xd7a3)
}

/// A single full stop followed by whitespace.
struct Stop {
    language: Language,
    start: usize,
    at: usize,
    /// A quotation or bracket closes after it.
    closed: bool,
    /// The first character after it, and its position.
    first: char,
    next: usize,
}

fn full_stop_ends(ahead: Ahead<'_>, stop: Stop) -> Known<bool> {
    let before = &ahead.text[stop.start..stop.at];
    let word = word_before(before);
    if is_half(ahead, &stop, word)? {
        return Ok(false);
    }
    if is_list_number(before, word) {
        return Ok(false);
    }
    if matches!(word, "c" | "b" | "d" | "fl") && is_year(ahead, stop.next)? {
        return Ok(false);
    }
    // "P. Pérez" has an initial, and "p. 12" a page.
    let is_initial = word.len() == 1 && word.chars().all(char::is_uppercase);
    let short = short_form(stop.language, without_article(&stop, word))
        .filter(|short| !is_initial || short.ending != Ending::BeforeNumber);
    if let Some(Abbreviation { said, ending }) = short {
        return match ending {
            Ending::Never => Ok(false),
            Ending::BeforeNumber => Ok(!stop.first.is_numeric() && !is_roman(ahead, &stop, said)?),
            Ending::Sometimes => starts_sentence(ahead, &stop),
        };
    }
    let is_letters =
        |part: &str| part.chars().count() <= 2 && part.chars().all(char::is_alphabetic);
    if word.contains('.') && word.split('.').all(is_letters) {
        // "U.S.", "J.R.R."
        return starts_sentence(ahead, &stop);
    }
    if word.chars().count() == 1 && word.chars().all(char::is_alphabetic) {
        return initial_ends(ahead, before, word, &stop);
    }
    Ok(!stop.first.is_lowercase() || (!stop.closed && is_plain_word(word)))
}

/// The first half of an abbreviation of two: "p. ej.", "EE. UU.".
fn is_half(ahead: Ahead<'_>, stop: &Stop, word: &str) -> Known<bool> {
    if starters(stop.language).is_none() {
        return Ok(false);
    }
    let end = ahead.skip(stop.next, HALF_BYTES_MAX, char::is_alphanumeric)?;
    let whole = || format!("{word}.{}", &ahead.text[stop.next..end]);
    Ok(ahead.char_at(end)? == Some('.') && short_form(stop.language, &whole()).is_some())
}

/// "l'avv." is the abbreviation "avv.", in languages with such articles.
fn without_article<'a>(stop: &Stop, word: &'a str) -> &'a str {
    let bare = word.rsplit(['\'', '’']).next().unwrap_or(word);
    if starters(stop.language).is_some() { bare } else { word }
}

/// The year of "c. 1450", "b. 1809" and "d. 1882".
fn is_year(ahead: Ahead<'_>, at: usize) -> Known<bool> {
    let end = ahead.skip(at, 5, |c| c.is_ascii_digit())?;
    Ok(end == at + 4)
}

/// "chapter XII", "siglo XIX": a number in letters after "ch.", "vol." or "s.".
fn is_roman(ahead: Ahead<'_>, stop: &Stop, said: &str) -> Known<bool> {
    let is_sign = |c| matches!(c, 'I' | 'V' | 'X');
    if starters(stop.language).is_none() {
        return Ok(is_sign(stop.first) && matches!(said, "chapter" | "volume" | "section"));
    }
    let end = ahead.skip(stop.next, HALF_BYTES_MAX, is_sign)?;
    Ok(end > stop.next && !ahead.char_at(end)?.is_some_and(char::is_alphabetic))
}

/// A single letter is an initial ("J. Smith"), unless it ends a phrase ("vitamin C. The …").
fn initial_ends(ahead: Ahead<'_>, before: &str, word: &str, stop: &Stop) -> Known<bool> {
    let phrase = before[..before.len() - word.len()].trim_end();
    let behind_name = word_before(phrase).chars().next().is_none_or(char::is_uppercase);
    if word.chars().all(char::is_lowercase) {
        return Ok(!phrase.is_empty() && !stop.first.is_lowercase());
    }
    if word == "I" && !behind_name {
        return Ok(!stop.first.is_lowercase());
    }
    if phrase.is_empty() || phrase.ends_with('.') {
        return Ok(false);
    }
    starts_sentence(ahead, stop)
}

/// The word directly before the stop, without opening marks.
fn word_before(before: &str) -> &str {
    let word = before.rsplit(char::is_whitespace).next().unwrap_or(before);
    word.trim_start_matches(|c: char| !c.is_alphanumeric())
}

/// "1." or "12." at the beginning numbers a list item.
fn is_list_number(before: &str, word: &str) -> bool {
    let alone =
        before.trim().trim_start_matches(['>', '*', '_', '#', ' ', '(']).len() == word.len();
    alone && word.len() <= 3 && !word.is_empty() && word.bytes().all(|b| b.is_ascii_digit())
}

/// A whole word that is not an abbreviation, so that "i went home. it was late." is two sentences.
fn is_plain_word(word: &str) -> bool {
    word.chars().count() >= 3
        && word.chars().all(|c| c.is_lowercase() || c == '\'' || c == '’')
        && word.contains(['a', 'e', 'i', 'o', 'u', 'y'])
}

/// Whether a sentence starts here rather than a name that continues: the text starts with one of the words that
/// sentences start with.
fn starts_sentence(ahead: Ahead<'_>, stop: &Stop) -> Known<bool> {
    if !stop.first.is_uppercase() {
        return Ok(
            !stop.first.is_alphanumeric() && !matches!(stop.first, '(' | '-' | '–' | '—' | '&')
        );
    }
    let end = ahead.skip(stop.next, 16, char::is_alphabetic)?;
    let starters = starters(stop.language).unwrap_or(STARTERS);
    Ok(has(starters, &ahead.text[stop.next..end]))
}

const STARTERS: &str = "
    A After All Also Although An And Another Any Are As At Because Before Both But By Can Could
    Did Do Does During Each Even Every Finally First For From Had Has Have He Her Here His How
    However I If In Instead Is It Its Just Last Later Let Many May Maybe Most Much My Next No Not
    Nothing Now Of On Once One Only Or Other Our Perhaps Please She Should Since So Some Soon
    Still Such Than That The Their Then There Therefore These They This Those Though Thus To Today
    Two Under Unless Until Was We Well Were What When Where Which While Who Why Will With Would
    Yes Yet You Your";
