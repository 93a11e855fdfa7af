//! The interface between the speech worker and an engine: phonemes in, windows of sound out.
//! Synchronous and single-threaded. The scheduler decides which request is computed next.

use hob_core::{Speed, WordTiming};
use hob_speech::SpokenUnit;

/// An engine that turns one unit of phonemes into sound, window by window, on the caller's thread.
///
/// Utterances of different requests may be open at the same time. They do not affect each other.
/// The same unit, voice, speed and sequence of windows give the same samples.
pub trait Synthesiser {
    type Utterance;

    fn sample_rate_hz(&self) -> u32;

    /// Computes what needs the whole unit: durations, pitch, energy. It costs about as much as a short window.
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

    /// Seconds of sound that [`Synthesiser::render`] has not returned yet.
    fn seconds_left(&self, utterance: &Self::Utterance) -> f32;

    /// Renders the next window: about `seconds` of sound, depending on a good place to cut. If little would remain, it
    /// renders the rest. Empty if no sound is left.
    ///
    /// # Errors
    /// The graph failed; the utterance is then over.
    fn render(
        &mut self,
        utterance: &mut Self::Utterance,
        seconds: f32,
    ) -> Result<Vec<f32>, SynthesisError>;

    /// Whether [`Synthesiser::render_pair`] computes both windows at the same time.
    fn can_pair(&self) -> bool {
        false
    }

    /// Renders the next window of each of two utterances, with the samples that [`Synthesiser::render`] would return. An
    /// engine with several cores gives each window half of them.
    fn render_pair(
        &mut self,
        [first, second]: [(&mut Self::Utterance, f32); 2],
    ) -> [Result<Vec<f32>, SynthesisError>; 2] {
        [self.render(first.0, first.1), self.render(second.0, second.1)]
    }
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
