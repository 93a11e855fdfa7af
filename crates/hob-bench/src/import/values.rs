//! Reads values of other programs: times, spreads, and the quant and family in a model's name.
//! A quant or family is set only if the name contains it.

use std::collections::BTreeMap;

use hob_core::statistics::Sample;
use jiff::Timestamp;
use jiff::civil::DateTime;
use serde_json::Value;

use crate::families;
use crate::record::{RecordedModel, Spread};

/// Fields that the reader of a format does not use.
pub(super) type UnreadFields = BTreeMap<String, Value>;

/// Minimum number of values for a 95th percentile whose interval has both ends.
pub(super) const P95_VALUES_MIN: usize = 72;
/// Minimum number of values for a 99th percentile whose interval has both ends.
pub(super) const P99_VALUES_MIN: usize = 368;

/// The spread of values. It has no confidence interval: an interval needs runs, and these values are single requests.
pub(super) fn spread(values: impl IntoIterator<Item = f64>) -> Option<Spread> {
    let sample = Sample::new(values.into_iter().filter(|value| value.is_finite()));
    (sample.count() > 0).then(|| Spread { ci95: None, ..crate::runs::spread(&sample, &sample) })
}

/// An average of `n` values.
pub(super) fn spread_of_mean(value: f64, n: Option<u64>) -> Spread {
    Spread { n, mean: Some(value), ..Spread::default() }
}

/// Lists the non-empty fields that were not read.
pub(super) fn unread_fields(rest: &UnreadFields) -> Option<String> {
    let empty = |value: &&Value| match value {
        Value::Null => true,
        Value::String(text) => text.is_empty(),
        Value::Array(list) => list.is_empty(),
        Value::Object(table) => table.is_empty(),
        _ => false,
    };
    let names: Vec<&str> =
        rest.iter().filter(|(_, value)| !empty(value)).map(|(name, _)| name.as_str()).collect();
    (!names.is_empty()).then(|| format!("fields: {}", names.join(", ")))
}

/// Parses a time. A time without a zone is in UTC.
pub(super) fn parse_time(text: &str) -> Option<Timestamp> {
    let text = text.trim();
    if let Ok(time) = text.parse() {
        return Some(time);
    }
    let civil = text.trim_end_matches('Z').parse::<DateTime>().ok();
    let civil = civil.or_else(|| DateTime::strptime("%Y%m%d-%H%M%S", text).ok());
    civil?.in_tz("UTC").ok().map(|zoned| zoned.timestamp())
}

/// Seconds since 1970.
pub(super) fn timestamp_of_unix_s(seconds: f64) -> Option<Timestamp> {
    Timestamp::from_nanosecond((seconds * 1e9) as i128).ok()
}

/// Converts seconds to microseconds. None for negative times.
pub(super) fn micros(seconds: f64) -> Option<u64> {
    (seconds.is_finite() && seconds >= 0.0).then(|| (seconds * 1e6).round() as u64)
}

/// A model by its name, with the quant in that name.
pub(super) fn model(name: &str) -> RecordedModel {
    let file = name.rsplit(['/', '\\']).next().unwrap_or(name);
    let is_file = file.ends_with(".gguf");
    let name = if is_file { file.trim_end_matches(".gguf") } else { name };
    RecordedModel {
        name: name.to_owned(),
        format: is_file.then(|| "gguf".to_owned()),
        quant: quant(name),
        ..RecordedModel::default()
    }
}

/// The quant in a name, such as `Q4_K_M`.
pub(crate) fn quant(name: &str) -> Option<String> {
    let parts = name.split(['-', '.', ':', ' ', '/', '(', ')']);
    parts.into_iter().map(str::to_uppercase).find(|part| is_quant(part))
}

fn is_quant(part: &str) -> bool {
    let after = |start: &str| part.strip_prefix(start).and_then(|rest| rest.chars().next());
    let is_bits = |start: &str| after(start).is_some_and(|bits| bits.is_ascii_digit());
    let whole = [
        "F16", "BF16", "F32", "FP16", "FP8", "FP4", "NVFP4", "MXFP4", "AWQ", "GPTQ", "INT8", "INT4",
    ];
    whole.contains(&part)
        || (is_bits("Q") || is_bits("IQ")) && (part.contains('_') || part.len() == 2)
}

/// Sets family and release date from the model's name, where they are known.
pub(super) fn set_family(model: &mut RecordedModel) {
    if let Some(family) = families::family_of_model(&model.name) {
        model.family.get_or_insert_with(|| family.name.to_owned());
        if let Some(released) = family.released {
            model.released.get_or_insert_with(|| released.to_owned());
        }
    }
}
