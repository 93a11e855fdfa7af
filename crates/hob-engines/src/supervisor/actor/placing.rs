//! Where the worker computes: the command of each start, and what happens when a card had no room or was lost.
//! Without a placer, the command is always the same, and the next worker starts where the last one did.

use super::{Actor, Lost};
use crate::supervisor::WorkerCommand;
use crate::supervisor::device_fault::DeviceFault;

impl Actor {
    /// The command of the start that follows.
    pub(super) fn placed_command(&self) -> WorkerCommand {
        let Some(placer) = &self.options.placer else { return self.command.clone() };
        let placed = placer.place();
        self.publish_placed(placed.predicted, placed.note);
        placed.command
    }

    /// The reason for people. If a graphics card was at fault, it says what happens next.
    pub(super) fn reason_of(&self, reason: String, fault: Option<&DeviceFault>) -> String {
        let placer = self.options.placer.as_ref();
        match fault {
            Some(DeviceFault::Lost { said }) => {
                let next = placer.map_or_else(loaded_again, |placer| placer.device_lost());
                format!("the graphics card was lost ({said}); {next}")
            }
            Some(DeviceFault::Full { said, shortage: None }) => {
                let next = placer.map_or_else(loaded_again, |placer| placer.device_full());
                format!("the graphics card had no memory left ({said}); {next}")
            }
            Some(DeviceFault::Full { shortage: Some(_), .. }) | None => reason,
        }
    }

    /// `None` if a card had no room and the next worker starts at another place. Otherwise the loss, with what would fit.
    pub(super) fn unless_moved(&self, lost: Lost) -> Option<Lost> {
        let (Some(placer), Some(DeviceFault::Full { shortage, .. })) =
            (&self.options.placer, &lost.fault)
        else {
            return Some(lost);
        };
        match placer.move_from(shortage.as_ref()) {
            Ok(()) => None,
            Err(what_fits) if what_fits.is_empty() => Some(lost),
            Err(what_fits) => {
                Some(Lost { reason: format!("{}; {what_fits}", lost.reason), ..lost })
            }
        }
    }
}

fn loaded_again() -> String {
    "send the request again: hob loads the model again".to_owned()
}
