//! A worker as a process: starts it with one end of a socket pair as its standard input, ends and reaps it, and
//! describes how it died.

use std::ffi::{OsStr, OsString};
use std::io;
use std::os::fd::OwnedFd;
use std::os::unix::net::UnixStream as StdUnixStream;
use std::os::unix::process::ExitStatusExt;
use std::path::PathBuf;
use std::process::{ExitStatus, Stdio};
use std::time::Duration;

use tokio::net::UnixStream;
use tokio::process::{Child, Command};
use tokio::time::timeout;

use super::device_fault::DeviceFault;
use super::stderr::{KeptLines, StderrTail};

/// How to start a worker process.
#[derive(Clone, Debug)]
pub struct WorkerCommand {
    pub program: PathBuf,
    pub args: Vec<OsString>,
    /// Variables in addition to the few that the worker inherits from the server: see [`is_inherited`].
    pub envs: Vec<(OsString, OsString)>,
}

impl WorkerCommand {
    pub fn new(program: impl Into<PathBuf>) -> WorkerCommand {
        WorkerCommand { program: program.into(), args: Vec::new(), envs: Vec::new() }
    }

    #[must_use]
    pub fn arg(mut self, arg: impl Into<OsString>) -> WorkerCommand {
        self.args.push(arg.into());
        self
    }

    #[must_use]
    pub fn env(mut self, name: impl Into<OsString>, value: impl Into<OsString>) -> WorkerCommand {
        self.envs.push((name.into(), value.into()));
        self
    }
}

/// Whether a worker has this variable of the server's environment: what programs need to run, and what
/// sets up graphics cards, threads and allocators. Everything else may be a secret.
fn is_inherited(name: &OsStr) -> bool {
    const NAMES: [&str; 9] =
        ["PATH", "HOME", "USER", "LANG", "TZ", "TMPDIR", "TMP", "TEMP", "LD_LIBRARY_PATH"];
    const FAMILIES: &str = "
        LC_ XDG_ RUST_ DYLD_ OMP_ GOMP_ KMP_ MALLOC_ GLIBC_ MIMALLOC_ GGML_ LLAMA_ CUDA_ NVIDIA_
        GPU_ HIP_ HSA_ ROCR_ ROCM_ AMD_ MTL_ METAL_ VK_ MESA_ RADV_ DRI_ ZE_ ESPEAK_";
    const SECRETS: [&str; 5] = ["KEY", "TOKEN", "SECRET", "PASSWORD", "CREDENTIAL"];
    let Some(name) = name.to_str() else { return false };
    let is_needed =
        NAMES.contains(&name) || FAMILIES.split_whitespace().any(|f| name.starts_with(f));
    is_needed && !SECRETS.iter().any(|secret| name.contains(secret))
}

/// The environment of a worker. What the user has set takes the place of a default.
pub fn worker_environment() -> impl Iterator<Item = (OsString, OsString)> {
    let defaults = [
        // One thread owns the model. With an arena for each thread, glibc keeps more of the freed memory.
        ("MALLOC_ARENA_MAX", "1"),
        // CUDA lists the fastest card first. hob numbers cards as `nvidia-smi` does.
        ("CUDA_DEVICE_ORDER", "PCI_BUS_ID"),
    ];
    let defaults = defaults.map(|(name, value)| (OsString::from(name), OsString::from(value)));
    let is_theirs =
        |(name, value): &(OsString, OsString)| is_inherited(name) || is_log_of_workers(name, value);
    defaults.into_iter().chain(std::env::vars_os().filter(is_theirs))
}

/// How a worker ended.
#[derive(Clone, Debug)]
pub(super) struct ProcessEnd {
    /// Exit status and last lines of the worker.
    pub(super) how: String,
    /// The fault of its graphics card, if the worker reported one.
    pub(super) fault: Option<DeviceFault>,
}

/// Whether a variable is a log filter that names this crate. Without the name, a worker logs only warnings: llama.cpp says much.
fn is_log_of_workers(name: &OsStr, value: &OsStr) -> bool {
    name == "HOB_LOG" && value.to_str().is_some_and(|filter| filter.contains("hob_engines"))
}

/// A running worker; killed if it is dropped.
#[derive(Debug)]
pub(super) struct Process {
    child: Child,
    stderr: Option<StderrTail>,
}

impl Process {
    /// Starts the worker and returns the server's end of the socket.
    pub(super) fn spawn(
        engine: &'static str,
        command: &WorkerCommand,
    ) -> io::Result<(Process, UnixStream)> {
        let (ours, theirs) = StdUnixStream::pair()?;
        ours.set_nonblocking(true)?;
        let mut child = Command::new(&command.program)
            .args(&command.args)
            // A worker runs native code on foreign files, and the environment may hold keys.
            .env_clear()
            .envs(worker_environment())
            .envs(command.envs.iter().map(|(name, value)| (name, value)))
            .stdin(Stdio::from(OwnedFd::from(theirs)))
            .stdout(Stdio::null())
            .stderr(Stdio::piped())
            // Ctrl-C in a terminal is for the server, which then ends its workers in good order.
            .process_group(0)
            .kill_on_drop(true)
            .spawn()?;
        let stderr = child.stderr.take().map(|stderr| StderrTail::follow(engine, stderr));
        Ok((Process { child, stderr }, UnixStream::from_std(ours)?))
    }

    pub(super) fn pid(&self) -> Option<u32> {
        self.child.id()
    }

    /// Waits for the end of a worker whose socket was closed, and kills it after `limit`.
    pub(super) async fn end(mut self, limit: Duration) -> ProcessEnd {
        let status = match timeout(limit, self.child.wait()).await {
            Ok(status) => status,
            Err(_) => self.kill().await,
        };
        let ended = match status {
            Ok(status) => describe(status),
            Err(error) => format!("how it ended is not known: {error}"),
        };
        let kept = match self.stderr {
            Some(stderr) => stderr.last_lines().await,
            None => KeptLines::default(),
        };
        let last_lines = kept.text();
        let how =
            if last_lines.is_empty() { ended } else { format!("{ended}; it wrote: {last_lines}") };
        ProcessEnd { how, fault: kept.fault }
    }

    async fn kill(&mut self) -> io::Result<ExitStatus> {
        self.child.start_kill()?;
        self.child.wait().await
    }
}

fn describe(status: ExitStatus) -> String {
    match (status.code(), status.signal()) {
        (Some(code), _) => format!("exit status {code}"),
        (None, Some(signal)) => format!("killed by signal {signal}{}", signal_name(signal)),
        (None, None) => "it ended".to_owned(),
    }
}

/// The signals that end native code after a fault, with the same numbers on Linux and macOS.
fn signal_name(signal: i32) -> &'static str {
    match signal {
        4 => " (SIGILL)",
        6 => " (SIGABRT)",
        8 => " (SIGFPE)",
        9 => " (SIGKILL)",
        11 => " (SIGSEGV)",
        15 => " (SIGTERM)",
        _ => "",
    }
}

/// Resident memory of a process, if the system reports it (Linux).
pub(super) fn resident_bytes(pid: u32) -> Option<u64> {
    let status = std::fs::read_to_string(format!("/proc/{pid}/status")).ok()?;
    let resident = status.lines().find_map(|line| line.strip_prefix("VmRSS:"))?;
    let kibibytes: u64 = resident.trim().strip_suffix("kB")?.trim().parse().ok()?;
    Some(kibibytes * 1024)
}

#[cfg(test)]
mod tests {
    use super::*;

    async fn ended(script: &str, limit: Duration) -> String {
        let command = WorkerCommand::new("/bin/sh").arg("-c").arg(script).env("HOB_TEST", "set");
        let (process, _socket) = Process::spawn("test", &command).expect("a shell");
        process.end(limit).await.how
    }

    #[tokio::test]
    async fn an_end_is_described_with_the_last_output_lines() {
        let long = Duration::from_secs(60);
        assert_eq!(ended("exit 3", long).await, "exit status 3");
        assert_eq!(ended("kill -9 $$", long).await, "killed by signal 9 (SIGKILL)");
        let said = ended("echo \"no $HOB_TEST\" >&2; echo ignored; exit 1", long).await;
        assert_eq!(said, "exit status 1; it wrote: no set");
    }

    #[tokio::test]
    async fn a_worker_that_does_not_end_is_killed() {
        let stubborn = ended("exec sleep 3600", Duration::ZERO).await;
        assert_eq!(stubborn, "killed by signal 9 (SIGKILL)");
    }

    #[test]
    fn a_worker_inherits_what_programs_need_and_no_keys() {
        let rows = [
            ("PATH", true),
            ("HOME", true),
            ("LC_ALL", true),
            ("CUDA_VISIBLE_DEVICES", true),
            ("MESA_VK_DEVICE_SELECT", true),
            ("OMP_NUM_THREADS", true),
            ("OPENAI_API_KEY", false),
            ("HF_TOKEN", false),
            ("HOB_API_KEY", false),
            ("AWS_SECRET_ACCESS_KEY", false),
            ("DATABASE_URL", false),
            // A key may have the prefix of an inherited group.
            ("AMD_API_KEY", false),
        ];
        for (name, expected) in rows {
            assert_eq!(is_inherited(OsStr::new(name)), expected, "{name}");
        }
    }

    #[test]
    fn a_log_filter_that_names_this_crate_is_for_workers_too() {
        let is_theirs =
            |name: &str, filter: &str| is_log_of_workers(name.as_ref(), filter.as_ref());
        assert!(is_theirs("HOB_LOG", "warn,hob_engines=debug"));
        assert!(!is_theirs("HOB_LOG", "info") && !is_theirs("HOB_KEY", "hob_engines"));
    }

    #[tokio::test]
    async fn a_worker_has_one_arena_and_the_order_of_nvidia_smi_unless_the_user_says_otherwise() {
        for (name, default) in [("MALLOC_ARENA_MAX", "1"), ("CUDA_DEVICE_ORDER", "PCI_BUS_ID")] {
            let chosen = std::env::vars_os().find(|(chosen, _)| chosen == name);
            let chosen =
                chosen.map_or(default.into(), |(_, value)| value.to_string_lossy().into_owned());
            let wrote = ended(&format!("echo ${name} >&2"), Duration::from_secs(60)).await;
            assert_eq!(wrote, format!("exit status 0; it wrote: {chosen}"));
        }
    }

    /// cargo sets CARGO_PKG_NAME for every test, and a worker must not inherit it.
    #[tokio::test]
    async fn other_variables_are_not_inherited() {
        assert!(std::env::vars_os().any(|(name, _)| name == "CARGO_PKG_NAME"));
        let said = ended("echo \"${CARGO_PKG_NAME-unset} $HOB_TEST\" >&2", Duration::from_secs(60));
        assert_eq!(said.await, "exit status 0; it wrote: unset set");
    }

    #[test]
    fn memory_of_this_process_is_known_on_linux() {
        let resident = resident_bytes(std::process::id());
        assert_eq!(resident.is_some_and(|bytes| bytes > 1 << 20), cfg!(target_os = "linux"));
        assert_eq!(resident_bytes(u32::MAX), None);
    }
}
