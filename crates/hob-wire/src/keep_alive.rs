//! How long a model stays in memory, as Ollama's clients write it: seconds, or a duration like Go's.
//! A value below zero, in any unit, means for ever.

use std::time::Duration;

use hob_core::KeepAlive;
use serde::de::{Deserialize as _, Deserializer, Error as _};

use crate::request_value::Either;

/// Longer is for ever: ten years of 365 days.
const SECONDS_MAX: f64 = 10.0 * 365.0 * 86_400.0;

/// Units of Go's durations, in seconds. Longer names come before those they begin with.
const UNITS: [(&str, f64); 8] = [
    ("ns", 1e-9),
    ("us", 1e-6),
    ("µs", 1e-6),
    ("μs", 1e-6),
    ("ms", 1e-3),
    ("s", 1.0),
    ("m", 60.0),
    ("h", 3600.0),
];

/// The field `keep_alive`: a number of seconds, or a duration.
pub(crate) type KeepAliveField = Either<f64, String>;

/// Reads [`KeepAliveField`].
pub(crate) fn keep_alive<'de, D: Deserializer<'de>>(
    value: D,
) -> Result<Option<KeepAlive>, D::Error> {
    let seconds = match Option::<KeepAliveField>::deserialize(value)? {
        None => return Ok(None),
        Some(Either::First(seconds)) => seconds,
        Some(Either::Second(text)) => seconds(&text).ok_or_else(|| {
            D::Error::custom("must be a number of seconds or a duration like '5m'")
        })?,
    };
    Ok(Some(settle(seconds)))
}

fn settle(seconds: f64) -> KeepAlive {
    let is_time = (0.0..=SECONDS_MAX).contains(&seconds);
    if is_time { KeepAlive::For(Duration::from_secs_f64(seconds)) } else { KeepAlive::Forever }
}

/// `1h30m`, `-1m`, `300s`; a bare number is one of seconds.
fn seconds(text: &str) -> Option<f64> {
    let text = text.trim();
    let (sign, text) = match text.strip_prefix('-') {
        Some(rest) => (-1.0, rest),
        None => (1.0, text.strip_prefix('+').unwrap_or(text)),
    };
    if let Some(seconds) = number(text) {
        return Some(sign * seconds);
    }
    let (mut rest, mut sum) = (text, 0.0);
    while !rest.is_empty() {
        let digits = rest.find(|c: char| !c.is_ascii_digit() && c != '.')?;
        let amount = number(&rest[..digits])?;
        let (unit, in_seconds) = UNITS.iter().find(|(unit, _)| rest[digits..].starts_with(unit))?;
        sum += amount * in_seconds;
        rest = &rest[digits + unit.len()..];
    }
    (!text.is_empty()).then_some(sign * sum)
}

/// Digits and a point only: Rust would read `inf` and `1e9` too.
fn number(text: &str) -> Option<f64> {
    let plain = text.chars().all(|c| c.is_ascii_digit() || c == '.');
    if plain { text.parse().ok() } else { None }
}

#[cfg(test)]
mod tests {
    use serde::Deserialize;

    use super::*;

    fn parse(value: &str) -> Result<Option<KeepAlive>, String> {
        #[derive(Deserialize)]
        struct Sent {
            #[serde(default, deserialize_with = "keep_alive")]
            keep_alive: Option<KeepAlive>,
        }
        let body = format!(r#"{{"keep_alive":{value}}}"#);
        let mut fields = crate::fields::Fields::parse(body.as_bytes()).expect("an object");
        let sent: Result<Sent, _> = fields.read();
        sent.map(|sent| sent.keep_alive).map_err(|error| error.to_string())
    }

    #[test]
    fn seconds_and_durations_are_read() {
        for (value, milliseconds) in [
            ("0", 0),
            ("300", 300_000),
            ("1.5", 1500),
            (r#""300s""#, 300_000),
            (r#""5m""#, 300_000),
            (r#""1h30m""#, 5_400_000),
            (r#""250ms""#, 250),
            (r#""+2s500000µs""#, 2500),
            (r#"" 10 ""#, 10_000),
            (r#""0""#, 0),
        ] {
            let expected = KeepAlive::For(Duration::from_millis(milliseconds));
            assert_eq!(parse(value), Ok(Some(expected)), "{value}");
        }
        for value in ["-1", "-0.5", r#""-1""#, r#""-1m""#, "1e300", r#""99999999999h""#] {
            assert_eq!(parse(value), Ok(Some(KeepAlive::Forever)), "{value}");
        }
        assert_eq!(parse("null"), Ok(None));
    }

    #[test]
    fn what_is_no_duration_is_refused() {
        let invalid = "'keep_alive' must be a number of seconds or a duration like '5m'";
        for value in ["", "-", "soon", "5 m", "5x", "m", "1.2.3s", "inf", "1e9", "5m3"] {
            assert_eq!(parse(&format!("{value:?}")), Err(invalid.to_owned()), "{value}");
        }
        let wrong = "'keep_alive' must be a number or a string, and is a boolean";
        assert_eq!(parse("true"), Err(wrong.to_owned()));
    }

    proptest::proptest! {
        #[test]
        fn no_text_is_a_surprise(text: String) {
            let value = serde_json::Value::String(text).to_string();
            if let Err(error) = parse(&value) {
                proptest::prop_assert!(error.len() < 100);
            }
        }
    }
}
