//! Checks a number within a tolerance, and its unit where one is stated.
//! A number without a known unit passes, because the prompt names the unit. Another unit that hob knows is wrong.

use serde::{Deserialize, Serialize};

use crate::Grade;
use crate::reading::{StatedNumber, answer_text, last_number, stated_unit, unit_named};

/// Relative error that floating-point numbers make by themselves. Whole numbers of twelve digits are still exact.
const ROUNDING: f64 = 1e-14;

/// The answer is a number.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Number {
    pub expected: f64,
    /// In the unit of `expected`. The larger one of the two tolerances counts.
    #[serde(default)]
    pub tolerance_absolute: f64,
    /// Tolerance as a share of `expected`: 0.01 is one per cent.
    #[serde(default)]
    pub tolerance_relative: f64,
    /// The unit that the prompt asks for.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub unit: Option<String>,
}

impl Number {
    pub fn exact(expected: f64) -> Number {
        Number { expected, tolerance_absolute: 0.0, tolerance_relative: 0.0, unit: None }
    }

    pub fn with_unit(expected: f64, tolerance_relative: f64, unit: &str) -> Number {
        let unit = Some(unit.to_owned());
        Number { tolerance_relative, unit, ..Number::exact(expected) }
    }

    pub(crate) fn grade(&self, content: &str) -> Grade {
        let unit = self.unit.as_deref().map(|unit| format!(" {unit}")).unwrap_or_default();
        let expected = format!("expected {}{unit}", self.expected);
        let Some(read) = last_number(&answer_text(content)) else {
            return Grade::malformed(format!("{expected}, and the text states no number"));
        };
        let stated = stated_unit(&read);
        let shown = stated.map(|unit| format!(" {unit}")).unwrap_or_default();
        let why = format!("{expected}, read {}{shown}", read.value);
        if !self.is_near(&read, stated) {
            return Grade::wrong(why);
        }
        match (&self.unit, stated) {
            (Some(unit), Some(stated)) if unit_named(unit).unwrap_or(unit) != stated => {
                Grade::wrong(format!("{why}: the unit is wrong"))
            }
            _ => Grade::correct(why),
        }
    }

    fn is_near(&self, read: &StatedNumber, stated: Option<&str>) -> bool {
        let relative = self.tolerance_relative.max(ROUNDING) * self.expected.abs();
        let tolerance = self.tolerance_absolute.max(relative);
        let near = |value: f64| (value - self.expected).abs() <= tolerance;
        // 0.5 and 50% are one answer where no unit was asked for.
        let is_percentage = self.unit.is_none() && stated == Some("%");
        near(read.value) || (is_percentage && near(read.value / 100.0))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Verdict;

    #[test]
    fn the_value_and_a_known_unit_must_be_right() {
        let rows = [
            ("Answer: 12.5 km/h", Verdict::Correct),
            ("Answer: 12.5", Verdict::Correct),
            ("Answer: 12.5 leagues", Verdict::Correct),
            ("Answer: 12.55 km/h", Verdict::Correct),
            ("Answer: 12.7 km/h", Verdict::Wrong),
            ("Answer: 12.5 m/s", Verdict::Wrong),
            ("Answer: about twelve", Verdict::Malformed),
            ("So the final answer would be 12.5 km/h after 3 legs.", Verdict::Correct),
        ];
        for (text, expected) in rows {
            let grade = Number::with_unit(12.5, 0.01, "km/h").grade(text);
            assert_eq!(grade.verdict, expected, "{text}: {}", grade.why);
        }
        let rows = [("0", Verdict::Correct), ("0.001", Verdict::Wrong), ("-0", Verdict::Correct)];
        for (text, expected) in rows {
            assert_eq!(Number::exact(0.0).grade(text).verdict, expected, "{text}");
        }
        let rows = [
            (1e12, "1,000,000,000,000", Verdict::Correct),
            (123_456_789_012.0, "123456789013", Verdict::Wrong),
            (4_350_000.0, "4.35 million", Verdict::Correct),
            (0.000_032, "3.2 × 10^-5", Verdict::Correct),
        ];
        for (value, text, expected) in rows {
            assert_eq!(Number::exact(value).grade(text).verdict, expected, "{text}");
        }
    }
}
