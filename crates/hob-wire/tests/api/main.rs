//! JSON of the HTTP APIs, in and out, through the public functions of the crate.
//! One program, because each takes seconds to link.

mod anthropic_reader;
mod anthropic_request;
mod builders;
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

use hob_core::{ChatEvent, TranscriptTask};
use hob_wire::{
    parse_chat, parse_completion, parse_embeddings, parse_ollama_chat, parse_ollama_embed,
    parse_ollama_generate, parse_speech, parse_transcript_json,
};

fn text(piece: &str) -> ChatEvent {
    ChatEvent::Text(piece.to_owned())
}

fn thought(piece: &str) -> ChatEvent {
    ChatEvent::Reasoning(piece.to_owned())
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

proptest::proptest! {
    /// Any bytes give a request or a short refusal.
    #[test]
    fn no_body_is_a_surprise(body: Vec<u8>) {
        for error in [
            parse_chat(&body).err(),
            parse_completion(&body).err(),
            parse_embeddings(&body).err(),
            parse_ollama_chat(&body).err(),
            parse_ollama_generate(&body).err(),
            parse_ollama_embed(&body).err(),
            parse_speech(&body, &["mp3"]).err(),
            parse_transcript_json(TranscriptTask::Transcribe, &body).err(),
        ].into_iter().flatten() {
            proptest::prop_assert!(error.to_string().len() < 400, "{error}");
        }
    }
}
