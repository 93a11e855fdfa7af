//! Speech engines, and the worker process that runs one.
//! Above `client` and below `worker` nobody knows that there are two processes.

mod answer;
pub mod client;
pub mod kokoro;
pub mod protocol;
pub mod scheduler;
pub mod scripted;
pub mod synthesiser;
pub mod units;
pub mod worker;

pub use client::{SpeechWorker, SpeechWorkerOptions};
pub use scheduler::Pacing;
pub use units::UnitSource;
pub use worker::{ServeError, ServeOptions, WarmUp, serve_speech};
