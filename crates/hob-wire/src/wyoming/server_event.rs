//! The events that hob sends, as bytes.
//! Data follows the line, as in the protocol's own library, so that a line stays short.

use hob_core::PcmLayout;
use serde::Serialize;

use super::info::WyomingInfo;
use crate::error::{ErrorBody, json};

/// An event of the server.
#[derive(Clone, Copy, Debug)]
pub enum WyomingAnswer<'a> {
    Info(&'a WyomingInfo),
    Pong { text: Option<&'a str> },
    AudioStart(PcmLayout),
    AudioChunk { layout: PcmLayout, sound: &'a [u8] },
    AudioStop,
    SynthesizeStopped,
    TranscriptStart { language: Option<&'a str> },
    TranscriptChunk { text: &'a str },
    Transcript { text: &'a str, language: Option<&'a str> },
    TranscriptStop,
    Error(&'a ErrorBody),
}

#[derive(Serialize)]
struct Line {
    #[serde(rename = "type")]
    kind: &'static str,
    data_length: usize,
    payload_length: usize,
}

#[derive(Default, Serialize)]
struct TextData<'a> {
    #[serde(skip_serializing_if = "Option::is_none")]
    text: Option<&'a str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    language: Option<&'a str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    code: Option<&'a str>,
}

#[derive(Serialize)]
struct LayoutData {
    rate: u32,
    width: usize,
    channels: usize,
}

impl WyomingAnswer<'_> {
    /// The event as it is sent.
    pub fn to_bytes(self) -> Vec<u8> {
        let (kind, data, payload) = self.parts();
        let (data_length, payload_length) = (data.len(), payload.len());
        let mut bytes = json(&Line { kind, data_length, payload_length }).into_bytes();
        bytes.push(b'\n');
        bytes.extend_from_slice(data.as_bytes());
        bytes.extend_from_slice(payload);
        bytes
    }

    fn parts(&self) -> (&'static str, String, &[u8]) {
        let nothing = TextData::default();
        let (kind, data) = match *self {
            WyomingAnswer::Info(info) => ("info", json(info)),
            WyomingAnswer::Pong { text } => ("pong", json(&TextData { text, ..nothing })),
            WyomingAnswer::AudioStart(layout) => ("audio-start", json(&LayoutData::from(layout))),
            WyomingAnswer::AudioChunk { layout, sound } => {
                return ("audio-chunk", json(&LayoutData::from(layout)), sound);
            }
            WyomingAnswer::AudioStop => ("audio-stop", json(&nothing)),
            WyomingAnswer::SynthesizeStopped => ("synthesize-stopped", json(&nothing)),
            WyomingAnswer::TranscriptStart { language } => {
                ("transcript-start", json(&TextData { language, ..nothing }))
            }
            WyomingAnswer::TranscriptChunk { text } => {
                ("transcript-chunk", json(&TextData { text: Some(text), ..nothing }))
            }
            WyomingAnswer::Transcript { text, language } => {
                ("transcript", json(&TextData { text: Some(text), language, ..nothing }))
            }
            WyomingAnswer::TranscriptStop => ("transcript-stop", json(&nothing)),
            WyomingAnswer::Error(ErrorBody { message, code, .. }) => {
                ("error", json(&TextData { text: Some(message), code: *code, ..nothing }))
            }
        };
        (kind, data, &[])
    }
}

impl From<PcmLayout> for LayoutData {
    fn from(PcmLayout { rate_hz, bytes, channels }: PcmLayout) -> LayoutData {
        LayoutData { rate: rate_hz, width: bytes, channels }
    }
}
