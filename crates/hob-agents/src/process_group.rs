//! A process with everything that it starts, as a process group of its own.
//! Dropping it ends the whole group, so that no child of a tool outlives its call or its run.

use std::io;
use std::time::Duration;

use rustix::process::{Pid, Signal, kill_process_group};
use tokio::process::{Child, Command};
use tokio::time::timeout;

/// How long [`ProcessGroup::end`] waits.
const END_LIMIT: Duration = Duration::from_secs(5);

/// A running process and its group.
#[derive(Debug)]
pub struct ProcessGroup {
    child: Child,
    id: Option<Pid>,
}

impl ProcessGroup {
    /// # Errors
    /// The process cannot be started.
    pub fn spawn(command: &mut Command) -> io::Result<ProcessGroup> {
        let child = command.process_group(0).kill_on_drop(true).spawn()?;
        let id = child.id().and_then(|id| Pid::from_raw(i32::try_from(id).ok()?));
        Ok(ProcessGroup { child, id })
    }

    /// The process itself.
    pub fn leader(&mut self) -> &mut Child {
        &mut self.child
    }

    /// Ends the group, and waits a moment for its first process.
    pub async fn end(mut self) {
        self.kill();
        // A process that waits for a disk does not end at once.
        let _ended = timeout(END_LIMIT, self.child.wait()).await;
    }

    fn kill(&self) {
        if let Some(id) = self.id {
            // An error means that the group has ended.
            let _gone = kill_process_group(id, Signal::KILL);
        }
    }
}

impl Drop for ProcessGroup {
    fn drop(&mut self) {
        self.kill();
    }
}
