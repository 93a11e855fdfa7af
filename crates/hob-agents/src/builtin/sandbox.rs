//! The sandbox of commands: bubblewrap, with the workspace writable and everything else read-only or absent.
//! Whether it works is found out by running a command in it, because kernels and containers often forbid it.

use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::process::Stdio;
use std::time::Duration;

use tokio::process::Command;
use tokio::time::timeout;

const PROBE_LIMIT: Duration = Duration::from_secs(10);
/// What commands may read. Home folders, sockets and the rest of `/etc`, where keys and passwords are, are not there.
const READABLE: [&str; 18] = [
    "/usr",
    "/bin",
    "/lib",
    "/lib32",
    "/lib64",
    "/sbin",
    "/opt",
    "/etc/alternatives",
    "/etc/ca-certificates",
    "/etc/group",
    "/etc/ld.so.cache",
    "/etc/ld.so.conf",
    "/etc/ld.so.conf.d",
    "/etc/localtime",
    "/etc/nsswitch.conf",
    "/etc/passwd",
    "/etc/pki",
    "/etc/ssl/certs",
];

/// A way to run commands that can change nothing but the workspace.
#[derive(Clone, Debug)]
pub(super) struct Sandbox {
    bwrap: PathBuf,
    workspace: PathBuf,
}

/// Why commands cannot run.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub(super) enum SandboxError {
    #[error("there is no sandbox for commands: install bubblewrap (`bwrap`)")]
    Missing,
    #[error("the sandbox for commands does not work on this machine: {0}")]
    Broken(String),
}

impl Sandbox {
    /// A sandbox that works: `true` ran in it.
    ///
    /// # Errors
    /// bubblewrap is not installed, or this machine does not let it work.
    pub(super) async fn probe(
        bwrap: Option<PathBuf>,
        workspace: &Path,
    ) -> Result<Sandbox, SandboxError> {
        let bwrap = bwrap.ok_or(SandboxError::Missing)?;
        let workspace =
            workspace.canonicalize().map_err(|error| SandboxError::Broken(error.to_string()))?;
        let sandbox = Sandbox { bwrap, workspace };
        let mut probe = sandbox.command("true", Path::new(""));
        probe.stdin(Stdio::null()).kill_on_drop(true);
        match timeout(PROBE_LIMIT, probe.output()).await {
            Ok(Ok(done)) if done.status.success() => Ok(sandbox),
            Ok(Ok(done)) => {
                Err(SandboxError::Broken(String::from_utf8_lossy(&done.stderr).trim().to_owned()))
            }
            Ok(Err(error)) => Err(SandboxError::Broken(error.to_string())),
            Err(_) => Err(SandboxError::Broken(format!(
                "it did not answer within {} s",
                PROBE_LIMIT.as_secs()
            ))),
        }
    }

    /// The command in a shell, in a folder of the workspace, without network, keys and other processes.
    pub(super) fn command(&self, text: &str, folder: &Path) -> Command {
        let mut command = Command::new(&self.bwrap);
        command.env_clear().args(self.arguments(folder)).args(["/bin/sh", "-c", text]);
        command
    }

    fn arguments(&self, folder: &Path) -> Vec<OsString> {
        let mut arguments: Vec<OsString> = Vec::new();
        let mut add = |words: &[&std::ffi::OsStr]| {
            arguments.extend(words.iter().map(|word| (*word).to_owned()))
        };
        let os = std::ffi::OsStr::new;
        add(&["--unshare-all", "--die-with-parent", "--new-session", "--cap-drop", "ALL"].map(os));
        for path in READABLE {
            add(&["--ro-bind-try", path, path].map(os));
        }
        add(&["--proc", "/proc", "--dev", "/dev", "--tmpfs", "/tmp"].map(os));
        let place = self.workspace.as_os_str();
        add(&[os("--bind"), place, place]);
        for protected in ["teams", "hob.toml"] {
            let path = self.workspace.join(protected);
            add(&[os("--ro-bind-try"), path.as_os_str(), path.as_os_str()]);
        }
        let folder = self.workspace.join(folder);
        add(&[os("--chdir"), folder.as_os_str()]);
        add(&[
            "--setenv",
            "PATH",
            "/usr/local/bin:/usr/bin:/bin:/usr/sbin:/sbin",
            "--setenv",
            "HOME",
            "/tmp",
        ]
        .map(os));
        add(&["--setenv", "LANG", "C.UTF-8", "--"].map(os));
        arguments
    }
}
