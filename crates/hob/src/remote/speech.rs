//! Speech from a running server. It requests samples, so format, player and progress are the
//! same as without a server.

use futures::StreamExt;
use hob_core::{ModelError, SpeechEvent, SpeechStream};
use serde::Serialize;

use super::Remote;
use crate::failure::CliResult;
use crate::failure::REMOTE_ENGINE;
use crate::recording::samples_of;

/// The sample rate of `pcm` in OpenAI's API.
const SAMPLE_RATE_HZ: u32 = 24_000;
/// All servers with this API accept this name for their speech model.
const MODEL: &str = "tts-1";

/// What to speak.
#[derive(Debug, Serialize)]
pub(crate) struct SpeechInput {
    pub(crate) input: String,
    pub(crate) voice: String,
    pub(crate) speed: f32,
}

#[derive(Debug, Serialize)]
struct Request {
    model: &'static str,
    response_format: &'static str,
    #[serde(flatten)]
    input: SpeechInput,
}

impl Remote {
    /// Requests speech. Errors before the answer are returned; a broken connection is an item of the stream.
    pub(crate) async fn speak(&self, input: SpeechInput) -> CliResult<SpeechStream> {
        let request = Request { model: MODEL, response_format: "pcm", input };
        let mut half_sample: Option<u8> = None;
        let chunks = self.stream("/v1/audio/speech", &request).await?;
        let events = chunks.map(move |chunk| match chunk {
            Ok(bytes) => Ok(SpeechEvent::Audio(samples(&mut half_sample, &bytes))),
            Err(reason) => Err(ModelError::EngineFailed {
                engine: REMOTE_ENGINE,
                detail: format!("the answer ended early: {reason}"),
            }),
        });
        Ok(SpeechStream::new(SAMPLE_RATE_HZ, events))
    }
}

/// Signed 16-bit little-endian samples. `half_sample` is half a sample, left over from the last chunk.
fn samples(half_sample: &mut Option<u8>, bytes: &[u8]) -> Vec<f32> {
    let all: Vec<u8> = half_sample.take().into_iter().chain(bytes.iter().copied()).collect();
    let (pairs, rest) = all.as_chunks::<2>();
    *half_sample = rest.first().copied();
    samples_of(pairs).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn where_the_chunks_are_cut_does_not_matter() {
        let bytes: Vec<u8> = (0..=255).collect();
        let whole = samples(&mut None, &bytes);
        for size in [1, 2, 3, 7, 255] {
            let mut half_sample = None;
            let cut: Vec<f32> =
                bytes.chunks(size).flat_map(|chunk| samples(&mut half_sample, chunk)).collect();
            assert_eq!((cut, half_sample), (whole.clone(), None), "cut every {size} bytes");
        }
    }
}
