//! Numbers without a unit: counts, years, ordinals, decades, ranges, fractions, powers.
//! What stands before and after a number decides between a count and a year.

use super::View;
use super::cardinal::{by_digit, cardinal, decade, in_words, ordinal, year};
use super::date::month;
use super::item::{Item, Word};
use super::numeral::{Numeral, is_digits};
use crate::reading::Reading;
use crate::word_table::find;

/// Longer numbers are left to the readers of words, which say them in pieces.
const DIGITS_MAX: usize = 40;

pub(super) fn read(view: View<'_>, out: &mut Reading) -> Option<usize> {
    let word = view.word()?;
    let said = form(&word.text, view)?;
    out.say(word.span(), &said);
    Some(1)
}

fn form(text: &str, view: View<'_>) -> Option<String> {
    let british = view.british;
    ordinal_form(text, british)
        .or_else(|| decade_form(text, british))
        .or_else(|| fraction(text, british))
        .or_else(|| power(text, british))
        .or_else(|| range(text, view))
        .or_else(|| scaled(text, view))
        .or_else(|| marked(text, view))
        .or_else(|| plain(text, view))
}

/// "4th", "1,000th".
pub(super) fn ordinal_form(text: &str, british: bool) -> Option<String> {
    let digits = text.strip_suffix(['t', 'd', 'h', 'T', 'D', 'H'])?;
    let digits = digits.strip_suffix(['s', 'n', 'r', 't', 'S', 'N', 'R', 'T'])?;
    let number = Numeral::parse(digits)?;
    (number.fraction.is_none() && !number.negative).then(|| ordinal(&number.whole, british))
}

/// "1990s", "'90s", "90s", "2010's".
pub(super) fn decade_form(text: &str, british: bool) -> Option<String> {
    let digits = text.strip_suffix("'s").or_else(|| text.strip_suffix("’s"));
    let digits = digits.or_else(|| text.strip_suffix('s'))?.trim_start_matches(['\'', '’']);
    let number = Numeral::parse(digits)?.small()?;
    let is_decade =
        number % 10 == 0 && ((20..100).contains(&number) || (1100..2100).contains(&number));
    (is_decade && digits.len() % 2 == 0).then(|| decade(number, british))
}

/// "1990s", or "90s" after "the", which is not a number of seconds.
pub(super) fn is_decade(view: View<'_>) -> bool {
    let Some(digits) = view.word().and_then(|word| word.text.strip_suffix('s')) else {
        return false;
    };
    let before = view.before().map(|word| word.text.to_lowercase()).unwrap_or_default();
    let dated = matches!(&*before, "the" | "early" | "late" | "mid" | "those");
    decade_form(&format!("{digits}s"), view.british).is_some() && (digits.len() == 4 || dated)
}

/// "1/2", "3/4", "2½", but not "24/7".
pub(super) fn fraction(text: &str, british: bool) -> Option<String> {
    if let Some((whole, part)) = vulgar(text) {
        return Some(match whole {
            "" => part.to_owned(),
            whole => format!("{} and {}", Numeral::parse(whole)?.in_words(british), article(part)),
        });
    }
    let (upper, lower) = text.split_once('/')?;
    let (upper, lower) = (Numeral::parse(upper)?, Numeral::parse(lower)?);
    if !lower.is_plain() || upper.fraction.is_some() || upper.grouped {
        return None;
    }
    let is_modern = |number: &Numeral| number.small().is_some_and(|n| (1900..2100).contains(&n));
    let is_season = is_modern(&upper)
        && lower.whole.len() == 2
        && upper.small().zip(lower.small()).is_some_and(|(year, next)| (year + 1) % 100 == next);
    if is_season || is_modern(&upper) && is_modern(&lower) {
        return None;
    }
    let (over, under) = (upper.in_words(british), lower.small()?);
    match (upper.whole.as_str(), under) {
        ("24", 7) => Some("twenty four seven".to_owned()),
        ("9", 11) => Some("nine eleven".to_owned()),
        ("50", 50) => Some("fifty fifty".to_owned()),
        ("20", 20) => Some("twenty twenty".to_owned()),
        ("6", 6) => Some("six six".to_owned()),
        (_, 2) => Some(format!("{over} {}", if upper.is_one() { "half" } else { "halves" })),
        (_, 4) => Some(format!("{over} {}", if upper.is_one() { "quarter" } else { "quarters" })),
        (_, 3..=20 | 100 | 1000) => {
            let part = ordinal(&lower.whole, british);
            Some(format!("{over} {part}{}", if upper.is_one() { "" } else { "s" }))
        }
        _ => Some(format!("{over} over {}", lower.in_words(british))),
    }
}

pub(super) fn article(part: &str) -> String {
    match part.strip_prefix("one ") {
        Some(name) => format!("{} {name}", if name.starts_with('e') { "an" } else { "a" }),
        None => part.to_owned(),
    }
}

const VULGAR: &str = "
    ½ one half, ⅓ one third, ⅔ two thirds, ¼ one quarter, ¾ three quarters, ⅕ one fifth,
    ⅖ two fifths, ⅗ three fifths, ⅘ four fifths, ⅙ one sixth, ⅚ five sixths, ⅛ one eighth,
    ⅜ three eighths, ⅝ five eighths, ⅞ seven eighths";

fn vulgar(text: &str) -> Option<(&str, &'static str)> {
    let sign = text.chars().next_back()?;
    let (whole, sign) = text.split_at(text.len() - sign.len_utf8());
    let part = find(VULGAR, sign)?;
    (whole.is_empty() || Numeral::parse(whole).is_some()).then_some((whole, part))
}

/// "10^6", "10⁶", "5²", "x^2".
pub(super) fn power(text: &str, british: bool) -> Option<String> {
    let (base, exponent) = match text.split_once('^') {
        Some((base, exponent)) => (base, exponent.to_owned()),
        None => {
            let at = text.find(|c| superscript(c).is_some())?;
            (&text[..at], text[at..].chars().map(superscript).collect::<Option<String>>()?)
        }
    };
    let is_letter = |text: &str| text.len() == 1 && text.chars().all(|c| c.is_ascii_alphabetic());
    let base =
        if is_letter(base) { base.to_owned() } else { Numeral::parse(base)?.in_words(british) };
    if is_letter(&exponent) {
        return Some(format!("{base} to the {exponent}"));
    }
    raised(&base, &exponent, british)
}

/// The words of a base that has an exponent.
pub(super) fn raised(base: &str, exponent: &str, british: bool) -> Option<String> {
    let exponent = Numeral::parse(exponent)?;
    Some(match exponent.whole.as_str() {
        _ if exponent.negative || exponent.fraction.is_some() => {
            format!("{base} to the power of {}", exponent.in_words(british))
        }
        "2" => format!("{base} squared"),
        "3" => format!("{base} cubed"),
        digits => format!("{base} to the {}", ordinal(digits, british)),
    })
}

pub(super) fn superscript(c: char) -> Option<char> {
    let at = "⁰¹²³⁴⁵⁶⁷⁸⁹⁻ⁿ".chars().position(|known| known == c)?;
    "0123456789-n".chars().nth(at)
}

/// "2020–2024", "5-10", "pages 3–7", "1999/2000".
fn range(text: &str, view: View<'_>) -> Option<String> {
    let at = text.get(1..)?.find(['–', '-', '−', '/'])? + 1;
    let dash = text[at..].chars().next()?;
    let (from, to) = (&text[..at], &text[at + dash.len_utf8()..]);
    let (first, second) = (Numeral::parse(from)?, Numeral::parse(to)?);
    // "0028-0836" is a code.
    let is_code = dash == '-' && to.len() > 1 && to.starts_with('0');
    if second.negative || is_code || (dash == '-' && (from.len() > 4 || to.len() > 4)) {
        return None;
    }
    // "2020–24" is two years, although the second is short.
    let years = is_year(&first, from) && (is_year(&second, to) || to.len() == 2);
    if dash == '/' && !years {
        return None;
    }
    let said = |number: &Numeral| match number.small() {
        Some(value) if years => year(value, view.british),
        _ => number.in_words(view.british),
    };
    Some(format!("{} to {}", said(&first), said(&second)))
}

fn is_year(number: &Numeral, text: &str) -> bool {
    text.len() == 4 && number.small().is_some_and(|value| (1001..2100).contains(&value))
}

/// "10k", "5M", "1.5bn". "3x" and "5G" are left to other readers. "221B" is a number and a letter, unless it counts
/// something ("7B parameters").
fn scaled(text: &str, view: View<'_>) -> Option<String> {
    let (number, length) = Numeral::leading(text)?;
    let scale = match &text[length..] {
        "k" => "thousand",
        "K" if number.whole.len() > 1 => "thousand",
        "M" | "mn" => "million",
        "bn" => "billion",
        "B" if number.fraction.is_some() || counts(view) => "billion",
        "tn" => "trillion",
        _ => return None,
    };
    Some(format!("{} {scale}", number.in_words(view.british)))
}

/// Whether the next word is what the number counts: a plural in lower case.
fn counts(view: View<'_>) -> bool {
    let next = view.text_ahead(1).unwrap_or_default();
    let is_small = next.chars().all(char::is_lowercase);
    is_small && (next == "people" || next.len() > 4 && next.ends_with('s'))
}

/// "#5", "~5", "5+", "±5", "<5", "≥5", "(5)".
fn marked(text: &str, view: View<'_>) -> Option<String> {
    let first = text.chars().next()?;
    let rest = &text[first.len_utf8()..];
    let before = match first {
        '#' | '№' => "number",
        '~' | '≈' => "about",
        '±' => "plus or minus",
        '<' => "less than",
        '>' => "more than",
        '≤' => "at most",
        '≥' => "at least",
        '×' => "times",
        '=' => "equals",
        '§' => "section",
        '+' => "plus",
        _ => {
            let number = text.strip_suffix('+')?;
            return Some(format!("{} plus", form(number, view)?));
        }
    };
    let number = Numeral::parse(rest)?;
    Some(format!("{before} {}", number.in_words(view.british)))
}

fn plain(text: &str, view: View<'_>) -> Option<String> {
    let number = Numeral::parse(text)?;
    if text.len() > DIGITS_MAX {
        return None;
    }
    if is_year(&number, text) && reads_as_year(&number, view) {
        return number.small().map(|value| year(value, view.british));
    }
    if number.is_plain() && number.whole.len() > 9 {
        return Some(by_digit(&number.whole));
    }
    Some(number.in_words(view.british))
}

/// A number of four digits after these words is a year.
const BEFORE_YEARS: &[&str] = &[
    "in", "since", "by", "from", "until", "till", "during", "after", "before", "around", "circa",
    "year", "early", "late", "mid", "spring", "summer", "autumn", "fall", "winter", "of",
];

/// From 1900 on, a number is a year, unless it counts something. Before 1900 only after a word that indicates a date.
fn reads_as_year(number: &Numeral, view: View<'_>) -> bool {
    let before = view.before().map(|word| word.text.to_lowercase()).unwrap_or_default();
    let dated = BEFORE_YEARS.contains(&before.as_str())
        || view.before().is_some_and(|word| month(&word.text).is_some())
        || is_behind_month(view)
        || is_cited(view)
        || follows_short_form(view);
    let counted = view.text_ahead(1).is_some_and(is_plural);
    let recent = number.small().is_some_and(|value| value >= 1900);
    if recent { !counted || dated && before == "in" } else { dated && !counted }
}

/// The year of "the 3rd of May, 1808".
fn is_behind_month(view: View<'_>) -> bool {
    let name = view.at.checked_sub(2).and_then(|at| view.items[at].word());
    view.mark_before() == Some(',') && name.is_some_and(|name| month(&name.text).is_some())
}

/// The year of "(Darwin, 1859)".
fn is_cited(view: View<'_>) -> bool {
    view.mark_ahead(1) == Some(')') && view.mark_before() == Some(',')
}

/// The year of "c. 1450" and "est. 1845".
fn follows_short_form(view: View<'_>) -> bool {
    let Some(at) = view.at.checked_sub(2) else { return false };
    let is_short =
        |word: &Word| matches!(&*word.text, "c" | "ca" | "b" | "d" | "fl" | "est" | "Est");
    view.items[at].word().is_some_and(is_short) && view.items[at + 1] == Item::Mark('.')
}

/// "items", "people", not "was", "this" or "is".
pub(super) fn is_plural(word: &str) -> bool {
    let plural = word.ends_with('s') && word.len() > 3 && !word.ends_with("ss");
    let verbs =
        ["this", "does", "sees", "says", "was", "has", "is", "saw", "gets", "brings", "marks"];
    let irregular = ["people", "men", "women", "children", "euro", "yen"];
    word.starts_with(char::is_lowercase)
        && ((plural && !verbs.contains(&word)) || irregular.contains(&word))
}

/// "2.10" in a version: the parts are numbers, not decimals.
pub(super) fn dotted(text: &str, british: bool) -> Option<String> {
    let parts: Vec<&str> = text.split('.').collect();
    let number = |part: &&str| is_digits(part, 1..=6);
    if parts.len() < 2 || !parts.iter().all(number) {
        return None;
    }
    if parts.len() > 2 && parts[0].len() <= 3 && parts[1..].iter().all(|part| part.len() == 3) {
        // "1.000.000" is a million where full stops group the thousands.
        return Some(cardinal(&parts.concat(), british));
    }
    let words: Vec<String> = parts
        .iter()
        .map(|part| match part.parse::<u64>() {
            Ok(value) if value < 100 && !(part.len() > 1 && part.starts_with('0')) => {
                in_words(value, british)
            }
            _ if part.len() <= 2 || part.len() > 4 => by_digit(part),
            _ => cardinal(part, british),
        })
        .collect();
    Some(words.join(" point "))
}
