//! How Japanese says figures.
//! Numbers stay digits, because the dictionary's rules read them with the counters behind them.

use super::figures::{Amount, currency_name};
use super::{AsianLanguage, Saying, with_pauses};
use crate::japanese::kana_symbols;
use crate::word_table::nth;

/// What is said for figures before these two characters.
pub(super) fn said(amount: &Amount, after: [Option<char>; 2]) -> Vec<Saying> {
    let native = |text: String| vec![Saying::Native(text)];
    match amount {
        Amount::Date { year, month, day } => {
            let year = year.as_ref().map_or_else(String::new, |year| wide(year) + "年");
            native(format!("{year}{}月{}日", wide(month), wide(day)))
        }
        Amount::Time { hours, minutes, seconds } => {
            native(time(hours, minutes, seconds.as_deref()))
        }
        Amount::Money { number, currency, scale, is_negative } => {
            let sign = minus(*is_negative);
            let name = currency_name(*currency, AsianLanguage::Japanese).unwrap_or_default();
            native(format!("{sign}{}{scale}{name}", wide(number)))
        }
        Amount::Range { from, to, unit } => {
            let unit = unit.map_or("", |unit| unit.name(AsianLanguage::Japanese));
            native(format!("{}から{}{unit}", wide(from), wide(to)))
        }
        Amount::Joined(numbers, between) => {
            let numbers: Vec<String> = numbers.iter().map(|number| wide(number)).collect();
            native(numbers.join(AsianLanguage::Japanese.name(between)))
        }
        Amount::Phone(groups) => with_pauses(groups.iter().map(|group| by_digit(group))),
        Amount::Code(digits) if is_padded(digits, after[0]) => native(clock_number(digits, after)),
        Amount::Code(digits) => vec![by_digit(digits)],
        Amount::Plain { number, is_negative: false, unit: None, .. } => {
            native(clock_number(number, after))
        }
        Amount::Plain { number, is_negative, unit, .. } => {
            let unit = unit.map_or("", |unit| unit.name(AsianLanguage::Japanese));
            native(format!("{}{}{unit}", minus(*is_negative), wide(number)))
        }
    }
}

fn time(hours: &str, minutes: &str, seconds: Option<&str>) -> String {
    let part =
        |digits: &str, name: char| format!("{}{name}", clock_number(digits, [Some(name), None]));
    let minutes = if minutes == "00" { String::new() } else { part(minutes, '分') };
    let seconds = seconds.map(|seconds| part(seconds, '秒')).unwrap_or_default();
    format!("{}{minutes}{seconds}", part(hours, '時'))
}

/// Whether digits are a number of a date or a time that a zero fills up: "09時05分".
fn is_padded(digits: &str, after: Option<char>) -> bool {
    digits.len() == 2 && after.is_some_and(|c| "月日時分秒".contains(c))
}

/// A number before these two characters, without the zeros that fill it up. Midnight has a word of its own, "零時".
fn clock_number(digits: &str, after: [Option<char>; 2]) -> String {
    let number = match digits.strip_prefix('0') {
        Some(rest) if is_padded(digits, after[0]) => rest,
        Some(_) | None => digits,
    };
    let is_hour = after[0] == Some('時') && after[1] != Some('間');
    if number == "0" && is_hour { "零".to_owned() } else { wide(number) }
}

fn minus(is_negative: bool) -> &'static str {
    if is_negative { "マイナス" } else { "" }
}

/// The dictionary has the wide digits.
fn wide(number: &str) -> String {
    let wide = |c: char| char::from_u32(u32::from(c) + 0xfee0).unwrap_or(c);
    number.chars().map(wide).collect()
}

/// Each digit by its name. Short ones are drawn out to two beats.
fn by_digit(digits: &str) -> Saying {
    const NAMES: &str = "ゼロ イチ ニー サン ヨン ゴー ロク ナナ ハチ キュー";
    let name = |c: char| c.to_digit(10).map_or("テン", |digit| nth(NAMES, u64::from(digit)));
    let symbols: Vec<String> = digits.chars().map(name).map(kana_symbols).collect();
    Saying::Phonemes(symbols.join(" "))
}
