//! The commands to a supervisor's task, and which of them end a worker.
//! A command may be declined. Its sender gets the outcome.

use tokio::sync::oneshot;

#[derive(Debug)]
pub(in crate::supervisor) enum Command {
    Load,
    Unload,
    /// The answer says whether the model takes no memory now.
    UnloadIfIdle(oneshot::Sender<bool>),
    Stop,
}

/// Why a worker ends without an error.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in crate::supervisor) enum EndRequest {
    Unload,
    Stop,
}

/// Whether a command ends a worker that runs or is about to start.
pub(super) fn end_request(command: Option<Command>) -> Option<EndRequest> {
    match command {
        Some(Command::Load) => None,
        Some(Command::UnloadIfIdle(answer)) => {
            reply(answer, false);
            None
        }
        Some(Command::Unload) => Some(EndRequest::Unload),
        Some(Command::Stop) | None => Some(EndRequest::Stop),
    }
}

/// Sends the answer to a command, unless its sender has left.
pub(super) fn reply(answer: oneshot::Sender<bool>, is_unloaded: bool) {
    let _sender_has_left = answer.send(is_unloaded);
}
