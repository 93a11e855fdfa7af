//! Numbers that name a machine: "Boeing 747", "Boeing 737-800", "Porsche 911". They are read in pairs of digits.
//! The maker's name decides, so that a number behind another name stays a count.

use super::View;
use super::cardinal::in_words;
use crate::reading::Reading;

const MAKERS: &[&str] = &["Boeing", "Cessna", "Ferrari", "Nokia", "Peugeot", "Porsche"];

pub(super) fn read(view: View<'_>, out: &mut Reading) -> Option<usize> {
    let word = view.word()?;
    let is_count = matches!(view.text_ahead(1), Some("thousand" | "million" | "billion"));
    if is_count || !MAKERS.contains(&&*view.before()?.text) {
        return None;
    }
    let (number, plural) = match word.text.strip_suffix('s') {
        Some(number) => (number, "s"),
        None => (&*word.text, ""),
    };
    let parts: Option<Vec<String>> = number.split('-').map(in_pairs).collect();
    out.say(word.span(), &format!("{}{plural}", parts?.join(" ")));
    Some(1)
}

/// "747" → "seven forty seven", "800" → "eight hundred". Years are left to the other readers.
fn in_pairs(text: &str) -> Option<String> {
    let is_name = (3..=4).contains(&text.len())
        && text.bytes().all(|b| b.is_ascii_digit())
        && !text.starts_with('0');
    let number: u64 = text.parse().ok().filter(|_| is_name)?;
    if (1900..2100).contains(&number) {
        return None;
    }
    let first = in_words(number / 100, false);
    Some(match number % 100 {
        0 => format!("{first} hundred"),
        rest @ 1..10 => format!("{first} oh {}", in_words(rest, false)),
        rest => format!("{first} {}", in_words(rest, false)),
    })
}
