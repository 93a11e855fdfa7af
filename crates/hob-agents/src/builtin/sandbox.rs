//! The sandbox of commands: the workspace is writable unless the team file says otherwise, and everything else is
//! read-only or absent. hob tries each kind of sandbox with a command, because kernels and containers often forbid it.

use std::ffi::OsString;
use std::fs::File;
use std::io::Write as _;
use std::os::fd::AsRawFd as _;
use std::path::{Path, PathBuf};
use std::process::Stdio;
use std::time::Duration;

use tempfile::TempDir;
use tokio::process::Command;
use tokio::time::timeout;

use super::container_sandbox::Container;
use super::limits;
use super::process::ProcessLimits;
use super::protected::{PROTECTED, guarded};
use super::sandbox_access::{SandboxAccess, readable};
use crate::team::{SandboxMode, SandboxNetwork};

/// How long the command that tries a sandbox may take.
const PROBE_LIMIT: Duration = Duration::from_secs(10);
/// The file descriptor from which bubblewrap reads its seccomp filter.
const FILTER_FD: &str = "9";
/// A shell script that opens its first argument as [`FILTER_FD`] and then runs its other arguments as a command. hob
/// cannot pass on an open file, because Rust closes all files in a child. Before this script, the shell sets the limits,
/// which bubblewrap cannot do.
const OPEN_FILTER: &str = r#"exec 9<"$1" && shift && exec "$@""#;
const PATH: &str = "/usr/local/bin:/usr/bin:/bin:/usr/sbin:/sbin";
const LANG: &str = "C.UTF-8";
const NO_DANGER: &str = "the team file turns the sandbox off, which needs `--allow-danger` of `hob serve` or `hob team`";

/// The programs that can make a sandbox.
#[derive(Clone, Debug, Default)]
pub struct SandboxPrograms {
    /// bubblewrap.
    pub bwrap: Option<PathBuf>,
    /// hob's own program with the arguments that make a sandbox of Landlock by [`crate::builtin::restrict_and_run`]. The
    /// sandbox adds `--read-only` or `--network` if it must, and `--workspace FOLDER --temporary FOLDER -- COMMAND`.
    pub restrict: Vec<OsString>,
    /// podman or docker, for teams that name an image.
    pub container_engine: Option<PathBuf>,
    pub image: Option<String>,
    /// What the team file lets commands write and reach.
    pub access: SandboxAccess,
    /// The environment of commands for which the team file turns the sandbox off. `None`: they are refused.
    pub unsandboxed: Option<Vec<(&'static str, OsString)>>,
}

impl SandboxPrograms {
    /// The name of the first sandbox in which the command `true` ran, with this folder as its workspace.
    ///
    /// # Errors
    /// No sandbox works; a sentence says why.
    pub async fn working(&self, workspace: &Path) -> Result<&'static str, String> {
        let sandbox = Sandbox::probe(self, workspace).await;
        sandbox.map(|sandbox| sandbox.kind.name()).map_err(|error| error.to_string())
    }
}

/// A way to run commands that can change nothing but the workspace.
#[derive(Debug)]
pub(super) struct Sandbox {
    kind: SandboxKind,
    access: SandboxAccess,
    workspace: PathBuf,
}

#[derive(Debug)]
enum SandboxKind {
    Bubblewrap {
        bwrap: PathBuf,
        /// The seccomp filter. The file has no name, so that no command can change it.
        filter: File,
    },
    /// hob's own program, which supervises the command, with its arguments; and a folder for the temporary files and the
    /// home of commands. The folder is deleted with this value.
    Landlock(Vec<OsString>, TempDir),
    Container {
        engine: PathBuf,
        image: String,
    },
    /// There is no sandbox. Commands have this environment.
    Unsandboxed(Vec<(&'static str, OsString)>),
}

impl SandboxKind {
    fn name(&self) -> &'static str {
        match self {
            SandboxKind::Bubblewrap { .. } => "bubblewrap",
            SandboxKind::Landlock(..) => "Landlock with seccomp",
            SandboxKind::Container { .. } => "the container",
            SandboxKind::Unsandboxed(_) => "a shell without a sandbox",
        }
    }
}

/// Why commands cannot run, for each sandbox that was tried.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("there is no sandbox for commands: {}", .0.join("; "))]
pub(super) struct SandboxError(Vec<String>);

/// A command in a sandbox, ready to be started.
#[derive(Debug)]
pub(super) struct SandboxedCommand {
    pub(super) command: Command,
    pub(super) process_limits: ProcessLimits,
    /// The container of the command. Dropping it removes the container.
    pub(super) container: Option<Container>,
}

impl Sandbox {
    /// The first sandbox in which the command `true` ran.
    ///
    /// # Errors
    /// No sandbox works on this machine.
    pub(super) async fn probe(
        programs: &SandboxPrograms,
        workspace: &Path,
    ) -> Result<Sandbox, SandboxError> {
        let mut reasons = Vec::new();
        for choice in SandboxChoice::all_of(programs) {
            let tried = match choice.make(programs, workspace) {
                Ok(kind) => Sandbox::tried(kind, programs.access, workspace).await,
                Err(reason) => Err(reason),
            };
            match tried {
                Ok(sandbox) => return Ok(sandbox),
                Err(reason) => reasons.push(reason),
            }
        }
        Err(SandboxError(reasons))
    }

    /// The sandbox, if the command `true` runs in it; otherwise the reason.
    async fn tried(
        kind: SandboxKind,
        access: SandboxAccess,
        workspace: &Path,
    ) -> Result<Sandbox, String> {
        let name = kind.name();
        let broken = |reason: &dyn std::fmt::Display| format!("{name} does not work: {reason}");
        let workspace = workspace.canonicalize().map_err(|error| broken(&error))?;
        let sandbox = Sandbox { kind, access, workspace };
        let mut probe = sandbox.command("true", Path::new(""));
        probe.command.stdin(Stdio::null()).kill_on_drop(true);
        match timeout(PROBE_LIMIT, probe.command.output()).await {
            Ok(Ok(done)) if done.status.success() => Ok(sandbox),
            Ok(Ok(done)) => Err(broken(&String::from_utf8_lossy(&done.stderr).trim())),
            Ok(Err(error)) => Err(broken(&error)),
            Err(_) => Err(broken(&format_args!("no answer within {} s", PROBE_LIMIT.as_secs()))),
        }
    }

    /// Why no command can run now. The user may have added files to the workspace since the last command.
    pub(super) fn refusal(&self) -> Option<String> {
        match self.kind {
            SandboxKind::Landlock(..) => unprotected(&self.workspace, self.access),
            SandboxKind::Bubblewrap { .. }
            | SandboxKind::Container { .. }
            | SandboxKind::Unsandboxed(_) => None,
        }
    }

    /// A command that a shell runs in a folder of the workspace.
    pub(super) fn command(&self, text: &str, folder: &Path) -> SandboxedCommand {
        let shell = ["/bin/sh", "-c", text];
        let (command, container) = match &self.kind {
            SandboxKind::Bubblewrap { bwrap, filter } => {
                // Each command opens the filter again, because bubblewrap must read it from its beginning.
                let filter = format!("/proc/{}/fd/{}", std::process::id(), filter.as_raw_fd());
                let script = format!("{}; {OPEN_FILTER}", limits::shell_limits());
                let mut command = Command::new("/bin/sh");
                command.env_clear().args(["-c", &script, "sh", &filter]).arg(bwrap);
                command.args(self.bubblewrap_arguments(folder)).args(shell);
                (command, None)
            }
            SandboxKind::Container { engine, image } => {
                let container = Container::new(engine);
                let mut command = container.run(image, &self.workspace, folder, self.access);
                command.args(shell);
                (command, Some(container))
            }
            SandboxKind::Landlock(restrict, temporary) => {
                let temporary = temporary.path();
                let mut command = Command::new(&restrict[0]);
                command.args(&restrict[1..]);
                if self.access.mode == SandboxMode::ReadOnly {
                    command.arg("--read-only");
                }
                if self.access.network == SandboxNetwork::On {
                    command.arg("--network");
                }
                command.arg("--workspace").arg(&self.workspace);
                command.arg("--temporary").arg(temporary).arg("--").args(shell);
                command.current_dir(self.workspace.join(folder)).env_clear();
                command.env("PATH", PATH).env("LANG", LANG);
                command.env("HOME", temporary).env("TMPDIR", temporary);
                (command, None)
            }
            SandboxKind::Unsandboxed(environment) => {
                let mut command = Command::new(shell[0]);
                command.args(&shell[1..]).current_dir(self.workspace.join(folder));
                command.env_clear().env("LANG", LANG).envs(environment.iter().cloned());
                (command, None)
            }
        };
        let process_limits = match self.kind {
            SandboxKind::Bubblewrap { .. } | SandboxKind::Container { .. } => {
                ProcessLimits::Limited
            }
            SandboxKind::Landlock(..) => ProcessLimits::Supervised,
            SandboxKind::Unsandboxed(_) => ProcessLimits::Free,
        };
        SandboxedCommand { command, process_limits, container }
    }

    fn bubblewrap_arguments(&self, folder: &Path) -> Vec<OsString> {
        let mut arguments: Vec<OsString> = Vec::new();
        let mut add = |words: &[&std::ffi::OsStr]| {
            arguments.extend(words.iter().map(|word| (*word).to_owned()))
        };
        let os = std::ffi::OsStr::new;
        add(&["--unshare-all", "--die-with-parent", "--new-session", "--cap-drop", "ALL"].map(os));
        add(&["--seccomp", FILTER_FD].map(os));
        if self.access.network == SandboxNetwork::On {
            add(&[os("--share-net")]);
        }
        for path in readable(self.access) {
            add(&["--ro-bind-try", path, path].map(os));
        }
        add(&["--proc", "/proc", "--dev", "/dev", "--tmpfs", "/tmp"].map(os));
        let place = self.workspace.as_os_str();
        let bind = match self.access.mode {
            SandboxMode::ReadOnly => "--ro-bind",
            SandboxMode::WorkspaceWrite | SandboxMode::DangerFullAccess => "--bind",
        };
        add(&[os(bind), place, place]);
        for path in guarded(&self.workspace) {
            add(&[os("--ro-bind-try"), path.as_os_str(), path.as_os_str()]);
        }
        let folder = self.workspace.join(folder);
        add(&[os("--chdir"), folder.as_os_str()]);
        add(&[
            "--setenv", "PATH", PATH, "--setenv", "HOME", "/tmp", "--setenv", "LANG", LANG, "--",
        ]
        .map(os));
        arguments
    }
}

/// A kind of sandbox to try. hob makes its files only if no kind before it works.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum SandboxChoice<'a> {
    Unsandboxed,
    /// A container of this image.
    Container(&'a str),
    Bubblewrap,
    Landlock,
}

impl SandboxChoice<'_> {
    /// The kinds that this team may use, in the order in which hob tries them.
    fn all_of(programs: &SandboxPrograms) -> Vec<SandboxChoice<'_>> {
        match &programs.image {
            _ if programs.access.mode == SandboxMode::DangerFullAccess => {
                vec![SandboxChoice::Unsandboxed]
            }
            Some(image) => vec![SandboxChoice::Container(image)],
            None => vec![SandboxChoice::Bubblewrap, SandboxChoice::Landlock],
        }
    }

    /// Makes what the sandbox needs.
    ///
    /// # Errors
    /// The reason why it cannot be made.
    fn make(self, programs: &SandboxPrograms, workspace: &Path) -> Result<SandboxKind, String> {
        match self {
            SandboxChoice::Unsandboxed => {
                let unsandboxed = programs.unsandboxed.clone().map(SandboxKind::Unsandboxed);
                unsandboxed.ok_or_else(|| NO_DANGER.to_owned())
            }
            SandboxChoice::Container(image) => {
                let engine = programs.container_engine.clone();
                let engine =
                    engine.ok_or_else(|| format!("the image '{image}' needs podman or docker"))?;
                Ok(SandboxKind::Container { engine, image: image.to_owned() })
            }
            SandboxChoice::Bubblewrap => match &programs.bwrap {
                Some(bwrap) => bubblewrap(bwrap, programs.access.network)
                    .map_err(|reason| format!("bubblewrap does not work: {reason}")),
                None => Err("bubblewrap (`bwrap`) is not installed".to_owned()),
            },
            SandboxChoice::Landlock => landlock(programs, workspace),
        }
    }
}

fn bubblewrap(bwrap: &Path, network: SandboxNetwork) -> Result<SandboxKind, String> {
    // Only Linux has bubblewrap.
    #[cfg(not(target_os = "linux"))]
    let (_, bytes): (SandboxNetwork, Vec<u8>) = (network, Vec::new());
    #[cfg(target_os = "linux")]
    let bytes = super::restrict::filter_bytes(network)?;
    let made = tempfile::tempfile().and_then(|mut filter| {
        filter.write_all(&bytes)?;
        Ok(filter)
    });
    let filter = made.map_err(|error| error.to_string())?;
    Ok(SandboxKind::Bubblewrap { bwrap: bwrap.to_owned(), filter })
}

fn landlock(programs: &SandboxPrograms, workspace: &Path) -> Result<SandboxKind, String> {
    if !cfg!(target_os = "linux") {
        return Err("Landlock works only on Linux".to_owned());
    }
    if programs.restrict.is_empty() {
        return Err("Landlock needs the path of hob's program, and hob cannot find it".to_owned());
    }
    if let Some(reason) = unprotected(workspace, programs.access) {
        return Err(reason);
    }
    let temporary = tempfile::tempdir().map_err(|error| error.to_string())?;
    Ok(SandboxKind::Landlock(programs.restrict.clone(), temporary))
}

/// Why Landlock would not protect this workspace. It gives rights to whole folders, so in a writable workspace it cannot
/// protect a single file.
fn unprotected(workspace: &Path, access: SandboxAccess) -> Option<String> {
    let mut kept = PROTECTED.iter().filter(|_| access.mode != SandboxMode::ReadOnly);
    let kept = kept.find(|name| workspace.join(name).exists())?;
    Some(format!("Landlock cannot protect '{kept}' in the workspace; choose another workspace"))
}
