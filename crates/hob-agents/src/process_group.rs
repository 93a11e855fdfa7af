//! A process with everything that it starts, as a process group of its own.
//! Dropping it ends the whole group, so that no child of a tool outlives its call or its run.

use std::io::{self, Read as _};
use std::net::Shutdown;
use std::os::fd::OwnedFd;
use std::os::unix::net::UnixStream;
use std::process::Stdio;
use std::time::Duration;

use rustix::process::{Pid, Signal, kill_process_group};
use tokio::process::{Child, Command};
use tokio::time::timeout;

/// How long [`ProcessGroup::end`] waits.
const END_LIMIT: Duration = Duration::from_secs(5);
/// How long a command supervisor may take to end its processes.
const SUPERVISOR_LIMIT: Duration = Duration::from_secs(2);

/// A running process and its group.
#[derive(Debug)]
pub struct ProcessGroup {
    child: Child,
    id: Option<Pid>,
    /// The other end of the standard input of a command supervisor, if the process is one.
    supervisor_input: Option<UnixStream>,
}

impl ProcessGroup {
    /// # Errors
    /// The process cannot be started.
    pub fn spawn(command: &mut Command) -> io::Result<ProcessGroup> {
        let child = command.process_group(0).kill_on_drop(true).spawn()?;
        let id = child.id().and_then(|id| Pid::from_raw(i32::try_from(id).ok()?));
        Ok(ProcessGroup { child, id, supervisor_input: None })
    }

    /// Starts a command supervisor (`builtin/supervise.rs`). When its standard input ends, it also ends processes that have
    /// left its group.
    ///
    /// # Errors
    /// The process cannot be started.
    pub fn spawn_supervised(command: &mut Command) -> io::Result<ProcessGroup> {
        let (outer, inner) = UnixStream::pair()?;
        command.stdin(OwnedFd::from(inner));
        let spawned = ProcessGroup::spawn(command);
        // Otherwise the command would keep the supervisor's end open, and the supervisor would never see its input end.
        command.stdin(Stdio::null());
        let mut group = spawned?;
        group.supervisor_input = Some(outer);
        Ok(group)
    }

    /// The process itself.
    pub fn leader(&mut self) -> &mut Child {
        &mut self.child
    }

    /// Ends the group, and waits at most 5 s for its first process.
    pub async fn end(mut self) {
        self.kill();
        // A process that waits for a disk does not end at once.
        let _ended = timeout(END_LIMIT, self.child.wait()).await;
    }

    fn kill(&mut self) {
        if let Some(mut input) = self.supervisor_input.take() {
            // An error means that the supervisor has ended.
            let _closed = input.shutdown(Shutdown::Write);
            let _limited = input.set_read_timeout(Some(SUPERVISOR_LIMIT));
            // The supervisor writes nothing: reading ends when it has ended its processes and itself.
            let _ended = input.read(&mut [0]);
        }
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
