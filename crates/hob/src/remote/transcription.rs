//! Transcripts of a running server, in the format that the user wants.
//! The sound travels inside JSON, so that no form has to be written.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use hob_core::TranscriptTask;
use serde::Serialize;

use super::{Remote, text};
use crate::failure::CliResult;

/// What to transcribe, and how.
#[derive(Debug, Serialize)]
pub(crate) struct TranscriptInput {
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) model: Option<String>,
    pub(crate) response_format: &'static str,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) language: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) prompt: Option<String>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub(crate) timestamp_granularities: Vec<&'static str>,
}

#[derive(Serialize)]
struct Request {
    input_audio: InputAudio,
    #[serde(flatten)]
    input: TranscriptInput,
}

#[derive(Serialize)]
struct InputAudio {
    data: String,
}

impl Remote {
    /// Requests a transcript, and returns the answer's body.
    pub(crate) async fn transcribe(
        &self,
        task: TranscriptTask,
        input: TranscriptInput,
        sound: &[u8],
    ) -> CliResult<String> {
        let path = match task {
            TranscriptTask::Transcribe => "/v1/audio/transcriptions",
            TranscriptTask::Translate => "/v1/audio/translations",
        };
        let request = Request { input_audio: InputAudio { data: STANDARD.encode(sound) }, input };
        Ok(text(self.post(path, &request).await?).await)
    }
}
