//! Restores the terminal's mode when a conversation ends.
//! A line editor changes it, and a signal can end hob while a thread still edits.

use std::io;

use rustix::termios::{OptionalActions, Termios, tcgetattr, tcsetattr};

pub(super) struct Terminal {
    /// `None` if stdin is not a terminal.
    mode: Option<Termios>,
}

impl Terminal {
    pub(super) fn remember() -> Terminal {
        Terminal { mode: tcgetattr(io::stdin()).ok() }
    }
}

impl Drop for Terminal {
    fn drop(&mut self) {
        if let Some(mode) = &self.mode {
            // If the terminal is gone, its mode does not matter.
            let _gone = tcsetattr(io::stdin(), OptionalActions::Now, mode);
        }
    }
}
