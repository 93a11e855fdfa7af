//! A pseudo-terminal in which hob runs: the test types into it and reads from it.
//! For the program it is a real terminal.

use std::ffi::OsStr;
use std::fs::{File, OpenOptions};
use std::io::{Read, Write};
use std::os::unix::ffi::OsStrExt;
use std::process::{Child, Command};

use rustix::pty::{OpenptFlags, grantpt, openpt, ptsname, unlockpt};

use crate::kill;

pub(crate) struct Terminal {
    pub(crate) child: Child,
    screen: File,
    /// All output so far.
    shown: Vec<u8>,
    /// The end of the last match in `shown`.
    seen: usize,
}

impl Terminal {
    pub(crate) fn start(mut command: Command) -> Terminal {
        let screen = openpt(OpenptFlags::RDWR | OpenptFlags::NOCTTY).expect("a terminal");
        grantpt(&screen).expect("a terminal of ours");
        unlockpt(&screen).expect("an open terminal");
        let name = ptsname(&screen, Vec::new()).expect("a name");
        let name = OsStr::from_bytes(name.as_bytes());
        let other_end =
            || OpenOptions::new().read(true).write(true).open(name).expect("the other end");
        command.env("TERM", "xterm").stdin(other_end()).stdout(other_end()).stderr(other_end());
        let child = command.spawn().expect("hob");
        // The command holds the other end open. Without this the test would not see it close.
        drop(command);
        Terminal { child, screen: File::from(screen), shown: Vec::new(), seen: 0 }
    }

    /// Waits until this text appears after the text of the previous wait.
    pub(crate) fn wait_for(&mut self, text: &str) {
        loop {
            let new = String::from_utf8_lossy(&self.shown[self.seen..]).into_owned();
            if let Some(at) = new.find(text) {
                self.seen += at + text.len();
                return;
            }
            let mut bytes = [0; 1024];
            // Reading fails when the other end is closed.
            let count = self.screen.read(&mut bytes).unwrap_or(0);
            assert_ne!(count, 0, "hob never showed {text:?} behind:\n{new}");
            self.shown.extend_from_slice(&bytes[..count]);
        }
    }

    pub(crate) fn press(&mut self, keys: &str) {
        self.screen.write_all(keys.as_bytes()).expect("typed");
    }

    /// Types this when hob asks for the next line.
    pub(crate) fn next(&mut self, keys: &str) {
        self.wait_for("> ");
        self.press(keys);
    }

    pub(crate) fn interrupt(&self) {
        kill("-INT", self.child.id());
    }

    /// Waits until hob has ended with this code, and returns all its output.
    #[track_caller]
    pub(crate) fn end(mut self, code: i32) -> String {
        let mut rest = [0; 1024];
        while let Ok(count @ 1..) = self.screen.read(&mut rest) {
            self.shown.extend_from_slice(&rest[..count]);
        }
        let shown = String::from_utf8_lossy(&self.shown).into_owned();
        let status = self.child.wait().expect("an end");
        assert_eq!(status.code(), Some(code), "{shown}");
        shown
    }
}
