//! Speech and transcription by other servers and by aliases, with a server whose every answer the test chooses.
//! Tests of time use local models and tokio's paused clock.

mod gateway;
mod speaking;
mod stage;
mod transcription;
