//! What a supervisor's task is told, and what that means to a worker.
//! A wish to unload is not always heeded; whoever has one hears what became of it.

use tokio::sync::oneshot;

#[derive(Debug)]
pub(in crate::supervisor) enum Command {
    Load,
    Unload,
    /// The answer says whether it takes no memory now.
    UnloadIfIdle(oneshot::Sender<bool>),
    Stop,
}

/// A wish that ends a worker.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in crate::supervisor) enum Wish {
    Unload,
    Stop,
}

/// What a command means to a worker that runs or is about to.
pub(super) fn wish(command: Option<Command>) -> Option<Wish> {
    match command {
        Some(Command::Load) => None,
        Some(Command::UnloadIfIdle(answer)) => {
            tell(answer, false);
            None
        }
        Some(Command::Unload) => Some(Wish::Unload),
        Some(Command::Stop) | None => Some(Wish::Stop),
    }
}

/// Who asked may have gone, and needs no answer then.
pub(super) fn tell(answer: oneshot::Sender<bool>, is_gone: bool) {
    let _ = answer.send(is_gone);
}
