//! The times of spoken words: a field of events, and the answers of Kokoro-FastAPI's `/dev/captioned_speech`.
//! Words are those of the request's text, not of its spoken form.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use schemars::JsonSchema;
use serde::Serialize;

use crate::error::json;

/// When a word is heard, in seconds of the sound before it is encoded.
#[derive(Clone, Debug, PartialEq, JsonSchema, Serialize)]
pub struct CaptionWord {
    /// As it stands in the text.
    pub word: String,
    pub start_time: f32,
    pub end_time: f32,
    /// The word's first byte in the text, which is UTF-8.
    pub start_byte: u64,
    /// The byte after its last one.
    pub end_byte: u64,
    /// With `return_phonemes`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub phonemes: Option<Vec<CaptionPhoneme>>,
}

/// When a phoneme of a word is heard.
#[derive(Clone, Debug, PartialEq, JsonSchema, Serialize)]
pub struct CaptionPhoneme {
    /// In Kokoro's alphabet, with its marks, such as those of stress and length: `ˈO`.
    pub phoneme: String,
    pub start_time: f32,
    pub end_time: f32,
}

/// A piece of the sound, or all of it, with the words that begin in it.
#[derive(JsonSchema, Serialize)]
pub(crate) struct CaptionedSound {
    /// In base64. The pieces of all lines, decoded and joined, are the file.
    audio: String,
    /// The content type of the file, such as `audio/mpeg`.
    audio_format: &'static str,
    timestamps: Vec<CaptionWord>,
}

/// Sound with its words, as JSON in one line.
pub fn captioned_sound(
    bytes: &[u8],
    audio_format: &'static str,
    words: Vec<CaptionWord>,
) -> String {
    json(&CaptionedSound { audio: STANDARD.encode(bytes), audio_format, timestamps: words })
}
