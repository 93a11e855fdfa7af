//! The transcription engine, and the worker process that runs it.
//! Only `client` and `worker` know that there are two processes.

mod agreement;
pub mod client;
pub mod parts;
mod pause_watch;
pub mod protocol;
mod recording;
pub mod transcriber;
mod turns;
pub mod vad;
pub mod whisper;
pub mod worker;

pub use client::TranscriptionWorker;
pub use transcriber::Transcriber;
pub use worker::{TranscriptionWorkerError, serve_transcription};
