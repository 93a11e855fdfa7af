//! Roman numerals after names and headings: "Henry VIII", "Chapter IV", "World War II".
//! They need the word before: alone, "I" and "MIX" are words.

use super::View;
use super::cardinal::{in_words, ordinal};
use super::item::Item;
use crate::reading::Reading;
use crate::word_table::has;

/// Words that are numbered, not named: "Part II" is "part two", but "Louis II" is "the second".
const COUNTED: &str = "
    act appendix article book chapter class episode figure grade level mark match section part
    phase psalm scene season stage step table title tier type unit version vol volume war bowl
    apollo olympiad fantasy quest rocky windows lesson round track wave";

/// Names of kings, emperors and popes who were the fifth.
const REGNAL: &str = "Alfonso Charles Edward Ferdinand George Henry Philip Pius Sixtus";

pub(super) fn read(view: View<'_>, out: &mut Reading) -> Option<usize> {
    let word = view.word()?;
    if let Some(war) = world_war(&word.text) {
        out.say(word.span(), war);
        return Some(1);
    }
    let (text, ending) = possessive(&word.text);
    let number = value(text).or_else(|| small_scene(view, text))?;
    if view.at >= 2 && view.items[view.at - 1] == Item::Mark('.') && text.len() > 1 {
        return behind_short_form(view, number, out);
    }
    let before = &view.before()?.text;
    let counted = has(COUNTED, &before.to_lowercase());
    if text == "V" && has(REGNAL, before) {
        out.say(word.span(), &format!("the fifth{ending}"));
        return Some(1);
    }
    let named = before.chars().next().is_some_and(char::is_uppercase)
        && before.chars().skip(1).any(char::is_lowercase)
        && text.len() > 1
        && number < 40;
    // "I" alone is the pronoun, and "V" or "X" an initial, unless a counted word precedes it.
    match (counted, named) {
        (true, _) if word.text != "I" || !view.goes_on(1) => {
            out.say(word.span(), &format!("{}{ending}", in_words(number, view.british)));
        }
        (false, true) if !view.shouted => {
            let said = ordinal(&number.to_string(), view.british);
            out.say(word.span(), &format!("the {said}{ending}"));
        }
        _ => return None,
    }
    Some(1)
}

fn world_war(text: &str) -> Option<&'static str> {
    match text {
        "WWI" => Some("World War one"),
        "WWII" => Some("World War two"),
        _ => None,
    }
}

/// "VI's" → "VI" and "'s".
fn possessive(text: &str) -> (&str, &'static str) {
    let stem = text.strip_suffix("'s").or_else(|| text.strip_suffix("’s"));
    stem.map_or((text, ""), |stem| (stem, "'s"))
}

/// "scene iii". A single "i" counts only at the end.
fn small_scene(view: View<'_>, text: &str) -> Option<u64> {
    let before = view.before()?.text.to_lowercase();
    let is_scene = matches!(&*before, "act" | "scene" | "chapter" | "part");
    let is_small = text.bytes().all(|b| b.is_ascii_lowercase());
    let is_clear = text.len() > 1 || !view.goes_on(1);
    if is_scene && is_small && is_clear { value(&text.to_uppercase()) } else { None }
}

/// "Vol. III", "ch. IV".
fn behind_short_form(view: View<'_>, number: u64, out: &mut Reading) -> Option<usize> {
    let word = view.word()?;
    let before = view.items[view.at - 2].word()?.text.to_lowercase();
    if !["art", "bk", "ch", "chap", "fig", "pt", "sec", "vol"].contains(&before.as_str()) {
        return None;
    }
    out.say(word.span(), &in_words(number, view.british));
    Some(1)
}

/// The value of a numeral in its standard form, up to 399. D and M are no signs here, because "MIX" is a word.
pub(super) fn value(text: &str) -> Option<u64> {
    let is_numeral = (1..=8).contains(&text.len()) && text.bytes().all(|b| b"IVXLC".contains(&b));
    if is_numeral { (1..400).find(|number| roman_numeral(*number) == text) } else { None }
}

fn roman_numeral(mut number: u64) -> String {
    const SIGNS: [(u64, &str); 9] = [
        (100, "C"),
        (90, "XC"),
        (50, "L"),
        (40, "XL"),
        (10, "X"),
        (9, "IX"),
        (5, "V"),
        (4, "IV"),
        (1, "I"),
    ];
    let mut out = String::new();
    for (value, sign) in SIGNS {
        while number >= value {
            out.push_str(sign);
            number -= value;
        }
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_well_formed_numerals_count() {
        for (text, expect) in [
            ("I", Some(1)),
            ("IV", Some(4)),
            ("VIII", Some(8)),
            ("XIV", Some(14)),
            ("XLIX", Some(49)),
            ("XCIX", Some(99)),
            ("IIII", None),
            ("CCCC", None),
            ("CCCXCIX", Some(399)),
            ("VX", None),
            ("MIX", None),
            ("hi", None),
            ("", None),
        ] {
            assert_eq!(value(text), expect, "{text}");
        }
    }
}
