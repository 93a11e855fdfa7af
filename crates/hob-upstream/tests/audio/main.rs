//! Speech and transcription by other servers, and by aliases of them: against a server whose every answer is
//! staged by the test. Where only time matters, the models are local and the time is tokio's own.

mod gateway;
mod hearing;
mod speaking;
mod stage;
