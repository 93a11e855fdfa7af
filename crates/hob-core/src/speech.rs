//! Speech: text in, PCM out, while the text may still be arriving.
//! Models produce samples. `hob-speech` encodes them in audio formats.

use std::fmt;
use std::ops::Range;
use std::pin::Pin;
use std::task::{Context, Poll};

use futures::future::BoxFuture;
use futures::stream::{BoxStream, Stream, StreamExt};

use crate::{Language, ModelError, ModelState, Trace, enum_table};

/// Sample rates that hob can write; opus takes some of them only.
pub const SAMPLE_RATES_HZ: &[u32] =
    &[8_000, 11_025, 12_000, 16_000, 22_050, 24_000, 32_000, 44_100, 48_000];

/// A speech model.
///
/// The future rejects everything that can be rejected, before any sound exists. Once it yields a stream, the answer has
/// begun: a later failure is an `Err` item, never a clean end. Dropping the stream stops the work behind it.
pub trait SpeechModel: Send + Sync {
    /// The available voices, in the order in which to show them.
    fn voices(&self) -> &[Voice];

    /// Whether the model could answer a request now. A model that needs no load is always ready.
    fn state(&self) -> ModelState {
        ModelState::Ready
    }

    /// How the model treats [`SpeechRequest::instructions`].
    fn instruction_support(&self) -> InstructionSupport {
        InstructionSupport::Ignored
    }

    /// Speaks a text.
    ///
    /// # Errors
    /// The request cannot be answered, or not now.
    fn speak(&self, request: SpeechRequest) -> BoxFuture<'_, Result<SpeechStream, ModelError>>;
}

/// English at the voice's own rate.
const CHARS_PER_SECOND: f64 = 15.0;

/// The text to speak, and how to speak it.
#[derive(Debug)]
pub struct SpeechRequest {
    pub text: SpeechText,
    pub voice: String,
    pub speed: Speed,
    /// How to speak, for models that accept instructions. Other models ignore it.
    pub instructions: Option<String>,
    pub pace: SpeechPace,
    pub trace: Trace,
}

impl SpeechRequest {
    /// A request for a person who listens, at the voice's normal rate.
    pub fn new(text: SpeechText, voice: impl Into<String>) -> SpeechRequest {
        SpeechRequest {
            text,
            voice: voice.into(),
            speed: Speed::NORMAL,
            instructions: None,
            pace: SpeechPace::Live,
            trace: Trace::default(),
        }
    }
}

/// How a model divides the work on a text into steps.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
pub enum SpeechPace {
    /// A person listens. The first sound comes early, and the steps follow the load and what was heard.
    Live,
    /// The whole sound is awaited. The steps are always the same, so the same request has the same samples.
    Steady,
}

/// The text of a request. It is complete, or a person or a chat model is still writing it.
pub enum SpeechText {
    Whole(String),
    /// Pieces in order, cut anywhere between characters. An empty piece means that the writer pauses: the
    /// model speaks what has arrived, without waiting for more.
    Arriving(BoxStream<'static, String>),
}

impl fmt::Debug for SpeechText {
    /// Shows the length, never the text: texts do not belong in logs.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            SpeechText::Whole(text) => write!(f, "Whole({} bytes)", text.len()),
            SpeechText::Arriving(_) => f.write_str("Arriving"),
        }
    }
}

/// Speaking rate: 0.25 to 4, where 1 is the voice's own.
#[derive(Clone, Copy, Debug, PartialEq, PartialOrd)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
#[cfg_attr(feature = "serde", serde(try_from = "f32", into = "f32"))]
pub struct Speed(f32);

impl Speed {
    pub const NORMAL: Speed = Speed(1.0);
    pub const RANGE: std::ops::RangeInclusive<f32> = 0.25..=4.0;

    /// # Errors
    /// The rate is outside 0.25..=4, or is not a number.
    pub fn new(rate: f32) -> Result<Speed, ModelError> {
        if Speed::RANGE.contains(&rate) {
            Ok(Speed(rate))
        } else {
            Err(ModelError::InvalidField {
                field: "speed",
                reason: format!("must be from 0.25 to 4, and is {rate}"),
            })
        }
    }

    pub fn rate(self) -> f32 {
        self.0
    }

    /// Estimates the seconds of sound of a text with this many characters.
    pub fn expected_sound_s(self, chars: usize) -> f64 {
        chars as f64 / CHARS_PER_SECOND / f64::from(self.0)
    }
}

impl TryFrom<f32> for Speed {
    type Error = ModelError;

    fn try_from(rate: f32) -> Result<Speed, ModelError> {
        Speed::new(rate)
    }
}

impl From<Speed> for f32 {
    fn from(speed: Speed) -> f32 {
        speed.rate()
    }
}

/// A voice as lists show it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Voice {
    pub id: String,
    /// For people: "Heart".
    pub name: String,
    pub language: Language,
    pub gender: Gender,
}

enum_table! {
    /// The gender of a voice. The names are those in lists.
    #[derive(Clone, Copy, Debug, PartialEq, Eq)]
    pub enum Gender: name {
        Female = "female",
        Male = "male",
    }
}

/// Whether a model takes instructions on how to speak.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum InstructionSupport {
    /// The model ignores instructions.
    Ignored,
    Taken,
    /// A request without instructions is rejected with [`ModelError::MissingField`].
    Required,
}

/// One step of a spoken answer.
#[derive(Clone, Debug, PartialEq)]
pub enum SpeechEvent {
    /// Mono samples in -1..=1, at the stream's rate, that follow the previous ones without a gap.
    Audio(Vec<f32>),
    /// When words of the user's text are heard. The event comes before the audio of these words.
    Words(Vec<WordTiming>),
}

/// When one word is heard. The span points into the text that was sent, not into its spoken form.
#[derive(Clone, Debug, PartialEq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
pub struct WordTiming {
    /// Bytes of the request's text.
    pub span: Range<usize>,
    /// Seconds from the first sample of the answer.
    pub start_s: f32,
    pub end_s: f32,
    /// The phonemes in the order in which they are heard. Empty if the engine does not know them.
    pub phonemes: Vec<PhonemeTiming>,
}

/// When one phoneme of a word is heard.
#[derive(Clone, Debug, PartialEq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
pub struct PhonemeTiming {
    /// The phoneme in the model's alphabet, with the stress mark before it.
    pub phoneme: String,
    /// Seconds from the first sample of the answer.
    pub start_s: f32,
    pub end_s: f32,
}

impl WordTiming {
    /// Changes the times of the word and of its phonemes.
    pub fn change_times(&mut self, change: impl Fn(f32) -> f32) {
        self.start_s = change(self.start_s);
        self.end_s = change(self.end_s);
        for phoneme in &mut self.phonemes {
            phoneme.start_s = change(phoneme.start_s);
            phoneme.end_s = change(phoneme.end_s);
        }
    }
}

/// A spoken answer: its events in order. Dropping the stream stops the work.
pub struct SpeechStream {
    pub sample_rate_hz: u32,
    events: BoxStream<'static, Result<SpeechEvent, ModelError>>,
}

impl SpeechStream {
    pub fn new(
        sample_rate_hz: u32,
        events: impl Stream<Item = Result<SpeechEvent, ModelError>> + Send + 'static,
    ) -> SpeechStream {
        SpeechStream { sample_rate_hz, events: events.boxed() }
    }

    /// The sample rate in Hz, and the events.
    pub fn into_parts(self) -> (u32, BoxStream<'static, Result<SpeechEvent, ModelError>>) {
        (self.sample_rate_hz, self.events)
    }
}

crate::debug_fields!(SpeechStream: sample_rate_hz);

impl Stream for SpeechStream {
    type Item = Result<SpeechEvent, ModelError>;

    fn poll_next(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Option<Self::Item>> {
        self.events.poll_next_unpin(cx)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn speed_is_a_quarter_to_four() {
        for rate in [0.25, 1.0, 4.0] {
            assert_eq!(Speed::new(rate).map(Speed::rate), Ok(rate));
        }
        for rate in [0.0, 0.249, 4.01, -1.0, f32::NAN, f32::INFINITY] {
            assert!(Speed::new(rate).is_err(), "{rate} must be refused");
        }
    }

    #[test]
    fn a_request_can_be_logged_without_its_text() {
        let text = SpeechText::Whole("a secret".to_owned());
        assert_eq!(format!("{text:?}"), "Whole(8 bytes)");
    }
}
