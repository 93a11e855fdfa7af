//! Music: chords ("Cmaj7", "F♯m7") and the signature of a time ("3/4 time").
//! A chord needs a number behind its kind, because "Am" and "Em" are words and units.

use super::View;
use super::cardinal::cardinal;
use super::numeral::is_digits;
use crate::reading::Reading;
use crate::word_table::find;

const KINDS: &str = "
    m minor, min minor, maj major, dim diminished, aug augmented, sus suspended, add added";

pub(super) fn read(view: View<'_>, out: &mut Reading) -> Option<usize> {
    chord(view, out).or_else(|| signature(view, out))
}

fn chord(view: View<'_>, out: &mut Reading) -> Option<usize> {
    let word = view.word()?;
    let rest = word.text.strip_prefix(|c: char| ('A'..='G').contains(&c))?;
    let signs = [("#", "sharp "), ("♯", "sharp "), ("♭", "flat "), ("b", "flat ")];
    let signed = signs.iter().find_map(|(sign, name)| Some((*name, rest.strip_prefix(*sign)?)));
    let (sign, rest) = signed.unwrap_or(("", rest));
    let number = rest.trim_start_matches(|c: char| c.is_ascii_lowercase());
    let kind = find(KINDS, &rest[..rest.len() - number.len()])?;
    let is_chord = match kind {
        "suspended" | "added" => matches!(number, "2" | "4" | "9"),
        _ => matches!(number, "6" | "7" | "9" | "11" | "13"),
    };
    if !is_chord {
        return None;
    }
    out.spell(word.span_of(0..1), &word.text[..1]);
    let said = format!("{sign}{kind} {}", cardinal(number, false));
    out.say(word.span_of(1..word.text.len()), &said);
    Some(1)
}

/// "in 3/4 time" is not a fraction. "1/2 time" may be one.
fn signature(view: View<'_>, out: &mut Reading) -> Option<usize> {
    let word = view.word()?;
    let (beats, value) = word.text.split_once('/')?;
    let is_count = is_digits(beats, 1..=2) && beats != "1";
    let is_signature = is_count && matches!(value, "2" | "4" | "8" | "16");
    if !is_signature || view.text_ahead(1) != Some("time") {
        return None;
    }
    out.say(word.span(), &format!("{} {}", cardinal(beats, false), cardinal(value, false)));
    Some(1)
}
