//! All other words: abbreviations, contractions, compounds, mixtures of letters and digits.
//! The last reader: it always says something if there is a letter or a digit.

use std::ops::Range;

use super::View;
use super::acronym;
use super::cardinal::{by_digit, cardinal};
use super::item::Word;
use super::number::superscript;
use super::symbol::name;
use crate::abbreviations::{Ending, abbreviation};
use crate::reading::Reading;
use crate::scripts::same_script;

/// Longer runs of letters are said in pieces of this many letters, each with its own bytes.
const LETTERS_MAX: usize = 40;

/// A character that is repeated many times is said this many times.
const REPEATED_MAX: usize = 8;

pub(super) fn read(view: View<'_>, out: &mut Reading) -> Option<usize> {
    let word = view.word()?;
    if let Some(used) = short_form(view, word, out) {
        return Some(used);
    }
    if is_spoken_as_it_is(&word.text) {
        let text = word.text.replace(['’', '‘'], "'");
        out.say(word.span(), &if view.shouted { text.to_lowercase() } else { text });
        return Some(1);
    }
    pieces(word, view.shouted, out);
    Some(1)
}

/// "Dr." and "etc.", with the full stop, unless it also ends the sentence.
fn short_form(view: View<'_>, word: &Word, out: &mut Reading) -> Option<usize> {
    let found = abbreviation(&word.text)?;
    let stop = view.mark_ahead(1) == Some('.');
    let dotted = word.text.contains('.');
    if !stop && !dotted && !is_title(&word.text) {
        return None;
    }
    let follows = view.items.get(view.at + 2).and_then(|item| item.word());
    let number =
        follows.is_some_and(|next| next.text.starts_with(|c: char| c.is_ascii_digit() || c == '#'));
    if found.ending == Ending::BeforeNumber && !number {
        return None;
    }
    let goes_on = view.goes_on(2);
    let said = match &*word.text {
        "St" | "st" if !follows.is_some_and(|next| next.text.starts_with(char::is_uppercase)) => {
            "Street"
        }
        "Dr" if view.before().is_some()
            && !follows.is_some_and(|next| next.text.starts_with(char::is_uppercase)) =>
        {
            "Drive"
        }
        _ => found.said,
    };
    if said.split(' ').all(|part| part.len() == 1) {
        out.spell(word.span(), &said.replace(' ', ""));
    } else {
        out.say(word.span(), said);
    }
    Some(1 + usize::from(stop && goes_on))
}

/// British titles have no full stop.
fn is_title(word: &str) -> bool {
    matches!(word, "Mr" | "Mrs" | "Ms" | "Dr" | "Prof" | "vs" | "Jr" | "Sr" | "Ltd" | "Inc" | "etc")
}

/// Latin letters, apostrophes inside, hyphens between: what the dictionary accepts.
fn is_spoken_as_it_is(text: &str) -> bool {
    let parts = text.split('-').count();
    text.chars().count() <= LETTERS_MAX
        && parts <= 4
        && text.split('-').all(|part| {
            part.starts_with(is_latin)
                && part.chars().all(|c| is_latin(c) || matches!(c, '\'' | '’'))
        })
        || is_clipped(text)
}

fn is_clipped(text: &str) -> bool {
    text.chars().count() <= LETTERS_MAX
        && text
            .strip_prefix(['\'', '’'])
            .is_some_and(|rest| !rest.is_empty() && rest.chars().all(|c| c.is_ascii_alphabetic()))
}

fn is_latin(c: char) -> bool {
    c.is_alphabetic() && same_script(c, 'a')
}

/// The class of a run of characters.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Run {
    Letters,
    Digits,
    Other,
}

fn run_of(c: char) -> Run {
    if c.is_ascii_digit() {
        Run::Digits
    } else if superscript(c).is_some() {
        Run::Other
    } else if c.is_alphanumeric() || crate::scripts::is_vowel_sign(c) {
        Run::Letters
    } else {
        Run::Other
    }
}

/// Reads letters, digits and symbols one after the other.
fn pieces(word: &Word, shouted: bool, out: &mut Reading) {
    for range in runs(&word.text) {
        let text = &word.text[range.clone()];
        match text.chars().next().map(run_of) {
            Some(Run::Other) => symbols(word, range, out),
            Some(Run::Letters) if shouted => letters(word, range, &text.to_lowercase(), out),
            _ => say_letters_and_digits(word, range, out),
        }
    }
}

fn runs(text: &str) -> Vec<Range<usize>> {
    let mut runs: Vec<Range<usize>> = Vec::new();
    let mut last: Option<char> = None;
    for (at, c) in text.char_indices() {
        let end = at + c.len_utf8();
        let apostrophe = matches!(c, '\'' | '’') && last.is_some_and(is_latin);
        let plural = c == 's' && end == text.len() && last.is_some_and(|c| c.is_ascii_digit());
        let same = plural
            || last.is_some_and(|last| {
                apostrophe
                    || (matches!(last, '\'' | '’') && is_latin(c))
                    || (run_of(last) == run_of(c) && same_script(last, c))
            });
        match runs.last_mut() {
            Some(run) if same => run.end = end,
            _ => runs.push(at..end),
        }
        last = Some(c);
    }
    runs
}

/// Says a symbol inside a word, unless it only joins two parts.
fn symbols(word: &Word, range: Range<usize>, out: &mut Reading) {
    let text = &word.text;
    for (at, symbol) in text[range.clone()].char_indices() {
        let at = range.start + at;
        let end = at + symbol.len_utf8();
        let between = at > 0 && end < text.len();
        let called = match symbol {
            '-' | '–' | '_' | '\'' | '’' | '.' | ':' | '~' | ',' => "",
            '#' if end == text.len() && at > 0 => "sharp",
            '/' if between && text[..at].ends_with(char::is_alphabetic) => "slash",
            '*' | '^' => "",
            '™' | '®' => "",
            '²' => "squared",
            '³' => "cubed",
            _ if superscript(symbol).is_some() => {
                out.say(
                    word.span_of(at..end),
                    &superscript(symbol).map(|c| by_digit(&c.to_string())).unwrap_or_default(),
                );
                continue;
            }
            _ => name(symbol).unwrap_or_default(),
        };
        out.say(word.span_of(at..end), called);
    }
}

/// A run of letters and digits without separators: "gpt", "4", "x86", "H2O", "B2B".
pub(super) fn say_letters_and_digits(word: &Word, range: Range<usize>, out: &mut Reading) {
    for run in runs(&word.text[range.clone()]) {
        let run = range.start + run.start..range.start + run.end;
        let text = &word.text[run.clone()];
        if text.starts_with(|c: char| c.is_ascii_digit()) {
            digits(word, run.clone(), text, out);
        } else if text.chars().any(char::is_alphanumeric) {
            letters(word, run.clone(), text, out);
        }
    }
}

fn digits(word: &Word, range: Range<usize>, text: &str, out: &mut Reading) {
    if let Some(digits) = text.strip_suffix('s').filter(|digits| digits.len() <= 4) {
        return out.say(word.span_of(range), &format!("{}s", cardinal(digits, false)));
    }
    if text.len() > LETTERS_MAX
        && let Some(repeated) = repeated(text)
    {
        return out.say(word.span_of(range), &by_digit(&repeated));
    }
    let code = text.len() > 4 || (text.len() > 1 && text.starts_with('0'));
    // In pieces, so that a number of any length keeps to its own bytes.
    for start in (0..text.len()).step_by(LETTERS_MAX) {
        let end = (start + LETTERS_MAX).min(text.len());
        let part = &text[start..end];
        let said = if code { by_digit(part) } else { cardinal(part, false) };
        out.say(word.span_of(range.start + start..range.start + end), &said);
    }
}

fn letters(word: &Word, range: Range<usize>, text: &str, out: &mut Reading) {
    let text = text.replace(['’', '‘'], "'");
    let text = text.trim_end_matches('\'');
    let span = word.span_of(range.clone());
    if is_spelled(text) {
        out.spell(span, text);
    } else if text.chars().count() <= LETTERS_MAX {
        out.say(span, acronym::as_word(text).unwrap_or(text));
    } else {
        long(word, range, text, out);
    }
}

/// Short capitals, single consonants and consonants without a vowel: "GPU", "x", "gpt", "html".
fn is_spelled(text: &str) -> bool {
    let plain = text.chars().all(|c| c.is_ascii_alphabetic());
    let capitals = text.chars().all(|c| c.is_ascii_uppercase());
    let vowel = |c: char| "aeiouyAEIOUY".contains(c);
    let single = text.len() == 1;
    plain
        && text.len() <= 5
        && (single || (capitals && acronym::as_word(text).is_none()) || !text.chars().any(vowel))
}

/// A run longer than any word: read in pieces of letters, so that units can be cut between them. A letter that is
/// repeated many times is said a few times.
fn long(word: &Word, range: Range<usize>, text: &str, out: &mut Reading) {
    if let Some(repeated) = repeated(text) {
        return out.say(word.span_of(range), &repeated);
    }
    let letters: Vec<char> = text.chars().collect();
    // Each piece gets the bytes of the same part of the written run.
    let written: Vec<usize> = word.text[range.clone()].char_indices().map(|(at, _)| at).collect();
    for start in (0..letters.len()).step_by(LETTERS_MAX) {
        let end = (start + LETTERS_MAX).min(letters.len());
        let from = range.start + written[start];
        let to = if end == letters.len() { range.end } else { range.start + written[end] };
        let piece: String = letters[start..end].iter().collect();
        out.say(word.span_of(from..to), &piece);
    }
}

/// A few copies of a character, if the text is only this character.
fn repeated(text: &str) -> Option<String> {
    let first = text.chars().next()?;
    text.chars().all(|c| c == first).then(|| text.chars().take(REPEATED_MAX).collect())
}
