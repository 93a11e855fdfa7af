//! Transcription: sound in, text out, with times if the client requests them.
//! The sound is samples, an uploaded file, or samples that arrive while a person speaks.

use std::fmt;
use std::sync::{Arc, Mutex};

use bytes::Bytes;
use futures::future::BoxFuture;
use futures::stream::BoxStream;

use crate::chat::Reading;
use crate::{ModelError, ModelState, Trace, enum_table, locked};

/// A transcription model. As for [`crate::SpeechModel`]: the future fails if the request is rejected, the
/// stream yields later failures as items, and dropping either stops the work.
pub trait TranscriptModel: Send + Sync {
    /// What the model would do with a request now. A model that is never loaded is always ready.
    fn state(&self) -> ModelState {
        ModelState::Ready
    }

    /// Codes of the spoken languages that the model understands. Empty: not known.
    fn languages(&self) -> &[String] {
        &[]
    }

    fn transcribe(
        &self,
        request: TranscriptRequest,
    ) -> BoxFuture<'_, Result<TranscriptStream, ModelError>>;
}

/// Events in order, of which [`TranscriptEvent::Done`] is the last.
pub type TranscriptStream = BoxStream<'static, Result<TranscriptEvent, ModelError>>;

/// The sound to transcribe, and what the result should contain.
#[derive(Clone, Default, PartialEq)]
pub struct TranscriptRequest {
    pub sound: Sound,
    pub task: TranscriptTask,
    /// Spoken language, as an ISO 639-1 code. `None`: the model detects it.
    pub language: Option<String>,
    /// Text that might have come before: names, spelling, style.
    pub prompt: Option<String>,
    /// 0 to 1. `None`: the model's default.
    pub temperature: Option<f32>,
    pub timestamps: Timestamps,
    /// How to cut a recording. `None`: as the model does it.
    pub chunking: Option<Chunking>,
    pub reading: Reading,
    pub trace: Trace,
}

// Keeps what was said out of logs.
crate::debug_fields!(TranscriptRequest: sound, task, language, timestamps);

/// How a recording is cut into parts that are transcribed at once.
#[derive(Clone, Copy, Debug, PartialEq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
pub enum Chunking {
    /// The model decides.
    Auto,
    /// At pauses. A value that is missing is the model's own.
    ServerVad {
        /// Speech is at least this likely: 0 to 1.
        threshold: Option<f32>,
        /// Sound that is kept before the first speech of a part.
        prefix_padding_ms: Option<u32>,
        /// The silence that ends a part.
        silence_ms: Option<u32>,
    },
}

/// A recording. Clones share it.
#[derive(Clone, PartialEq)]
pub enum Sound {
    /// Mono samples in -1..=1 at [`Sound::RATE_HZ`].
    Samples(Arc<[f32]>),
    /// The uploaded file, not decoded.
    File(SoundFile),
    /// Samples that arrive while the model works.
    Live(LiveSound),
}

/// Mono samples in -1..=1 at [`Sound::RATE_HZ`], in pieces of any length. The stream's end is the end of the sound.
/// Only one reader can take the stream, so an alias cannot send it to a second target.
#[derive(Clone)]
pub struct LiveSound {
    samples: Arc<Mutex<Option<BoxStream<'static, Vec<f32>>>>>,
    can_wait: bool,
}

impl LiveSound {
    /// Sound that waits for a model that falls behind.
    pub fn new(samples: BoxStream<'static, Vec<f32>>) -> LiveSound {
        LiveSound { samples: Arc::new(Mutex::new(Some(samples))), can_wait: true }
    }

    /// Sound of a device that loses what is not read. A model that falls too far behind must fail.
    pub fn of_microphone(samples: BoxStream<'static, Vec<f32>>) -> LiveSound {
        LiveSound { can_wait: false, ..LiveSound::new(samples) }
    }

    pub fn can_wait(&self) -> bool {
        self.can_wait
    }

    /// The stream, or `None` if it was taken before.
    pub fn take(&self) -> Option<BoxStream<'static, Vec<f32>>> {
        locked(&self.samples).take()
    }
}

impl fmt::Debug for LiveSound {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("LiveSound")
    }
}

/// Two values are equal if they share one stream.
impl PartialEq for LiveSound {
    fn eq(&self, other: &LiveSound) -> bool {
        Arc::ptr_eq(&self.samples, &other.samples)
    }
}

/// A recording in some container.
#[derive(Clone, Default, PartialEq, Eq)]
pub struct SoundFile {
    pub bytes: Bytes,
    /// The name that the client gave. The format is detected from the bytes.
    pub name: Option<String>,
}

/// The layout of raw samples, of which 8-bit ones are unsigned and all others are signed and little-endian.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PcmLayout {
    pub rate_hz: u32,
    /// Bytes of one sample of one channel.
    pub bytes: usize,
    pub channels: usize,
}

impl Sound {
    /// The sample rate that transcription models expect.
    pub const RATE_HZ: u32 = 16_000;

    /// Seconds of sound. For a file, a guess that assumes uncompressed sound; 0 for live sound.
    pub fn estimated_s(&self) -> f64 {
        const BYTES_PER_SAMPLE: usize = 2;
        let samples = match self {
            Sound::Live(_) => 0,
            Sound::Samples(samples) => samples.len(),
            Sound::File(file) => file.bytes.len() / BYTES_PER_SAMPLE,
        };
        samples as f64 / f64::from(Sound::RATE_HZ)
    }
}

impl Default for Sound {
    fn default() -> Sound {
        Sound::Samples(Arc::default())
    }
}

impl fmt::Debug for Sound {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Sound::Samples(samples) => write!(f, "Samples({})", samples.len()),
            Sound::File(file) => file.fmt(f),
            Sound::Live(live) => live.fmt(f),
        }
    }
}

impl fmt::Debug for SoundFile {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "SoundFile({} bytes)", self.bytes.len())
    }
}

enum_table! {
    /// The language of the resulting text. The names are those in OpenAI's answers and in Whisper's tokens.
    #[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
    #[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
    pub enum TranscriptTask: name {
        /// The spoken language.
        #[default]
        Transcribe = "transcribe",
        /// English.
        Translate = "translate",
    }
}

/// Which times the client wants in addition to the text. A model without them leaves them out.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
pub struct Timestamps {
    pub segments: bool,
    pub words: bool,
}

impl Timestamps {
    pub fn any(self) -> bool {
        self.segments || self.words
    }
}

/// One event of a transcript. All deltas together are its text. Segments and words repeat pieces of that text, with times.
#[derive(Clone, Debug, PartialEq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
pub enum TranscriptEvent {
    Delta(String),
    /// The text after the deltas, as the model understands it now. Only for live sound. The next event may replace it.
    Interim(String),
    Segment(Segment),
    Word(HeardWord),
    /// The last event of a complete transcript.
    Done(TranscriptSummary),
}

/// A piece of text, with its times and the model's confidence.
#[derive(Clone, Debug, Default, PartialEq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
pub struct Segment {
    pub text: String,
    /// Seconds from the beginning of the sound.
    pub start_s: f64,
    pub end_s: f64,
    /// Start of its window, in hundredths of a second.
    pub seek: u32,
    /// Ids of the model's own vocabulary.
    pub tokens: Vec<u32>,
    pub temperature: f32,
    pub avg_logprob: f32,
    pub compression_ratio: f32,
    pub no_speech_prob: f32,
}

/// The times of one word.
#[derive(Clone, Debug, Default, PartialEq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
pub struct HeardWord {
    pub word: String,
    /// Seconds from the beginning of the sound.
    pub start_s: f64,
    pub end_s: f64,
}

/// What is known about a complete transcript.
#[derive(Clone, Debug, Default, PartialEq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
pub struct TranscriptSummary {
    /// Duration of the sound.
    pub duration_s: f64,
    /// The spoken language, as the model names it.
    pub language: Option<String>,
    /// Set if the model counts in tokens.
    pub usage: Option<TranscriptUsage>,
    /// Why a part of the sound is missing, if the file is damaged.
    pub damage: Option<String>,
}

/// Tokens that a transcript took.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
pub struct TranscriptUsage {
    pub input_tokens: u32,
    pub output_tokens: u32,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_request_can_be_logged_without_what_was_said() {
        let file =
            SoundFile { bytes: Bytes::from_static(b"RIFF"), name: Some("will.wav".to_owned()) };
        let request = TranscriptRequest {
            sound: Sound::File(file),
            prompt: Some("a secret".to_owned()),
            ..TranscriptRequest::default()
        };
        let shown = format!("{request:?}");
        assert!(shown.contains("SoundFile(4 bytes)"), "{shown}");
        assert!(!shown.contains("secret") && !shown.contains("will"), "{shown}");
    }

    #[test]
    fn the_length_of_a_sound_is_counted_or_guessed() {
        let samples = Sound::Samples(vec![0.0; 8000].into());
        let bytes = Bytes::from(vec![0; 32_000]);
        let file = Sound::File(SoundFile { bytes, name: None });
        assert_eq!((samples.estimated_s(), file.estimated_s()), (0.5, 1.0));
    }
}
