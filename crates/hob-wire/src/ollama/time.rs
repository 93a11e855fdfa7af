//! Moments and spans as Ollama writes them: RFC 3339 with nanoseconds, and whole nanoseconds.
//! This file reads no clock; the caller passes the time.

use std::time::{Duration, SystemTime};

use jiff::Timestamp;

/// Always nine places, so that the text sorts as time does. A clock set beyond the year 9999 is
/// taken for one that was never set.
pub(crate) fn rfc3339(at: SystemTime) -> String {
    let at = Timestamp::try_from(at).unwrap_or(Timestamp::UNIX_EPOCH);
    format!("{at:.9}")
}

pub(crate) fn unix_s(seconds: u64) -> String {
    let at = SystemTime::UNIX_EPOCH.checked_add(Duration::from_secs(seconds));
    rfc3339(at.unwrap_or(SystemTime::UNIX_EPOCH))
}

pub(crate) fn nanoseconds(milliseconds: f64) -> u64 {
    (milliseconds * 1e6).round() as u64
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn moments_have_nanoseconds() {
        for (nanoseconds, expected) in [
            (0, "1970-01-01T00:00:00.000000000Z"),
            (1_793_491_200_500_000_001, "2026-11-01T00:00:00.500000001Z"),
        ] {
            let at = SystemTime::UNIX_EPOCH + Duration::from_nanos(nanoseconds);
            assert_eq!(rfc3339(at), expected);
        }
        assert_eq!(unix_s(951_782_400), "2000-02-29T00:00:00.000000000Z");
        assert_eq!(unix_s(u64::MAX), "1970-01-01T00:00:00.000000000Z");
    }

    #[test]
    fn spans_are_rounded_and_never_negative() {
        for (milliseconds, expected) in [(0.0, 0), (1.5, 1_500_000), (-3.0, 0), (f64::NAN, 0)] {
            assert_eq!(nanoseconds(milliseconds), expected);
        }
    }
}
