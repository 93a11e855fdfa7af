//! Reads the texts of a recorded chat answer: what is visible, what was thought, and which tools were called.
//! It runs after the answer has ended, so it takes no measured time.

use hob_core::ChatEvent;
use hob_core::chat::FinishReason;
use hob_eval::{Answer, AnswerEnd, CalledTool};
use hob_wire::{OllamaReader, OpenAiReader, PieceKind, Pieces, UpstreamReader};

use crate::drive::Exchange;
use crate::http_response::HttpResponse;
use crate::target::Target;
use crate::timeline::Protocol;

/// Maximum bytes of one event of an answer.
const PIECE_BYTES_MAX: usize = 16 << 20;

/// A chat answer as text: what is visible, and what was thought.
#[derive(Debug, Default)]
pub(crate) struct ReadAnswer {
    pub(crate) answer: Answer,
    pub(crate) thought: String,
}

impl ReadAnswer {
    pub(crate) fn of(exchange: &Exchange, target: &Target) -> ReadAnswer {
        let protocol = target.api.protocol();
        let (kind, mut reader): (PieceKind, Box<dyn UpstreamReader>) = match protocol {
            Protocol::OpenAi => (PieceKind::Event, Box::new(OpenAiReader::default())),
            Protocol::Ollama => (PieceKind::Line, Box::new(OllamaReader::default())),
        };
        // The timeline reports whether the answer is whole. Here, hob reads what arrived.
        let (_, body, _is_whole) = HttpResponse::recorded(&exchange.recording.bytes);
        let mut pieces = Pieces::new(kind, PIECE_BYTES_MAX);
        let _is_in_limits = pieces.push(&body);
        let (mut events, mut read_any) = (Vec::new(), false);
        while let Some(piece) = pieces.next_piece().or_else(|| pieces.rest()) {
            read_any |= reader.read(&piece, &mut events).is_ok();
        }
        // The answer may be one JSON document although hob requested a stream.
        if !read_any && body.trim_ascii_start().starts_with(b"{") {
            let _misread = reader.read(&String::from_utf8_lossy(&body), &mut events);
        }
        let _is_complete = reader.end(&mut events);
        let mut read = ReadAnswer::default();
        events.into_iter().for_each(|event| read.add(event));
        read
    }

    fn add(&mut self, event: ChatEvent) {
        match event {
            ChatEvent::Reasoning(text) => self.thought.push_str(&text),
            ChatEvent::Text(text) => self.answer.content.push_str(&text),
            ChatEvent::ToolCall { name, .. } => {
                self.answer.tool_calls.push(CalledTool { name, arguments: String::new() });
            }
            ChatEvent::ToolArguments { index, piece } => {
                if let Some(call) = self.answer.tool_calls.get_mut(index as usize) {
                    call.arguments.push_str(&piece);
                }
            }
            ChatEvent::Done(completion) => {
                self.answer.end = match completion.finish {
                    FinishReason::Length => AnswerEnd::Length,
                    FinishReason::ContentFilter => AnswerEnd::ContentFilter,
                    _ => AnswerEnd::Stop,
                };
            }
            ChatEvent::Logprobs(_)
            | ChatEvent::Status { .. }
            | ChatEvent::Extra(_)
            | ChatEvent::TurnEnd { .. } => {}
        }
    }
}
