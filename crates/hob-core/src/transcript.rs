//! Transcription: PCM in, text out. The seam that the embedded engine and upstreams will fill.
//! Until then a scripted model answers, so that what stands on it can be built and tested.

use futures::future::BoxFuture;
use futures::stream::BoxStream;

use crate::ModelError;

/// A model that listens. The rules of [`crate::SpeechModel`] hold: refusals by the future, failures
/// as items, dropping stops the work.
pub trait TranscriptModel: Send + Sync {
    fn transcribe(
        &self,
        request: TranscriptRequest,
    ) -> BoxFuture<'_, Result<TranscriptStream, ModelError>>;
}

pub type TranscriptStream = BoxStream<'static, Result<TranscriptEvent, ModelError>>;

#[derive(Clone, Debug, PartialEq)]
pub struct TranscriptRequest {
    /// Mono samples in -1..=1 at 16 kHz.
    pub samples: Vec<f32>,
    /// ISO 639-1; the model decides when there is none.
    pub language: Option<String>,
}

#[derive(Clone, Debug, PartialEq)]
pub enum TranscriptEvent {
    /// A final piece of text, and when it was said, in seconds.
    Segment { text: String, start_s: f32, end_s: f32 },
}
