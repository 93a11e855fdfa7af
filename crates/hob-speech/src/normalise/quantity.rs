//! A number with its unit: "5km", "5 km", "-3 °C", "50%", "10–20 kg", "3 GB/s".
//! Singular and plural sound different, and the unit may be in the next word.

use super::View;
use super::cardinal::cardinal;
use super::item::{Item, Word};
use super::number::is_decade;
use super::numeral::Numeral;
use super::street::{is_compass, is_current};
use super::unit::{stands_apart, unit_name};
use crate::reading::Reading;

pub(super) fn read(view: View<'_>, out: &mut Reading) -> Option<usize> {
    let found = feet(view, out).or_else(|| inches(view, out)).or_else(|| pressure(view, out));
    if found.is_some() {
        return found;
    }
    let word = view.word().filter(|_| !is_decade(view))?;
    let (about, rest) = prefix(&word.text);
    let (mut amount, length) = Amount::leading(rest, view.british)?;
    amount.said.insert_str(0, about);
    let length = word.text.len() - rest.len() + length;
    if length == word.text.len() {
        return unit_behind(view, &amount, out);
    }
    let symbol = word.text[length..].trim_start_matches('-');
    // "Gate 22A" and "12A High St." have a letter, "a 13A fuse" has amps.
    if symbol == "A" && !is_current(view, &word.text[..length]) {
        return None;
    }
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
    let unit = view.ahead(1).filter(|unit| unit.spaced && !is_compass(view, 1))?;
    if let (Some(name), Some(squared)) = (area(&unit.text), view.ahead(2))
        && let Some(of) = unit_name(&squared.text, amount.is_one, view.british)
    {
        out.say(word.span(), &amount.said);
        out.say(unit.span(), name);
        out.say(squared.span(), &of);
        return Some(3);
    }
    if !stands_apart(&unit.text) && !is_inches(view, unit) {
        return None;
    }
    let name = unit_name(&unit.text, amount.is_one, view.british)?;
    out.say(word.span(), &amount.said);
    out.say(unit.span(), &name);
    Some(2)
}

/// "5 sq ft", "20 cu ft".
fn area(word: &str) -> Option<&'static str> {
    match word {
        "sq" => Some("square"),
        "cu" => Some("cubic"),
        _ => None,
    }
}

/// The "in" of "5 ft 10 in", and of "7 in." at the end.
fn is_inches(view: View<'_>, unit: &Word) -> bool {
    let behind_feet = view.before().is_some_and(|before| before.text == "ft");
    let at_the_end = view.mark_ahead(2) == Some('.') && !view.goes_on(3);
    unit.text == "in" && (behind_feet || at_the_end)
}

/// "5'10"" and "6' tall": feet and inches.
fn feet(view: View<'_>, out: &mut Reading) -> Option<usize> {
    let word = view.word()?;
    let (feet, inches) = word.text.split_once(['\'', '’', '′'])?;
    let is_small =
        |text: &str| (1..=2).contains(&text.len()) && text.bytes().all(|b| b.is_ascii_digit());
    let follows = view.text_ahead(1).unwrap_or_default();
    let is_length = matches!(follows, "tall" | "long" | "wide" | "deep" | "high" | "by");
    if !is_small(feet) || !(is_small(inches) || (inches.is_empty() && is_length)) {
        return None;
    }
    let feet = cardinal(feet, view.british);
    if inches.is_empty() {
        out.say(word.span(), &format!("{feet} feet"));
        return Some(1);
    }
    out.say(word.span(), &format!("{feet} foot {}", cardinal(inches, view.british)));
    Some(1 + usize::from(view.mark_ahead(1) == Some('”')))
}

/// "12" vinyl", "the screen has 27".": the mark stands for inches where it closes no quotation.
fn inches(view: View<'_>, out: &mut Reading) -> Option<usize> {
    let word = view.word()?;
    let number = Numeral::parse(&word.text).filter(|n| !n.negative && n.whole.len() <= 3)?;
    let open = view.items[..view.at].iter().fold(0_usize, |open, item| match item {
        Item::Open('“') => open + 1,
        Item::Mark('”') => open.saturating_sub(1),
        _ => open,
    });
    if view.mark_ahead(1) != Some('”') || open > 0 {
        return None;
    }
    let name = if number.is_one() || view.ahead(2).is_some() { "inch" } else { "inches" };
    out.say(word.span(), &format!("{} {name}", number.in_words(view.british)));
    Some(2)
}

/// "120/80 mmHg" is not a fraction.
fn pressure(view: View<'_>, out: &mut Reading) -> Option<usize> {
    let word = view.word()?;
    let unit = view.ahead(1).filter(|unit| unit.text == "mmHg")?;
    let (upper, lower) = word.text.split_once('/')?;
    let name = unit_name(&unit.text, false, view.british)?;
    let said = |text: &str| Some(Numeral::parse(text)?.in_words(view.british));
    out.say(word.span(), &format!("{} over {}", said(upper)?, said(lower)?));
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
        let said = first.in_words(british);
        let dash = ["–", "-"].into_iter().find(|dash| text[length..].starts_with(dash));
        if let Some(dash) = dash
            && let Some((second, more)) = Numeral::leading(&text[length + dash.len()..])
            && !second.negative
        {
            let said = format!("{said} to {}", second.in_words(british));
            return Some((Amount { said, is_one: false }, length + dash.len() + more));
        }
        Some((Amount { said, is_one: first.is_one() }, length))
    }
}
