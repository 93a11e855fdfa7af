//! Speech of a server. It requests samples, so format, player and progress are the
//! same as without a server.

use futures::StreamExt;
use hob_core::{ModelError, SpeechEvent, SpeechStream};
use serde::Serialize;

use super::Remote;
use crate::failure::Outcome;
use crate::failure::REMOTE_ENGINE;

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
    words: SpeechInput,
}

impl Remote {
    /// Requests speech. Errors before the answer are returned; a broken connection is an item of the stream.
    pub(crate) async fn speak(&self, words: SpeechInput) -> Outcome<SpeechStream> {
        let request = Request { model: MODEL, response_format: "pcm", words };
        let mut odd: Option<u8> = None;
        let chunks = self.stream("/v1/audio/speech", &request).await?;
        let events = chunks.map(move |chunk| match chunk {
            Ok(bytes) => Ok(SpeechEvent::Audio(samples(&mut odd, &bytes))),
            Err(reason) => Err(ModelError::EngineFailed {
                engine: REMOTE_ENGINE,
                detail: format!("the answer ended early: {reason}"),
            }),
        });
        Ok(SpeechStream::new(SAMPLE_RATE_HZ, events))
    }
}

/// Signed 16-bit little-endian samples. `odd` is half a sample, left over from the last chunk.
fn samples(odd: &mut Option<u8>, bytes: &[u8]) -> Vec<f32> {
    let all: Vec<u8> = odd.take().into_iter().chain(bytes.iter().copied()).collect();
    let (pairs, rest) = all.as_chunks::<2>();
    *odd = rest.first().copied();
    pairs.iter().map(|pair| f32::from(i16::from_le_bytes(*pair)) / 32768.0).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn where_the_chunks_are_cut_does_not_matter() {
        let bytes: Vec<u8> = (0..=255).collect();
        let whole = samples(&mut None, &bytes);
        for size in [1, 2, 3, 7, 255] {
            let mut odd = None;
            let cut: Vec<f32> =
                bytes.chunks(size).flat_map(|chunk| samples(&mut odd, chunk)).collect();
            assert_eq!((cut, odd), (whole.clone(), None), "cut every {size} bytes");
        }
    }
}
