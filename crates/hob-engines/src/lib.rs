//! The only crate with native engines. Each model runs in a worker process of its own, behind a supervisor and a client
//! that implements one of the model traits. No HTTP, no configuration files.
//!
//! The server's side:
//!
//! ```no_run
//! # async fn serve(voices: Vec<hob_core::Voice>) -> Result<(), hob_core::ModelError> {
//! use hob_engines::speech::{SpeechWorker, SpeechWorkerOptions};
//! use hob_engines::supervisor::WorkerCommand;
//!
//! let command = WorkerCommand::new("/proc/self/exe").arg("worker").arg("speech");
//! // Inside a tokio runtime; starts no process until `load` or the first `speak`.
//! let speech = SpeechWorker::start(voices, command, SpeechWorkerOptions::default());
//! speech.load().await?; // `unload` and `shutdown` end the process; dropping it does too
//! # Ok(())
//! # }
//! ```
//!
//! The worker's side, which is all of `hob worker speech` except its engine:
//!
//! ```no_run
//! # fn work() -> Result<(), hob_engines::speech::ServeError> {
//! use hob_engines::speech::scripted::{ScriptedSynthesiser, ScriptedUnits};
//! use hob_engines::speech::{ServeOptions, serve_speech};
//! use hob_engines::worker::become_worker;
//!
//! // Runs on this thread, which becomes the engine's.
//! let load = || Ok::<_, std::io::Error>(ScriptedSynthesiser::default());
//! serve_speech(become_worker()?, ScriptedUnits, load, ServeOptions::default())
//! # }
//! ```

mod backends;
mod bytes;
pub mod chat;
pub mod frame;
pub mod memory;
mod onnx_graph;
pub mod quantize;
pub mod speech;
pub mod supervisor;
pub mod timing;
pub mod transcription;
pub mod turn_taking;
pub mod worker;
