//! Transcripts of a running server: as events while it transcribes, or as JSON when all of it is known.
//! The sound travels inside JSON, so that no form has to be written.

use std::time::Duration;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use futures::StreamExt;
use hob_core::{ModelError, TranscriptStream, TranscriptTask};
use hob_wire::{PieceKind, Pieces, TranscriptReader};
use serde::Serialize;

use super::events::{events, misread};
use super::{Chunks, Key, Remote, chunks, whole};
use crate::failure::{CliResult, Failure, REMOTE_ENGINE};

/// Maximum bytes of one event. The last event repeats the whole text.
const EVENT_BYTES_MAX: usize = 8 << 20;
/// Maximum bytes of a whole transcript. A day of speech with the times of its words has fewer.
const WHOLE_BYTES_MAX: usize = 64 << 20;
/// Time limit for the head of a whole transcript, which comes after the last word: hours of sound on a slow processor.
const WHOLE_TIME_MAX: Duration = Duration::from_secs(6 * 3_600);

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
    stream: bool,
    #[serde(flatten)]
    input: TranscriptInput,
}

#[derive(Serialize)]
struct InputAudio {
    data: String,
}

impl Remote {
    /// Requests a transcript in pieces. Errors before the first piece are returned; later ones are items of the stream.
    pub(crate) async fn transcribe(
        &self,
        task: TranscriptTask,
        input: TranscriptInput,
        sound: &[u8],
    ) -> CliResult<TranscriptStream> {
        let input_audio = InputAudio { data: STANDARD.encode(sound) };
        let request = Request { input_audio, stream: true, input };
        Ok(answer(self.stream(path(task), &request).await?))
    }

    /// Requests a whole transcript, and returns the answer's body.
    pub(crate) async fn transcribe_whole(
        &self,
        task: TranscriptTask,
        input: TranscriptInput,
        sound: &[u8],
    ) -> CliResult<String> {
        let input_audio = InputAudio { data: STANDARD.encode(sound) };
        let request = Request { input_audio, stream: false, input };
        let json = serde_json::to_string(&request).map_err(Failure::internal)?;
        let response = self.send(path(task), Some(json), WHOLE_TIME_MAX, Key::Sent).await?;
        Ok(whole(chunks(response), WHOLE_BYTES_MAX).await.map_err(failed)?)
    }
}

fn path(task: TranscriptTask) -> &'static str {
    match task {
        TranscriptTask::Transcribe => "/v1/audio/transcriptions",
        TranscriptTask::Translate => "/v1/audio/translations",
    }
}

fn failed(detail: impl std::fmt::Display) -> ModelError {
    ModelError::EngineFailed { engine: REMOTE_ENGINE, detail: detail.to_string() }
}

fn answer(chunks: Chunks) -> TranscriptStream {
    let mut reader = TranscriptReader::default();
    let malformed = |error| misread(error, "an event is not JSON of a transcript");
    let events =
        events(chunks, Pieces::new(PieceKind::Event, EVENT_BYTES_MAX), move |piece, said| {
            match piece {
                Some(piece) => reader.read(piece, said).map_err(malformed)?,
                None => reader.end(said)?,
            }
            Ok(reader.is_over())
        });
    events.map(|event| event.map_err(failed)).boxed()
}

#[cfg(test)]
mod tests {
    use bytes::Bytes;
    use futures::executor::{block_on, block_on_stream};
    use futures::stream;
    use hob_core::{Segment, TranscriptEvent, TranscriptSummary};

    use super::*;

    /// Pieces of this many bytes, and then what breaks the connection.
    fn cut(text: &str, size: usize, broken: Option<&str>) -> Chunks {
        let pieces = text.as_bytes().chunks(size).map(|piece| Ok(Bytes::copy_from_slice(piece)));
        let pieces: Vec<Result<Bytes, String>> =
            pieces.chain(broken.map(|reason| Err(reason.to_owned()))).collect();
        stream::iter(pieces).boxed()
    }

    fn read(text: &str, broken: Option<&str>) -> Vec<Result<TranscriptEvent, ModelError>> {
        let whole: Vec<_> = block_on_stream(answer(cut(text, usize::MAX, broken))).collect();
        let in_pieces: Vec<_> = block_on_stream(answer(cut(text, 7, broken))).collect();
        assert_eq!(in_pieces, whole, "where the bytes are cut does not matter");
        whole
    }

    const HELLO: &str = ": hob\n\n\
        data: {\"type\":\"transcript.text.delta\",\"delta\":\"Hello\"}\n\n\
        data: {\"type\":\"transcript.text.segment\",\"id\":\"seg_0\",\"start\":0.5,\"end\":1.0,\"text\":\" Hello\"}\n\n";

    fn hello() -> [Result<TranscriptEvent, ModelError>; 2] {
        let text = " Hello".to_owned();
        let segment = Segment { text, start_s: 0.5, end_s: 1.0, ..Segment::default() };
        [Ok(TranscriptEvent::Delta("Hello".to_owned())), Ok(TranscriptEvent::Segment(segment))]
    }

    #[test]
    fn a_transcript_is_read_with_its_times_and_its_damage() {
        let end = "data: {\"type\":\"transcript.text.done\",\"text\":\"Hello\",\"language\":\"english\",\
            \"duration\":1.5,\"warning\":\"the end is missing\"}\n\n";
        let done = TranscriptSummary {
            duration_s: 1.5,
            language: Some("english".to_owned()),
            usage: None,
            damage: Some("the end is missing".to_owned()),
        };
        let [delta, segment] = hello();
        let expected = [delta, segment, Ok(TranscriptEvent::Done(done))];
        assert_eq!(read(&format!("{HELLO}{end}"), None), expected);
    }

    #[test]
    fn a_transcript_that_breaks_off_never_looks_complete() {
        let rows = [
            ("", None, "the answer was cut off"),
            ("", Some("reset"), "cannot be reached: reset"),
            ("data: 3\n\n", None, "the answer is invalid: an event is not JSON of a transcript"),
            (
                "data: {\"error\":{\"message\":\"the worker died\"}}\n\n",
                None,
                "broke off with an error: the worker died",
            ),
        ];
        for (end, broken, detail) in rows {
            let [delta, segment] = hello();
            let expected = [delta, segment, Err(failed(detail))];
            assert_eq!(read(&format!("{HELLO}{end}"), broken), expected);
        }
    }

    #[test]
    fn a_whole_transcript_is_read_to_its_end_or_fails() {
        let long = "word ".repeat(500_000);
        let read = |bytes_max, broken| block_on(whole(cut(&long, 65_536, broken), bytes_max));
        assert_eq!(read(WHOLE_BYTES_MAX, None), Ok(long.clone()));
        let broken = read(WHOLE_BYTES_MAX, Some("reset"));
        assert_eq!(broken, Err("the answer ended early: reset".to_owned()));
        let large = read(1_000_000, None);
        assert_eq!(large, Err("the answer is larger than 1000000 bytes".to_owned()));
    }
}
