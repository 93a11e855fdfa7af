//! `POST /v1/audio/transcriptions` and `/translations`: from a form, or from JSON, to a request with types.
//! A form's fields become the JSON that they would have been, so both go through one parser.

mod events;
mod form;
mod formats;
mod language;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use bytes::Bytes;
use hob_core::{Chunking, SoundFile, Timestamps, TranscriptTask};
use schemars::JsonSchema;
use serde::Deserialize;

use crate::WireError;
use crate::fields::Fields;
use crate::request_value::{Either, JsonKind, Name, count_within, number_within};
use crate::word::Word;

pub(crate) use events::{
    TranscriptDelta, TranscriptDone, TranscriptSegmentEvent, TranscriptWordEvent,
};
pub use events::{
    transcript_delta, transcript_done, transcript_failed, transcript_segment, transcript_word,
};
pub use form::FormField;
pub(crate) use formats::{Transcript, VerboseTranscript};
pub use formats::{TranscriptAnswer, TranscriptFormat};
pub(crate) use language::language_codes;
pub use language::{checked_language, spoken_language};

const FILE: &str = "file";

/// A parsed request. Its names are not yet checked against a model.
#[derive(Clone, Debug, PartialEq)]
pub struct WireTranscript {
    /// `None`: the default transcription model.
    pub model: Option<String>,
    pub task: TranscriptTask,
    pub file: SoundFile,
    /// As sent: [`checked_language`] says whether it is one.
    pub language: Option<String>,
    pub prompt: Option<String>,
    pub temperature: Option<f32>,
    pub format: TranscriptFormat,
    pub timestamps: Timestamps,
    pub chunking: Option<Chunking>,
    /// Server-sent events instead of a body.
    pub is_streamed: bool,
    /// Fields without effect, to be named in `x-hob-ignored`.
    pub ignored: Vec<String>,
}

/// The fields of `POST /v1/audio/transcriptions` and `POST /v1/audio/translations`, apart from the file.
#[derive(Deserialize, JsonSchema)]
pub(crate) struct TranscriptFields {
    /// A transcription model of `/v1/models`, `UPSTREAM/MODEL`, or one of OpenAI's (`whisper-1`, `gpt-4o-transcribe`, …).
    /// Default: the default transcription model.
    model: Option<Name>,
    /// The spoken language as an ISO 639-1 code: `en`, `de`. A region is tolerated. Default: the model decides.
    language: Option<Name>,
    /// Text in the style of what comes before the sound: the model copies its names and spelling.
    prompt: Option<String>,
    /// From 0 to 1. Default: the model's.
    #[serde(default, deserialize_with = "number_within::<_, 0, 1>")]
    #[schemars(range(min = 0, max = 1))]
    temperature: Option<f32>,
    /// Default: `json`.
    response_format: Option<Word<TranscriptFormat>>,
    /// Which times `verbose_json` holds (default: `segment`), and which events with times a stream has (default: none).
    timestamp_granularities: Option<Vec<Granularity>>,
    /// `true` sends server-sent events, with `json` and `text`. Default: `false`.
    stream: Option<bool>,
    /// How the sound is cut into parts. Other servers get it in OpenAI's form, and not for translations, where OpenAI has
    /// no such field. Default: `auto`, for which hob's own engine cuts at pauses of 2 s.
    chunking_strategy: Option<Either<ChunkingKind, ChunkingObject>>,
}

/// Recorded speech as JSON.
#[derive(Deserialize, JsonSchema)]
pub(crate) struct InputAudioFields {
    /// The sound file, where the request is JSON and not a form.
    input_audio: InputAudio,
}

/// A sound file inside JSON.
#[derive(Deserialize, JsonSchema)]
struct InputAudio {
    /// The file in base64, at most 100 MiB. Its bytes say which format it is.
    data: String,
    /// The file's extension: `wav`.
    format: Option<Name>,
}

#[derive(Clone, Copy, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
#[schemars(inline)]
enum Granularity {
    Word,
    Segment,
}

#[derive(Clone, Copy, Default, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
#[schemars(inline)]
enum ChunkingKind {
    #[default]
    Auto,
    ServerVad,
}

impl JsonKind for ChunkingKind {
    const KIND: &'static str = "a string";
}

/// How the sound is cut into parts that are transcribed at once. In hob's own engine, a part has at most 28 s, and after
/// 20 s it ends at the next short pause.
#[derive(Clone, Copy, Default, Deserialize, JsonSchema)]
struct ChunkingObject {
    /// `server_vad` cuts at pauses as the other fields say. With `auto`, they have no effect.
    r#type: ChunkingKind,
    /// Sound that is at least this likely to be speech is speech: from 0 to 1. Default: 0.5.
    #[serde(default, deserialize_with = "number_within::<_, 0, 1>")]
    #[schemars(range(min = 0, max = 1))]
    threshold: Option<f32>,
    /// Milliseconds of sound that are kept before the first speech of a part, from 0 to 5,000.
    /// Default: at least 960, and more in a part that is then no longer than 6.9 s.
    #[serde(default, deserialize_with = "count_within::<_, 0, 5_000>")]
    #[schemars(range(min = 0, max = 5_000))]
    prefix_padding_ms: Option<u32>,
    /// Milliseconds of silence that end a part, from 100 to 10,000. Default: 2,000.
    #[serde(default, deserialize_with = "count_within::<_, 100, 10_000>")]
    #[schemars(range(min = 100, max = 10_000))]
    silence_duration_ms: Option<u32>,
}

impl JsonKind for ChunkingObject {}

/// A multipart form: its file, and its other fields as they were sent.
///
/// # Errors
/// [`WireError`], naming the field and what it takes.
pub fn parse_transcript_form(
    task: TranscriptTask,
    file: Option<SoundFile>,
    form: Vec<FormField>,
) -> Result<WireTranscript, WireError> {
    let file = file.ok_or_else(|| WireError::missing(FILE))?;
    if file.bytes.is_empty() {
        return Err(WireError::invalid(FILE, "is empty"));
    }
    parse(task, Fields::of(form::to_json(form)), file)
}

/// Parses a request in JSON, with the file in `input_audio`.
///
/// # Errors
/// [`WireError`], naming the field and what it takes.
pub fn parse_transcript_json(
    task: TranscriptTask,
    body: &[u8],
) -> Result<WireTranscript, WireError> {
    let mut fields = Fields::parse(body)?;
    let InputAudioFields { input_audio } = fields.read()?;
    let file = sound_file(input_audio).map_err(|error| error.within("input_audio"))?;
    parse(task, fields, file)
}

fn sound_file(InputAudio { data, format }: InputAudio) -> Result<SoundFile, WireError> {
    const DATA: &str = "data";
    let data = match data.split_once(";base64,") {
        Some((kind, data)) if kind.starts_with("data:") => data,
        _ => &data,
    };
    let bytes = STANDARD
        .decode(data)
        .map_err(|error| WireError::invalid(DATA, format!("is not valid base64: {error}")))?;
    if bytes.is_empty() {
        return Err(WireError::invalid(DATA, "is empty"));
    }
    let format = format.map(|format| format.0).filter(|format| !format.is_empty());
    let name = format.map(|format| format!("audio.{format}"));
    Ok(SoundFile { bytes: Bytes::from(bytes), name })
}

fn parse(
    task: TranscriptTask,
    mut fields: Fields,
    file: SoundFile,
) -> Result<WireTranscript, WireError> {
    let mut ignored = Vec::new();
    let sent: TranscriptFields = fields.read()?;
    let format = sent.response_format.map(|Word(format)| format).unwrap_or_default();
    let is_streamed = is_streamed(sent.stream, format)?;
    let chunking = sent.chunking_strategy.map(|sent| chunking(sent, &mut ignored));
    let timestamps = timestamps(sent.timestamp_granularities, (format, is_streamed), &mut ignored);
    ignored.extend(fields.into_unknown());
    let text = |name: Option<Name>| name.map(|name| name.0);
    Ok(WireTranscript {
        model: text(sent.model),
        task,
        file,
        language: text(sent.language),
        prompt: sent.prompt,
        temperature: sent.temperature,
        format,
        timestamps,
        chunking,
        is_streamed,
        ignored,
    })
}

fn chunking(sent: Either<ChunkingKind, ChunkingObject>, ignored: &mut Vec<String>) -> Chunking {
    let sent = match sent {
        Either::First(kind) => ChunkingObject { r#type: kind, ..ChunkingObject::default() },
        Either::Second(object) => object,
    };
    let ChunkingObject { r#type, threshold, prefix_padding_ms, silence_duration_ms } = sent;
    match r#type {
        ChunkingKind::ServerVad => {
            Chunking::ServerVad { threshold, prefix_padding_ms, silence_ms: silence_duration_ms }
        }
        ChunkingKind::Auto => {
            let has_values =
                threshold.is_some() || prefix_padding_ms.is_some() || silence_duration_ms.is_some();
            ignored.extend(has_values.then(|| "chunking_strategy".to_owned()));
            Chunking::Auto
        }
    }
}

/// Only text can come in pieces.
fn is_streamed(sent: Option<bool>, format: TranscriptFormat) -> Result<bool, WireError> {
    match (sent.unwrap_or(false), format) {
        (false, _) => Ok(false),
        (true, TranscriptFormat::Json | TranscriptFormat::Text) => Ok(true),
        (true, _) => {
            let reason = format!("cannot be true when 'response_format' is '{}'", format.name());
            Err(WireError::invalid("stream", reason))
        }
    }
}

/// Subtitles always have times. `verbose_json` and streams let the client choose which.
fn timestamps(
    sent: Option<Vec<Granularity>>,
    (format, is_streamed): (TranscriptFormat, bool),
    ignored: &mut Vec<String>,
) -> Timestamps {
    const FIELD: &str = "timestamp_granularities";
    let segments = Timestamps { segments: true, words: false };
    let without_effect = match format {
        TranscriptFormat::VerboseJson => {
            let wanted = wanted(sent);
            return if wanted.any() { wanted } else { segments };
        }
        TranscriptFormat::Json | TranscriptFormat::Text if is_streamed => return wanted(sent),
        TranscriptFormat::Srt | TranscriptFormat::Vtt => segments,
        TranscriptFormat::Json | TranscriptFormat::Text => Timestamps::default(),
    };
    ignored.extend(sent.map(|_| FIELD.to_owned()));
    without_effect
}

fn wanted(sent: Option<Vec<Granularity>>) -> Timestamps {
    let mut wanted = Timestamps::default();
    for granularity in sent.unwrap_or_default() {
        match granularity {
            Granularity::Word => wanted.words = true,
            Granularity::Segment => wanted.segments = true,
        }
    }
    wanted
}
