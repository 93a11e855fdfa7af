//! Written numbers: "1.234,5", "1 234,5", "12,34,567.8", "-3", "0,25".
//! Separates digits from what follows them, and says the number.

use super::Scene;
use super::table::{Form, LanguageTable};

/// A longer number is read digit by digit.
const DIGITS_MAX: usize = 15;

/// The most groups of a number with spaces.
const GROUPS_MAX: usize = 6;

#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Amount {
    pub(super) is_negative: bool,
    pub(super) digits: String,
    pub(super) decimals: String,
    /// The decimals stand behind the sign that this language does not use for them: "3.5" in Spanish.
    has_other_sign: bool,
    /// The items that the number takes.
    pub(super) used: usize,
    /// Where the text after the number begins in its last word.
    pub(super) end: usize,
}

impl Amount {
    /// The number that begins at byte `from` of this word.
    pub(super) fn read(scene: Scene<'_>, from: usize) -> Option<Amount> {
        let text = scene.view.word()?.text.get(from..)?;
        let mut amount = Amount::parse(text, scene.table)?;
        let is_whole_word = amount.end == text.len();
        amount.end += from;
        Some(amount.with_groups(scene, is_whole_word))
    }

    /// The number at the beginning of this text.
    pub(super) fn parse(text: &str, table: &LanguageTable) -> Option<Amount> {
        let bare = text.strip_prefix(['-', '+']).unwrap_or(text);
        let (digits, decimals, length) = scan(bare, table)?;
        let has_other_sign =
            !decimals.is_empty() && !bare[..length - decimals.len()].ends_with(table.decimal);
        let is_negative = text.starts_with('-');
        let end = text.len() - bare.len() + length;
        Some(Amount { is_negative, digits, decimals, has_other_sign, used: 1, end })
    }

    /// "1 234 567,8": later words of exactly three digits.
    fn with_groups(mut self, scene: Scene<'_>, is_whole_word: bool) -> Amount {
        let can_have = is_whole_word
            && self.decimals.is_empty()
            && (1..=3).contains(&self.digits.len())
            && !self.digits.starts_with('0');
        while can_have && self.used < GROUPS_MAX && self.decimals.is_empty() {
            let Some(next) = scene.view.ahead(self.used) else { break };
            let count = next.text.bytes().take_while(u8::is_ascii_digit).count();
            let follows = next.text[count..].chars().next();
            let is_group = count == 3 && next.spaced && follows != Some(scene.table.thousands);
            let Some((digits, decimals, length)) = scan(&next.text, scene.table) else { break };
            if !is_group || digits.len() != 3 {
                break;
            }
            self.digits.push_str(&digits);
            self.decimals = decimals;
            self.used += 1;
            self.end = length;
            if length != next.text.len() {
                break;
            }
        }
        self
    }

    /// The value without decimals; `None`: it is too long or has leading zeros, and is read digit by digit.
    pub(super) fn value(&self) -> Option<u64> {
        let has_zeros = self.digits.len() > 1 && self.digits.starts_with('0');
        if has_zeros || self.digits.len() > DIGITS_MAX { None } else { self.digits.parse().ok() }
    }

    pub(super) fn is_plain(&self) -> bool {
        !self.is_negative && self.decimals.is_empty()
    }

    /// Whether a noun behind it stands in the singular.
    pub(super) fn is_one(&self, table: &LanguageTable) -> bool {
        self.value().is_some_and(|whole| table.counts_as_one(whole))
            && (self.decimals.is_empty() || table.has_singular_below_two)
    }

    pub(super) fn in_words(&self, table: &LanguageTable, form: Form) -> String {
        let minus =
            if self.is_negative { format!("{} ", table.signs.minus) } else { String::new() };
        let form = if self.decimals.is_empty() { form } else { Form::Alone };
        let whole = match self.value() {
            Some(value) => (table.cardinal)(value, form),
            None => by_digit(table, &self.digits),
        };
        if self.decimals.is_empty() {
            return format!("{minus}{whole}");
        }
        let sign = if self.has_other_sign { table.signs.dot } else { table.signs.comma };
        format!("{minus}{whole} {sign} {}", decimals(table, &self.decimals))
    }
}

/// Digits of the whole, decimals, and how many bytes of `text` they take.
fn scan(text: &str, table: &LanguageTable) -> Option<(String, String, usize)> {
    let bytes = text.as_bytes();
    let run = |at: usize| {
        bytes.get(at..).unwrap_or_default().iter().take_while(|b| b.is_ascii_digit()).count()
    };
    let first = run(0);
    if first == 0 {
        return None;
    }
    let mut digits = text[..first].to_owned();
    let mut at = first;
    let is_sign = |at: usize, sign: char| text.get(at..).is_some_and(|rest| rest.starts_with(sign));
    // "1,234.56" has the signs of another language.
    let (thousands, decimal) = match is_swapped(text, table) {
        true => (table.decimal, table.thousands),
        false => (table.thousands, table.decimal),
    };
    if first <= 3 && !digits.starts_with('0') {
        while is_sign(at, thousands) && is_group(run(at + 1), run_after(text, at), table) {
            let count = run(at + 1);
            digits.push_str(&text[at + 1..=at + count]);
            at += 1 + count;
        }
    }
    let other = if decimal == ',' { '.' } else { ',' };
    let sign = [decimal, other].into_iter().find(|sign| is_sign(at, *sign));
    let count = run(at + 1);
    if sign.is_none() || count == 0 {
        return Some((digits, String::new(), at));
    }
    let decimals = text[at + 1..=at + count].to_owned();
    Some((digits, decimals, at + 1 + count))
}

/// Whether so many digits behind a sign are a group of thousands: three, or two in India if more groups follow.
fn is_group(count: usize, goes_on: bool, table: &LanguageTable) -> bool {
    count == 3 || (count == 2 && goes_on && table.thousands == ',')
}

/// Whether another group follows the one behind the sign at `at`.
fn run_after(text: &str, at: usize) -> bool {
    let rest = &text[at + 1..];
    let rest = rest.trim_start_matches(|c: char| c.is_ascii_digit());
    let mut next = rest.chars();
    next.next() == Some(',') && next.next().is_some_and(|c| c.is_ascii_digit())
}

fn is_swapped(text: &str, table: &LanguageTable) -> bool {
    let number = |c: char| c.is_ascii_digit() || c == ',' || c == '.';
    let end = text.find(|c| !number(c)).unwrap_or(text.len());
    let first = text[..end].find(table.decimal);
    let last = text[..end].rfind(table.thousands);
    // "1,234,567" can only have groups.
    let has_groups = last.is_none() && text[..end].matches(table.decimal).count() > 1;
    has_groups || matches!((first, last), (Some(first), Some(last)) if first < last)
}

/// A number without signs, or its digits.
pub(super) fn number(table: &LanguageTable, digits: &str) -> String {
    match Amount::parse(digits, table) {
        Some(amount) if amount.end == digits.len() => amount.in_words(table, Form::Alone),
        _ => by_digit(table, digits),
    }
}

/// "uno dos tres".
pub(super) fn by_digit(table: &LanguageTable, digits: &str) -> String {
    let words: Vec<String> = digits
        .chars()
        .filter_map(|c| c.to_digit(10))
        .map(|digit| (table.cardinal)(u64::from(digit), Form::Alone))
        .collect();
    words.join(" ")
}

/// Decimals as a number behind their zeros, if they are short: "coma cero cinco", "virgule quatorze".
fn decimals(table: &LanguageTable, digits: &str) -> String {
    let significant = digits.trim_start_matches('0');
    if table.has_single_decimals || significant.len() > 2 || significant.is_empty() {
        return by_digit(table, digits);
    }
    let zeros = by_digit(table, &digits[..digits.len() - significant.len()]);
    let number = (table.cardinal)(significant.parse().unwrap_or_default(), Form::Alone);
    format!("{zeros} {number}").trim_start().to_owned()
}
