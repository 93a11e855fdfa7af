//! The terminal's mode, put back when a conversation ends.
//! A line editor changes it, and a signal can end hob while a thread still edits.

use std::io;

use rustix::termios::{OptionalActions, Termios, tcgetattr, tcsetattr};

pub(super) struct Terminal {
    /// None when stdin is no terminal.
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
            // A terminal that is gone needs no mode.
            let _gone = tcsetattr(io::stdin(), OptionalActions::Now, mode);
        }
    }
}
