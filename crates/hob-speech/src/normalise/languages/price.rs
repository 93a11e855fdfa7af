//! Money before or after its number: "$5", "R$ 1.234,50", "5,50 €", "3 M€", "₹5 करोड़".
//! Cents have a name of their own, and large round numbers an "of" before the money.

use super::Scene;
use super::amount::Amount;
use super::counted::number_span;
use super::table::{Currency, Form, LanguageTable, Noun, noun};
use super::text::pieces;
use crate::reading::Reading;
use crate::word_table::{find, has};

/// From this number on, and in steps of it, the money needs "of".
const ROUND: u64 = 1_000_000;

/// A large number between the number and the money, and whether "of" follows it.
type Scale = (Noun, bool);

pub(super) fn read(scene: Scene<'_>, out: &mut Reading) -> Option<usize> {
    prefixed(scene, out).or_else(|| suffixed(scene, out))
}

/// "$5", "-€3", "R$ 12", "$5 millones".
fn prefixed(scene: Scene<'_>, out: &mut Reading) -> Option<usize> {
    let word = scene.view.word()?;
    let bare = word.text.strip_prefix('-').unwrap_or(&word.text);
    let minus = word.text.len() - bare.len();
    let (currency, length) = sign_before(scene.table, bare)?;
    let at = minus + length;
    let (inner, from, before) =
        if at < word.text.len() { (scene, at, 0) } else { (scene.ahead(1), 0, 1) };
    let mut amount = Amount::read(inner, from)?;
    amount.is_negative |= minus > 0;
    let last = inner.view.ahead(amount.used - 1)?;
    let rest = &last.text[amount.end..];
    let mut used = before + amount.used;
    let (mut scales, mut end) = (Vec::new(), last.span_of(0..amount.end).end);
    if let Some(found) = scale_of(scene.table, rest).filter(|_| !rest.is_empty()) {
        scales.push(found);
        end = last.span().end;
    }
    // "$5 mil millones", "₹1.5 लाख करोड़"
    while (rest.is_empty() || !scales.is_empty())
        && let Some(next) = scene.view.ahead(used)
        && let Some(found) = scale_of(scene.table, &next.text)
    {
        scales.push(found);
        (end, used) = (next.span().end, used + 1);
    }
    out.say(word.span().start..end, &price_in_words(scene.table, &amount, &scales, currency));
    if scales.is_empty() && !rest.is_empty() {
        pieces(scene, last, amount.end..last.text.len(), out);
    }
    Some(used)
}

/// "5,50 €", "5€", "3 M€", "5 millones €", "20 EUR".
fn suffixed(scene: Scene<'_>, out: &mut Reading) -> Option<usize> {
    let amount = Amount::read(scene, 0)?;
    let last = scene.view.ahead(amount.used - 1)?;
    let rest = &last.text[amount.end..];
    let start = number_span(scene, &amount, 0)?.start;
    let table = scene.table;
    let (scale, currency, used) = if rest.is_empty() {
        let next = scene.view.text_ahead(amount.used)?;
        match scaled(table, next) {
            Some((scale, currency)) => (scale, currency, amount.used + 1),
            None => {
                let scale = scale_of(table, next)?;
                let sign = scene.view.text_ahead(amount.used + 1)?;
                (Some(scale), currency_of(table, sign)?, amount.used + 2)
            }
        }
    } else {
        let (scale, currency) = scaled(table, rest)?;
        (scale, currency, amount.used)
    };
    let end = scene.view.ahead(used - 1)?.span().end;
    out.say(start..end, &price_in_words(table, &amount, scale.as_slice(), currency));
    Some(used)
}

/// "€", "M€".
fn scaled<'a>(table: &'a LanguageTable, text: &str) -> Option<(Option<Scale>, &'a Currency)> {
    if let Some(currency) = currency_of(table, text) {
        return Some((None, currency));
    }
    let (at, _) = text.char_indices().next_back()?;
    let (scale, sign) = text.split_at(at);
    Some((Some(scale_of(table, scale)?), currency_of(table, sign)?))
}

fn currency_of<'a>(table: &'a LanguageTable, text: &str) -> Option<&'a Currency> {
    table.currencies.iter().find(|currency| has(currency.signs, text))
}

/// The currency with its sign before a number, and the length of the sign.
fn sign_before<'a>(table: &'a LanguageTable, text: &str) -> Option<(&'a Currency, usize)> {
    let digit = text.find(|c: char| c.is_ascii_digit()).unwrap_or(text.len());
    let sign = text[..digit].trim_end_matches('-');
    currency_of(table, sign).map(|currency| (currency, sign.len()))
}

fn scale_of(table: &LanguageTable, text: &str) -> Option<Scale> {
    let plain = find(table.scales, text).map(|scale| (noun(scale), false));
    plain.or_else(|| Some((noun(find(table.scales_with_of, text)?), true)))
}

fn price_in_words(
    table: &LanguageTable,
    amount: &Amount,
    scales: &[Scale],
    currency: &Currency,
) -> String {
    let unit = currency.unit;
    if let [(first, _), more @ ..] = scales {
        let number = amount.in_words(table, Form::Before(first.gender));
        let large = if amount.is_one(table) { first.one } else { first.many };
        let larger: String = more.iter().map(|(scale, _)| format!(" {}", scale.many)).collect();
        let has_of = scales.last().is_some_and(|(_, has_of)| *has_of);
        let money = if has_of { (table.of)(unit.many) } else { unit.many.to_owned() };
        return format!("{number} {large}{larger} {money}");
    }
    let plural = |count: u64, noun: Noun| if count == 1 { noun.one } else { noun.many };
    let (Some(whole), 0 | 2) = (amount.value(), amount.decimals.len()) else {
        let number = amount.in_words(table, Form::Before(unit.gender));
        let money = if amount.is_one(table) { unit.one } else { unit.many };
        return format!("{number} {money}");
    };
    let cents: u64 = amount.decimals.parse().unwrap_or_default();
    let minus = if amount.is_negative { format!("{} ", table.signs.minus) } else { String::new() };
    let of_cents = |noun: Noun| (table.cardinal)(cents, Form::Before(noun.gender));
    if whole == 0 && cents > 0 {
        let cent = plural(cents, currency.cent);
        return format!("{minus}{} {cent}", of_cents(currency.cent));
    }
    let number = (table.cardinal)(whole, Form::Before(unit.gender));
    let money = match table.counts_as_one(whole) {
        true => unit.one.to_owned(),
        false if whole > 0 && whole.is_multiple_of(ROUND) => (table.of)(unit.many),
        false => unit.many.to_owned(),
    };
    match (cents, table.signs.cents) {
        (0, _) => format!("{minus}{number} {money}"),
        (_, None) => {
            format!("{minus}{number} {money} {}", (table.cardinal)(cents, Form::Alone))
        }
        (_, Some(link)) => {
            let link = if link.is_empty() { String::new() } else { format!("{link} ") };
            let cent = plural(cents, currency.cent);
            format!("{minus}{number} {money} {link}{} {cent}", of_cents(currency.cent))
        }
    }
}
