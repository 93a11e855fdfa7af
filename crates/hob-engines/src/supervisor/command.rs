//! The commands to a supervisor's task, and which of them end a worker.
//! A command may be declined. Its sender gets the outcome.

use tokio::sync::oneshot;

use crate::worker::protocol::DeviceShortage;

#[derive(Debug)]
pub(super) enum Command {
    Load,
    Unload,
    /// The answer says whether the model takes no memory now.
    UnloadIfIdle(oneshot::Sender<bool>),
    Stop,
}

/// Why a worker ends without an error.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum EndRequest {
    Unload,
    Stop,
}

/// Why a worker ends.
#[derive(Debug)]
pub(super) enum EndReason {
    Requested(EndRequest),
    /// The worker closed its socket. It has died; its exit status says how.
    Vanished,
    /// The supervisor kills it, for this reason.
    Unfit(String),
    /// A graphics card has no room for the model. The worker ends.
    NoDeviceRoom {
        reason: String,
        shortage: DeviceShortage,
    },
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
