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
