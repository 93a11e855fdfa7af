//! `[memory]`, and amounts of memory in the form that people write.
//! `GB` are 10^9 bytes; `GiB` are 2^30.

use std::fmt;
use std::num::NonZeroU64;
use std::str::FromStr;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::text_or_number::text_or_number;

#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub(crate) struct MemorySection {
    /// What all models may take together: `6GB`, `512MB`, `4GiB`, or a number of bytes. Default: what
    /// the system has free.
    pub(crate) max: Option<BytesText>,
}

/// An amount of memory.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct BytesText(pub(crate) NonZeroU64);

/// Largest first, so that an amount is written in the largest unit that divides it.
const UNITS: [(&str, u64); 6] = [
    ("GiB", 1 << 30),
    ("GB", 1_000_000_000),
    ("MiB", 1 << 20),
    ("MB", 1_000_000),
    ("KB", 1000),
    ("B", 1),
];

#[derive(Debug, PartialEq, Eq, thiserror::Error)]
#[error("'{0}' is not an amount of memory; write 6GB, 512MB, 4GiB, or a number of bytes")]
pub(crate) struct NotBytes(String);

impl FromStr for BytesText {
    type Err = NotBytes;

    fn from_str(text: &str) -> Result<BytesText, NotBytes> {
        bytes(text).map(BytesText).ok_or_else(|| NotBytes(text.to_owned()))
    }
}

fn bytes(text: &str) -> Option<NonZeroU64> {
    let unit_begins = text.find(|c: char| c.is_ascii_alphabetic()).unwrap_or(text.len());
    let (number, unit) = text.split_at(unit_begins);
    let is_unit = |(name, _): &&(&str, u64)| name.eq_ignore_ascii_case(unit);
    let factor = if unit.is_empty() { 1 } else { UNITS.iter().find(is_unit)?.1 };
    let (whole, fraction) = number.trim_end().split_once('.').unwrap_or((number.trim_end(), ""));
    let is_number = |digits: &str| digits.bytes().all(|digit| digit.is_ascii_digit());
    if !is_number(fraction) || fraction.len() > 9 || !is_number(whole) {
        return None;
    }
    let parts = 10_u128.pow(u32::try_from(fraction.len()).ok()?);
    let digits: u128 = format!("{whole}{fraction}").parse().ok()?;
    let bytes = digits.checked_mul(factor.into())? / parts;
    NonZeroU64::new(u64::try_from(bytes).ok()?)
}

impl fmt::Display for BytesText {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let bytes = self.0.get();
        let unit = UNITS.into_iter().find(|(_, factor)| bytes.is_multiple_of(*factor));
        let (name, factor) = unit.unwrap_or(("B", 1));
        write!(f, "{}{name}", bytes / factor)
    }
}

text_or_number!(BytesText, "an amount of memory such as \"6GB\", or a number of bytes");

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn amounts_are_read_as_people_write_them() {
        let rows = [
            ("6GB", Some(6_000_000_000), "6GB"),
            ("1.5 gb", Some(1_500_000_000), "1500MB"),
            ("4GiB", Some(4 << 30), "4GiB"),
            ("512mb", Some(512_000_000), "512MB"),
            ("1234567", Some(1_234_567), "1234567B"),
            ("1024MiB", Some(1 << 30), "1GiB"),
            ("", None, ""),
            ("GB", None, ""),
            ("0GB", None, ""),
            ("-1GB", None, ""),
            ("6 G", None, ""),
            ("1.2.3GB", None, ""),
            ("99999999999999999999GB", None, ""),
        ];
        for (text, expected, written) in rows {
            let read = text.parse::<BytesText>().ok();
            assert_eq!(read.map(|read| read.0.get()), expected, "{text:?}");
            if let Some(read) = read {
                assert_eq!(read.to_string(), written);
                assert_eq!(written.parse(), Ok(read));
            }
        }
    }

    #[test]
    fn a_file_may_say_bytes_as_a_number() {
        let read = |value: &str| toml::from_str::<MemorySection>(&format!("max = {value}"));
        assert_eq!(read("4096").expect("bytes").max.map(|max| max.0.get()), Some(4096));
        for value in ["0", "-1", "true", "\"much\""] {
            let message = read(value).expect_err(value).message().to_owned();
            assert!(message.contains("6GB"), "{value} gave {message}");
        }
    }
}
