//! Numbers and what they count: units, percent, ordinals, fractions, ranges, versions, years.
//! The last reader of digits: it says every number.

use std::ops::Range;

use super::Scene;
use super::amount::{Amount, number};
use super::table::{Form, LanguageTable, Noun, NounGender, noun};
use super::text::pieces;
use crate::normalise::numeral::is_digits;
use crate::reading::Reading;
use crate::word_table::{find, has};

pub(super) fn read(scene: Scene<'_>, out: &mut Reading) -> Option<usize> {
    let text = scene.view.word()?.text.as_str();
    let bare = text.strip_prefix(['-', '+']).unwrap_or(text);
    if !bare.starts_with(|c: char| c.is_ascii_digit()) {
        return version(scene, out).or_else(|| behind_article(scene, out));
    }
    version(scene, out)
        .or_else(|| fraction(scene, out))
        .or_else(|| ordinal(scene, out))
        .or_else(|| range(scene, out))
        .or_else(|| quantity(scene, 0, out))
}

/// "2.10.1", "v3.2", "192.168.0.1": numbers with a dot between.
fn version(scene: Scene<'_>, out: &mut Reading) -> Option<usize> {
    let word = scene.view.word()?;
    let bare = word.text.strip_prefix('v').unwrap_or(&word.text);
    let parts: Vec<&str> = bare.split('.').collect();
    let is_number = |part: &&str| is_digits(part, 1..=6);
    let is_grouped = parts[1..].iter().all(|part| part.len() == 3);
    let is_marked = bare.len() < word.text.len();
    if !parts.iter().all(is_number) || !(is_marked || (parts.len() > 2 && !is_grouped)) {
        return None;
    }
    let words: Vec<String> = parts.iter().map(|part| number(scene.table, part)).collect();
    let said = words.join(&format!(" {} ", scene.table.signs.dot));
    let v = if is_marked { "v " } else { "" };
    out.say(word.span(), &format!("{v}{said}"));
    Some(1)
}

/// "1/2", "15/20", "2024/25", "3:2".
fn fraction(scene: Scene<'_>, out: &mut Reading) -> Option<usize> {
    let word = scene.view.word()?;
    let sign = if word.text.contains('/') { '/' } else { ':' };
    let parts: Vec<&str> = word.text.split(sign).collect();
    let is_number = |part: &&str| is_digits(part, 1..=9);
    if parts.len() < 2 || !parts.iter().all(is_number) {
        return None;
    }
    let signs = match parts[..] {
        [above, below] if sign == '/' && above.len() < 4 && below.len() < 4 => {
            scene.table.signs.over
        }
        _ if sign == '/' => scene.table.signs.slash,
        _ => scene.table.signs.score,
    };
    let fraction = match (sign, &parts[..]) {
        ('/', [above, below]) => {
            let (above, below) = (above.parse().ok()?, below.parse().ok()?);
            parts_of_whole(scene.table, above, below)
        }
        _ => None,
    };
    let apart = || {
        let numbers: Vec<String> = parts.iter().map(|part| number(scene.table, part)).collect();
        numbers.join(&format!(" {signs} ")).replace("  ", " ")
    };
    out.say(word.span(), &fraction.unwrap_or_else(apart));
    Some(1)
}

/// "tres cuartos". `None`: the language has no words for such a fraction.
fn parts_of_whole(table: &LanguageTable, above: u64, below: u64) -> Option<String> {
    if let Some(said) = find(table.fractions, &format!("{above}/{below}")) {
        return Some(said.to_owned());
    }
    let part = noun(find(table.fractions, &below.to_string())?);
    let name = if above == 1 { part.one } else { part.many };
    let said = || format!("{} {name}", (table.cardinal)(above, Form::Before(part.gender)));
    (1..20).contains(&above).then(said)
}

/// "1.º", "3ª", "2e", "5वीं".
fn ordinal(scene: Scene<'_>, out: &mut Reading) -> Option<usize> {
    let word = scene.view.word()?;
    let count = word.text.bytes().take_while(u8::is_ascii_digit).count();
    let number: u64 = word.text.get(..count).filter(|digits| digits.len() < 5)?.parse().ok()?;
    let mark = word.text[count..].trim_start_matches(['.', '-']).to_lowercase();
    let marks = &scene.table.ordinal_marks;
    let gender = match has(marks.masculine, &mark) {
        true => NounGender::Masculine,
        false => has(marks.feminine, &mark).then_some(NounGender::Feminine)?,
    };
    // "3º C" is a flat, and "20º C" the weather.
    if (number > 9 || mark == "°") && degrees(scene.ahead(1), &mark).is_some() {
        return None;
    }
    // "1.º piso" is "primer piso".
    let is_short = has(marks.short, &mark) || (mark == "º" && scene.form_before(1) != Form::Alone);
    out.say(word.span(), &(scene.table.ordinal)(number, gender, is_short));
    Some(1)
}

/// "10-15 km", "2020–2024".
fn range(scene: Scene<'_>, out: &mut Reading) -> Option<usize> {
    let word = scene.view.word()?;
    let (at, dash) = word.text.char_indices().skip(1).find(|(_, c)| matches!(c, '-' | '–'))?;
    let from = at + dash.len_utf8();
    let left = Amount::parse(&word.text[..at], scene.table).filter(|left| left.end == at)?;
    let is_number = word.text[from..].starts_with(|c: char| c.is_ascii_digit());
    if !is_number || word.text[from..].contains(['-', '–']) {
        return None;
    }
    let said = left.in_words(scene.table, Form::Alone);
    out.say(word.span_of(0..from), &format!("{said} {}", scene.table.signs.to));
    quantity(scene, from, out)
}

/// "l'8 marzo", "d'1 million": the number is said in one with the article before its apostrophe.
fn behind_article(scene: Scene<'_>, out: &mut Reading) -> Option<usize> {
    let (article, number) = scene.view.word()?.text.split_once('\'')?;
    let is_article = !article.is_empty() && article.chars().all(char::is_alphabetic);
    let is_number = number.starts_with(|c: char| c.is_ascii_digit());
    if is_article && is_number { quantity(scene, article.len() + 1, out) } else { None }
}

/// A number from byte `from` of the word on, and its unit.
fn quantity(scene: Scene<'_>, from: usize, out: &mut Reading) -> Option<usize> {
    let amount = Amount::read(scene, from)?;
    let last = scene.view.ahead(amount.used - 1)?;
    let (before, number) = scene.view.word()?.text.split_at(from);
    let article = if before.ends_with('\'') { before } else { "" };
    let span = number_span(scene, &amount, from - article.len())?;
    let rest = &last.text[amount.end..];
    let plus = number.starts_with('+');
    let say = |form: Form, out: &mut Reading| {
        let sign = if plus { format!("{} ", scene.table.signs.plus) } else { String::new() };
        out.say(span.clone(), &format!("{article}{sign}{}", amount.in_words(scene.table, form)));
    };
    let elided = |unit: Noun| {
        let is_alone = amount.is_plain() && !plus && article.is_empty();
        elided_one(scene.table, amount.value().filter(|_| is_alone)?, unit)
    };
    if rest.is_empty() {
        let next = scene.view.ahead(amount.used);
        if let Some((unit, next)) = next.and_then(|next| Some((unit(scene, &next.text)?, next))) {
            if let Some(said) = elided(unit) {
                out.say(span.start..next.span().end, &said);
                return Some(amount.used + 1);
            }
            say(form_of(&next.text, unit), out);
            out.say(next.span(), name(&amount, scene, unit));
            return Some(amount.used + 1);
        }
        match special(scene, &amount).filter(|_| article.is_empty()) {
            Some(said) => out.say(span.clone(), &said),
            None => say(form(scene, &amount), out),
        }
        return Some(amount.used);
    }
    let rest_range = amount.end..last.text.len();
    if let Some((unit, end)) = degrees(scene.ahead(amount.used), rest) {
        say(Form::Before(unit.gender), out);
        out.say(last.span_of(rest_range).start..end, name(&amount, scene, unit));
        return Some(amount.used + 1);
    }
    if let Some(unit) = unit(scene, rest) {
        let unit_span = last.span_of(rest_range);
        match elided(unit) {
            Some(said) => out.say(span.start..unit_span.end, &said),
            None => {
                say(form_of(rest, unit), out);
                out.say(unit_span, name(&amount, scene, unit));
            }
        }
    } else {
        say(Form::Alone, out);
        pieces(scene, last, rest_range, out);
    }
    Some(amount.used)
}

/// The user's bytes of a number that begins at byte `from` of the word.
pub(super) fn number_span(scene: Scene<'_>, amount: &Amount, from: usize) -> Option<Range<usize>> {
    let first = scene.view.word()?;
    let last = scene.view.ahead(amount.used - 1)?;
    if amount.used == 1 {
        return Some(first.span_of(from..amount.end));
    }
    Some(first.span_of(from..first.text.len()).start..last.span_of(0..amount.end).end)
}

/// "un'ora": the word for one loses its vowel before a noun that begins with a vowel.
pub(super) fn elided_one(table: &LanguageTable, number: u64, noun: Noun) -> Option<String> {
    let one = table.elided_one?;
    let is_elided = number == 1
        && noun.gender == NounGender::Feminine
        && noun.one.starts_with(['a', 'e', 'i', 'o', 'u']);
    is_elided.then(|| format!("{one}{}", noun.one))
}

/// The form of a number before the word behind it: "uno por ciento" does not count the hundred.
fn form_of(sign: &str, unit: Noun) -> Form {
    if matches!(sign, "%" | "‰") { Form::Alone } else { Form::Before(unit.gender) }
}

/// The form before the next word, or that of an hour: "a la 1 de la tarde", "às 2".
fn form(scene: Scene<'_>, amount: &Amount) -> Form {
    let openers = scene.table.dates.clock_openers;
    // "La 1" is a television channel, so capitals count.
    let is_opened = scene.view.before().is_some_and(|word| openers.contains(&word.text.as_str()));
    let is_hour = is_opened && amount.is_plain() && amount.value().is_some_and(|hour| hour <= 24);
    match scene.form_before(amount.used) {
        Form::Alone if is_hour => Form::Before(NounGender::Feminine),
        form => form,
    }
}

/// "20º C": the degrees stand apart from their scale. Returns the unit and where it ends.
fn degrees(next: Scene<'_>, rest: &str) -> Option<(Noun, usize)> {
    let scale = next.view.word().filter(|word| matches!(word.text.as_str(), "C" | "F"))?;
    let unit = unit(next, &format!("°{}", scale.text)).filter(|_| matches!(rest, "º" | "°"))?;
    Some((unit, scale.span().end))
}

fn unit(scene: Scene<'_>, text: &str) -> Option<Noun> {
    find(scene.table.units, text).map(noun)
}

fn name(amount: &Amount, scene: Scene<'_>, unit: Noun) -> &'static str {
    if amount.is_one(scene.table) { unit.one } else { unit.many }
}

/// The first of a month, and a year.
fn special(scene: Scene<'_>, amount: &Amount) -> Option<String> {
    let dates = &scene.table.dates;
    let value = amount.value().filter(|_| amount.is_plain() && amount.used == 1)?;
    let next = scene.lower_ahead(1);
    let is_month = |word: &str| has(dates.months, word);
    let has_month =
        is_month(&next) || (next == dates.link.trim() && is_month(&scene.lower_ahead(2)));
    if value == 1 && has_month {
        return dates.first.map(str::to_owned);
    }
    let before = scene.lower_before();
    let is_year = (1100..2000).contains(&value)
        && scene.view.word()?.text.len() == 4
        && (is_month(&before)
            || dates.openers.contains(&before.as_str())
            || has(scene.table.particles, &next));
    is_year.then(|| (dates.year)(value))
}
