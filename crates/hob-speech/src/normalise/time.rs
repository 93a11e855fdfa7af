//! Times of day: "9:15", "17:45", "7 pm", "10:00–11:30", "9:05:30"; and ratios such as "16:9".
//! Only the digits and the words around them show which of the two it is.

use std::ops::RangeInclusive;

use super::View;
use super::cardinal::{cardinal, in_words};
use super::item::Word;
use super::numeral::{Numeral, is_digits};
use crate::reading::Reading;

/// Words next to a ratio. "16:10" is a time elsewhere.
const RATIOS: &[&str] = &["aspect", "dilution", "mix", "odds", "ratio", "scale"];

pub(super) fn read(view: View<'_>, out: &mut Reading) -> Option<usize> {
    duration(view, out).or_else(|| time(view, out))
}

fn time(view: View<'_>, out: &mut Reading) -> Option<usize> {
    let word = view.word()?;
    let (clock, half) = split_half(&word.text);
    let apart = if half.is_none() { half_behind(view) } else { None };
    let has_half = half.is_some() || apart.is_some();
    let said = match clock.split_once(['–', '-']) {
        Some((from, to)) => {
            let (from, from_half) = split_half(from);
            let from = one_time(from, from_half.is_some() || has_half)?;
            let to = one_time(to, has_half)?;
            format!("{from}{} to {to}", from_half.unwrap_or_default())
        }
        None if is_ratio(view) => ratio(clock, view.british)?,
        None if is_timetable(view) => one_time(&clock.replace('.', ":"), false)?,
        None => one_time(clock, has_half).or_else(|| ratio(clock, view.british))?,
    };
    let (end, half) = match (half, apart) {
        (Some(half), _) => (word.span().end, half),
        (None, Some(half)) => (view.ahead(1)?.span().end, half),
        (None, None) => (word.span().end, ""),
    };
    out.say(word.span().start..end, &format!("{said}{half}"));
    let used = if apart.is_some() { 2 } else { 1 };
    Some(used + stop_of_half(view, used, !half.is_empty()))
}

/// In the middle of a sentence, the full stop of "p.m." belongs to "p.m.".
fn stop_of_half(view: View<'_>, used: usize, has_half: bool) -> usize {
    let written = view.text_ahead(used - 1).unwrap_or_default();
    let dotted = has_half && written.to_ascii_lowercase().ends_with(".m");
    usize::from(dotted && view.mark_ahead(used) == Some('.') && view.goes_on(used + 1))
}

/// "7pm" → "7" and " P M".
fn split_half(text: &str) -> (&str, Option<&'static str>) {
    let digits = text.trim_end_matches(|c: char| c.is_ascii_alphabetic() || c == '.');
    match half(&text[digits.len()..]) {
        Some(half) if digits.ends_with(|c: char| c.is_ascii_digit()) => (digits, Some(half)),
        _ => (text, None),
    }
}

fn half(text: &str) -> Option<&'static str> {
    match text.to_ascii_lowercase().trim_end_matches('.') {
        "am" | "a.m" => Some(" A M"),
        "pm" | "p.m" => Some(" P M"),
        _ => None,
    }
}

/// "7 pm", but not "I am" or "7 am I".
fn half_behind(view: View<'_>) -> Option<&'static str> {
    let next = view.ahead(1)?;
    let begins = view.word()?.text.starts_with(|c: char| c.is_ascii_digit());
    half(&next.text).filter(|_| begins && next.spaced)
}

/// "the 18.05 train", "the 10.15 from Euston", as the British write it.
fn is_timetable(view: View<'_>) -> bool {
    let follows = ["train", "bus", "service", "ferry", "flight", "from", "to"];
    view.british
        && view.before().is_some_and(|before| before.text.eq_ignore_ascii_case("the"))
        && view.text_ahead(1).is_some_and(|next| follows.contains(&next))
        && view.word().is_some_and(|word| word.text.len() > 3 && word.text.contains('.'))
}

/// Hours without minutes count only with "a.m." or "p.m.", and so does a full stop between the two: "7.30pm".
fn one_time(text: &str, has_half: bool) -> Option<String> {
    let parts: Vec<&str> = match has_half {
        true => text.split([':', '.']).collect(),
        false => text.split(':').collect(),
    };
    match parts[..] {
        [hour] if has_half => number(hour, 1..=2, 13).map(|hour| in_words(hour, false)),
        [hour, minute] => {
            let (hour, minute) = (number(hour, 1..=2, 25)?, number(minute, 2..=2, 60)?);
            Some(hour_and_minute(hour, minute, has_half))
        }
        [hour, minute, second] => {
            let (hour, minute) = (number(hour, 1..=2, 100)?, number(minute, 2..=2, 60)?);
            let second = number(second, 2..=2, 60)?;
            Some(format!(
                "{} and {} seconds",
                hour_and_minute(hour, minute, has_half),
                in_words(second, false)
            ))
        }
        _ => None,
    }
}

/// A number of this many digits that is less than `below`.
fn number(text: &str, digits: RangeInclusive<usize>, below: u64) -> Option<u64> {
    text.parse::<u64>().ok().filter(|value| is_digits(text, digits) && *value < below)
}

fn hour_and_minute(hour: u64, minute: u64, has_half: bool) -> String {
    let said = in_words(hour, false);
    match minute {
        0 if has_half => said,
        0 if (1..=12).contains(&hour) => format!("{said} o'clock"),
        0 => format!("{said} hundred"),
        1..10 => format!("{said} oh {}", in_words(minute, false)),
        _ => format!("{said} {}", in_words(minute, false)),
    }
}

/// "1h30", "2h 15m". From 13 hours on, "14h30" is a time of the day.
fn duration(view: View<'_>, out: &mut Reading) -> Option<usize> {
    let word = view.word()?;
    let (hours, joined) = word.text.split_once('h')?;
    let apart = view.ahead(1).filter(|next| joined.is_empty() && next.spaced);
    let written = apart.map_or(joined, |next| next.text.as_str());
    let digits = written.trim_end_matches(|c: char| c.is_ascii_alphabetic());
    let unit = &written[digits.len()..];
    let is_marked = matches!(unit, "m" | "min" | "mins");
    let is_whole = unit.is_empty() && apart.is_none() && digits.len() == 2;
    let (hour, minute) = (number(hours, 1..=2, 100)?, number(digits, 1..=2, 60)?);
    if !(is_marked || is_whole) {
        return None;
    }
    let said = if is_whole && (13..25).contains(&hour) {
        hour_and_minute(hour, minute, false)
    } else {
        let hours = with_unit(hour, "hour");
        match minute {
            0 => hours,
            _ if is_marked => format!("{hours} {}", with_unit(minute, "minute")),
            _ => format!("{hours} {}", in_words(minute, false)),
        }
    };
    let end = apart.unwrap_or(word).span().end;
    out.say(word.span().start..end, &said);
    Some(1 + usize::from(apart.is_some()))
}

fn with_unit(number: u64, name: &str) -> String {
    format!("{} {name}{}", in_words(number, false), if number == 1 { "" } else { "s" })
}

/// "a 16:10 ratio", "odds of 7:10".
fn is_ratio(view: View<'_>) -> bool {
    let named = |word: &Word| RATIOS.contains(&&*word.text.to_lowercase());
    let before_of = || {
        let at = view.at.checked_sub(2)?;
        view.before().filter(|before| before.text == "of").and(view.items[at].word())
    };
    view.word().is_some_and(|word| word.text.contains(':'))
        && (view.ahead(1).is_some_and(named)
            || view.before().is_some_and(named)
            || before_of().is_some_and(named))
}

fn ratio(text: &str, british: bool) -> Option<String> {
    let (left, right) = text.split_once(':')?;
    let number = |text: &str| {
        let number = Numeral::parse(text).filter(|number| !number.negative && text.len() <= 9)?;
        (number.fraction.is_none() && text.starts_with(|c: char| c.is_ascii_digit()))
            .then(|| cardinal(&number.whole, british))
    };
    Some(format!("{} to {}", number(left)?, number(right)?))
}
