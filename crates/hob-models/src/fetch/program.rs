//! Runs another program for a download, with a time limit. Kills it with all its children on cancellation,
//! and quotes its last lines if it fails.

use std::collections::VecDeque;
use std::io::{self, BufRead, BufReader, ErrorKind, Read};
use std::os::unix::process::CommandExt;
use std::path::Path;
use std::process::{Child, Command, ExitStatus, Stdio};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use rustix::process::{Pid, Signal, WaitId, WaitIdOptions, kill_process_group, waitid};

use super::FetchError;
use crate::disk::{self, DiskError};
use crate::progress::Watch;

/// Interval at which folder sizes and cancellation are checked.
const LOOK_EVERY: Duration = Duration::from_millis(50);
/// Number of last output lines to keep, which contain the reason of a failure.
const LINES_MAX: usize = 8;
const LINE_BYTES_MAX: u64 = 4096;

/// A program, the folders in which its download grows, and its time limit.
#[derive(Debug)]
pub(super) struct Run<'a> {
    pub(super) program: &'a str,
    pub(super) command: Command,
    pub(super) grows_in: &'a [&'a Path],
    pub(super) silence: Duration,
}

impl Run<'_> {
    /// Waits for the program.
    ///
    /// # Errors
    /// It is not installed, it failed, it stalled, or the watch was cancelled. In the last two cases it and its children
    /// have ended when this returns.
    pub(super) fn wait(mut self, watch: &mut Watch<'_>) -> Result<(), FetchError> {
        // A process group of its own: Ctrl-C then reaches only hob, which ends the group in order.
        self.command.process_group(0);
        self.command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::piped());
        let child = self.command.spawn().map_err(|error| self.not_started(&error))?;
        let mut running = Running::new(child);
        self.watch_it(&running, watch)?;
        let status = running.end().map_err(DiskError::at(Path::new(self.program)))?;
        if status.success() {
            return Ok(());
        }
        Err(FetchError::ProgramFailed {
            program: self.program.to_owned(),
            status: status.to_string(),
            stderr: running.last_words(),
        })
    }

    /// Returns when the program has ended.
    fn watch_it(&self, running: &Running, watch: &mut Watch<'_>) -> Result<(), FetchError> {
        let mut seen_bytes = 0;
        let mut moved = Instant::now();
        while !running.has_ended() {
            watch.check()?;
            let bytes = disk::used_bytes(self.grows_in.iter().copied());
            if bytes > seen_bytes {
                seen_bytes = bytes;
                moved = Instant::now();
                watch.at(bytes);
            } else if moved.elapsed() >= self.silence {
                let silent_s = self.silence.as_secs();
                return Err(FetchError::Stalled { what: self.program.to_owned(), silent_s });
            }
            std::thread::sleep(LOOK_EVERY);
        }
        Ok(())
    }

    fn not_started(&self, error: &io::Error) -> FetchError {
        if error.kind() == ErrorKind::NotFound {
            return FetchError::ProgramMissing { programs: vec![self.program.to_owned()] };
        }
        FetchError::ProgramFailed {
            program: self.program.to_owned(),
            status: "not started".to_owned(),
            stderr: error.to_string(),
        }
    }
}

/// A child process that does not outlive its owner.
struct Running {
    child: Child,
    /// Id of the child and of its group; `None` after it was reaped, when the id may belong to another process.
    pid: Option<Pid>,
    stderr: Option<JoinHandle<VecDeque<String>>>,
}

impl Running {
    fn new(mut child: Child) -> Running {
        let stderr = child.stderr.take().map(|pipe| std::thread::spawn(move || last_lines(pipe)));
        let pid = i32::try_from(child.id()).ok().and_then(Pid::from_raw);
        Running { child, pid, stderr }
    }

    /// Checks without reaping: until its status is read, the id stays reserved.
    fn has_ended(&self) -> bool {
        let options = WaitIdOptions::EXITED | WaitIdOptions::NOHANG | WaitIdOptions::NOWAIT;
        let ended = self.pid.map(|pid| waitid(WaitId::Pid(pid), options));
        !matches!(ended, Some(Ok(None)))
    }

    /// Ends the whole group, because children may survive their parent, and reaps the child.
    fn end(&mut self) -> io::Result<ExitStatus> {
        // If only ended processes are left in a group, macOS refuses the signal with EPERM.
        if let Some(pid) = self.pid
            && let Err(error) = kill_process_group(pid, Signal::KILL)
            && !self.has_ended()
        {
            return Err(error.into());
        }
        self.pid = None;
        self.child.wait()
    }

    /// To be called after the end: reads the pipe until no process can write to it.
    fn last_words(&mut self) -> String {
        let lines = self.stderr.take().and_then(|reader| reader.join().ok()).unwrap_or_default();
        Vec::from(lines).join("\n")
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        // The child cannot be killed, and nothing else can be tried.
        let _ended = self.end();
    }
}

fn last_lines(pipe: impl Read) -> VecDeque<String> {
    let mut reader = BufReader::new(pipe);
    let mut lines = VecDeque::new();
    loop {
        let mut line = Vec::new();
        let read = reader.by_ref().take(LINE_BYTES_MAX).read_until(b'\n', &mut line);
        if !matches!(read, Ok(1..)) {
            return lines;
        }
        let text = String::from_utf8_lossy(&line);
        if !text.trim().is_empty() {
            lines.push_back(without_secrets(text.trim_end()));
        }
        while lines.len() > LINES_MAX {
            lines.pop_front();
        }
    }
}

/// Package clients quote the address of their index, which may contain a password.
fn without_secrets(line: &str) -> String {
    let mut clean = String::with_capacity(line.len());
    let mut rest = line;
    while let Some(start) = rest.find("://") {
        let (before, after) = rest.split_at(start + 3);
        clean.push_str(before);
        let authority = after.find(['/', ' ', '"', '\'']).unwrap_or(after.len());
        let secret = after[..authority].rfind('@').map_or(0, |at| at + 1);
        rest = &after[secret..];
    }
    clean + rest
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::{AtomicBool, Ordering};

    use super::*;

    fn shell(script: &str) -> Command {
        let mut command = Command::new("/bin/sh");
        command.arg("-c").arg(script);
        command
    }

    const PATIENT: Duration = Duration::from_secs(60);

    fn run(command: Command, grows_in: &Path, cancel: &AtomicBool) -> Result<(), FetchError> {
        run_within(PATIENT, command, grows_in, cancel)
    }

    fn run_within(
        silence: Duration,
        command: Command,
        grows_in: &Path,
        cancel: &AtomicBool,
    ) -> Result<(), FetchError> {
        let mut tell = |progress| {
            if matches!(progress, crate::Progress::Bytes { done_bytes: 1.., .. }) {
                cancel.store(true, Ordering::Relaxed);
            }
        };
        let mut watch = Watch::new(&mut tell, cancel);
        let run = Run { program: "client", command, grows_in: &[grows_in], silence };
        run.wait(&mut watch)
    }

    #[test]
    fn the_end_of_what_it_said_is_quoted_without_passwords() {
        let folder = tempfile::tempdir().expect("a folder");
        let script = "for n in 1 2 3 4 5 6 7 8 9; do echo line $n >&2; done; \
                      echo 'ERROR: https://me:secret@index.test/simple: gone' >&2; exit 3";
        let failed = run(shell(script), folder.path(), &AtomicBool::new(false));
        let stderr = "line 3\nline 4\nline 5\nline 6\nline 7\nline 8\nline 9\n\
                      ERROR: https://index.test/simple: gone";
        let expect = FetchError::ProgramFailed {
            program: "client".to_owned(),
            status: "exit status: 3".to_owned(),
            stderr: stderr.to_owned(),
        };
        assert_eq!(failed, Err(expect));
    }

    #[test]
    fn one_that_is_not_there_is_told_from_one_that_fails() {
        let folder = tempfile::tempdir().expect("a folder");
        let command = Command::new(folder.path().join("no-such-program"));
        let missing = FetchError::ProgramMissing { programs: vec!["client".to_owned()] };
        assert_eq!(run(command, folder.path(), &AtomicBool::new(false)), Err(missing));
        let command = Command::new(folder.path());
        let failed = run(command, folder.path(), &AtomicBool::new(false));
        assert!(matches!(failed, Err(FetchError::ProgramFailed { .. })), "{failed:?}");
    }

    /// Its child keeps a pipe open as long as it lives.
    fn a_child_ends(silence: Duration, script: &str, expect: &Result<(), FetchError>) {
        let folder = tempfile::tempdir().expect("a folder");
        let pipe = folder.path().join("pipe");
        let made = Command::new("mkfifo").arg(&pipe).status().expect("mkfifo");
        assert!(made.success());
        let command = shell(&script.replace("PIPE", &pipe.display().to_string()));
        let (closed, is_closed) = std::sync::mpsc::sync_channel(1);
        std::thread::spawn(move || closed.send(std::fs::read(pipe).map(|said| said.len())));
        let grows_elsewhere = tempfile::tempdir().expect("a folder");
        let cancel = AtomicBool::new(false);
        assert_eq!(&run_within(silence, command, grows_elsewhere.path(), &cancel), expect);
        let end = is_closed.recv_timeout(Duration::from_secs(60)).expect("its child lives on");
        assert_eq!(end.expect("read"), 0);
    }

    #[test]
    fn one_that_stalls_is_ended_with_its_children() {
        let stalled = FetchError::Stalled { what: "client".to_owned(), silent_s: 3 };
        a_child_ends(Duration::from_secs(3), "sleep 1000 > PIPE & wait", &Err(stalled));
    }

    #[test]
    fn children_of_one_that_has_failed_are_not_waited_for() {
        let failed = FetchError::ProgramFailed {
            program: "client".to_owned(),
            status: "exit status: 4".to_owned(),
            stderr: String::new(),
        };
        a_child_ends(PATIENT, "exec 3> PIPE; sleep 1000 & exit 4", &Err(failed));
    }

    #[test]
    fn a_raised_flag_ends_one_that_grows() {
        let folder = tempfile::tempdir().expect("a folder");
        let script = format!(
            "cd {}; while true; do echo more >> file; sleep 0.01; done",
            folder.path().display()
        );
        let ended = run(shell(&script), folder.path(), &AtomicBool::new(false));
        assert_eq!(ended, Err(FetchError::Cancelled(crate::Cancelled)));
    }

    #[test]
    fn addresses_lose_their_passwords_and_nothing_else() {
        let rows = [
            ("no address", "no address"),
            ("at http://h/p@q and a@b", "at http://h/p@q and a@b"),
            ("http://u:p@h/x ftp://t@g", "http://h/x ftp://g"),
            ("http://u:p@ss@h", "http://h"),
            ("://", "://"),
        ];
        for (line, expect) in rows {
            assert_eq!(without_secrets(line), expect);
        }
    }
}
