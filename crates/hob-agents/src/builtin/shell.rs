//! `shell`: a command of the model, in the sandbox. Bounded in time and output.
//! When the call is dropped, the sandbox dies, and every process in it.

use std::path::{Component, Path, PathBuf};
use std::time::Duration;

use futures::FutureExt;
use futures::future::BoxFuture;
use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::Value;
use tokio::sync::OnceCell;

use super::container_sandbox::Container;
use super::limits::{self, SECONDS_MAX};
use super::protected::ProtectedWatch;
use super::sandbox::{Sandbox, SandboxError, SandboxPrograms, SandboxedCommand};
use super::{process, run_checked, spec_of};
use crate::team::{SandboxMode, SandboxNetwork};
use crate::tool::{AgentTool, CommandArgument, ToolClass, ToolOutput, ToolSpec};

#[derive(Debug)]
pub struct Shell {
    spec: ToolSpec,
    programs: SandboxPrograms,
    workspace: PathBuf,
    /// Probed by the first command: most runs have none.
    sandbox: OnceCell<Result<Sandbox, SandboxError>>,
}

#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct ShellArguments {
    /// A command for `sh`
    command: String,
    /// A folder of the workspace, relative to it
    #[serde(default)]
    cwd: Option<String>,
    #[serde(default)]
    #[schemars(range(min = 1, max = 120))]
    timeout_s: Option<u64>,
}

impl Shell {
    /// Where no sandbox works, each call is refused with the reason.
    pub fn new(programs: SandboxPrograms, workspace: &Path) -> Shell {
        let network = match programs.access.network {
            SandboxNetwork::Off => "no network",
            SandboxNetwork::On => "the network of this machine",
        };
        let in_sandbox = |rights: &str| {
            let limits = format!("{} {}", limits::sentence(), limits::sandbox_sentence());
            let text =
                format!("Run a command in a sandbox: it can {rights}, and has {network}. {limits}");
            (ToolClass::Execute, text)
        };
        let (class, description) = match programs.access.mode {
            SandboxMode::ReadOnly => in_sandbox("read files of the workspace"),
            SandboxMode::WorkspaceWrite => in_sandbox("change files of the workspace only"),
            SandboxMode::DangerFullAccess => {
                let text = "Run a command on this machine, without a sandbox.";
                (ToolClass::System, format!("{text} {}", limits::sentence()))
            }
        };
        let command = Some(CommandArgument::Shell("command"));
        // A command with a network reads what others wrote.
        let has_network = programs.access.network == SandboxNetwork::On;
        let is_foreign = has_network || class == ToolClass::System;
        let spec = spec_of::<ShellArguments>("shell", &description, class);
        let spec = ToolSpec { command, is_foreign, ..spec };
        Shell { spec, programs, workspace: workspace.to_owned(), sandbox: OnceCell::new() }
    }

    async fn run(&self, asked: ShellArguments) -> Result<ToolOutput, String> {
        let probe = || Sandbox::probe(&self.programs, &self.workspace);
        let sandbox =
            self.sandbox.get_or_init(probe).await.as_ref().map_err(ToString::to_string)?;
        if let Some(reason) = sandbox.refusal() {
            return Err(reason);
        }
        let folder = asked.cwd.unwrap_or_default();
        let is_plain = |part: Component| matches!(part, Component::Normal(_) | Component::CurDir);
        if !Path::new(&folder).components().all(is_plain) {
            return Err("cwd must be relative to the workspace, without '..'".to_owned());
        }
        let limit = Duration::from_secs(asked.timeout_s.unwrap_or(SECONDS_MAX).min(SECONDS_MAX));
        let watch = Some(ProtectedWatch::begin(&self.workspace));
        let SandboxedCommand { mut command, process_limits, container } =
            sandbox.command(&asked.command, Path::new(&folder));
        let at_work = AtWork { container, watch };
        let output =
            process::run_limited(&mut command, process_limits, &self.workspace, limit).await;
        let made = at_work.end().await;
        if made.is_empty() { output } else { Err(made.join("; ")) }
    }
}

/// A command that runs: its container, and the watch over protected files, which may end only after the container.
struct AtWork {
    container: Option<Container>,
    watch: Option<ProtectedWatch>,
}

impl AtWork {
    /// Waits for the container's end, and says what commands made of protected files.
    async fn end(mut self) -> Vec<String> {
        let (removal, watch) = (self.container.take().map(Container::remove), self.watch.take());
        let looked = tokio::task::spawn_blocking(move || {
            // What still runs could make the files again.
            if let Some(removal) = removal {
                removal.wait();
            }
            watch.map(ProtectedWatch::end).unwrap_or_default()
        });
        looked.await.unwrap_or_default()
    }
}

/// For a call that is dropped while its command runs: a thread waits for the container, and then looks at the files.
impl Drop for AtWork {
    fn drop(&mut self) {
        if let Some(container) = self.container.take() {
            let (removal, watch) = (container.remove(), self.watch.take());
            std::thread::spawn(move || {
                removal.wait();
                drop(watch);
            });
        }
    }
}

impl AgentTool for Shell {
    fn spec(&self) -> &ToolSpec {
        &self.spec
    }

    fn call(&self, value: Value) -> BoxFuture<'_, ToolOutput> {
        run_checked(value, |asked| self.run(asked)).boxed()
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::builtin::SandboxAccess;

    #[tokio::test]
    async fn without_a_sandbox_commands_are_refused_with_the_reason() {
        let shell = Shell::new(SandboxPrograms::default(), Path::new("."));
        let output = shell.call(json!({ "command": "true" })).await;
        assert!(output.is_error && output.text.contains("bubblewrap"), "{}", output.text);
        let reason = match cfg!(target_os = "linux") {
            true => "Landlock needs the path of hob's program",
            false => "Landlock works only on Linux",
        };
        assert!(output.text.contains(reason), "{}", output.text);
        let access =
            SandboxAccess { mode: SandboxMode::DangerFullAccess, ..SandboxAccess::default() };
        let programs = SandboxPrograms { access, ..SandboxPrograms::default() };
        let shell = Shell::new(programs, Path::new("."));
        let output = shell.call(json!({ "command": "true" })).await;
        assert!(output.is_error && output.text.contains("--allow-danger"), "{}", output.text);
        assert_eq!(shell.spec().class, ToolClass::System);
    }

    /// Before each command, hob looks for files that Landlock cannot protect: the user may have added some.
    #[cfg(target_os = "linux")]
    #[tokio::test]
    async fn landlock_runs_no_command_once_the_workspace_has_a_team_file() {
        let folder = tempfile::tempdir().expect("a folder");
        let (restrict, workspace) = (folder.path().join("restrict"), folder.path().join("work"));
        std::fs::create_dir(&workspace).expect("a folder");
        let script = "#!/bin/sh\nwhile [ \"$1\" != -- ]; do shift; done\nshift\nexec \"$@\"\n";
        crate::executable::write_executable(&restrict, script);
        let programs =
            SandboxPrograms { restrict: vec![restrict.into()], ..SandboxPrograms::default() };
        let shell = Shell::new(programs, &workspace);
        let run = async || shell.call(json!({ "command": "echo hello" })).await;
        assert_eq!(run().await, ToolOutput::ok("hello\n"));
        std::fs::create_dir(workspace.join("teams")).expect("a folder");
        let output = run().await;
        assert!(output.is_error && output.text.contains("cannot protect 'teams'"), "{output:?}");
        std::fs::remove_dir(workspace.join("teams")).expect("deleted");
        assert_eq!(run().await, ToolOutput::ok("hello\n"));
    }

    /// bubblewrap, where the machine lets it work.
    #[cfg(target_os = "linux")]
    async fn bubblewrap() -> Option<SandboxPrograms> {
        let bwrap = PathBuf::from("/usr/bin/bwrap");
        // If the machine allows such a sandbox, it must allow ours: else nothing here would be tested.
        let mounts = "--unshare-all --ro-bind / / --proc /proc --dev /dev --tmpfs /tmp true";
        let bare = tokio::process::Command::new(&bwrap).args(mounts.split(' ')).status().await;
        if !bare.is_ok_and(|status| status.success()) {
            println!("not tested: this machine has no bubblewrap, or does not let it work");
            return None;
        }
        Some(SandboxPrograms { bwrap: Some(bwrap), ..SandboxPrograms::default() })
    }

    #[cfg(target_os = "linux")]
    #[tokio::test]
    async fn a_command_reads_a_workspace_that_it_may_not_change() {
        let folder = tempfile::tempdir().expect("a folder");
        std::fs::write(folder.path().join("a.txt"), "mine").expect("a file");
        let Some(programs) = bubblewrap().await else { return };
        let access = SandboxAccess { mode: SandboxMode::ReadOnly, ..SandboxAccess::default() };
        let shell = Shell::new(SandboxPrograms { access, ..programs }, folder.path());
        let read = shell.call(json!({ "command": "cat a.txt && touch /tmp/b" })).await;
        assert_eq!(read, ToolOutput::ok("mine"));
        let written = shell.call(json!({ "command": "echo x > a.txt" })).await;
        assert!(written.is_error && written.text.contains("Read-only"), "{}", written.text);
    }

    #[cfg(target_os = "linux")]
    #[tokio::test]
    async fn a_command_has_the_network_of_the_machine_where_the_team_wants_it() {
        let folder = tempfile::tempdir().expect("a folder");
        let Some(programs) = bubblewrap().await else { return };
        let listener = std::net::TcpListener::bind("127.0.0.1:0").expect("a port");
        let port = listener.local_addr().expect("an address").port();
        let send = format!("/bin/bash -c 'echo x > /dev/tcp/127.0.0.1/{port}'");
        for (network, is_refused) in [(SandboxNetwork::Off, true), (SandboxNetwork::On, false)] {
            let access = SandboxAccess { network, ..SandboxAccess::default() };
            let programs = SandboxPrograms { access, ..programs.clone() };
            let shell = Shell::new(programs, folder.path());
            let sent = shell.call(json!({ "command": send })).await;
            assert_eq!((sent.is_error, shell.spec().is_foreign), (is_refused, !is_refused));
        }
    }

    #[cfg(target_os = "linux")]
    #[tokio::test]
    async fn a_command_changes_neither_protected_links_nor_their_targets() {
        use std::os::unix::fs::symlink;

        let folder = tempfile::tempdir().expect("a folder");
        let place = |name: &str| folder.path().join(name);
        let Some(programs) = bubblewrap().await else { return };
        for name in ["real", "conf"] {
            std::fs::create_dir(place(name)).expect("a folder");
        }
        std::fs::write(place("conf/h.toml"), "mine").expect("a file");
        symlink(place("real"), place("teams")).expect("a link");
        symlink("conf/h.toml", place("hob.toml")).expect("a link");
        let shell = Shell::new(programs, folder.path());
        let run =
            async |command: &str| shell.call(json!({ "command": command, "timeout_s": 20 })).await;
        assert_eq!(run("cat hob.toml && echo x > conf/new").await, ToolOutput::ok("mine"));
        for command in [
            "echo x > real/a.toml",
            "echo x > teams/a.toml",
            "echo x > conf/h.toml",
            "rm teams; mkdir teams; echo x > teams/a.toml",
            "rm teams",
            "ln -sfn conf teams",
            "rm hob.toml; echo x > hob.toml",
        ] {
            let output = run(command).await;
            assert!(output.is_error, "{command}: {}", output.text);
            assert_eq!(place("teams").read_link().expect("a link"), place("real"), "{command}");
            assert_eq!(std::fs::read_dir(place("real")).expect("a folder").count(), 0, "{command}");
            let text = std::fs::read_to_string(place("hob.toml")).expect("a file");
            assert_eq!(text, "mine", "{command}");
        }
        let output = run("mv conf other; mkdir conf; echo x > conf/h.toml").await;
        assert!(output.is_error, "{}", output.text);
        assert!(!place("hob.toml").exists(), "the link leads to a file of the command");
        assert_eq!(std::fs::read_to_string(place("other/h.toml")).expect("a file"), "mine");
    }

    /// The limits are in force. `team_sandbox.rs` tests what happens at each of them, in Landlock.
    #[cfg(target_os = "linux")]
    #[tokio::test]
    async fn a_command_in_bubblewrap_has_the_limits() {
        let folder = tempfile::tempdir().expect("a folder");
        let Some(programs) = bubblewrap().await else { return };
        let shell = Shell::new(programs, folder.path());
        let limits = "ulimit -c; ulimit -S -t; ulimit -H -t; ulimit -f; ulimit -d";
        let output = shell.call(json!({ "command": limits })).await;
        assert_eq!(output, ToolOutput::ok("0\n600\n605\n1048576\n4194304\n"));
    }

    /// Checked from inside the sandbox.
    #[cfg(target_os = "linux")]
    #[tokio::test]
    async fn a_command_reaches_the_workspace_alone() {
        let folder = tempfile::tempdir().expect("a folder");
        let Some(programs) = bubblewrap().await else { return };
        let shell = Shell::new(programs, folder.path());
        let run =
            async |command: &str| shell.call(json!({ "command": command, "timeout_s": 20 })).await;
        assert_eq!(run("echo hello > a.txt && cat a.txt").await, ToolOutput::ok("hello\n"));
        assert_eq!(
            std::fs::read_to_string(folder.path().join("a.txt")).expect("a file"),
            "hello\n"
        );
        // A network of its own has sockets. A socket to the kernel's ciphers is refused by the filter alone.
        let sockets = "command -v perl > /dev/null || { echo -n Operation not permitted; exit; }
            perl -e 'socket(my $s, 2, 1, 0) or die; socket(my $t, 38, 1, 0) and die; print $!'";
        assert_eq!(run(sockets).await, ToolOutput::ok("Operation not permitted"));
        for command in [
            "touch /usr/x",
            "test -e /root",
            "test -e /home",
            "cat /etc/shadow",
            "env | grep -q CARGO",
            // Two lines of headings, and the loopback device.
            "test $(wc -l < /proc/net/dev) -gt 3",
            // The shell and its own processes.
            "test $(ls -d /proc/[0-9]* | wc -l) -gt 5",
        ] {
            let output = run(command).await;
            assert!(output.is_error, "{command}: {}", output.text);
        }
        for command in
            ["mkdir teams; echo x > teams/a.toml", "echo x > hob.toml", "ln -s a.txt hob.toml"]
        {
            let output = run(command).await;
            assert!(output.is_error && output.text.contains(".from-a-command-"), "{}", output.text);
            for name in ["teams", "hob.toml"] {
                let left = folder.path().join(name).symlink_metadata();
                assert!(left.is_err(), "{command}: {name}");
            }
        }
        let outside = folder.path().with_extension("outside");
        run(&format!("touch {}", outside.display())).await;
        assert!(!outside.exists(), "the sandbox has a /tmp of its own");
        let output = shell.call(json!({ "command": "sleep 30", "timeout_s": 1 })).await;
        assert!(output.is_error && output.text.contains("after 1 s"), "{}", output.text);
        assert!(shell.call(json!({ "command": "ls", "cwd": "../.." })).await.is_error);
    }
}
