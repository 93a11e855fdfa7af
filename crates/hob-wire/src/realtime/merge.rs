//! Merges a client's change into the settings in force, as JSON: a field that is left out stays, and `null` clears.
//! Flat fields of the older dialect move to their place in the object first. Clients of both dialects may send them.

use hob_core::realtime::{RealtimeSettings, SoundEncoding};
use serde::de::Deserialize;
use serde_json::{Map, Value};

use super::RealtimeDialect;
use super::session::{BETA_FORMATS, RealtimeSession, session_of};
use crate::WireError;
use crate::request_value::RequestValue;

/// Flat fields of the older dialect, and their path in the object.
const FLAT: [(&str, &[&str]); 9] = [
    ("modalities", &["output_modalities"]),
    ("voice", &["audio", "output", "voice"]),
    ("speed", &["audio", "output", "speed"]),
    ("input_audio_format", &["audio", "input", "format"]),
    ("output_audio_format", &["audio", "output", "format"]),
    ("input_audio_transcription", &["audio", "input", "transcription"]),
    ("input_audio_noise_reduction", &["audio", "input", "noise_reduction"]),
    ("turn_detection", &["audio", "input", "turn_detection"]),
    ("max_response_output_tokens", &["max_output_tokens"]),
];

/// The settings after a change.
///
/// # Errors
/// A value is not possible. The error names its field within the session.
pub(super) fn changed(
    before: &RealtimeSettings,
    change: Map<String, Value>,
) -> Result<RealtimeSettings, WireError> {
    let mut all = to_value(before);
    merge(&mut all, Value::Object(nested(change)));
    RealtimeSession::deserialize(RequestValue(all))?.settings(before)
}

/// The whole session in the client's dialect, without its id.
pub(super) fn session_json(settings: &RealtimeSettings, dialect: RealtimeDialect) -> Value {
    let mut all = to_value(settings);
    // OpenAI's clients know no effort `none`: there, a model that does not think has no such field.
    if all["reasoning"]["effort"] == "none"
        && let Value::Object(all) = &mut all
    {
        all.retain(|name, _| name != "reasoning");
    }
    match (all, dialect) {
        (Value::Object(all), RealtimeDialect::Beta) => Value::Object(flat(all, settings)),
        (all, _) => all,
    }
}

/// Moves flat fields to their place. Formats keep their word, which is read as well.
pub(super) fn nested(mut change: Map<String, Value>) -> Map<String, Value> {
    let mut all = Value::Object(Map::new());
    for (name, path) in FLAT {
        let Some(value) = change.remove(name) else { continue };
        let value = if name == "modalities" { one_modality(value) } else { value };
        let inside = path.iter().rev().fold(value, |value, name| {
            Value::Object(Map::from_iter([((*name).to_owned(), value)]))
        });
        merge(&mut all, inside);
    }
    merge(&mut all, Value::Object(change));
    match all {
        Value::Object(all) => all,
        _ => Map::new(),
    }
}

/// The older dialect writes `["audio", "text"]` for sound with its text.
fn one_modality(value: Value) -> Value {
    match &value {
        Value::Array(both) if both.len() == 2 && both.contains(&"audio".into()) => {
            Value::Array(vec!["audio".into()])
        }
        _ => value,
    }
}

fn flat(mut all: Map<String, Value>, settings: &RealtimeSettings) -> Map<String, Value> {
    let mut audio = all.remove("audio").unwrap_or_default();
    for (name, path) in FLAT {
        let value = match path {
            [name] => all.remove(*name).unwrap_or_default(),
            [_, side, name] => audio[*side][*name].take(),
            _ => continue,
        };
        let value = match name {
            "input_audio_format" => format_word(settings.input_encoding),
            "output_audio_format" => format_word(settings.output_encoding),
            "modalities" if value == Value::from(vec!["audio"]) => vec!["audio", "text"].into(),
            _ => value,
        };
        all.insert(name.to_owned(), value);
    }
    all
}

fn format_word(encoding: SoundEncoding) -> Value {
    BETA_FORMATS
        .iter()
        .find(|(_, known)| *known == encoding)
        .map_or(Value::Null, |(name, _)| (*name).into())
}

fn to_value(settings: &RealtimeSettings) -> Value {
    serde_json::to_value(session_of(settings)).unwrap_or_default()
}

/// A tool list and every other value that is not an object replaces the one before.
fn merge(all: &mut Value, change: Value) {
    match (all, change) {
        (Value::Object(all), Value::Object(change)) => {
            for (name, value) in change {
                merge(all.entry(name).or_insert(Value::Null), value);
            }
        }
        (all, change) => *all = change,
    }
}
