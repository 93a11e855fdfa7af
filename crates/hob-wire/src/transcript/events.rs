//! A transcript as server-sent events: text as it is understood, with times if the client asks for them, and the end.
//! Types and fields are OpenAI's. Words, and the language and duration at the end, are hob's own; OpenAI's clients ignore them.

use hob_core::{HeardWord, Segment, TranscriptSummary};
use schemars::JsonSchema;
use serde::Serialize;

use super::formats::{TranscriptUsage, TranscriptWord, rounded, tokens, wire_word};
use crate::ErrorBody;
use crate::error::json;
use crate::sse::{error_event, event};

/// An event with more of the text: `transcript.text.delta`.
#[derive(JsonSchema, Serialize)]
pub(crate) struct TranscriptDelta<'a> {
    r#type: &'static str,
    delta: &'a str,
}

/// An event with the times of a part of the text that was sent before: `transcript.text.segment`. There is no `speaker`,
/// because hob does not tell speakers apart.
#[derive(JsonSchema, Serialize)]
pub(crate) struct TranscriptSegmentEvent<'a> {
    r#type: &'static str,
    /// `seg_0` is the first.
    id: String,
    /// In seconds.
    start: f64,
    /// In seconds.
    end: f64,
    text: &'a str,
}

/// An event with the times of a word: `transcript.text.word`. The words of a segment follow the segment.
#[derive(JsonSchema, Serialize)]
pub(crate) struct TranscriptWordEvent<'a> {
    r#type: &'static str,
    #[serde(flatten)]
    word: TranscriptWord<'a>,
}

/// The last event of a whole transcript: `transcript.text.done`.
#[derive(JsonSchema, Serialize)]
pub(crate) struct TranscriptDone<'a> {
    r#type: &'static str,
    text: &'a str,
    /// The spoken language, if the model says which.
    #[serde(skip_serializing_if = "Option::is_none")]
    language: Option<&'a str>,
    /// Seconds of sound, if they are known.
    #[serde(skip_serializing_if = "Option::is_none")]
    duration: Option<f64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    usage: Option<TranscriptUsage>,
    /// Why a part of the sound is missing, if the file is damaged.
    #[serde(skip_serializing_if = "Option::is_none")]
    warning: Option<&'a str>,
}

/// `transcript.text.delta`: more of the text.
pub fn transcript_delta(text: &str) -> String {
    event(&json(&TranscriptDelta { r#type: "transcript.text.delta", delta: text }))
}

/// `transcript.text.segment`: when a part of the text was said. `number` counts from 0.
pub fn transcript_segment(segment: &Segment, number: u32) -> String {
    event(&json(&TranscriptSegmentEvent {
        r#type: "transcript.text.segment",
        id: format!("seg_{number}"),
        start: rounded(segment.start_s),
        end: rounded(segment.end_s),
        text: &segment.text,
    }))
}

/// `transcript.text.word`: when a word was said.
pub fn transcript_word(word: &HeardWord) -> String {
    event(&json(&TranscriptWordEvent { r#type: "transcript.text.word", word: wire_word(word) }))
}

/// `transcript.text.done`: the last event of a transcript that is whole. `text` is its deltas, joined.
pub fn transcript_done(text: &str, done: &TranscriptSummary) -> String {
    event(&json(&TranscriptDone {
        r#type: "transcript.text.done",
        text,
        language: done.language.as_deref(),
        duration: Some(rounded(done.duration_s)).filter(|seconds| *seconds > 0.0),
        usage: done.usage.map(|usage| tokens(usage.input_tokens, usage.output_tokens)),
        warning: done.damage.as_deref(),
    }))
}

/// The last event of a transcript that broke off.
pub fn transcript_failed(error: &ErrorBody) -> String {
    error_event(error)
}
