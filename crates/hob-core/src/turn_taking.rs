//! The two models that find the end of a person's turn: one hears speech, the other a complete sentence.
//! `hob-engines` implements them, and tests script them.

use std::sync::Arc;

use futures::future::BoxFuture;

use crate::ModelError;

/// Says how likely a frame is speech. It remembers the frames before.
pub trait VoiceDetector: Send {
    /// `frame` has [`VOICE_FRAME_SAMPLES`] samples at 16 kHz. From 0 to 1.
    fn probability(&mut self, frame: &[f32]) -> f32;

    /// Forgets what it heard.
    fn reset(&mut self);
}

/// Samples of one frame: 32 ms at 16 kHz.
pub const VOICE_FRAME_SAMPLES: usize = 512;

/// A frame that is less likely speech than this is silence, if one that is as likely as `speech_min` is speech. Between the
/// two it is as the frame before it. Both numbers are those of Silero's own program: below 0 there would be no silence.
pub const fn silence_below(speech_min: f32) -> f32 {
    (speech_min - 0.15).max(0.01)
}

/// Says how likely a person who pauses has finished.
pub trait TurnModel: Send + Sync {
    /// `samples` are the sound of the turn at 16 kHz. Only the last 8 s count. From 0 to 1; above 0.5 the turn is
    /// complete.
    ///
    /// A dropped future is not computed, unless it is being computed.
    fn probability(&self, samples: Vec<f32>) -> BoxFuture<'_, Result<f32, ModelError>>;
}

/// Gives each session its models. Loads them when they are first needed.
pub trait TurnTaking: Send + Sync {
    /// A detector that has heard nothing.
    fn voice_detector(&self) -> BoxFuture<'_, Result<Box<dyn VoiceDetector>, ModelError>>;

    fn turn_model(&self) -> BoxFuture<'_, Result<Arc<dyn TurnModel>, ModelError>>;
}
