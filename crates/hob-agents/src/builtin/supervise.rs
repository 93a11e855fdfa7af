//! The command supervisor: runs a command that has no process namespace of its own, and ends all processes of the command,
//! also those that have left its process group. Landlock lets the supervisor send signals only to processes that it has
//! started, so it can send one to all processes that it may reach.

use std::ffi::OsString;
use std::io::{self, Read as _, stdin};
use std::os::fd::AsFd as _;
use std::os::unix::net::UnixStream;
use std::os::unix::process::ExitStatusExt as _;
use std::process::{Command, ExitStatus, Stdio};
use std::thread;
use std::time::Duration;

use landlock::{CompatLevel, Compatible as _, Ruleset, RulesetAttr as _, RulesetError, Scope};
use rustix::io::Errno;
use rustix::process::{
    Pid, Signal, WaitOptions, getpid, getppid, kill_process_group, set_child_subreaper,
    test_kill_process, wait,
};

use super::limits::SIGNAL_CODE;

/// Pause between two signals. They are repeated until the supervisor itself ends, which is when it has seen the command's end.
const SIGNAL_PAUSE: Duration = Duration::from_millis(10);

/// Runs a command, ends the processes that it leaves, and gives its exit code as a shell would. If standard input is a
/// socket, the command is ended when hob closes its side.
///
/// # Errors
/// Landlock cannot keep signals inside, or the command cannot be started.
pub fn supervise(command: &[OsString]) -> Result<u8, String> {
    let (program, arguments) = command.split_first().ok_or("there is no command")?;
    keep_signals_inside()?;
    let socket = stdin().as_fd().try_clone_to_owned().map_err(|error| error.to_string())?;
    // The thread inherits the Landlock limits of this one, so its signals stay inside, too.
    thread::spawn(move || end_all_when_closed(UnixStream::from(socket)));
    // Processes that have lost their parent come here, so that hob counts them as the command's.
    set_child_subreaper(Some(getpid())).map_err(|error| error.to_string())?;
    let started = Command::new(program).args(arguments).stdin(Stdio::null()).spawn();
    let ended = started.and_then(|child| end_of(child.id()));
    end_all();
    Ok(code(ended.map_err(|error| format!("the command cannot be started: {error}"))?))
}

/// Waits for the end of the command. In the meantime it collects the exit of every process that lost its parent.
fn end_of(command: u32) -> io::Result<ExitStatus> {
    loop {
        match wait(WaitOptions::empty()) {
            Ok(Some((id, status))) if u32::try_from(id.as_raw_pid()) == Ok(command) => {
                return Ok(ExitStatus::from_raw(status.as_raw()));
            }
            Ok(_) | Err(Errno::INTR) => {}
            Err(error) => return Err(error.into()),
        }
    }
}

/// Limits signals to processes that start from here on. The command gets limits of its own below these, so it cannot end its
/// supervisor.
fn keep_signals_inside() -> Result<(), String> {
    scope_signals().map_err(|error| format!("Landlock of Linux 6.12 is needed: {error}"))?;
    // `end_all` must never reach the process that has started this one.
    match getppid().map(test_kill_process) {
        Some(Err(Errno::PERM)) => Ok(()),
        _ => Err("Landlock does not keep signals inside".to_owned()),
    }
}

fn scope_signals() -> Result<(), RulesetError> {
    let ruleset = Ruleset::default().set_compatibility(CompatLevel::HardRequirement);
    ruleset.scope(Scope::Signal)?.create()?.restrict_self()?;
    Ok(())
}

/// Waits until hob closes its side of the socket, and then ends the command. Returns at once if it is not a socket.
fn end_all_when_closed(mut socket: UnixStream) {
    if socket.read(&mut [0]).is_err_and(|error| error.raw_os_error() == Some(libc::ENOTSOCK)) {
        return;
    }
    // One signal is not enough: the command may not have begun.
    loop {
        end_all();
        thread::sleep(SIGNAL_PAUSE);
    }
}

/// Signals every process that this one may signal, in one call: a process cannot start another one in between.
fn end_all() {
    // A signal to process group 1 is `kill(-1)`: to every process. An error means that there are no more.
    let _ended = kill_process_group(Pid::INIT, Signal::KILL);
}

fn code(status: ExitStatus) -> u8 {
    let code = status.code().or_else(|| Some(SIGNAL_CODE + status.signal()?));
    code.and_then(|code| u8::try_from(code).ok()).unwrap_or(u8::MAX)
}
