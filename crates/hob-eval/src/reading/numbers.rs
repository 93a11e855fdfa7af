//! Numbers in an answer, as people write them: 1,234.5 and 1 234,5, 3/4, 2.5e3, −7, 12 %, with a unit after them.
//! The last number of the most credible statement wins.

use std::sync::LazyLock;

use regex::{Captures, Regex};

use super::statements;

/// A number with the word that follows it.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct StatedNumber {
    pub(crate) value: f64,
    /// The letters after the number, lower case; empty without any.
    pub(crate) unit: String,
}

static NUMBER: LazyLock<Option<Regex>> = LazyLock::new(|| {
    Regex::new(
        r"(?x)
        (?P<sign>[-−–+]\s?)?
        (?P<currency>[$€£]\s?)?
        (?:
            (?P<fraction>\d+\s*/\s*\d+)
          | (?P<whole>\d{1,3}(?:[,\x20'’\u{a0}\u{2009}\u{202f}]\d{3})+|\d+)
            (?:(?P<point>[.,])(?P<decimals>\d+))?
            (?:\s?(?:[eE]|[×x*]\s?10\s?\^\s?\{?)(?P<exponent>[-−+]?\d{1,3})\}?)?
          | [.](?P<bare>\d+)
        )
        (?P<unit>\s?(?:%|°\s?[CF]|[\p{L}µ²³/°]{1,20}))?",
    )
    .ok()
});

/// The number that the answer states.
pub(crate) fn stated_number(content: &str) -> Option<StatedNumber> {
    statements(content).iter().find_map(|statement| last_number(statement))
}

/// The last number of a line. Behind an equals sign the number after the last one counts.
pub(super) fn last_number(line: &str) -> Option<StatedNumber> {
    let after =
        line.rsplit(['=', '≈']).next().filter(|after| after.chars().any(|c| c.is_ascii_digit()));
    let numbers = NUMBER.as_ref()?;
    let part = after.unwrap_or(line);
    numbers.captures_iter(part).filter_map(|found| number(&found, part)).last()
}

fn number(found: &Captures<'_>, part: &str) -> Option<StatedNumber> {
    let text = |name| found.name(name).map(|part| part.as_str());
    // A digit inside a word, such as `H2O` or `Q4_K_M`, is no number.
    let start = found.get(0)?.start();
    let before = part.get(..start).and_then(|before| before.chars().next_back());
    let is_word = before.is_some_and(|sign| sign.is_alphabetic() || sign == '_');
    if is_word && text("sign").is_none() {
        return None;
    }
    let value = match (text("fraction"), text("bare")) {
        (Some(fraction), _) => {
            let (up, down) = fraction.split_once('/')?;
            let (up, down): (f64, f64) = (up.trim().parse().ok()?, down.trim().parse().ok()?);
            (down != 0.0).then(|| up / down)?
        }
        (None, Some(bare)) => format!("0.{bare}").parse().ok()?,
        (None, None) => decimal(text("whole")?, text("point"), text("decimals"), text("exponent"))?,
    };
    let is_negative = text("sign").is_some_and(|sign| !sign.contains('+'))
        // `5-3` has no negative number.
        && !before.is_some_and(char::is_alphanumeric);
    let unit = text("unit").unwrap_or_default().trim().to_lowercase();
    let unit = match text("currency").map(str::trim) {
        Some(sign) if unit.is_empty() => sign.to_owned(),
        _ => unit,
    };
    Some(StatedNumber { value: if is_negative { -value } else { value }, unit })
}

fn decimal(
    whole: &str,
    point: Option<&str>,
    decimals: Option<&str>,
    exponent: Option<&str>,
) -> Option<f64> {
    // No one groups the digits of a number that begins with 0.
    if let (Some(("0", decimals)), None) = (whole.split_once(','), point) {
        return format!("0.{decimals}").parse().ok();
    }
    let digits: String = whole.chars().filter(char::is_ascii_digit).collect();
    let is_grouped = digits.len() < whole.len();
    let decimals = decimals.unwrap_or_default();
    // A comma before three digits groups them; before any other number of digits it is a decimal comma.
    let text = match point {
        Some(",") if decimals.len() == 3 && !is_grouped && !digits.starts_with('0') => {
            format!("{digits}{decimals}")
        }
        Some(_) => format!("{digits}.{decimals}"),
        None => digits,
    };
    let exponent: i32 = match exponent {
        Some(exponent) => exponent.replace('−', "-").parse().ok()?,
        None => 0,
    };
    let value: f64 = text.parse().ok()?;
    Some(value * 10_f64.powi(exponent)).filter(|value| value.is_finite())
}
