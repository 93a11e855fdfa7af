//! `shell`: a command of the model, in the sandbox. Bounded in time and output.
//! When the call is dropped, the sandbox dies, and every process in it.

use std::path::{Component, Path, PathBuf};
use std::time::Duration;

use fs_err as fs;
use futures::FutureExt;
use futures::future::BoxFuture;
use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::Value;
use tokio::sync::OnceCell;

use super::files::PROTECTED;
use super::sandbox::{Sandbox, SandboxError, SandboxPrograms};
use super::{called, process, spec_of};
use crate::tool::{AgentTool, CommandArgument, ToolClass, ToolOutput, ToolSpec};

const SECONDS_MAX: u64 = 120;

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
        let description = "Run a command in a sandbox: it can change files of the workspace only, and has no network.";
        let spec = spec_of::<ShellArguments>("shell", description, ToolClass::Execute);
        let spec = ToolSpec { command: Some(CommandArgument::Shell("command")), ..spec };
        Shell { spec, programs, workspace: workspace.to_owned(), sandbox: OnceCell::new() }
    }

    async fn run(&self, asked: ShellArguments) -> Result<ToolOutput, String> {
        let probe = || Sandbox::probe(&self.programs, &self.workspace);
        let sandbox =
            self.sandbox.get_or_init(probe).await.as_ref().map_err(ToString::to_string)?;
        let folder = asked.cwd.unwrap_or_default();
        let is_plain = |part: Component| matches!(part, Component::Normal(_) | Component::CurDir);
        if !Path::new(&folder).components().all(is_plain) {
            return Err("cwd must be relative to the workspace, without '..'".to_owned());
        }
        let limit = Duration::from_secs(asked.timeout_s.unwrap_or(SECONDS_MAX).min(SECONDS_MAX));
        // Declared first, so that it is dropped after the command: what still runs could make the files again.
        let missing = MissingFiles::of(&self.workspace);
        let mut command = sandbox.command(&asked.command, Path::new(&folder));
        let output = process::run(&mut command.command, limit).await;
        match missing.remove_new() {
            Some(name) => Err(format!(
                "'{name}' decides what agents may do, so what the command made of it was deleted"
            )),
            None => output,
        }
    }
}

/// Protected files that the workspace does not have. A sandbox keeps a command from changing files that are there, and not
/// from making them.
struct MissingFiles {
    paths: Vec<PathBuf>,
}

impl MissingFiles {
    fn of(workspace: &Path) -> MissingFiles {
        let paths = PROTECTED.iter().map(|name| workspace.join(name));
        MissingFiles { paths: paths.filter(|path| !is_there(path)).collect() }
    }

    /// Deletes those that are there now, and names the last one.
    fn remove_new(&self) -> Option<String> {
        let mut removed = None;
        for path in self.paths.iter().filter(|path| is_there(path)) {
            let is_folder = path.symlink_metadata().is_ok_and(|found| found.is_dir());
            // What cannot be deleted is named all the same.
            let _left = if is_folder { fs::remove_dir_all(path) } else { fs::remove_file(path) };
            removed = path.file_name().map(|name| name.to_string_lossy().into_owned());
        }
        removed
    }
}

/// The call was dropped while its command ran.
impl Drop for MissingFiles {
    fn drop(&mut self) {
        self.remove_new();
    }
}

/// A link to nothing is there, too.
fn is_there(path: &Path) -> bool {
    path.symlink_metadata().is_ok()
}

impl AgentTool for Shell {
    fn spec(&self) -> &ToolSpec {
        &self.spec
    }

    fn call(&self, value: Value) -> BoxFuture<'_, ToolOutput> {
        called(value, |asked| self.run(asked)).boxed()
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;
    use tokio::process::Command;

    use super::*;

    #[tokio::test]
    async fn without_a_sandbox_commands_are_refused_with_the_reason() {
        let shell = Shell::new(SandboxPrograms::default(), Path::new("."));
        let output = shell.call(json!({ "command": "true" })).await;
        assert!(output.is_error && output.text.contains("bubblewrap"), "{}", output.text);
    }

    /// Where the machine lets a sandbox work. What it must keep out is checked from inside it.
    #[cfg(target_os = "linux")]
    #[tokio::test]
    async fn a_command_reaches_the_workspace_alone() {
        let folder = tempfile::tempdir().expect("a folder");
        let bwrap = PathBuf::from("/usr/bin/bwrap");
        // If the machine allows such a sandbox, it must allow ours: else nothing here would be tested.
        let mounts = "--unshare-all --ro-bind / / --proc /proc --dev /dev --tmpfs /tmp true";
        let bare = Command::new(&bwrap).args(mounts.split(' ')).status().await;
        if !bare.is_ok_and(|status| status.success()) {
            println!("not tested: this machine has no bubblewrap, or does not let it work");
            return;
        }
        let programs = SandboxPrograms { bwrap: Some(bwrap), ..SandboxPrograms::default() };
        let shell = Shell::new(programs, folder.path());
        let run =
            async |command: &str| shell.call(json!({ "command": command, "timeout_s": 20 })).await;
        assert_eq!(run("echo hello > a.txt && cat a.txt").await, ToolOutput::ok("hello\n"));
        assert_eq!(
            std::fs::read_to_string(folder.path().join("a.txt")).expect("a file"),
            "hello\n"
        );
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
            assert!(output.is_error && output.text.contains("was deleted"), "{}", output.text);
            assert!(!is_there(&folder.path().join("teams")), "{command}");
            assert!(!is_there(&folder.path().join("hob.toml")), "{command}");
        }
        let outside = folder.path().with_extension("outside");
        run(&format!("touch {}", outside.display())).await;
        assert!(!outside.exists(), "the sandbox has a /tmp of its own");
        let output = shell.call(json!({ "command": "sleep 30", "timeout_s": 1 })).await;
        assert!(output.is_error && output.text.contains("after 1 s"), "{}", output.text);
        assert!(shell.call(json!({ "command": "ls", "cwd": "../.." })).await.is_error);
    }
}
