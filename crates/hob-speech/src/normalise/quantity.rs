//! A number with its unit: "5km", "5 km", "-3 °C", "50%", "10–20 kg", "3 GB/s".
//! Singular and plural sound different, and the unit may be in the next word.

use super::View;
use super::number::is_decade;
use super::numeral::Numeral;
use super::unit::{stands_apart, unit_name};
use crate::reading::Reading;

pub(super) fn read(view: View<'_>, out: &mut Reading) -> Option<usize> {
    let word = view.word().filter(|_| !is_decade(view))?;
    let (about, rest) = prefix(&word.text);
    let (mut amount, length) = Amount::leading(rest, view.british)?;
    amount.said.insert_str(0, about);
    let length = word.text.len() - rest.len() + length;
    if length == word.text.len() {
        return unit_behind(view, &amount, out);
    }
    let symbol = word.text[length..].trim_start_matches('-');
    let name = unit_name(symbol, amount.is_one, view.british)?;
    out.say(word.span_of(0..length), &amount.said);
    out.say(word.span_of(word.text.len() - symbol.len()..word.text.len()), &name);
    Some(1)
}

/// "~5 km", "<3 ms": the text before the number, in words.
fn prefix(text: &str) -> (&'static str, &str) {
    const PREFIXES: [(char, &str); 7] = [
        ('~', "about "),
        ('≈', "about "),
        ('<', "less than "),
        ('>', "more than "),
        ('≤', "at most "),
        ('≥', "at least "),
        ('±', "plus or minus "),
    ];
    PREFIXES
        .iter()
        .find_map(|(symbol, words)| Some((*words, text.strip_prefix(*symbol)?)))
        .unwrap_or(("", text))
}

fn unit_behind(view: View<'_>, amount: &Amount, out: &mut Reading) -> Option<usize> {
    let word = view.word()?;
    let unit = view.ahead(1).filter(|unit| unit.spaced && stands_apart(&unit.text))?;
    let name = unit_name(&unit.text, amount.is_one, view.british)?;
    out.say(word.span(), &amount.said);
    out.say(unit.span(), &name);
    Some(2)
}

/// One number, or two with "to" between them.
struct Amount {
    said: String,
    is_one: bool,
}

impl Amount {
    fn leading(text: &str, british: bool) -> Option<(Amount, usize)> {
        let (first, length) = Numeral::leading(text)?;
        let said = first.said(british);
        let dash = ["–", "-"].into_iter().find(|dash| text[length..].starts_with(dash));
        if let Some(dash) = dash
            && let Some((second, more)) = Numeral::leading(&text[length + dash.len()..])
            && !second.negative
        {
            let said = format!("{said} to {}", second.said(british));
            return Some((Amount { said, is_one: false }, length + dash.len() + more));
        }
        Some((Amount { said, is_one: first.is_one() }, length))
    }
}
