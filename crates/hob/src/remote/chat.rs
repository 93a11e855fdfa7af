//! Chat answers of a running hob.
//! `hob-wire` writes the request and reads the events, as for every upstream.

use std::time::Duration;

use futures::StreamExt;
use hob_core::{ChatEvent, ChatRequest, FailedAttempt, Fault, Trace};
use hob_upstream::HttpResponse;
use hob_wire::{
    OpenAiReader, PieceKind, Pieces, UpstreamDialect, UpstreamReader, upstream_request,
};

use super::events::{events, misread};
use super::{ChatAnswer, Chunks, Key, Remote, SILENCE_TIME_MAX, chunks};
use crate::failure::{CliResult, Failure};

/// Maximum bytes of one event.
const EVENT_BYTES_MAX: usize = 1 << 20;

impl Remote {
    /// Requests an answer. Errors before the answer are returned; later ones are items of the stream. Dropping
    /// the stream closes the connection.
    pub(crate) async fn chat(&self, model: &str, request: &ChatRequest) -> CliResult<ChatAnswer> {
        let body = upstream_request(request, model, UpstreamDialect::Hob, &[])
            .map_err(|error| Failure::internal(format_args!("{} {error}", error.field)))?;
        let path = "/v1/chat/completions";
        let response = self.send(path, Some(body), SILENCE_TIME_MAX, Key::Sent).await?;
        note_targets(&request.trace, &response);
        Ok(answer(chunks(response), self.base.clone()))
    }
}

/// The target that answers, and those that failed before it. The server sends their names with the answer's first piece.
fn note_targets(trace: &Trace, response: &HttpResponse) {
    let target = response.header("x-hob-target").map(str::to_owned);
    let failed = response.header("x-hob-failed").unwrap_or_default().split(", ");
    let failed = failed.filter_map(|attempt| {
        let (target, reason) = attempt.split_once('=')?;
        let (target, message) = (target.to_owned(), reason.to_owned());
        Some(FailedAttempt { target, kind: "failed", message, took: Duration::ZERO })
    });
    trace.note(|data| {
        data.target = target;
        data.failed.extend(failed);
    });
}

fn answer(chunks: Chunks, base: String) -> ChatAnswer {
    let mut reader = OpenAiReader::default();
    let malformed = |error| misread(error, "an event is not JSON");
    let events =
        events(chunks, Pieces::new(PieceKind::Event, EVENT_BYTES_MAX), move |piece, said| {
            match piece {
                Some(piece) => reader.read(piece, said).map_err(malformed)?,
                None => reader.end(said)?,
            }
            Ok(piece.is_none() || matches!(said.last(), Some(ChatEvent::Done(_))))
        });
    let failed = move |fault: Fault| Failure::server(format!("{base}: {fault}"));
    events.map(move |event| event.map_err(&failed)).boxed()
}

#[cfg(test)]
mod tests {
    use bytes::Bytes;
    use futures::executor::block_on_stream;
    use futures::stream;
    use hob_core::chat::{Completion, FinishReason, Timings, Usage};

    use super::*;

    /// Reads an answer that is cut into pieces of this many bytes.
    fn read_cut(text: &str, size: usize) -> Vec<CliResult<ChatEvent>> {
        let pieces: Vec<_> = text.as_bytes().chunks(size).map(Bytes::copy_from_slice).collect();
        let chunks = stream::iter(pieces.into_iter().map(Ok)).boxed();
        block_on_stream(answer(chunks, "http://nas:1".to_owned())).collect()
    }

    fn read(text: &str) -> Vec<CliResult<ChatEvent>> {
        let whole = read_cut(text, usize::MAX);
        assert_eq!(read_cut(text, 7), whole, "where the bytes are cut does not matter");
        whole
    }

    #[test]
    fn an_answer_is_read_with_its_figures() {
        let stream = ": hob\n\n\
            data: {\"choices\":[{\"delta\":{\"role\":\"assistant\",\"content\":\"\"}}]}\n\n\
            data: {\"choices\":[{\"delta\":{\"reasoning_content\":\"hm\"}}],\"usage\":null}\n\n\
            data: {\"choices\":[{\"delta\":{\"content\":\"Hi\"}}]}\n\n\
            data: {\"choices\":[{\"delta\":{},\"finish_reason\":\"length\"}],\
            \"timings\":{\"load_ms\":4,\"queue_ms\":3,\"prompt_ms\":2.5,\"predicted_ms\":10}}\n\n\
            data: {\"choices\":[],\"usage\":{\"prompt_tokens\":9,\"completion_tokens\":4,\
            \"prompt_tokens_details\":{\"cached_tokens\":5},\
            \"completion_tokens_details\":{\"reasoning_tokens\":1}}}\n\n\
            data: [DONE]\n\n";
        let completion = Completion {
            finish: FinishReason::Length,
            usage: Usage {
                prompt_tokens: 9,
                cached_tokens: 5,
                completion_tokens: 4,
                reasoning_tokens: 1,
            },
            timings: Timings {
                load_ms: 4.0,
                queue_ms: 3.0,
                prompt_ms: 2.5,
                predicted_ms: 10.0,
                ..Timings::default()
            },
        };
        let expected = [
            Ok(ChatEvent::Reasoning("hm".to_owned())),
            Ok(ChatEvent::Text("Hi".to_owned())),
            Ok(ChatEvent::Done(completion)),
        ];
        assert_eq!(read(stream), expected);
    }

    #[test]
    fn an_answer_that_breaks_off_never_looks_complete() {
        let hi = "data: {\"choices\":[{\"delta\":{\"content\":\"Hi\"}}]}\n\n";
        let rows = [
            ("", "http://nas:1: the answer was cut off"),
            ("data: 3\n\n", "http://nas:1: the answer is invalid: an event is not JSON"),
            (
                "data: {\"error\":{\"message\":\"the worker died\"}}\n\n",
                "http://nas:1: broke off with an error: the worker died",
            ),
        ];
        for (end, sentence) in rows {
            let events = read(&format!("{hi}{end}"));
            let failure = Err(Failure::server(sentence));
            assert_eq!(events, [Ok(ChatEvent::Text("Hi".to_owned())), failure]);
        }
    }
}
