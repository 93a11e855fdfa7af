//! A number with a tolerance, and the unit that was asked for.
//! An answer without a unit is taken to have the right one; another unit is wrong.

use serde::{Deserialize, Serialize};

use crate::Grade;
use crate::reading::stated_number;

/// Rounding errors of a result that is exact otherwise.
const ROUNDING: f64 = 1e-9;

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Number {
    pub expected: f64,
    /// Relative: 0.01 is 1 %.
    #[serde(default)]
    pub tolerance: f64,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub unit: Option<String>,
}

impl Number {
    pub fn exact(expected: f64) -> Number {
        Number { expected, tolerance: 0.0, unit: None }
    }

    pub fn with_unit(expected: f64, tolerance: f64, unit: &str) -> Number {
        Number { expected, tolerance, unit: Some(unit.to_owned()) }
    }

    pub(crate) fn grade(&self, content: &str) -> Grade {
        let Some(stated) = stated_number(content) else {
            return Grade::malformed("no number can be read");
        };
        let (expected, unit) = (self.expected, self.unit.as_deref().unwrap_or_default());
        let allowed = (self.tolerance + ROUNDING) * expected.abs().max(ROUNDING);
        let shown = |value: f64, unit: &str| format!("{value} {unit}").trim().to_owned();
        let why = format!(
            "{} was expected, {} was read",
            shown(expected, unit),
            shown(stated.value, &stated.unit)
        );
        if (stated.value - expected).abs() > allowed {
            return Grade::wrong(why);
        }
        match is_same_unit(unit, &stated.unit) {
            true => Grade::correct(why),
            false => Grade::wrong(why),
        }
    }
}

/// Units are compared by their letters; `hours` and `hour` are the same, and `hours` and `minutes` are not.
fn is_same_unit(expected: &str, stated: &str) -> bool {
    /// Words that follow a number and are no unit.
    const OTHER_WORDS: [&str; 12] =
        ["is", "and", "or", "in", "for", "of", "as", "which", "because", "so", "the", "with"];
    let folded = |unit: &str| {
        let letters =
            unit.chars().flat_map(char::to_lowercase).filter(|sign| !sign.is_whitespace());
        let unit: String = letters.collect();
        match unit.as_str() {
            "€" | "eur" => "euro".to_owned(),
            "$" | "usd" | "dollars" => "dollar".to_owned(),
            "kph" | "kmh" => "km/h".to_owned(),
            "m3" => "m³".to_owned(),
            "min" => "minute".to_owned(),
            "h" | "hrs" | "hr" => "hour".to_owned(),
            "meters" | "metres" | "meter" | "metre" => "m".to_owned(),
            "°fahrenheit" | "fahrenheit" | "f" => "°f".to_owned(),
            "kilowatt" => "kwh".to_owned(),
            other => other.strip_suffix('s').unwrap_or(other).to_owned(),
        }
    };
    let (expected, stated) = (folded(expected), folded(stated));
    stated.is_empty()
        || expected.is_empty()
        || OTHER_WORDS.contains(&stated.as_str())
        || expected == stated
        // The reader takes letters only: `cubic metres`, `square`.
        || expected.starts_with(stated.as_str())
        || stated.starts_with("cubic")
        || stated.starts_with("degree")
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Verdict;

    #[test]
    fn value_and_unit_count() {
        let rows = [
            ("Answer: 12.5 km/h", Verdict::Correct),
            ("Answer: 12.5", Verdict::Correct),
            ("Answer: 12.55 km/h", Verdict::Correct),
            ("Answer: 12.7 km/h", Verdict::Wrong),
            ("Answer: 12.5 m/s", Verdict::Wrong),
            ("Answer: 12.5 kmh", Verdict::Correct),
            ("Answer: about twelve", Verdict::Malformed),
        ];
        for (text, expected) in rows {
            assert_eq!(
                Number::with_unit(12.5, 0.01, "km/h").grade(text).verdict,
                expected,
                "{text}"
            );
        }
        let rows = [("0", Verdict::Correct), ("0.001", Verdict::Wrong), ("-0", Verdict::Correct)];
        for (text, expected) in rows {
            assert_eq!(Number::exact(0.0).grade(text).verdict, expected, "{text}");
        }
        assert_eq!(Number::exact(1e12).grade("1,000,000,000,000").verdict, Verdict::Correct);
    }
}
