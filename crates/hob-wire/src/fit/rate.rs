//! A speed with its range, the parts of its time, and its certainty.
//! With an unknown speed, only the context is filled.

use hob_core::fit::Rate;
use schemars::JsonSchema;
use serde::Serialize;

/// Significant digits.
const DIGITS: i32 = 4;

/// A speed with its range and the parts of its time.
#[derive(Clone, Debug, PartialEq, JsonSchema, Serialize)]
pub(super) struct FitRate {
    context: u32,
    tok_s: Option<f64>,
    low: Option<f64>,
    high: Option<f64>,
    terms: Vec<FitTime>,
    basis: Option<&'static str>,
    /// `high`, `fair` or `low`.
    confidence: Option<&'static str>,
}

/// Speed of reading a prompt as long as the context.
#[derive(Clone, Debug, PartialEq, JsonSchema, Serialize)]
pub(super) struct FitPrefill {
    #[serde(flatten)]
    rate: FitRate,
    /// Time until the whole prompt is read.
    first_token_ms: Option<f64>,
}

/// A part of the time of one token.
#[derive(Clone, Debug, PartialEq, JsonSchema, Serialize)]
struct FitTime {
    name: String,
    us: f64,
}

impl FitRate {
    pub(super) fn of(context: u32, rate: Option<&Rate>) -> FitRate {
        let time = |(name, us): &(String, f64)| FitTime { name: name.clone(), us: shortly(*us) };
        FitRate {
            context,
            tok_s: rate.map(|rate| shortly(rate.tok_s)),
            low: rate.map(|rate| shortly(rate.low)),
            high: rate.map(|rate| shortly(rate.high)),
            terms: rate.map(|rate| rate.terms.iter().map(time).collect()).unwrap_or_default(),
            basis: rate.map(|rate| rate.basis.name()),
            confidence: rate.map(confidence),
        }
    }
}

impl FitPrefill {
    pub(super) fn of(context: u32, rate: Option<&Rate>) -> FitPrefill {
        let took_ms = |rate: &Rate| shortly(f64::from(rate.context_tokens) * 1e3 / rate.tok_s);
        FitPrefill { rate: FitRate::of(context, rate), first_token_ms: rate.map(took_ms) }
    }
}

/// By how far the speed may be below the estimate. Calibration on a busy machine lowers it.
fn confidence(rate: &Rate) -> &'static str {
    match 1.0 - rate.low / rate.tok_s {
        below if below < 0.15 => "high",
        below if below < 0.35 => "fair",
        _ => "low",
    }
}

/// Rounds to significant digits, so that small values do not become 0.
pub(super) fn shortly(value: f64) -> f64 {
    if value == 0.0 || !value.is_finite() {
        return value;
    }
    let places = DIGITS - 1 - value.abs().log10().floor() as i32;
    if places <= 0 {
        return value.round();
    }
    let scale = 10f64.powi(places);
    (value * scale).round() / scale
}

#[cfg(test)]
mod tests {
    use hob_core::machine::Basis;

    use super::*;

    #[test]
    fn a_speed_is_as_sure_as_its_range_is_short() {
        for (low, expected) in [(90.0, "high"), (80.0, "fair"), (75.0, "fair"), (50.0, "low")] {
            let (context_tokens, basis, terms) = (1, Basis::Calibrated, Vec::new());
            let rate = Rate { context_tokens, tok_s: 100.0, low, high: 110.0, basis, terms };
            assert_eq!(confidence(&rate), expected, "{low}");
        }
    }

    #[test]
    fn figures_are_short_and_never_lost() {
        for (value, expected) in [
            (52.123_456, 52.12),
            (0.001_234_56, 0.001_235),
            (123_456.7, 123_457.0),
            (9.999_99, 10.0),
            (0.0, 0.0),
            (-1e-9, -1e-9),
        ] {
            assert_eq!(shortly(value), expected, "{value}");
        }
    }
}
