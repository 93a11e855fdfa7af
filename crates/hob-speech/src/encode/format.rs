//! The names of the audio formats, in requests and in response headers.
//! No default: `hob-wire` decides which format an absent field means.

use hob_core::speech::SAMPLE_RATES_HZ;

hob_core::enum_table! {
    /// A container and codec that a response can be made of.
    #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
    pub enum AudioFormat: name {
        Mp3 = "mp3",
        Wav = "wav",
        Pcm = "pcm",
        Opus = "opus",
        Flac = "flac",
        Aac = "aac",
    }
}

/// A format name that hob does not support.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("'{given}' is not an audio format (expected mp3, wav, pcm, opus, flac or aac)")]
pub struct UnknownFormat {
    /// The first characters of the name. An error must not repeat a whole request.
    pub given: String,
}

const GIVEN_CHARS_MAX: usize = 32;

const OPUS_RATES_HZ: &[u32] = &[8_000, 12_000, 16_000, 24_000, 48_000];

impl AudioFormat {
    /// Reads a name exactly as [`AudioFormat::name`] writes it.
    pub fn parse(text: &str) -> Result<Self, UnknownFormat> {
        let known = Self::ALL.into_iter().find(|format| format.name() == text);
        known.ok_or_else(|| UnknownFormat { given: text.chars().take(GIVEN_CHARS_MAX).collect() })
    }

    /// The `Content-Type` of a response in this format.
    pub fn content_type(self) -> &'static str {
        match self {
            Self::Mp3 => "audio/mpeg",
            Self::Wav => "audio/wav",
            Self::Pcm => "audio/pcm",
            Self::Opus => "audio/ogg",
            Self::Flac => "audio/flac",
            Self::Aac => "audio/aac",
        }
    }

    /// The sample rates that an [`Encoder`](super::Encoder) accepts for this format. Nothing is resampled.
    pub fn sample_rates_hz(self) -> &'static [u32] {
        match self {
            Self::Opus => OPUS_RATES_HZ,
            Self::Mp3 | Self::Wav | Self::Pcm | Self::Flac | Self::Aac => SAMPLE_RATES_HZ,
        }
    }
}
