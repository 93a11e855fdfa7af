//! All other words: abbreviations, contractions, compounds, mixtures of letters and digits.
//! The last reader: it always says something if there is a letter or a digit.

use std::ops::Range;

use super::View;
use super::acronym;
use super::camel::{self, Humps};
use super::cardinal::{by_digit, cardinal, plural, year};
use super::item::{Item, Word};
use super::model_number::in_pairs;
use super::number::{decade_form, ordinal_form, superscript};
use super::numeral::is_digits;
use super::roman;
use super::symbol::{greek_letter, name};
use super::unit::unit_name;
use crate::abbreviations::{Ending, abbreviation};
use crate::reading::Reading;
use crate::scripts::same_script;
use crate::word_table::has;

/// Longer runs of letters are said in pieces of this many letters, each with its own bytes.
const LETTERS_MAX: usize = 40;

/// A character that is repeated many times is said this many times.
const REPEATED_MAX: usize = 8;

pub(super) fn read(view: View<'_>, out: &mut Reading) -> Option<usize> {
    let word = view.word()?;
    let short = dated(view, word, out).or_else(|| room(view, word, out));
    if let Some(used) = short.or_else(|| short_form(view, word, out)) {
        return Some(used);
    }
    let is_cut = !view.shouted && (mixed_capitals(word, out) || humps(word, out));
    if is_cut || compound(view, word, out) {
        return Some(1);
    }
    if is_spoken_as_it_is(&word.text) && (view.shouted || !has_spelled_part(&word.text)) {
        let text = word.text.replace(['’', '‘'], "'");
        out.say(word.span(), &if view.shouted { text.to_lowercase() } else { text });
        return Some(1);
    }
    pieces(view, word, 0..word.text.len(), out);
    Some(1)
}

/// "c. 1450", "b. 1809", "d. 1882": the year shows that the letter is a short form.
fn dated(view: View<'_>, word: &Word, out: &mut Reading) -> Option<usize> {
    let said = match &*word.text {
        "c" => "circa",
        "b" => "born",
        "d" => "died",
        "fl" => "flourished",
        _ => return None,
    };
    let year = view.text_ahead(2).filter(|_| view.mark_ahead(1) == Some('.'))?;
    if !is_digits(year, 4..=4) {
        return None;
    }
    out.say(word.span(), said);
    Some(2)
}

/// "Rm. 312". The command "rm" stays spelled.
fn room(view: View<'_>, word: &Word, out: &mut Reading) -> Option<usize> {
    let stop = usize::from(view.mark_ahead(1) == Some('.'));
    let number = view.text_ahead(1 + stop).filter(|_| word.text == "Rm")?;
    if !number.starts_with(|c: char| c.is_ascii_digit()) {
        return None;
    }
    out.say(word.span(), "Room");
    Some(1 + stop)
}

/// "Dr." and "etc.", with the full stop, unless it also ends the sentence.
fn short_form(view: View<'_>, word: &Word, out: &mut Reading) -> Option<usize> {
    if let Some(said) = slashed(&word.text) {
        out.say(word.span(), said);
        return Some(1);
    }
    let found = abbreviation(&word.text)?;
    let stop = view.mark_ahead(1) == Some('.');
    let follows = follower(view, 1 + usize::from(stop));
    let number = follows.is_some_and(|next| is_number(&next.text));
    let before = view.before().map(|before| &*before.text).unwrap_or_default();
    let is_general = word.text == "Gen" && matches!(before, "Lt" | "Maj" | "Brig");
    let is_complete = stop || word.text.contains('.') || is_title(&word.text) || is_general;
    if !(is_complete || number && is_label(&word.text)) {
        return None;
    }
    if found.ending == Ending::BeforeNumber && !number && !is_edition(view, word) {
        return None;
    }
    let goes_on = view.goes_on(2);
    let said = match &*word.text {
        "Ft" if follows.is_some_and(|next| next.text.starts_with(char::is_uppercase)) => "Fort",
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

/// The word at `distance`, possibly in brackets: "Eq. (5)".
fn follower(view: View<'_>, distance: usize) -> Option<&Word> {
    let is_open = matches!(view.items.get(view.at + distance), Some(Item::Open('(')));
    view.ahead(distance + usize::from(is_open))
}

/// "5", "#5", "VII", but not the pronoun "I".
fn is_number(text: &str) -> bool {
    text.starts_with(|c: char| c.is_ascii_digit() || c == '#')
        || (text.len() > 1 && roman::value(text).is_some())
}

/// Short forms that need no full stop before a number: "Apt 12D".
fn is_label(word: &str) -> bool {
    matches!(word, "Apt" | "Bldg" | "Vol" | "Fig" | "Ext" | "Tel")
}

/// "2nd ed."
fn is_edition(view: View<'_>, word: &Word) -> bool {
    let is_ordinal = |before: &Word| ordinal_form(&before.text, false).is_some();
    matches!(&*word.text, "ed" | "edn") && view.before().is_some_and(is_ordinal)
}

fn slashed(word: &str) -> Option<&'static str> {
    match word {
        "w/o" => Some("without"),
        "w/" => Some("with"),
        "c/o" => Some("care of"),
        _ => None,
    }
}

/// British titles have no full stop.
fn is_title(word: &str) -> bool {
    const TITLES: &str = "Mr Mrs Ms Dr Prof vs Jr Sr Ltd Inc etc Lt Capt Sgt Cpl Cllr";
    has(TITLES, word)
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

/// "USB-C" and "npm". In "X-ray", the letter is read as one anyway.
fn has_spelled_part(text: &str) -> bool {
    let capitals = |part: &str| part.len() > 1 && part.bytes().all(|b| b.is_ascii_uppercase());
    (text.contains('-') && text.split('-').any(capitals)) || is_consonants(text)
}

/// "npm", "rm": small letters without a vowel are spelled, unless they are a sound or a short form.
fn is_consonants(text: &str) -> bool {
    const SOUNDS: [&str; 17] = [
        "hm", "hmm", "hmph", "mhm", "mm", "sh", "shh", "psst", "pst", "pff", "pfft", "tsk", "nth",
        "brr", "grr", "zz", "th",
    ];
    let is_consonant = |b: u8| b.is_ascii_lowercase() && !b"aeiouy".contains(&b);
    let is_repeated = text.as_bytes().windows(3).any(|w| w[0] == w[1] && w[1] == w[2]);
    (2..=5).contains(&text.len())
        && text.bytes().all(is_consonant)
        && !is_repeated
        && !SOUNDS.contains(&text)
        && abbreviation(text).is_none()
        && unit_name(text, true, false).is_none()
}

/// "macOS", "mRNA", "pH": small letters, then capitals that are spelled.
fn mixed_capitals(word: &Word, out: &mut Reading) -> bool {
    let text = &word.text;
    let head = text.trim_end_matches(|c: char| c.is_ascii_uppercase()).len();
    let tail = text.len() - head;
    let is_tail = (2..=4).contains(&tail) || (head == 1 && tail == 1);
    let is_head = text[..head].ends_with(|c: char| c.is_ascii_lowercase())
        && text[..head].bytes().all(|b| b.is_ascii_alphabetic())
        && !matches!(&text[..head], "Mc" | "Mac" | "Lo");
    if !is_tail || !is_head {
        return false;
    }
    letters(word, 0..head, &text[..head], out);
    letters(word, head..text.len(), &text[head..], out);
    true
}

/// "getUserName", "HTTPServer".
fn humps(word: &Word, out: &mut Reading) -> bool {
    let Some(parts) = camel::words(&word.text, Humps::Identifier) else { return false };
    for part in parts {
        letters(word, part.clone(), &word.text[part], out);
    }
    true
}

/// A run of letters. In a tag or the name of a user, its capitals begin words: "#WorldBookDay", "r/AskScience".
fn run_of_letters(word: &Word, range: Range<usize>, out: &mut Reading) {
    let text = &word.text[range.clone()];
    let is_tag = ["#", "@", "r/", "u/"].iter().any(|mark| word.text.starts_with(mark));
    let parts = camel::words(text, Humps::Tag).filter(|_| is_tag);
    let Some(parts) = parts else { return letters(word, range, text, out) };
    for part in parts {
        letters(word, range.start + part.start..range.start + part.end, &text[part], out);
    }
}

/// "18th-century", "mid-1990s": a number that has a form of its own, joined to words.
fn compound(view: View<'_>, word: &Word, out: &mut Reading) -> bool {
    let is_dated = ["mid-", "Mid-"].iter().any(|before| word.text.starts_with(before));
    let form = |part: &str| {
        ordinal_form(part, view.british)
            .or_else(|| decade_form(part, view.british).filter(|_| part.len() > 4 || is_dated))
    };
    let parts: Vec<&str> = word.text.split('-').collect();
    let is_compound = (2..=4).contains(&parts.len())
        && parts.iter().all(|part| !part.is_empty())
        && parts.iter().any(|part| form(part).is_some());
    if !is_compound {
        return false;
    }
    let mut from = 0;
    for part in parts {
        let range = from..from + part.len();
        from = range.end + 1;
        match form(part) {
            Some(said) => out.say(word.span_of(range), &said),
            None => pieces(view, word, range, out),
        }
    }
    true
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

/// Reads letters, digits and symbols of a part of a word one after the other.
fn pieces(view: View<'_>, word: &Word, part: Range<usize>, out: &mut Reading) {
    for run in runs(&word.text[part.clone()]) {
        let range = part.start + run.start..part.start + run.end;
        let text = &word.text[range.clone()];
        match text.chars().next().map(run_of) {
            Some(Run::Other) => symbols(word, range, out),
            Some(Run::Digits) => digits(word, range, view.british, out),
            _ if is_by(word, &range) => out.say(word.span_of(range), "by"),
            _ if view.shouted => letters(word, range, &text.to_lowercase(), out),
            _ => run_of_letters(word, range, out),
        }
    }
}

/// The x of "2x4" and "1920x1080", but not of "0x1A".
fn is_by(word: &Word, range: &Range<usize>) -> bool {
    let (before, after) = (&word.text[..range.start], &word.text[range.end..]);
    let is_digit = |c: char| c.is_ascii_digit();
    &word.text[range.clone()] == "x"
        && before != "0"
        && before.ends_with(is_digit)
        && after.starts_with(is_digit)
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
        let is_digit = |c: char| c.is_ascii_digit();
        let in_number = text[..at].ends_with(is_digit) && text[end..].starts_with(is_digit);
        let called = match symbol {
            '.' if in_number => "point",
            '-' if between && text.contains('=') => "minus",
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
            digits(word, run.clone(), false, out);
        } else if text.chars().any(char::is_alphanumeric) {
            run_of_letters(word, run, out);
        }
    }
}

fn digits(word: &Word, range: Range<usize>, british: bool, out: &mut Reading) {
    let text = &word.text[range.clone()];
    if let Some(digits) = text.strip_suffix('s').filter(|digits| digits.len() <= 4) {
        return out.say(word.span_of(range), &plural(&cardinal(digits, british)));
    }
    let before = &word.text[..range.start];
    if let Some(number) = joined_year(before, text) {
        return out.say(word.span_of(range), &year(number, british));
    }
    if let Some(pairs) = in_pairs(text).filter(|_| is_model(before)) {
        return out.say(word.span_of(range), &pairs);
    }
    if text.len() > LETTERS_MAX
        && let Some(repeated) = repeated(text)
    {
        return out.say(word.span_of(range), &by_digit(&repeated));
    }
    let is_fraction = text.len() > 2
        && before
            .strip_suffix('.')
            .is_some_and(|whole| whole.ends_with(|c: char| c.is_ascii_digit()));
    let code = text.len() > 4 || (text.len() > 1 && text.starts_with('0')) || is_fraction;
    // In pieces, so that a number of any length keeps to its own bytes.
    for start in (0..text.len()).step_by(LETTERS_MAX) {
        let end = (start + LETTERS_MAX).min(text.len());
        let part = &text[start..end];
        let said = if code { by_digit(part) } else { cardinal(part, british) };
        out.say(word.span_of(range.start + start..range.start + end), &said);
    }
}

/// Whether a number behind this names a machine, a flight or a file: "A320", "DL1482", "AX-4402".
fn is_model(before: &str) -> bool {
    before.trim_end_matches('-').ends_with(|c: char| c.is_ascii_uppercase())
}

/// "ES2022", "CVE-2024", "Photos\\2023": four digits that are a year of our time.
fn joined_year(before: &str, digits: &str) -> Option<u64> {
    let is_joined =
        before.ends_with(|c: char| c.is_ascii_alphabetic() || matches!(c, '-' | '/' | '\\'));
    let number: u64 = digits.parse().ok()?;
    (is_joined && (1990..2040).contains(&number)).then_some(number)
}

fn letters(word: &Word, range: Range<usize>, text: &str, out: &mut Reading) {
    let text = text.replace(['’', '‘'], "'");
    let text = text.trim_end_matches('\'');
    let span = word.span_of(range.clone());
    if let Some(name) = greek_letter(text) {
        out.say(span, name);
    } else if (is_spelled(text) && !is_shout(word, text)) || is_consonants(text) {
        out.spell(span, text);
    } else if text.chars().count() <= LETTERS_MAX {
        out.say(span, acronym::as_word(text).unwrap_or(text));
    } else {
        long(word, range, text, out);
    }
}

/// "SAVE20", "MAX_SIZE": capitals that are a word.
fn is_shout(word: &Word, text: &str) -> bool {
    let length_min = if word.text.contains('_') { 3 } else { 4 };
    text.len() >= length_min && acronym::is_emphasised(text)
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
