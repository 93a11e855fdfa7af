//! What a request of a connection has: its input, which arrives while it runs, and a way to answer.
//! Speech and transcription implement the input. The connection feeds it.

use std::time::Duration;

use hob_wire::{WyomingAnswer, WyomingEvent};
use tokio::sync::mpsc;

use crate::api_error::ApiError;

/// Where answers go. Sending waits until the client reads.
#[derive(Clone)]
pub(super) struct Answers(mpsc::Sender<Vec<u8>>);

impl Answers {
    pub(super) fn new(sender: mpsc::Sender<Vec<u8>>) -> Answers {
        Answers(sender)
    }

    /// After the client has left, nothing is sent: then the whole connection is dropped.
    pub(super) async fn send(&self, answer: WyomingAnswer<'_>) {
        if self.0.send(answer.to_bytes()).await.is_err() {
            tracing::trace!("the client has left");
        }
    }
}

/// The text or sound of the running request.
pub(super) trait RequestInput {
    /// Takes an event, while the input is not complete.
    ///
    /// # Errors
    /// The event breaks a limit, or is no part of the input.
    async fn take(&mut self, event: WyomingEvent) -> Result<(), ApiError>;

    /// How long the client may send nothing. `None`: the input is complete, and other events belong to the next request.
    fn silence_max(&self) -> Option<Duration>;
}
