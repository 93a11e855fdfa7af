//! Splits a number as it is written: sign, grouped digits, decimals.
//! Never converts it to a float, so no written digit is lost.

use std::ops::RangeBounds;

use super::cardinal::{by_digit, cardinal};

#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Numeral {
    pub(super) negative: bool,
    /// Digits without the group separators; empty in ".5".
    pub(super) whole: String,
    pub(super) fraction: Option<String>,
    /// Whether the number was written with separators: then it is a count, not a year or a code.
    pub(super) grouped: bool,
}

impl Numeral {
    /// The number at the beginning of `text`, and its length in bytes.
    pub(super) fn leading(text: &str) -> Option<(Numeral, usize)> {
        let sign = ["-", "−", "+"].into_iter().find(|sign| text.starts_with(sign)).unwrap_or("");
        let body = &text[sign.len()..];
        let (whole, grouped, mut length) = whole(body);
        let fraction = fraction(&body[length..]);
        if whole.is_empty() && fraction.is_none() {
            return None;
        }
        length += fraction.map_or(0, |digits| digits.len() + 1);
        let numeral = Numeral {
            negative: matches!(sign, "-" | "−"),
            whole,
            fraction: fraction.map(str::to_owned),
            grouped,
        };
        Some((numeral, sign.len() + length))
    }

    /// Parses all of `text` as one number.
    pub(super) fn parse(text: &str) -> Option<Numeral> {
        Numeral::leading(text)
            .filter(|(_, length)| *length == text.len())
            .map(|(numeral, _)| numeral)
    }

    pub(super) fn in_words(&self, british: bool) -> String {
        let mut words = String::new();
        if self.negative {
            words.push_str("minus ");
        }
        let is_code = self.whole.len() > 1 && self.whole.starts_with('0');
        if is_code && !self.grouped {
            words.push_str(&by_digit(&self.whole));
        } else {
            words.push_str(&cardinal(&self.whole, british));
        }
        if let Some(fraction) = &self.fraction {
            words.push_str(" point ");
            words.push_str(&by_digit(fraction));
        }
        words
    }

    /// Has neither sign nor fraction nor separators.
    pub(super) fn is_plain(&self) -> bool {
        !self.negative && self.fraction.is_none() && !self.grouped
    }

    pub(super) fn is_one(&self) -> bool {
        self.whole == "1" && self.fraction.is_none()
    }

    /// The value of a plain number that is small enough to be a year, a day or an hour.
    pub(super) fn small(&self) -> Option<u64> {
        if self.is_plain() && self.whole.len() <= 6 { self.whole.parse().ok() } else { None }
    }
}

/// Whether a text is this many ASCII digits, and nothing else.
pub(super) fn is_digits(text: &str, count: impl RangeBounds<usize>) -> bool {
    count.contains(&text.len()) && text.bytes().all(|b| b.is_ascii_digit())
}

/// The digits, whether commas grouped them in threes, and the length as written.
fn whole(text: &str) -> (String, bool, usize) {
    let digits = |text: &str| text.bytes().take_while(u8::is_ascii_digit).count();
    let mut length = digits(text);
    let mut whole = text[..length].to_owned();
    let mut grouped = false;
    if (1..=3).contains(&length) {
        while text[length..].starts_with(',') && digits(&text[length + 1..]) == 3 {
            whole.push_str(&text[length + 1..length + 4]);
            length += 4;
            grouped = true;
        }
    }
    (whole, grouped, length)
}

fn fraction(text: &str) -> Option<&str> {
    let digits = text.strip_prefix('.')?;
    let length = digits.bytes().take_while(u8::is_ascii_digit).count();
    (length > 0).then(|| &digits[..length])
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(text: &str, expect: Option<(&str, usize)>) {
        let found =
            Numeral::leading(text).map(|(numeral, length)| (numeral.in_words(false), length));
        let found = found.as_ref().map(|(said, length)| (said.as_str(), *length));
        assert_eq!(found, expect, "{text}");
    }

    #[test]
    fn numbers_at_the_beginning() {
        check("1,204", Some(("one thousand two hundred four", 5)));
        check("3.5km", Some(("three point five", 3)));
        check("-7", Some(("minus seven", 2)));
        check("−7", Some(("minus seven", 4)));
        check(".5", Some(("zero point five", 2)));
        check("1,2", Some(("one", 1)));
        check("5.", Some(("five", 1)));
        check("007", Some(("zero zero seven", 3)));
        check("x", None);
        check("-", None);
    }
}
