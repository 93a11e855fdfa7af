//! Dates and times: "24/12/2025", "2025-12-24", "24.12.2025", "14:30", "14h30", "14 h 30", "1:23:45".
//! A date is day before month, except where the year comes first.

use super::Scene;
use super::counted::elided_one;
use super::table::{Form, Noun};
use crate::normalise::numeral::is_digits;
use crate::reading::Reading;
use crate::word_table::{find, nth};

pub(super) fn read(scene: Scene<'_>, out: &mut Reading) -> Option<usize> {
    contracted(scene, out)
        .or_else(|| time(scene, out))
        .or_else(|| times(scene, out))
        .or_else(|| duration(scene, out))
        .or_else(|| date(scene, out))
}

/// "alle 1:00", "dalle 1", "all'1:30": the word before one o'clock is contracted with it.
fn contracted(scene: Scene<'_>, out: &mut Reading) -> Option<usize> {
    let dates = &scene.table.dates;
    let word = scene.view.word()?;
    let written = word.text.to_lowercase();
    let (opener, clock, used) = match written.split_once('\'') {
        Some((opener, clock)) => (opener, clock, 1),
        None => (written.as_str(), scene.view.text_ahead(1)?, 2),
    };
    let contraction = find(dates.contracted, opener)?;
    let is_bare = clock == "1" && dates.clock_openers.contains(&opener);
    let (hour, minute) = match clock.split_once([':', '.', 'h']) {
        Some(parts) => hour_and_minute(parts)?,
        None => is_bare.then_some((1, 0))?,
    };
    if hour != 1 {
        return None;
    }
    let used = with_hour_word(scene, used);
    let end = scene.view.ahead(used - 1)?.span().end;
    out.say(word.span().start..end, &format!("{contraction}{}", (dates.time)(hour, minute)));
    Some(used)
}

/// The items of a time, with a word such as "h" behind it.
fn with_hour_word(scene: Scene<'_>, used: usize) -> usize {
    let next = scene.lower_ahead(used);
    used + usize::from(scene.table.dates.hour_words.contains(&next.as_str()))
}

/// "10:00-12:30", "9h-12h", "ore 9.30-12.30".
fn times(scene: Scene<'_>, out: &mut Reading) -> Option<usize> {
    let word = scene.view.word()?;
    let (from, to) = word.text.split_once(['-', '–'])?;
    let is_after_opener = is_after_opener(scene);
    let clock = |text: &str| {
        let bare = text.strip_suffix('h').map(|hours| (hours, "00"));
        let dotted = || text.split_once('.').filter(|_| is_after_opener);
        let parts = bare.or_else(|| text.split_once([':', 'h'])).or_else(dotted)?;
        let (hour, minute) = hour_and_minute(parts)?;
        Some((scene.table.dates.time)(hour, minute))
    };
    let words = format!("{} {} {}", clock(from)?, scene.table.signs.to, clock(to)?);
    out.say(word.span(), &words);
    Some(1)
}

fn is_after_opener(scene: Scene<'_>) -> bool {
    scene.table.dates.clock_openers.contains(&scene.lower_before().as_str())
}

fn hour_and_minute((hours, minutes): (&str, &str)) -> Option<(u64, u64)> {
    let hour = digits(hours).filter(|hour| hours.len() <= 2 && *hour <= 24)?;
    let minute = digits(minutes).filter(|minute| minutes.len() == 2 && *minute < 60)?;
    Some((hour, minute))
}

/// Digits, and nothing else.
fn digits(text: &str) -> Option<u64> {
    text.parse().ok().filter(|_| is_digits(text, 1..=4))
}

fn time(scene: Scene<'_>, out: &mut Reading) -> Option<usize> {
    let word = scene.view.word()?;
    let dates = &scene.table.dates;
    // "15.30 h", but "1.5 h" is a length of time.
    let is_dotted = is_after_opener(scene) || with_hour_word(scene, 1) > 1;
    let apart = || {
        let is_hour = scene.view.text_ahead(1).is_some_and(|next| next == "h" || next == "H");
        // "1 h 30 min" is a length of time.
        let is_length = matches!(scene.view.text_ahead(3), Some("min" | "mn"));
        let minutes = scene.view.text_ahead(2).filter(|_| is_hour && !is_length)?;
        Some((word.text.as_str(), minutes, 3))
    };
    let (hours, minutes, used) = word
        .text
        .split_once([':', 'h', 'H'])
        .or_else(|| word.text.split_once('.').filter(|_| is_dotted))
        .map(|(hours, minutes)| (hours, minutes, 1))
        .or_else(apart)?;
    let minutes =
        ["min", "hs", "h"].iter().find_map(|end| minutes.strip_suffix(end)).unwrap_or(minutes);
    let (hour, minute) = hour_and_minute((hours, minutes))?;
    let used = with_hour_word(scene, used);
    let end = scene.view.ahead(used - 1)?.span().end;
    out.say(word.span().start..end, &(dates.time)(hour, minute));
    Some(used)
}

/// "1:23:45" is a length of time, or a clock with seconds.
fn duration(scene: Scene<'_>, out: &mut Reading) -> Option<usize> {
    let word = scene.view.word()?;
    let parts: Vec<&str> = word.text.split(':').collect();
    let [hours, minutes, seconds] = parts[..] else { return None };
    if minutes.len() != 2 || seconds.len() != 2 {
        return None;
    }
    let numbers = [digits(hours)?, digits(minutes)?, digits(seconds)?];
    let named = numbers.into_iter().zip(scene.table.dates.duration);
    let words: Vec<String> = named.map(|(number, noun)| with_noun(scene, number, noun)).collect();
    out.say(word.span(), &words.join(" "));
    Some(1)
}

fn with_noun(scene: Scene<'_>, number: u64, noun: Noun) -> String {
    if let Some(said) = elided_one(scene.table, number, noun) {
        return said;
    }
    let name = if scene.table.counts_as_one(number) { noun.one } else { noun.many };
    format!("{} {name}", (scene.table.cardinal)(number, Form::Before(noun.gender)))
}

fn date(scene: Scene<'_>, out: &mut Reading) -> Option<usize> {
    let word = scene.view.word()?;
    let sign = word.text.chars().find(|c| !c.is_ascii_digit())?;
    if !matches!(sign, '/' | '-' | '.') {
        return None;
    }
    let parts: Vec<&str> = word.text.split(sign).collect();
    let lengths: Vec<usize> = parts.iter().map(|part| part.len()).collect();
    let numbers: Vec<u64> = parts.iter().map(|part| digits(part)).collect::<Option<_>>()?;
    let (day, month, year) = match (&lengths[..], &numbers[..]) {
        ([1..=2, 1..=2, 4], [day, month, year]) => (Some(*day), *month, Some(*year)),
        ([4, 1..=2, 1..=2], [year, month, day]) => (Some(*day), *month, Some(*year)),
        ([1..=2, 1..=2, 2], [day, month, year]) if sign == '/' => {
            (Some(*day), *month, Some(if *year < 50 { 2000 + year } else { 1900 + year }))
        }
        ([1..=2, 4], [month, year]) if sign == '/' => (None, *month, Some(*year)),
        ([1..=2, 1..=2], [day, month]) if sign == '/' => {
            let is_opened = scene.table.dates.openers.contains(&scene.lower_before().as_str());
            // "24/7" is always, and "3/4" a fraction.
            // No fraction has a zero before its numbers.
            let is_padded = word.text.starts_with('0') || word.text.contains("/0");
            if !is_opened && !is_padded && (*day <= 12 || word.text == "24/7") {
                return None;
            }
            (Some(*day), *month, None)
        }
        _ => return None,
    };
    out.say(word.span(), &date_in_words(scene, day, month, year)?);
    Some(1)
}

/// `None`: there is no such day or month.
fn date_in_words(
    scene: Scene<'_>,
    day: Option<u64>,
    month: u64,
    year: Option<u64>,
) -> Option<String> {
    let dates = &scene.table.dates;
    let month = (1..=12).contains(&month).then(|| nth(dates.months, month - 1))?;
    let mut words = String::new();
    if let Some(day) = day {
        if !(1..=31).contains(&day) {
            return None;
        }
        let cardinal = || (scene.table.cardinal)(day, Form::Alone);
        let first = dates.first.filter(|_| day == 1).map(str::to_owned);
        words = format!("{} {}", first.unwrap_or_else(cardinal), dates.link);
    }
    words.push_str(month);
    if let Some(year) = year {
        words.push_str(&format!(" {}{}", dates.link, (dates.year)(year)));
    }
    Some(words)
}
