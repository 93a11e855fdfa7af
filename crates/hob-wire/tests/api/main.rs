//! JSON of the HTTP APIs, in and out, through the public functions of the crate.
//! One program, because each takes seconds to link.

mod anthropic_reader;
mod anthropic_request;
mod chat_answer;
mod chat_request;
mod completions;
mod lifecycle;
mod ollama_answer;
mod ollama_images;
mod ollama_request;
mod relayed;
mod speech_request;
mod transcript_answer;
mod transcript_request;
mod upstream;
mod wyoming;

use hob_core::ChatEvent;

fn text(piece: &str) -> ChatEvent {
    ChatEvent::Text(piece.to_owned())
}

fn call(index: u32, id: &str, name: &str) -> ChatEvent {
    ChatEvent::ToolCall { index, id: id.to_owned(), name: name.to_owned() }
}

fn arguments(index: u32, piece: &str) -> ChatEvent {
    ChatEvent::ToolArguments { index, piece: piece.to_owned() }
}

/// The rows of a table: in each line a body or a part of it, and the error that it gives.
fn rows(table: &str) -> impl Iterator<Item = (&str, &str)> {
    table.trim().lines().map(|line| line.trim().split_once(" => ").expect(line))
}
