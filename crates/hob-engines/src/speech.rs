//! The speech engine, and the worker process that runs it.
//! Only `client` and `worker` know that there are two processes.

pub mod client;
pub mod distance;
mod exchange;
pub mod kokoro;
pub mod protocol;
pub mod scheduler;
pub mod scripted;
pub mod synthesiser;
pub mod units;
mod voice_lists;
pub mod worker;

pub use client::{SpeechWorker, SpeechWorkerOptions};
pub use scheduler::WindowLengths;
pub use units::UnitSource;
pub use voice_lists::DictionaryFolders;
pub use worker::{ServeError, ServeOptions, WarmUp, serve_speech};
