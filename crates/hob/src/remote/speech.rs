//! Speech from a running server. It requests samples, so format, player and progress are the
//! same as without a server.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use futures::StreamExt;
use futures::stream::BoxStream;
use hob_core::{ModelError, SpeechEvent, SpeechStream, WordTiming};
use hob_wire::{PieceKind, Pieces};
use serde::{Deserialize, Serialize};

use super::events::{detail, events, invalid};
use super::{Chunks, Remote, chunks};
use crate::failure::{CliResult, Failure, REMOTE_ENGINE};
use crate::recording::samples_of;

/// The sample rate of `pcm` in OpenAI's API.
const SAMPLE_RATE_HZ: u32 = 24_000;
/// All servers with this API accept this name for their speech model.
const MODEL: &str = "tts-1";
/// Maximum bytes of one event.
const EVENT_BYTES_MAX: usize = 1 << 20;

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
    #[serde(skip_serializing_if = "Option::is_none")]
    stream_format: Option<&'static str>,
    #[serde(flatten)]
    input: SpeechInput,
}

impl Remote {
    /// Requests speech. Errors before the answer are returned; a broken connection is an item of the stream.
    pub(crate) async fn speak(&self, input: SpeechInput) -> CliResult<SpeechStream> {
        let request = Request::new(None, input);
        let mut half_sample: Option<u8> = None;
        let chunks = self.stream("/v1/audio/speech", &request).await?;
        let events = chunks.map(move |chunk| match chunk {
            Ok(bytes) => Ok(SpeechEvent::Audio(samples(&mut half_sample, &bytes))),
            Err(reason) => Err(ended_early(&reason)),
        });
        Ok(SpeechStream::new(SAMPLE_RATE_HZ, events))
    }

    /// Requests speech with the times of its words, which a hob sends.
    pub(crate) async fn speak_timed(&self, input: SpeechInput) -> CliResult<SpeechStream> {
        let response = self.post("/v1/audio/speech", &Request::new(Some("sse"), input)).await?;
        let content_type = response.header("content-type").unwrap_or_default();
        if !content_type.starts_with("text/event-stream") {
            let sentence = format!("{} sends no times of words", self.base);
            return Err(Failure::server(sentence).hint("leave out --srt and --vtt"));
        }
        Ok(SpeechStream::new(SAMPLE_RATE_HZ, timed(chunks(response))))
    }
}

impl Request {
    fn new(stream_format: Option<&'static str>, input: SpeechInput) -> Request {
        Request { model: MODEL, response_format: "pcm", stream_format, input }
    }
}

fn ended_early(reason: &str) -> ModelError {
    let detail = format!("the answer ended early: {reason}");
    ModelError::EngineFailed { engine: REMOTE_ENGINE, detail }
}

fn timed(chunks: Chunks) -> BoxStream<'static, Result<SpeechEvent, ModelError>> {
    let mut half_sample = None;
    let events =
        events(chunks, Pieces::new(PieceKind::Event, EVENT_BYTES_MAX), move |piece, said| {
            let piece = piece.ok_or_else(|| invalid("its last event is missing"))?;
            match serde_json::from_str::<TimedEvent>(piece).map_err(invalid)? {
                TimedEvent::Delta { audio, timestamps } => {
                    let bytes = STANDARD.decode(audio).map_err(invalid)?;
                    let words = timestamps.into_iter().map(|word| WordTiming {
                        span: word.start_byte..word.end_byte,
                        start_s: word.start_time,
                        end_s: word.end_time,
                        phonemes: Vec::new(),
                    });
                    said.push(SpeechEvent::Words(words.collect()));
                    said.push(SpeechEvent::Audio(samples(&mut half_sample, &bytes)));
                }
                TimedEvent::Done => return Ok(true),
                TimedEvent::Error { error } => return Err(invalid(error.message)),
                TimedEvent::Other => {}
            }
            Ok(false)
        });
    events.map(|event| event.map_err(|fault| ended_early(&detail(fault)))).boxed()
}

#[derive(Deserialize)]
#[serde(tag = "type")]
enum TimedEvent {
    #[serde(rename = "speech.audio.delta")]
    Delta {
        audio: String,
        #[serde(default)]
        timestamps: Vec<TimedWord>,
    },
    #[serde(rename = "speech.audio.done")]
    Done,
    #[serde(rename = "error")]
    Error { error: TimedError },
    #[serde(other)]
    Other,
}

#[derive(Deserialize)]
struct TimedWord {
    start_time: f32,
    end_time: f32,
    start_byte: usize,
    end_byte: usize,
}

#[derive(Deserialize)]
struct TimedError {
    message: String,
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
    use bytes::Bytes;
    use futures::stream;
    use hob_wire::{CaptionWord, SpeechUsage, speech_delta, speech_done};

    use super::*;

    #[tokio::test]
    async fn events_are_words_and_samples_however_they_are_cut() {
        let word = CaptionWord {
            word: "Hi".to_owned(),
            start_time: 0.0,
            end_time: 0.25,
            start_byte: 3,
            end_byte: 5,
            phonemes: None,
        };
        let delta = speech_delta(&[0, 64, 0], vec![word]) + &speech_delta(&[192], Vec::new());
        let done = speech_done(SpeechUsage { input_chars: 1, output_twentieths: 1 });
        let read = async |text: String, size: usize| {
            let pieces: Vec<_> = text
                .as_bytes()
                .chunks(size)
                .map(|piece| Ok(Bytes::copy_from_slice(piece)))
                .collect();
            let mut answer = timed(stream::iter(pieces).boxed());
            let (mut words, mut heard, mut failure) = (Vec::new(), Vec::new(), None);
            while let Some(event) = answer.next().await {
                match event {
                    Ok(SpeechEvent::Words(more)) => words.extend(more),
                    Ok(SpeechEvent::Audio(more)) => heard.extend(more),
                    Err(error) => failure = Some(error.to_string()),
                }
            }
            (words, heard, failure)
        };
        for size in [1, 7, 1_000] {
            let (words, heard, failure) = read(delta.clone() + &done, size).await;
            assert_eq!(
                words,
                [WordTiming { span: 3..5, start_s: 0.0, end_s: 0.25, phonemes: Vec::new() }]
            );
            assert_eq!((heard, failure), (vec![0.5, -0.5], None));
        }
        let (_, _, failure) = read(delta, 1_000).await;
        assert!(failure.is_some_and(|reason| reason.contains("its last event is missing")));
    }

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
