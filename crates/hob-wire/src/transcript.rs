//! `POST /v1/audio/transcriptions` and `/translations`: from a form, or from JSON, to a request with types.
//! A form's fields become the JSON that they would have been, so that both are read by the same rules.

mod answer;
mod form;
mod language;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use bytes::Bytes;
use hob_core::{SoundFile, Timestamps, TranscriptTask};
use serde_json::Value;

use crate::WireError;
use crate::error::json;
use crate::fields::Fields;

pub use answer::{
    TranscriptAnswer, TranscriptFormat, transcript_delta, transcript_done, transcript_failed,
};
pub use form::FormField;
pub use language::spoken_language;

const FILE: &str = "file";
const INPUT: &str = "input_audio";
const GRANULARITIES: &str = "timestamp_granularities";
const CHUNKING: &str = "chunking_strategy";

const TEMPERATURE: std::ops::RangeInclusive<f64> = 0.0..=1.0;

/// What was asked for; nothing of it is checked against a model yet.
#[derive(Clone, Debug, PartialEq)]
pub struct WireTranscript {
    /// `None`: the default transcription model.
    pub model: Option<String>,
    pub task: TranscriptTask,
    pub file: SoundFile,
    /// As sent: [`spoken_language`] says whether it is one.
    pub language: Option<String>,
    pub prompt: Option<String>,
    pub temperature: Option<f32>,
    pub format: TranscriptFormat,
    pub timestamps: Timestamps,
    /// Server-sent events instead of a body.
    pub is_streamed: bool,
    /// Fields without effect, to be named in `x-hob-ignored`.
    pub ignored: Vec<String>,
}

/// A multipart form: its file, and its other fields as they were sent.
///
/// # Errors
/// [`WireError`], naming the field and what it takes.
pub fn parse_transcript_form(
    task: TranscriptTask,
    file: Option<SoundFile>,
    form: Vec<FormField>,
) -> Result<WireTranscript, WireError> {
    let file = file.ok_or(WireError::Missing { field: FILE })?;
    if file.bytes.is_empty() {
        return Err(WireError::Invalid { field: FILE, reason: "is empty".to_owned() });
    }
    parse(task, Fields::of("body", form::to_json(form))?, file)
}

/// The same as JSON, with the file in `input_audio`.
///
/// # Errors
/// [`WireError`], naming the field and what it takes.
pub fn parse_transcript_json(
    task: TranscriptTask,
    body: &[u8],
) -> Result<WireTranscript, WireError> {
    let mut fields = Fields::parse(body)?;
    let file = input_audio(&mut fields)?;
    parse(task, fields, file)
}

fn parse(
    task: TranscriptTask,
    mut fields: Fields,
    file: SoundFile,
) -> Result<WireTranscript, WireError> {
    let mut ignored = Vec::new();
    let format = fields.choice("response_format", &TranscriptFormat::NAMES)?;
    let format = format.and_then(TranscriptFormat::named).unwrap_or_default();
    let is_streamed = is_streamed(&mut fields, task, format, &mut ignored)?;
    if has_chunking(&mut fields)? {
        ignored.push(CHUNKING.to_owned());
    }
    Ok(WireTranscript {
        model: fields.name("model")?,
        task,
        file,
        language: fields.name("language")?,
        prompt: fields.text("prompt")?,
        temperature: temperature(&mut fields)?,
        format,
        timestamps: timestamps(&mut fields, format, &mut ignored)?,
        is_streamed,
        ignored: [ignored, fields.into_unknown()].concat(),
    })
}

/// `{"data": base64, "format": "wav"}`, which some clients write as an address of data.
fn input_audio(fields: &mut Fields) -> Result<SoundFile, WireError> {
    let invalid = |reason: &str| WireError::Invalid { field: INPUT, reason: reason.to_owned() };
    let mut input = fields.object(INPUT)?.ok_or(WireError::Missing { field: INPUT })?;
    let data = input.text("data")?.ok_or_else(|| invalid("has no 'data'"))?;
    let data = match data.split_once(";base64,") {
        Some((kind, data)) if kind.starts_with("data:") => data,
        _ => &data,
    };
    let bytes =
        STANDARD.decode(data).map_err(|error| invalid(&format!("is no base64: {error}")))?;
    if bytes.is_empty() {
        return Err(invalid("is empty"));
    }
    let format = input.name("format")?.filter(|format| !format.is_empty());
    let name = format.map(|format| format!("audio.{format}"));
    Ok(SoundFile { bytes: Bytes::from(bytes), name })
}

/// Only text can come in pieces. Translations have no such field, so there it is one that is unknown.
fn is_streamed(
    fields: &mut Fields,
    task: TranscriptTask,
    format: TranscriptFormat,
    ignored: &mut Vec<String>,
) -> Result<bool, WireError> {
    const FIELD: &str = "stream";
    let is_wanted = fields.flag(FIELD)?.unwrap_or(false);
    match (is_wanted, task, format) {
        (false, ..) => Ok(false),
        (true, TranscriptTask::Translate, _) => {
            ignored.push(FIELD.to_owned());
            Ok(false)
        }
        (true, TranscriptTask::Transcribe, TranscriptFormat::Json | TranscriptFormat::Text) => {
            Ok(true)
        }
        (true, TranscriptTask::Transcribe, _) => Err(WireError::Invalid {
            field: FIELD,
            reason: format!("cannot be true when 'response_format' is '{}'", format.name()),
        }),
    }
}

/// How a server cuts the sound is a hint; whether it is one is checked all the same.
fn has_chunking(fields: &mut Fields) -> Result<bool, WireError> {
    const ACCEPTED: [&str; 2] = ["auto", "server_vad"];
    let kind = match fields.take(CHUNKING) {
        None => return Ok(false),
        Some(Value::String(kind)) => kind,
        Some(value) => Fields::of(CHUNKING, value)?.name("type")?.unwrap_or_default(),
    };
    if ACCEPTED.contains(&kind.as_str()) {
        return Ok(true);
    }
    Err(WireError::NotOneOf { field: CHUNKING, got: kind, accepted: ACCEPTED.to_vec() })
}

fn temperature(fields: &mut Fields) -> Result<Option<f32>, WireError> {
    const FIELD: &str = "temperature";
    let Some(temperature) = fields.number(FIELD)? else { return Ok(None) };
    if TEMPERATURE.contains(&temperature) {
        return Ok(Some(temperature as f32));
    }
    let reason = format!("must be from 0 to 1, and is {temperature}");
    Err(WireError::Invalid { field: FIELD, reason })
}

/// Times are asked for by the formats that show them; outside `verbose_json` nobody can choose.
fn timestamps(
    fields: &mut Fields,
    format: TranscriptFormat,
    ignored: &mut Vec<String>,
) -> Result<Timestamps, WireError> {
    let wished = granularities(fields)?;
    let segments = Timestamps { segments: true, words: false };
    match (format, wished) {
        (TranscriptFormat::VerboseJson, Some(wished)) if wished.any() => Ok(wished),
        (TranscriptFormat::VerboseJson, _) => Ok(segments),
        (TranscriptFormat::Srt | TranscriptFormat::Vtt, wished) => {
            ignored.extend(wished.map(|_| GRANULARITIES.to_owned()));
            Ok(segments)
        }
        (TranscriptFormat::Json | TranscriptFormat::Text, wished) => {
            ignored.extend(wished.map(|_| GRANULARITIES.to_owned()));
            Ok(Timestamps::default())
        }
    }
}

fn granularities(fields: &mut Fields) -> Result<Option<Timestamps>, WireError> {
    const ACCEPTED: [&str; 2] = ["word", "segment"];
    let Some(list) = fields.list(GRANULARITIES)? else { return Ok(None) };
    let mut wished = Timestamps::default();
    for (index, value) in list.into_iter().enumerate() {
        match value.as_str() {
            Some("word") => wished.words = true,
            Some("segment") => wished.segments = true,
            _ => {
                let got = value.as_str().map_or_else(|| json(&value), str::to_owned);
                let accepted = ACCEPTED.to_vec();
                let error = WireError::NotOneOf { field: GRANULARITIES, got, accepted };
                return Err(error.within(GRANULARITIES, index));
            }
        }
    }
    Ok(Some(wished))
}
