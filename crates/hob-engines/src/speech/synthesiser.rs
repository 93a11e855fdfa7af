//! The seam between the speech worker and an engine: phonemes in, windows of sound out.
//! Synchronous and single-threaded: who is served when is the scheduler's business.

use hob_core::{Speed, WordTiming};
use hob_speech::SpokenUnit;

/// An engine that turns one unit of phonemes into sound, window by window, on the caller's thread.
///
/// Utterances of different requests may be open at once and take turns; they share nothing.
/// The same unit, voice, speed and sequence of windows give the same samples.
pub trait Synthesiser {
    type Utterance;

    fn sample_rate_hz(&self) -> u32;

    /// Runs what needs the whole unit (durations, pitch, energy); the cost of a small window.
    ///
    /// # Errors
    /// The voice is unknown, a phoneme is not in the vocabulary, or the graph failed.
    fn begin(
        &mut self,
        unit: &SpokenUnit,
        voice: &str,
        speed: Speed,
    ) -> Result<Self::Utterance, SynthesisError>;

    /// When each word is heard, in seconds from the utterance's first sample.
    fn words(&self, utterance: &Self::Utterance) -> Vec<WordTiming>;

    /// Seconds of sound that [`Synthesiser::render`] still has to give.
    fn seconds_left(&self, utterance: &Self::Utterance) -> f32;

    /// The next window: about `seconds` of sound, more or less as a good place to cut asks for, all
    /// that is left when little would remain. Empty when nothing is left.
    ///
    /// # Errors
    /// The graph failed; the utterance is then over.
    fn render(
        &mut self,
        utterance: &mut Self::Utterance,
        seconds: f32,
    ) -> Result<Vec<f32>, SynthesisError>;
}

#[derive(Clone, Debug, PartialEq, thiserror::Error)]
pub enum SynthesisError {
    #[error("the model has no voice '{0}'")]
    UnknownVoice(String),
    #[error("'{0}' is not among the model's phonemes")]
    UnknownPhoneme(char),
    #[error("{phonemes} phonemes are more than the model's {phonemes_max}")]
    TooLong { phonemes: usize, phonemes_max: usize },
    #[error("the model's graph failed: {0}")]
    Graph(String),
}
