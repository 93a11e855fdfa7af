//! A number with its unit: "5km", "5 km", "-3 °C", "50%", "10–20 kg", "3 GB/s".
//! Singular and plural sound different, and the unit may be in the next word.

use super::View;
use super::cardinal::cardinal;
use super::item::{Item, Word};
use super::number::{fraction, is_decade};
use super::numeral::{Numeral, is_digits};
use super::street::{is_compass, is_current};
use super::unit::{stands_apart, unit_name};
use crate::reading::Reading;
use crate::word_table::has;

pub(super) fn read(view: View<'_>, out: &mut Reading) -> Option<usize> {
    let found = feet(view, out)
        .or_else(|| inches(view, out))
        .or_else(|| pressure(view, out))
        .or_else(|| stone(view, out))
        .or_else(|| part(view, out));
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
    let joined = &word.text[length..];
    let symbol = joined.trim_start_matches('-');
    // "Gate 22A" and "12A High St." have a letter, "a 13A fuse" has amps.
    if symbol == "A" && !is_current(view, &word.text[..length]) {
        return None;
    }
    if is_numbered(view, symbol) {
        return None;
    }
    let is_one = amount.is_one || symbol.len() < joined.len() || is_attribute(view, 1);
    let name = unit_name(symbol, is_one, view.british)?;
    out.say(word.span_of(0..length), &amount.said);
    out.say(word.span_of(word.text.len() - symbol.len()..word.text.len()), &name);
    Some(1)
}

/// Words before a number with a letter, which is a name: "Runway 27L", "Rte. 9W", "Year 11s".
const NUMBERED: &str = "
    apartment apt bay class exit flat gate grade lot platform room route row rte runway seat unit
    year";

fn is_numbered(view: View<'_>, symbol: &str) -> bool {
    let at = if view.mark_before() == Some('.') { 2 } else { 1 };
    let before = view.at.checked_sub(at).and_then(|at| view.items[at].word());
    let is_letter = symbol.len() == 1 && symbol.bytes().all(|b| b.is_ascii_uppercase());
    (is_letter || symbol == "s")
        && before.is_some_and(|before| has(NUMBERED, &before.text.to_lowercase()))
}

/// "a 60 W bulb", "a 20-mg tablet": before a noun, a unit behind an article is in the singular. `noun` is the distance
/// of the word behind the unit.
pub(super) fn is_attribute(view: View<'_>, noun: usize) -> bool {
    const OTHERS: &str = "
        a above after against along an and apart are as at away back before behind below between by
        during each every fast for from high in into is later less long more of off on onto or over
        per since so than that the then through to too under until up was when while wide with";
    let is_article = |word: &Word| matches!(&*word.text, "a" | "A" | "an" | "An" | "another");
    let is_noun =
        |word: &Word| word.text.bytes().all(|b| b.is_ascii_lowercase()) && !has(OTHERS, &word.text);
    view.before().is_some_and(is_article) && view.ahead(noun).is_some_and(is_noun)
}

/// "12st 4lb": no ordinal ends like this.
fn stone(view: View<'_>, out: &mut Reading) -> Option<usize> {
    let word = view.word()?;
    let number = Numeral::parse(word.text.strip_suffix("st")?)?.small()?;
    if number % 10 == 1 && number % 100 != 11 {
        return None;
    }
    out.say(word.span(), &format!("{} stone", cardinal(&number.to_string(), view.british)));
    Some(1)
}

/// "¾ tsp", "1/8 tsp", "½ mi": a part of a unit.
fn part(view: View<'_>, out: &mut Reading) -> Option<usize> {
    let word = view.word()?;
    let unit = view.ahead(1).filter(|unit| unit.spaced && stands_apart(&unit.text))?;
    let is_rate = word.text.split_once('/').is_some_and(|(_, lower)| lower.len() > 2);
    let said = fraction(&word.text, view.british).filter(|_| !is_rate)?;
    let is_whole = said.contains(" and ");
    let name = unit_name(&unit.text, !is_whole, view.british)?;
    let is_an = name.starts_with(['a', 'e', 'i', 'o']) || name.starts_with("hour");
    let article = if is_an { "an" } else { "a" };
    let ends = ["half", "third", "quarter", "fifth", "sixth", "eighth", "thirds", "quarters"];
    let is_part = ends.iter().any(|end| said.ends_with(end)) || said.ends_with("ths");
    if !is_part {
        return None;
    }
    out.say(word.span(), if said == "one half" { "half" } else { &said });
    let name = match (is_whole, &*said) {
        (true, _) => name,
        (false, "one half") => format!("{article} {name}"),
        (false, _) => format!("of {article} {name}"),
    };
    out.say(unit.span(), &name);
    Some(2)
}

/// "~5 km", "<3 ms": the text before the number, in words.
fn prefix(text: &str) -> (&'static str, &str) {
    const PREFIXES: [(char, &str); 8] = [
        ('+', "plus "),
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
    if let Some((ounces, used)) = fluid_ounces(view) {
        let is_one = amount.is_one || is_attribute(view, used);
        out.say(word.span(), &amount.said);
        out.say(unit.span(), "fluid");
        out.say(ounces.span(), if is_one { "ounce" } else { "ounces" });
        return Some(used);
    }
    if !stands_apart(&unit.text) && !is_inches(view, unit) {
        return None;
    }
    let is_one = amount.is_one || is_attribute(view, 2);
    let name = unit_name(&unit.text, is_one, view.british)?;
    out.say(word.span(), &amount.said);
    out.say(unit.span(), &name);
    Some(2)
}

/// The "oz" of "16 fl. oz.", and how many items all of it takes.
fn fluid_ounces(view: View<'_>) -> Option<(&Word, usize)> {
    let used = 2 + usize::from(view.mark_ahead(2) == Some('.'));
    let ounces = view.ahead(used).filter(|ounces| ounces.text == "oz")?;
    let stop = view.mark_ahead(used + 1) == Some('.') && view.goes_on(used + 2);
    (view.text_ahead(1) == Some("fl")).then_some((ounces, used + 1 + usize::from(stop)))
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
    let stop = view.mark_ahead(2) == Some('.');
    let at_the_end = stop && (!view.goes_on(3) || view.text_ahead(3) == Some("of"));
    unit.text == "in" && (behind_feet || at_the_end)
}

/// "5'10"" and "6' tall": feet and inches.
fn feet(view: View<'_>, out: &mut Reading) -> Option<usize> {
    let word = view.word()?;
    let (feet, inches) = word.text.split_once(['\'', '’', '′'])?;
    let is_small = |text: &str| is_digits(text, 1..=2);
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
