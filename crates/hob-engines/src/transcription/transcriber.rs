//! What a transcription worker needs from its engine: text for one part of the sound.
//! Whisper implements it, and a script in tests.

use super::whisper::{Whisper, WhisperOptions, WhisperText};

/// Turns parts of sound into text. One thread owns it.
pub trait Transcriber {
    /// Codes of the languages that it understands.
    fn languages(&self) -> Vec<String>;

    /// Bytes that it holds on a graphics card.
    fn card_bytes(&self) -> u64 {
        0
    }

    /// Whether it computes nothing more in this process.
    fn is_broken(&self) -> bool {
        false
    }

    /// Computes once, so that a fault shows at the load and the first sound does not wait for memory.
    ///
    /// # Errors
    /// The engine's own error text.
    fn warm_up(&mut self) -> Result<(), String>;

    /// `samples` are at most 30 s at 16 kHz. Returns early when `cancelled` says so.
    ///
    /// # Errors
    /// The engine's own error text.
    fn transcribe(
        &mut self,
        samples: &[f32],
        options: &WhisperOptions,
        cancelled: &dyn Fn() -> bool,
    ) -> Result<WhisperText, String>;
}

impl Transcriber for Whisper {
    fn languages(&self) -> Vec<String> {
        self.languages().map(str::to_owned).collect()
    }

    fn card_bytes(&self) -> u64 {
        Whisper::card_bytes(self)
    }

    fn is_broken(&self) -> bool {
        Whisper::is_broken(self)
    }

    fn warm_up(&mut self) -> Result<(), String> {
        Whisper::warm_up(self).map_err(|error| error.to_string())
    }

    fn transcribe(
        &mut self,
        samples: &[f32],
        options: &WhisperOptions,
        cancelled: &dyn Fn() -> bool,
    ) -> Result<WhisperText, String> {
        Whisper::transcribe(self, samples, options, cancelled).map_err(|error| error.to_string())
    }
}
