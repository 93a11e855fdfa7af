//! Dates: "2024-05-06", "Mon 4 Mar", "3/4/2027", "3 March 2027", "March 3, 2027", "Jan. 5".
//! Day and month are read in the order of the accent: 3/4 is not the same day everywhere.

use hob_core::language::ENGLISH_MONTHS;

use super::View;
use super::cardinal::{ordinal, year};
use super::numeral::{Numeral, is_digits};
use crate::reading::Reading;

pub(super) fn read(view: View<'_>, out: &mut Reading) -> Option<usize> {
    span_of_names(view, out)
        .or_else(|| weekday(view, out))
        .or_else(|| month_and_day_only(view, out))
        .or_else(|| digits_only(view, out))
        .or_else(|| month_first(view, out))
        .or_else(|| day_first(view, out))
}

const DAYS: [&str; 7] =
    ["Monday", "Tuesday", "Wednesday", "Thursday", "Friday", "Saturday", "Sunday"];

/// "Mon-Fri", "Mon.-Fri.", "Oct–Mar": two days or two months with a dash between.
fn span_of_names(view: View<'_>, out: &mut Reading) -> Option<usize> {
    let word = view.word()?;
    let (first, last, used) = match word.text.split_once('-') {
        Some((first, last)) => (first.trim_end_matches('.'), last, 1),
        None if view.text_ahead(1) == Some("–") => (&*word.text, view.text_ahead(2)?, 3),
        None => return None,
    };
    let said = match (day(first), day(last), month(first), month(last)) {
        (Some(first), Some(last), _, _) | (_, _, Some(first), Some(last)) => {
            format!("{first} to {last}")
        }
        _ => return None,
    };
    out.say(word.span().start..view.ahead(used - 1)?.span().end, &said);
    Some(used + usize::from(view.mark_ahead(used) == Some('.') && view.goes_on(used + 1)))
}

/// The day that a word names, in full or shortened.
fn day(word: &str) -> Option<&'static str> {
    let is_short = matches!(word, "Tues" | "Thur" | "Thurs") || word.len() == 3;
    DAYS.into_iter().find(|day| *day == word || (is_short && word.get(..3) == Some(&day[..3])))
}

/// "on 9/22": without such a word before, it is a fraction.
fn month_and_day_only(view: View<'_>, out: &mut Reading) -> Option<usize> {
    let word = view.word()?;
    let before = view.before()?.text.to_lowercase();
    let is_dated = matches!(&*before, "on" | "until" | "till" | "due" | "dated");
    let (first, second) = word.text.split_once('/').filter(|_| is_dated)?;
    let is_short = |text: &str| (1..=2).contains(&text.len());
    let follows = ["and", "at", "by", "for", "from", "to", "we"];
    let is_amount = view.text_ahead(1).is_some_and(|next| !follows.contains(&next));
    let is_name = matches!(&*word.text, "9/11" | "24/7");
    if !is_short(first) || !is_short(second) || is_amount || is_name {
        return None;
    }
    let (month, day) = if view.british { (second, first) } else { (first, second) };
    let (month, day) = month_and_day(month, day)?;
    out.say(word.span(), &date_in_words(day, month, None, view.british));
    Some(1)
}

/// "Mon, Mar 4", "Mon 4 Mar": the date behind it shows that "Mon" is a day.
fn weekday(view: View<'_>, out: &mut Reading) -> Option<usize> {
    let word = view.word()?;
    let name = DAYS.into_iter().find(|day| day[..3] == word.text)?;
    let next = 1 + usize::from(view.mark_ahead(1).is_some_and(|mark| matches!(mark, ',' | '.')));
    let first = view.text_ahead(next)?;
    let is_month = |distance: usize| view.text_ahead(distance).and_then(month).is_some();
    if !(is_month(next) || day_number(first).is_some() && is_month(next + 1)) {
        return None;
    }
    out.say(word.span(), name);
    // The full stop is part of the short form; a comma is heard.
    Some(1 + usize::from(view.mark_ahead(1) == Some('.')))
}

/// The month that a word names, in full or shortened to at least three letters.
pub(super) fn month(word: &str) -> Option<&'static str> {
    let is_name = word.len() >= 3 && word.starts_with(|c: char| c.is_ascii_uppercase());
    let lower = word.to_ascii_lowercase();
    ENGLISH_MONTHS.into_iter().find(|month| {
        let month = month.to_ascii_lowercase();
        is_name
            && (month == lower || lower == "sept" && month == "september" || month[..3] == lower)
    })
}

/// "2024-05-06", "2024/05/06", "5/6/2024", "06.05.2024".
fn digits_only(view: View<'_>, out: &mut Reading) -> Option<usize> {
    let word = view.word()?;
    let separator = word.text.chars().find(|c| !c.is_ascii_digit())?;
    let parts: Vec<&str> = word.text.split(separator).collect();
    let [first, second, third] = parts[..] else { return None };
    if !parts.iter().all(|part| is_digits(part, 1..)) {
        return None;
    }
    let (year, month, day) = match (first.len(), second.len(), third.len(), separator) {
        (4, 1..=2, 1..=2, '-' | '/' | '.') => (first, second, third),
        (1..=2, 1..=2, 4, '/' | '-') if view.british => (third, second, first),
        (1..=2, 1..=2, 4, '/' | '-') => (third, first, second),
        (1..=2, 1..=2, 4, '.') => (third, second, first),
        (1..=2, 1..=2, 2, '/') if view.british => (third, second, first),
        (1..=2, 1..=2, 2, '/') => (third, first, second),
        _ => return None,
    };
    let (month, day) = month_and_day(month, day)?;
    let is_short = year.len() == 2;
    let year: u64 = year.parse().ok()?;
    // Two digits are a year from 1970 to 2069.
    let year = match year {
        0..70 if is_short => 2000 + year,
        70..100 if is_short => 1900 + year,
        _ => year,
    };
    out.say(word.span(), &date_in_words(day, month, Some(year), view.british));
    Some(1)
}

/// If the numbers cannot be a month and a day, they may be a day and a month.
fn month_and_day<'a>(month: &'a str, day: &'a str) -> Option<(&'static str, &'a str)> {
    let in_order = |month: &str, day: &str| {
        let day: usize = day.parse().ok().filter(|day| (1..=31).contains(day))?;
        let month: usize = month.parse().ok()?;
        ENGLISH_MONTHS.get(month.checked_sub(1)?).map(|name| (*name, day))
    };
    if let Some((name, _)) = in_order(month, day) {
        return Some((name, day));
    }
    in_order(day, month).map(|(name, _)| (name, month))
}

fn date_in_words(day: &str, month: &str, number: Option<u64>, british: bool) -> String {
    let day = ordinal(day, british);
    let year = number.map(|number| format!(", {}", year(number, british))).unwrap_or_default();
    if british { format!("the {day} of {month}{year}") } else { format!("{month} {day}{year}") }
}

/// "March 3", "March 3rd, 2027", "Jan. 5", "Jan. 8-12".
fn month_first(view: View<'_>, out: &mut Reading) -> Option<usize> {
    let name = month(view.text_ahead(0)?)?;
    let stop = usize::from(view.mark_ahead(1) == Some('.'));
    let number = view.ahead(1 + stop)?;
    let days = match number.text.split_once(['-', '–']) {
        Some((first, last)) => vec![day_number(first)?, day_number(last)?],
        None => vec![day_number(&number.text)?],
    };
    let days: Vec<String> = days.iter().map(|day| ordinal(day, view.british)).collect();
    out.say(view.word()?.span(), name);
    out.say(number.span(), &days.join(" to "));
    let comma = usize::from(view.mark_ahead(2 + stop) == Some(','));
    match view.ahead(2 + stop + comma).and_then(|word| Some((word, year_number(&word.text)?))) {
        Some((word, number)) => {
            out.mark(',');
            out.say(word.span(), &year(number, view.british));
            Some(3 + stop + comma)
        }
        None => Some(2 + stop),
    }
}

/// "3 March", "3rd March 2027"; American English also says "the … of".
fn day_first(view: View<'_>, out: &mut Reading) -> Option<usize> {
    let word = view.word()?;
    let day = day_number(&word.text)?;
    let name_word = view.ahead(1)?;
    let name = month(&name_word.text)?;
    let article = view.before().is_some_and(|before| before.text.eq_ignore_ascii_case("the"));
    let the = if article { "" } else { "the " };
    out.say(word.span(), &format!("{the}{} of", ordinal(day, view.british)));
    out.say(name_word.span(), name);
    let stop = usize::from(view.mark_ahead(2) == Some('.') && view.goes_on(3));
    let comma = usize::from(view.mark_ahead(2) == Some(','));
    match view.ahead(2 + stop + comma).and_then(|word| Some((word, year_number(&word.text)?))) {
        Some((word, number)) => {
            out.say(word.span(), &year(number, view.british));
            Some(3 + stop + comma)
        }
        None => Some(2 + stop),
    }
}

/// "3", "03", "3rd", from 1 to 31.
fn day_number(text: &str) -> Option<&str> {
    let digits = text.trim_end_matches(|c: char| c.is_ascii_alphabetic());
    let suffix = &text[digits.len()..];
    let day: u64 = Numeral::parse(digits)?.small()?;
    let plausible = (1..=31).contains(&day) && matches!(suffix, "" | "st" | "nd" | "rd" | "th");
    plausible.then_some(digits)
}

fn year_number(text: &str) -> Option<u64> {
    let year = Numeral::parse(text)?.small()?;
    (text.len() == 4 && (1000..=2999).contains(&year)).then_some(year)
}
