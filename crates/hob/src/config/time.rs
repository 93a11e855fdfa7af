//! Durations in the form that people write: `250ms`, `30s`, `5m`, `2h`, or a number of seconds.
//! Zero is not allowed, because a limit of zero would reject everything.

use std::fmt;
use std::str::FromStr;
use std::time::Duration;

use super::text_or_number::text_or_number;

/// The longest allowed duration.
const MAX: Duration = Duration::from_secs(86_400);

/// Above zero, and at most a day.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct TimeText(pub(crate) Duration);

#[derive(Debug, PartialEq, Eq, thiserror::Error)]
#[error("'{0}' is not a time; write 250ms, 30s, 5m, 2h or a number of seconds, up to a day")]
pub(crate) struct NotATime(String);

impl FromStr for TimeText {
    type Err = NotATime;

    fn from_str(text: &str) -> Result<TimeText, NotATime> {
        let time = span(text).filter(|time| !time.is_zero() && *time <= MAX);
        time.map(TimeText).ok_or_else(|| NotATime(text.to_owned()))
    }
}

/// `30s`, `5m`, `2h`, `250ms`, or seconds.
pub(super) fn span(text: &str) -> Option<Duration> {
    let digits_end = text.find(|c: char| !c.is_ascii_digit()).unwrap_or(text.len());
    let (number, unit) = text.split_at(digits_end);
    let number: u64 = number.parse().ok()?;
    let seconds = match unit {
        "ms" => return Some(Duration::from_millis(number)),
        "" | "s" => 1,
        "m" => 60,
        "h" => 3600,
        _ => return None,
    };
    number.checked_mul(seconds).map(Duration::from_secs)
}

impl fmt::Display for TimeText {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (ms, seconds) = (self.0.as_millis(), self.0.as_secs());
        match seconds {
            _ if !ms.is_multiple_of(1000) => write!(f, "{ms}ms"),
            seconds if seconds.is_multiple_of(3600) => write!(f, "{}h", seconds / 3600),
            seconds if seconds.is_multiple_of(60) => write!(f, "{}m", seconds / 60),
            seconds => write!(f, "{seconds}s"),
        }
    }
}

text_or_number!(TimeText, "a time such as \"30s\" or \"250ms\", or a number of seconds");

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_are_read_as_people_write_them_and_written_back() {
        for (text, expected_ms, written) in [
            ("250ms", 250, "250ms"),
            ("30s", 30_000, "30s"),
            ("90", 90_000, "90s"),
            ("1500ms", 1500, "1500ms"),
            ("120s", 120_000, "2m"),
            ("5m", 300_000, "5m"),
            ("2h", 7_200_000, "2h"),
        ] {
            let read: TimeText = text.parse().expect(text);
            assert_eq!((read.0.as_millis(), read.to_string().as_str()), (expected_ms, written));
            assert_eq!(written.parse(), Ok(read));
        }
        for text in ["", "0", "0ms", "-1", "soon", "5 m", "1d", "25h", "18446744073709551615h"] {
            assert!(text.parse::<TimeText>().is_err(), "{text:?}");
        }
    }
}
