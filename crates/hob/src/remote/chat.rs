//! Chat answers of a running hob. `hob-wire` writes the request and reads the events, as for every upstream.
//! Events are read no faster than the caller takes them.

use std::collections::VecDeque;
use std::time::Duration;

use futures::{StreamExt, stream};
use hob_core::{ChatEvent, ChatRequest, FailedAttempt, Fault, Trace};
use hob_upstream::HttpResponse;
use hob_wire::{
    Misread, OpenAiReader, PieceKind, Pieces, UpstreamDialect, UpstreamReader, upstream_request,
};

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
        Ok(events(chunks(response), self.base.clone()))
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

fn events(chunks: Chunks, base: String) -> ChatAnswer {
    let (reader, unread) = (OpenAiReader::default(), VecDeque::new());
    let pieces = Pieces::new(PieceKind::Event, EVENT_BYTES_MAX);
    let answer = AnswerReader { chunks, reader, pieces, unread, ended: None };
    stream::unfold((Box::new(answer), base), async |(mut answer, base)| {
        let event = answer.next().await?;
        let event = event.map_err(|fault| Failure::server(format!("{base}: {fault}")));
        Some((event, (answer, base)))
    })
    .boxed()
}

struct AnswerReader {
    chunks: Chunks,
    reader: OpenAiReader,
    pieces: Pieces,
    /// Events that were read, and that the caller has not taken yet.
    unread: VecDeque<ChatEvent>,
    /// How the answer ended. The fault is taken out when it is reported.
    ended: Option<Result<(), Fault>>,
}

impl AnswerReader {
    async fn next(&mut self) -> Option<Result<ChatEvent, Fault>> {
        loop {
            // Text before an error is still part of the answer.
            if let Some(event) = self.unread.pop_front() {
                return Some(Ok(event));
            }
            if let Some(ended) = &mut self.ended {
                return std::mem::replace(ended, Ok(())).err().map(Err);
            }
            if let Err(fault) = self.read().await {
                self.ended = Some(Err(fault));
            }
        }
    }

    /// Reads the next bytes, and all events that are then complete.
    async fn read(&mut self) -> Result<(), Fault> {
        let invalid_answer = |detail: String| Fault::InvalidAnswer { detail };
        let chunk = self.chunks.next().await;
        let is_last = chunk.is_none();
        match chunk {
            Some(Ok(bytes)) => {
                self.pieces.push(&bytes).map_err(|error| invalid_answer(error.to_string()))?;
            }
            Some(Err(detail)) => return Err(Fault::Unreachable { detail }),
            None => {}
        }
        while let Some(piece) = self.pieces.next_piece() {
            self.take(&piece)?;
        }
        if !is_last || self.ended.is_some() {
            return Ok(());
        }
        if let Some(rest) = self.pieces.rest() {
            self.take(&rest)?;
        }
        let mut events = Vec::new();
        let ended = self.reader.end(&mut events);
        self.unread.extend(events);
        self.ended = Some(Ok(()));
        ended
    }

    fn take(&mut self, piece: &str) -> Result<(), Fault> {
        let mut events = Vec::new();
        let read = self.reader.read(piece, &mut events);
        if events.iter().any(|event| matches!(event, ChatEvent::Done(_))) {
            self.ended = Some(Ok(()));
        }
        self.unread.extend(events);
        read.map_err(|misread| match misread {
            Misread::Failed(fault) => fault,
            Misread::Malformed => {
                Fault::InvalidAnswer { detail: "an event is not JSON".to_owned() }
            }
        })
    }
}

#[cfg(test)]
mod tests {
    use bytes::Bytes;
    use futures::executor::block_on_stream;
    use hob_core::chat::{Completion, FinishReason, Timings, Usage};

    use super::*;

    /// Reads an answer that is cut into pieces of this many bytes.
    fn read_cut(text: &str, size: usize) -> Vec<CliResult<ChatEvent>> {
        let pieces: Vec<_> = text.as_bytes().chunks(size).map(Bytes::copy_from_slice).collect();
        let chunks = stream::iter(pieces.into_iter().map(Ok)).boxed();
        block_on_stream(events(chunks, "http://nas:1".to_owned())).collect()
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
