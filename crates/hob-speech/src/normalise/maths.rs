//! Formulas: "f(x) = 2x", "5! = 120", "1 1/2", "1.5e-3", "3.0×10⁸ m/s", "10 / 2", and "7 - 3" in an equation.
//! An equals sign or another operator in the sentence decides between a formula and prose.

use super::cardinal::cardinal;
use super::item::{Item, Word};
use super::number::{article, fraction, power, raised, superscript};
use super::numeral::{Numeral, is_digits};
use super::unit::{stands_apart, unit_name};
use super::{View, read_one};
use crate::reading::Reading;
use crate::word_table::find;

const FUNCTIONS: &str = "
    f f, g g, h h, sin sine, cos cosine, tan tangent, log log, log10 log ten, ln natural log,
    exp exponential";

pub(super) fn read(view: View<'_>, out: &mut Reading) -> Option<usize> {
    function(view, out)
        .or_else(|| factorial(view, out))
        .or_else(|| mixed_number(view, out))
        .or_else(|| scientific(view, out))
        .or_else(|| product(view, out))
        .or_else(|| coefficient(view, out))
        .or_else(|| division(view, out))
}

/// "f(x)", "cos(2x)": the bracket follows without a space.
fn function(view: View<'_>, out: &mut Reading) -> Option<usize> {
    let word = view.word()?;
    let name = find(FUNCTIONS, &word.text)?;
    let inner = view.ahead(2)?;
    let is_open = matches!(view.items.get(view.at + 1), Some(Item::Open('(')));
    if !is_open || inner.span().start != word.span().end + 1 {
        return None;
    }
    out.say(word.span(), &format!("{name} of"));
    let used = match times(inner) {
        Some((number, letter)) => say_coefficient(view, inner, number, letter, out),
        None => read_one(View { at: view.at + 2, ..view }, out),
    };
    let closed = usize::from(view.mark_ahead(2 + used) == Some(')'));
    Some(2 + used + closed)
}

/// "5! = 120", "n!": elsewhere the mark is an exclamation.
fn factorial(view: View<'_>, out: &mut Reading) -> Option<usize> {
    let word = view.word()?;
    if view.mark_ahead(1) == Some('!') && word.text == "n" {
        out.spell(word.span(), &word.text);
        out.say(word.span(), "factorial");
        return Some(2);
    }
    let follows = view.text_ahead(2).is_some_and(|next| next.starts_with('='));
    if view.mark_ahead(1) != Some('!') || !follows {
        return None;
    }
    let number = Numeral::parse(&word.text)?;
    out.say(word.span(), &format!("{} factorial", number.in_words(view.british)));
    Some(2)
}

/// "1 1/2": a whole number and a fraction that is less than one.
fn mixed_number(view: View<'_>, out: &mut Reading) -> Option<usize> {
    let word = view.word()?;
    let whole = Numeral::parse(&word.text).filter(|number| number.is_plain())?;
    let part = view.ahead(1).filter(|part| part.spaced)?;
    let (upper, lower) = part.text.split_once('/')?;
    let (upper, lower) = (upper.parse::<u64>().ok()?, lower.parse::<u64>().ok()?);
    if whole.small()? > 999 || upper == 0 || upper >= lower || lower > 64 {
        return None;
    }
    let said = fraction(&part.text, view.british)?;
    out.say(word.span(), &whole.in_words(view.british));
    out.say(part.span(), &format!("and {}", article(&said)));
    let unit = view.ahead(2).filter(|unit| unit.spaced && stands_apart(&unit.text));
    let name = unit.and_then(|unit| Some((unit, unit_name(&unit.text, false, view.british)?)));
    let Some((unit, name)) = name else { return Some(2) };
    out.say(unit.span(), &name);
    Some(3)
}

/// "1.5e-3", "1e6".
fn scientific(view: View<'_>, out: &mut Reading) -> Option<usize> {
    let word = view.word()?;
    let (base, exponent) = word.text.split_once('e')?;
    let base = Numeral::parse(base)?;
    let digits = exponent.trim_start_matches(['-', '+', '−']);
    if !is_digits(digits, 1..=3) {
        return None;
    }
    let ten = raised("ten", exponent, view.british)?;
    out.say(word.span(), &format!("{} times {ten}", base.in_words(view.british)));
    Some(1)
}

/// "3.0×10⁸", possibly with a unit that has a slash: "m/s".
fn product(view: View<'_>, out: &mut Reading) -> Option<usize> {
    let word = view.word()?;
    let (left, right) = word.text.split_once('×')?;
    let (left, right) = (Numeral::parse(left)?, power(right, view.british)?);
    out.say(word.span(), &format!("{} times {right}", left.in_words(view.british)));
    let unit = view.ahead(1).filter(|unit| unit.spaced && unit.text.contains('/'));
    let name = unit.and_then(|unit| Some((unit, unit_name(&unit.text, false, view.british)?)));
    let Some((unit, name)) = name else { return Some(1) };
    out.say(unit.span(), &name);
    Some(2)
}

/// "3x" in a formula: not three times as much.
fn coefficient(view: View<'_>, out: &mut Reading) -> Option<usize> {
    let word = view.word()?;
    let (number, letter) = times(word)?;
    is_formula(view).then(|| say_coefficient(view, word, number, letter, out))
}

fn times(word: &Word) -> Option<(&str, &str)> {
    let (number, letter) = word.text.split_at_checked(word.text.len().checked_sub(1)?)?;
    let is_term = is_digits(number, 1..) && matches!(letter, "x" | "y" | "n");
    is_term.then_some((number, letter))
}

fn say_coefficient(
    view: View<'_>,
    word: &Word,
    number: &str,
    letter: &str,
    out: &mut Reading,
) -> usize {
    out.say(word.span_of(0..number.len()), &cardinal(number, view.british));
    out.spell(word.span_of(number.len()..word.text.len()), letter);
    1
}

/// "10 / 2 = 5". In prose, a slash separates two numbers.
fn division(view: View<'_>, out: &mut Reading) -> Option<usize> {
    let word = view.word().filter(|word| word.text == "/")?;
    let is_number = |word: &Word| Numeral::parse(&word.text).is_some();
    let divides = view.before().is_some_and(is_number)
        && view.ahead(1).is_some_and(is_number)
        && view.text_ahead(2).is_some_and(|next| next.starts_with('='));
    if !divides {
        return None;
    }
    out.say(word.span(), "divided by");
    Some(1)
}

/// A hyphen with spaces around it, between two terms of a formula: its bytes in the user's text.
pub(super) fn minus(view: View<'_>) -> Option<std::ops::Range<usize>> {
    let (before, after) = (view.before()?, view.ahead(1)?);
    let is_term = |word: &Word| {
        word.text.chars().count() == 1
            || word.text.starts_with(|c: char| c.is_ascii_digit())
            || power(&word.text, false).is_some()
    };
    (is_term(before) && is_term(after) && is_formula(view))
        .then(|| before.span().end..after.span().start)
}

/// "x³", but not the square meter.
fn is_letter_with_power(text: &str) -> bool {
    let mut chars = text.chars();
    chars.next().is_some_and(|c| c.is_ascii_lowercase() && c != 'm')
        && chars.next().is_some_and(|c| superscript(c).is_some())
        && chars.next().is_none()
}

/// Whether the sentence has an operator that prose does not have.
fn is_formula(view: View<'_>) -> bool {
    view.items.iter().filter_map(Item::word).any(|word| {
        word.text.contains(['=', '^', '≤', '≥', '≠', '≈'])
            || is_letter_with_power(&word.text)
            || matches!(&*word.text, "+" | "×" | "÷" | "<" | ">")
    })
}
