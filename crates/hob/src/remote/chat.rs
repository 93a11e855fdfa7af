//! Chat answers of a running hob. `hob-wire` writes the request and reads the events, as for every upstream.
//! The body is read on a blocking thread.

use std::io::Read;

use futures::StreamExt;
use hob_core::{ChatEvent, ChatRequest, Fault};
use hob_wire::{
    Misread, OpenAiReader, PieceKind, Pieces, UpstreamDialect, UpstreamReader, upstream_request,
};
use serde_json::Value;
use tokio::sync::mpsc::Sender;

use super::{ChatAnswer, Remote};
use crate::failure::{Exit, Failure, Outcome};

/// Maximum bytes of one event.
const EVENT_BYTES_MAX: usize = 1 << 20;
const READ_BYTES: usize = 16 << 10;

impl Remote {
    /// Requests an answer. Errors before the answer are returned; later ones are items of the stream. Dropping
    /// the stream is noticed at the server's next bytes.
    pub(crate) async fn chat(&self, model: &str, request: &ChatRequest) -> Outcome<ChatAnswer> {
        let internal = |error: &dyn std::fmt::Display| Failure::new(Exit::Internal, error);
        let body = upstream_request(request, model, UpstreamDialect::Hob, &[])
            .map_err(|error| internal(&format_args!("{} {error}", error.field)))?;
        let body: Value = serde_json::from_str(&body).map_err(|error| internal(&error))?;
        let base = self.base.clone();
        let read = move |body: ureq::Body, events: &Sender<_>| {
            relay(body.into_reader(), &base, events);
        };
        Ok(self.stream("/v1/chat/completions", body, read).await?.boxed())
    }
}

/// Sends the events of an answer until its end, an error, or the drop of the receiver.
fn relay(body: impl Read, base: &str, events: &Sender<Outcome<ChatEvent>>) {
    if let Err(fault) = read(body, events) {
        let failure = Failure::new(Exit::Server, format!("{base}: {fault}"));
        // The receiver may be gone.
        drop(events.blocking_send(Err(failure)));
    }
}

fn read(mut body: impl Read, events: &Sender<Outcome<ChatEvent>>) -> Result<(), Fault> {
    let nonsense = |detail: String| Fault::Nonsense { detail };
    let (mut reader, mut said) = (OpenAiReader::default(), Vec::new());
    let mut pieces = Pieces::new(PieceKind::Event, EVENT_BYTES_MAX);
    let mut bytes = vec![0; READ_BYTES];
    let mut has_ended = false;
    while !events.is_closed() {
        let taken = take(&mut reader, &mut pieces, has_ended, &mut said);
        // Text before an error is still part of the answer.
        for event in said.drain(..) {
            has_ended |= matches!(event, ChatEvent::Done(_));
            if events.blocking_send(Ok(event)).is_err() {
                return Ok(());
            }
        }
        taken?;
        if has_ended {
            return Ok(());
        }
        match body.read(&mut bytes) {
            Ok(0) => has_ended = true,
            Ok(count) => pieces.push(&bytes[..count]).map_err(|long| nonsense(long.to_string()))?,
            Err(error) => return Err(Fault::Unreachable { detail: error.to_string() }),
        }
    }
    Ok(())
}

/// Reads the complete events that have arrived. `has_ended` says that no more bytes follow.
fn take(
    reader: &mut OpenAiReader,
    pieces: &mut Pieces,
    has_ended: bool,
    said: &mut Vec<ChatEvent>,
) -> Result<(), Fault> {
    let rest = |pieces: &mut Pieces| has_ended.then(|| pieces.rest()).flatten();
    while let Some(piece) = pieces.next_piece().or_else(|| rest(pieces)) {
        reader.read(&piece, said).map_err(|misread| match misread {
            Misread::Failed(fault) => fault,
            Misread::Malformed => Fault::Nonsense { detail: "an event is no JSON".to_owned() },
        })?;
    }
    if has_ended { reader.end(said) } else { Ok(()) }
}

#[cfg(test)]
mod tests {
    use hob_core::chat::{Completion, FinishReason, Timings, Usage};
    use tokio::sync::mpsc;

    use super::*;

    fn read(stream: &str) -> Vec<Outcome<ChatEvent>> {
        let (events, mut heard) = mpsc::channel(64);
        relay(stream.as_bytes(), "http://nas:1", &events);
        drop(events);
        std::iter::from_fn(|| heard.blocking_recv()).collect()
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
            timings: Timings { load_ms: 4.0, queue_ms: 3.0, prompt_ms: 2.5, predicted_ms: 10.0 },
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
            ("data: 3\n\n", "http://nas:1: the answer makes no sense: an event is no JSON"),
            (
                "data: {\"error\":{\"message\":\"the worker died\"}}\n\n",
                "http://nas:1: broke off with an error: the worker died",
            ),
        ];
        for (end, sentence) in rows {
            let events = read(&format!("{hi}{end}"));
            let failure = Err(Failure::new(Exit::Server, sentence));
            assert_eq!(events, [Ok(ChatEvent::Text("Hi".to_owned())), failure]);
        }
    }
}
