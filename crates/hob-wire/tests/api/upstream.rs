//! Other servers' answers as they come, and requests as they leave: each row is what a server or a
//! client really says, and the expected result.

mod embeddings;
mod lists;
mod ollama_reader;
mod ollama_request;
mod openai_reader;
mod openai_request;
mod partial;
mod surprises;
mod transcript;

use hob_core::chat::{Completion, FinishReason, Timings, Usage};
use hob_core::{ChatEvent, Fault};
use hob_wire::{PieceError, UpstreamReader, UsageSource};

use crate::{text, thought};

/// What a reader made of an answer.
#[derive(Debug)]
struct Read {
    events: Vec<ChatEvent>,
    /// The pieces that were not understood, in order.
    misread: Vec<PieceError>,
    end: Result<(), Fault>,
    repairs: Vec<&'static str>,
    usage: UsageSource,
}

impl Read {
    /// The first failure ends the reading; a malformed piece does not.
    fn of(mut reader: impl UpstreamReader, pieces: &[&str]) -> Read {
        let (mut events, mut misread) = (Vec::new(), Vec::new());
        for piece in pieces {
            match reader.read(piece, &mut events) {
                Ok(()) => {}
                Err(PieceError::Malformed) => misread.push(PieceError::Malformed),
                Err(failed) => {
                    misread.push(failed);
                    break;
                }
            }
        }
        let end = reader.end(&mut events);
        let repaired = reader.repairs();
        Read { events, misread, end, repairs: repaired.repairs, usage: repaired.usage }
    }

    /// The events of an answer without a fault.
    fn whole(reader: impl UpstreamReader, pieces: &[&str]) -> Read {
        let read = Read::of(reader, pieces);
        assert_eq!((&read.misread, &read.end), (&Vec::new(), &Ok(())), "{pieces:?}");
        read
    }

    fn text(&self) -> String {
        let piece = |event: &ChatEvent| match event {
            ChatEvent::Text(piece) => Some(piece.clone()),
            _ => None,
        };
        self.events.iter().filter_map(piece).collect()
    }

    fn thought(&self) -> String {
        let piece = |event: &ChatEvent| match event {
            ChatEvent::Reasoning(piece) => Some(piece.clone()),
            _ => None,
        };
        self.events.iter().filter_map(piece).collect()
    }

    /// Names and arguments, joined; ids are not empty and never twice the same.
    fn calls(&self) -> Vec<(String, String)> {
        let (mut calls, mut ids) = (Vec::<(String, String)>::new(), Vec::new());
        for event in &self.events {
            match event {
                ChatEvent::ToolCall { index, id, name } => {
                    assert_eq!(*index as usize, calls.len(), "numbered as they appear");
                    assert!(!id.is_empty() && !ids.contains(id), "{id:?} after {ids:?}");
                    ids.push(id.clone());
                    calls.push((name.clone(), String::new()));
                }
                ChatEvent::ToolArguments { index, piece } => calls[*index as usize].1 += piece,
                _ => {}
            }
        }
        calls
    }

    fn done(&self) -> Completion {
        match self.events.last() {
            Some(ChatEvent::Done(completion)) => *completion,
            other => unreachable!("the last event is {other:?}"),
        }
    }

    fn finish(&self) -> FinishReason {
        self.done().finish
    }
}

fn call(name: &str, arguments: &str) -> (String, String) {
    (name.to_owned(), arguments.to_owned())
}

/// The event of an answer whose server counted nothing but these.
fn done(finish: FinishReason, prompt_tokens: u32, completion_tokens: u32) -> ChatEvent {
    let usage = Usage { prompt_tokens, completion_tokens, ..Usage::default() };
    ChatEvent::Done(Completion { finish, usage, timings: Timings::default() })
}
