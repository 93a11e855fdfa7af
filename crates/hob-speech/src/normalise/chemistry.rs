//! Chemical formulas and ions: "NaCl", "CaCO3", "CuSO4·5H2O", "Fe³⁺", "Cl-", and antibodies such as "IgG".
//! Formulas in capitals only ("H2O") are read as other mixtures of letters and digits are.

use std::ops::Range;

use super::View;
use super::cardinal::cardinal;
use super::item::Word;
use super::number::superscript;
use crate::reading::Reading;
use crate::word_table::has;

/// Words that look like a formula.
const NO_FORMULAS: &[&str] = &["NaN", "InC", "CoS"];

/// Written with a small letter, and spelled.
const SPELLED: &[&str] = &["IgA", "IgD", "IgE", "IgG", "IgM"];

/// Ions with a hyphen for a minus. Other words with a hyphen at the end are prefixes.
const ANIONS: &[&str] = &["Cl-", "F-", "Br-", "I-", "OH-"];

pub(super) fn read(view: View<'_>, out: &mut Reading) -> Option<usize> {
    let word = view.word()?;
    if SPELLED.contains(&&*word.text) {
        out.spell(word.span(), &word.text.to_uppercase());
        return Some(1);
    }
    let parts = formula(&word.text)?;
    for (range, part) in parts {
        say(word, range, part, out);
    }
    Some(1)
}

/// A part of a formula.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Part {
    Element,
    Count,
    /// "³⁺", "+" at the end.
    Charge,
    /// The dot of "CuSO4·5H2O".
    Dot,
}

fn say(word: &Word, range: Range<usize>, part: Part, out: &mut Reading) {
    let text = &word.text[range.clone()];
    let span = word.span_of(range);
    match part {
        Part::Element => out.spell(span, &text.to_uppercase()),
        Part::Count => out.say(span, &cardinal(text, false)),
        Part::Dot => out.say(span, "dot"),
        Part::Charge => {
            let number: String =
                text.chars().filter_map(superscript).filter(|c| *c != '-').collect();
            let number = if number.is_empty() { number } else { cardinal(&number, false) + " " };
            let sign = if text.ends_with(['⁺', '+']) { "plus" } else { "minus" };
            out.say(span, &format!("{number}{sign}"));
        }
    }
}

/// The parts of a formula that needs this reader: two elements, one of which has a small letter, or a charge.
/// "FIFOs" is the plural of an acronym.
fn formula(text: &str) -> Option<Vec<(Range<usize>, Part)>> {
    let is_plural = text.strip_suffix('s').is_some_and(|stem| !stem.contains(char::is_lowercase));
    if is_plural || text.len() > 32 || !text.starts_with(|c: char| c.is_ascii_alphanumeric()) {
        return None;
    }
    let charge = charge(text);
    let mut parts = Vec::new();
    let mut at = 0;
    while at < charge {
        let (length, part) = next_part(&text[at..charge])?;
        parts.push((at..at + length, part));
        at += length;
    }
    let elements = parts.iter().filter(|(_, part)| *part == Part::Element).count();
    let has_small = parts.iter().any(|(range, part)| *part == Part::Element && range.len() == 2);
    let is_compound = elements >= 2 && has_small && !NO_FORMULAS.contains(&text);
    let is_ion = elements >= 1 && charge < text.len();
    if is_ion {
        parts.push((charge..text.len(), Part::Charge));
    }
    (is_compound || is_ion).then_some(parts)
}

/// Where the charge begins, or the length of the text.
fn charge(text: &str) -> usize {
    let signed = text.strip_suffix(['⁺', '⁻']);
    if let Some(rest) = signed {
        return rest.trim_end_matches(|c| superscript(c).is_some()).len();
    }
    let is_ion = (text.ends_with('+') && text.len() > 1) || ANIONS.contains(&text);
    if is_ion { text.len() - 1 } else { text.len() }
}

fn next_part(text: &str) -> Option<(usize, Part)> {
    let first = text.chars().next()?;
    match first {
        '0'..='9' => {
            let length = text.bytes().take_while(u8::is_ascii_digit).count();
            (length <= 3).then_some((length, Part::Count))
        }
        '·' | '⋅' => Some((first.len_utf8(), Part::Dot)),
        'A'..='Z' => {
            let has_small = text[1..].starts_with(|c: char| c.is_ascii_lowercase());
            let length = if has_small { 2 } else { 1 };
            is_element(&text[..length]).then_some((length, Part::Element))
        }
        _ => None,
    }
}

pub(super) fn is_element(symbol: &str) -> bool {
    has(ELEMENTS, symbol)
}

const ELEMENTS: &str = "
    H He Li Be B C N O F Ne Na Mg Al Si P S Cl Ar K Ca Sc Ti V Cr Mn Fe Co Ni Cu Zn Ga Ge As Se Br
    Kr Rb Sr Y Zr Nb Mo Tc Ru Rh Pd Ag Cd In Sn Sb Te I Xe Cs Ba La Ce Pr Nd Sm Eu Gd Tb Dy Ho Er
    Tm Yb Lu Hf Ta W Re Os Ir Pt Au Hg Tl Pb Bi Po At Rn Fr Ra Ac Th Pa U Np Pu Am";

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn formulas_are_known_and_words_are_not() {
        for text in ["NaCl", "CaCO3", "KMnO4", "Fe³⁺", "Na+", "Cl-", "SO4²⁻", "2NaCl", "CuSO4·5H2O"]
        {
            assert!(formula(text).is_some(), "{text}");
        }
        for text in [
            "H2O", "GPU", "He", "In", "NaN", "PhD", "IoT", "NoSQL", "McCoy", "FIFOs", "Co-", "20+",
            "C3PO",
        ] {
            assert_eq!(formula(text), None, "{text}");
        }
    }
}
