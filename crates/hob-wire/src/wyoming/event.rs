//! The events that clients send. Their fields are checked here, once.
//! Fields that hob does not use, such as a time stamp or a context, are not built in memory.

use std::fmt;

use bytes::Bytes;
use hob_core::PcmLayout;
use serde::Deserialize;
use serde::de::DeserializeOwned;

use super::error::WyomingError;
use crate::fields::Fields;
use crate::request_value::Name;

/// An event of a client.
#[derive(Clone, PartialEq, Eq)]
pub enum WyomingEvent {
    Describe,
    Ping {
        text: Option<String>,
    },
    /// Chooses a program of the answer to `describe` for the rest of the connection.
    SelectProgram {
        name: String,
    },
    Synthesize {
        text: String,
        voice: WyomingVoice,
    },
    SynthesizeStart {
        voice: WyomingVoice,
    },
    SynthesizeChunk {
        text: String,
    },
    SynthesizeStop,
    Transcribe(WyomingTranscribe),
    AudioStart(PcmLayout),
    AudioChunk {
        layout: PcmLayout,
        sound: Bytes,
    },
    AudioStop,
    /// A type that hob does not know, to be ignored.
    Unknown,
}

/// The voice that a client wants. A name wins over a language.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct WyomingVoice {
    pub name: Option<String>,
    pub language: Option<String>,
}

/// How the sound that follows should be transcribed.
#[derive(Clone, Default, PartialEq, Eq)]
pub struct WyomingTranscribe {
    /// A model or an alias.
    pub model: Option<String>,
    pub language: Option<String>,
    /// Names and terms that may occur.
    pub prompt: Option<String>,
}

#[derive(Deserialize)]
struct PingFields {
    text: Option<String>,
}

#[derive(Deserialize)]
struct SelectFields {
    name: Name,
}

#[derive(Deserialize)]
struct TextFields {
    text: String,
}

/// How a text is spoken.
#[derive(Deserialize)]
struct SpokenFields {
    voice: Option<VoiceFields>,
    #[serde(rename = "text_format")]
    _format: Option<TextFormat>,
}

/// hob knows no markup: it would read the tags of SSML aloud.
#[derive(Deserialize)]
#[serde(rename_all = "snake_case")]
enum TextFormat {
    Text,
}

#[derive(Deserialize)]
struct VoiceFields {
    name: Option<Name>,
    language: Option<Name>,
}

#[derive(Deserialize)]
struct TranscribeFields {
    name: Option<Name>,
    language: Option<Name>,
    transcript_names: Option<Vec<String>>,
    transcript_terms: Option<Vec<String>>,
}

#[derive(Deserialize)]
struct LayoutFields {
    rate: u32,
    width: u8,
    channels: u8,
}

impl WyomingEvent {
    pub(super) fn read(
        kind: &str,
        fields: &mut Fields<'_>,
        payload: Bytes,
    ) -> Result<WyomingEvent, WyomingError> {
        let mut form = Form { kind, fields };
        Ok(match kind {
            "describe" => WyomingEvent::Describe,
            "ping" => WyomingEvent::Ping { text: form.read::<PingFields>()?.text },
            "select-program" => {
                WyomingEvent::SelectProgram { name: form.read::<SelectFields>()?.name.0 }
            }
            "synthesize" => {
                let TextFields { text } = form.read()?;
                let SpokenFields { voice, .. } = form.read()?;
                WyomingEvent::Synthesize { text, voice: voice.into() }
            }
            "synthesize-start" => {
                let SpokenFields { voice, .. } = form.read()?;
                WyomingEvent::SynthesizeStart { voice: voice.into() }
            }
            "synthesize-chunk" => {
                WyomingEvent::SynthesizeChunk { text: form.read::<TextFields>()?.text }
            }
            "synthesize-stop" => WyomingEvent::SynthesizeStop,
            "transcribe" => WyomingEvent::Transcribe(form.read::<TranscribeFields>()?.into()),
            "audio-start" => WyomingEvent::AudioStart(form.read::<LayoutFields>()?.into()),
            "audio-chunk" => {
                let layout = form.read::<LayoutFields>()?.into();
                WyomingEvent::AudioChunk { layout, sound: payload }
            }
            "audio-stop" => WyomingEvent::AudioStop,
            _ => WyomingEvent::Unknown,
        })
    }

    /// The type, as it stands on the line.
    pub fn kind(&self) -> &'static str {
        match self {
            WyomingEvent::Describe => "describe",
            WyomingEvent::Ping { .. } => "ping",
            WyomingEvent::SelectProgram { .. } => "select-program",
            WyomingEvent::Synthesize { .. } => "synthesize",
            WyomingEvent::SynthesizeStart { .. } => "synthesize-start",
            WyomingEvent::SynthesizeChunk { .. } => "synthesize-chunk",
            WyomingEvent::SynthesizeStop => "synthesize-stop",
            WyomingEvent::Transcribe(_) => "transcribe",
            WyomingEvent::AudioStart(_) => "audio-start",
            WyomingEvent::AudioChunk { .. } => "audio-chunk",
            WyomingEvent::AudioStop => "audio-stop",
            WyomingEvent::Unknown => "unknown",
        }
    }
}

/// Shows the type alone: texts do not belong in logs.
impl fmt::Debug for WyomingEvent {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "WyomingEvent({})", self.kind())
    }
}

hob_core::debug_fields!(WyomingTranscribe: model, language);

/// The fields of one event.
struct Form<'a, 'b> {
    kind: &'a str,
    fields: &'a mut Fields<'b>,
}

impl Form<'_, '_> {
    fn read<T: DeserializeOwned>(&mut self) -> Result<T, WyomingError> {
        let named = |error| WyomingError::Event { kind: self.kind.to_owned(), error };
        self.fields.read().map_err(named)
    }
}

impl From<Option<VoiceFields>> for WyomingVoice {
    fn from(sent: Option<VoiceFields>) -> WyomingVoice {
        let Some(VoiceFields { name, language }) = sent else { return WyomingVoice::default() };
        WyomingVoice { name: name.map(|name| name.0), language: language.map(|name| name.0) }
    }
}

impl From<TranscribeFields> for WyomingTranscribe {
    fn from(sent: TranscribeFields) -> WyomingTranscribe {
        let words = [sent.transcript_names, sent.transcript_terms];
        let words: Vec<String> = words.into_iter().flatten().flatten().collect();
        WyomingTranscribe {
            model: sent.name.map(|name| name.0),
            language: sent.language.map(|name| name.0),
            prompt: (!words.is_empty()).then(|| words.join(", ")),
        }
    }
}

impl From<LayoutFields> for PcmLayout {
    fn from(LayoutFields { rate, width, channels }: LayoutFields) -> PcmLayout {
        PcmLayout { rate_hz: rate, bytes: width.into(), channels: channels.into() }
    }
}
