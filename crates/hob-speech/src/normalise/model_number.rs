//! Numbers that are a name: "Boeing 737-800", "RTX 4090", "flight 1482", "401(k)". They are read in pairs of digits.
//! The word before decides, so that a number behind another word stays a count.

use super::View;
use super::acronym::is_emphasised;
use super::cardinal::in_words;
use super::item::{Item, Word};
use super::number::is_plural;
use super::numeral::is_digits;
use crate::reading::Reading;
use crate::word_table::has;

const MAKERS: &[&str] = &["Boeing", "Cessna", "Ferrari", "Nokia", "Peugeot", "Porsche"];

/// Words before a number that is a name: "flight 1482", "Form 1099", "Room 312".
const NAMED: &[&str] = &["flight", "form", "squawk", "route", "room", "suite", "error"];

/// Capitals before an amount or a code, which other readers say.
const UNNAMED: &str = "AUD CAD CHF EUR FAX GBP INR ISBN ISO ISSN JPY NZD OTP PIN SSN TEL USD ZIP";

pub(super) fn read(view: View<'_>, out: &mut Reading) -> Option<usize> {
    let word = view.word()?;
    let next = view.text_ahead(1).unwrap_or_default();
    if matches!(next, "hundred" | "thousand" | "million" | "billion" | "trillion") {
        return None;
    }
    let before = view.before().map(|before| &*before.text).unwrap_or_default();
    if MAKERS.contains(&before) {
        let (number, ending) =
            word.text.strip_suffix('s').map_or((&*word.text, ""), |number| (number, "s"));
        let parts: Option<Vec<String>> = number.split('-').map(in_pairs).collect();
        out.say(word.span(), &format!("{}{ending}", parts?.join(" ")));
        return Some(1);
    }
    let has_middle_zero = matches!(word.text.as_bytes(), [b'1'..=b'9', b'0', b'0'..=b'9']);
    let is_name = NAMED.contains(&&*before.to_lowercase())
        || (is_acronym(before, view) && (word.text.len() == 4 || has_middle_zero))
        || (has_middle_zero && (matches!(next, "error" | "page") || is_paragraph(view)));
    let said = in_pairs(&word.text).filter(|_| is_name && !is_plural(next))?;
    out.say(word.span(), &said);
    Some(1)
}

/// "RTX 4090", "UA 2402", "CS 101".
fn is_acronym(before: &str, view: View<'_>) -> bool {
    (2..=4).contains(&before.len())
        && before.bytes().all(|b| b.is_ascii_uppercase())
        && !view.shouted
        && !has(UNNAMED, before)
        && !is_emphasised(before)
}

/// "401(k)", "501(c)(3)": a letter in brackets directly behind the number.
fn is_paragraph(view: View<'_>) -> bool {
    let is_open = matches!(view.items.get(view.at + 1), Some(Item::Open('(')));
    let is_letter = |word: &Word| word.text.len() == 1 && !word.spaced;
    is_open && view.ahead(2).is_some_and(is_letter) && view.mark_ahead(3) == Some(')')
}

/// "747" → "seven forty seven", "800" → "eight hundred". Years and thousands are left to the other readers.
pub(super) fn in_pairs(text: &str) -> Option<String> {
    let is_name = is_digits(text, 3..=4) && !text.starts_with('0');
    let number: u64 = text.parse().ok().filter(|_| is_name)?;
    if (1900..2100).contains(&number) || number % 1000 < 10 {
        return None;
    }
    let first = in_words(number / 100, false);
    Some(match number % 100 {
        0 => format!("{first} hundred"),
        rest @ 1..10 => format!("{first} oh {}", in_words(rest, false)),
        rest => format!("{first} {}", in_words(rest, false)),
    })
}
