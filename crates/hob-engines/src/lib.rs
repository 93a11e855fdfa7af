//! The only crate with native engines. Each model runs in a worker process of its own, behind a supervisor and a client
//! that implements one of the model traits. No HTTP, no configuration files.
//!
//! `SpeechWorker::start` is the server's side: it starts no process until `load` or the first `speak`. The worker's side is
//! `serve_speech`; `examples/scripted_worker.rs` is a whole worker, with a scripted engine.

mod backends;
mod bytes;
pub mod chat;
pub mod frame;
pub mod memory;
mod onnx_graph;
pub mod quantize;
pub mod speech;
pub mod supervisor;
#[cfg(test)]
#[path = "../tests/support/test_home.rs"]
mod test_home;
pub mod timing;
pub mod transcription;
pub mod turn_taking;
pub mod worker;
