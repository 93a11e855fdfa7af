//! `shell`: a command of the model, in the sandbox. Bounded in time and output.
//! When the call is dropped, the sandbox dies, and every process in it.

use std::path::{Component, Path, PathBuf};
use std::process::Stdio;
use std::time::Duration;

use futures::FutureExt;
use futures::future::BoxFuture;
use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::Value;
use tokio::io::{AsyncRead, AsyncReadExt as _};
use tokio::sync::OnceCell;
use tokio::time::timeout;

use super::sandbox::{Sandbox, SandboxError};
use super::{arguments, spec_of};
use crate::tool::{AgentTool, ToolClass, ToolOutput, ToolSpec};

const SECONDS_MAX: u64 = 120;
/// Bytes of each output that are kept: the first half and the last half. More is read and dropped, so that a command that
/// prints a lot comes to its end.
const KEPT_BYTES: usize = 8 * 1024;
/// A command that prints more is ended.
const PRINTED_BYTES_MAX: u64 = 64 << 20;

#[derive(Debug)]
pub struct Shell {
    spec: ToolSpec,
    bwrap: Option<PathBuf>,
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
    /// `bwrap` is the program of bubblewrap. Where no sandbox works, each call is refused with the reason.
    pub fn new(bwrap: Option<PathBuf>, workspace: &Path) -> Shell {
        let description = "Run a command in a sandbox: it can change files of the workspace only, and has no network.";
        let spec = spec_of::<ShellArguments>("shell", description, ToolClass::Execute);
        let spec = ToolSpec { command_field: Some("command"), ..spec };
        Shell { spec, bwrap, workspace: workspace.to_owned(), sandbox: OnceCell::new() }
    }

    async fn run(&self, asked: ShellArguments) -> Result<ToolOutput, String> {
        let probe = || Sandbox::probe(self.bwrap.clone(), &self.workspace);
        let sandbox =
            self.sandbox.get_or_init(probe).await.as_ref().map_err(ToString::to_string)?;
        let folder = asked.cwd.unwrap_or_default();
        let is_plain = |part: Component| matches!(part, Component::Normal(_) | Component::CurDir);
        if !Path::new(&folder).components().all(is_plain) {
            return Err("cwd must be relative to the workspace, without '..'".to_owned());
        }
        let limit = Duration::from_secs(asked.timeout_s.unwrap_or(SECONDS_MAX).min(SECONDS_MAX));
        let mut command = sandbox.command(&asked.command, Path::new(&folder));
        command
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .kill_on_drop(true);
        let mut child =
            command.spawn().map_err(|error| format!("the sandbox cannot be started: {error}"))?;
        let (stdout, stderr) = (child.stdout.take(), child.stderr.take());
        let reading = async { futures::join!(kept(stdout), kept(stderr)) };
        let Ok((out, err)) = timeout(limit, reading).await else {
            return Err(format!("the command was ended after {} s", limit.as_secs()));
        };
        if out.is_excessive || err.is_excessive {
            return Err(format!(
                "the command printed more than {PRINTED_BYTES_MAX} bytes, and was ended"
            ));
        }
        let status =
            timeout(limit, child.wait()).await.map_err(|_| "the command did not end".to_owned())?;
        let code = status.map_err(|error| error.to_string())?.code();
        Ok(output(code, &out.text(), &err.text()))
    }
}

fn output(code: Option<i32>, out: &str, err: &str) -> ToolOutput {
    let mut text = out.to_owned();
    if !err.is_empty() {
        text += if text.is_empty() || text.ends_with('\n') { "" } else { "\n" };
        text += &format!("[stderr]\n{err}");
    }
    match code {
        Some(0) if text.is_empty() => ToolOutput::ok("[exit code 0, no output]"),
        Some(0) => ToolOutput::ok(text),
        Some(code) => ToolOutput::error(format!("{text}\n[exit code {code}]")),
        None => ToolOutput::error(format!("{text}\n[ended by a signal]")),
    }
}

/// The beginning and the end of an output.
#[derive(Default)]
struct Kept {
    head: Vec<u8>,
    tail: Vec<u8>,
    total: u64,
    is_excessive: bool,
}

impl Kept {
    fn push(&mut self, bytes: &[u8]) {
        self.total += bytes.len() as u64;
        let to_head = bytes.len().min(KEPT_BYTES / 2 - self.head.len());
        self.head.extend(&bytes[..to_head]);
        self.tail.extend(&bytes[to_head..]);
        let spare = self.tail.len().saturating_sub(KEPT_BYTES / 2);
        self.tail.drain(..spare);
    }

    fn text(&self) -> String {
        let left = self.total - (self.head.len() + self.tail.len()) as u64;
        let gap = if left > 0 { format!("\n[{left} bytes left out]\n") } else { String::new() };
        format!(
            "{}{gap}{}",
            String::from_utf8_lossy(&self.head),
            String::from_utf8_lossy(&self.tail)
        )
    }
}

async fn kept(pipe: Option<impl AsyncRead + Unpin>) -> Kept {
    let mut kept = Kept::default();
    let Some(mut pipe) = pipe else { return kept };
    let mut piece = vec![0; 16 * 1024];
    while let Ok(count @ 1..) = pipe.read(&mut piece).await {
        kept.push(&piece[..count]);
        if kept.total > PRINTED_BYTES_MAX {
            kept.is_excessive = true;
            break;
        }
    }
    kept
}

impl AgentTool for Shell {
    fn spec(&self) -> &ToolSpec {
        &self.spec
    }

    fn call(&self, value: Value) -> BoxFuture<'_, ToolOutput> {
        async move {
            match arguments(value) {
                Ok(asked) => self.run(asked).await.unwrap_or_else(ToolOutput::error),
                Err(reason) => ToolOutput::error(reason),
            }
        }
        .boxed()
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;
    use tokio::process::Command;

    use super::*;

    #[test]
    fn a_long_output_keeps_its_beginning_and_its_end() {
        let mut kept = Kept::default();
        (0..100).for_each(|_| kept.push(&[b'a'; 1000]));
        kept.push(b"end");
        let text = kept.text();
        assert!(text.starts_with("aaa") && text.ends_with("end"));
        assert!(text.contains("[91811 bytes left out]"), "{}", &text[4000..4200]);
    }

    #[test]
    fn the_exit_code_is_told() {
        assert_eq!(output(Some(0), "", ""), ToolOutput::ok("[exit code 0, no output]"));
        assert_eq!(output(Some(0), "a", "b"), ToolOutput::ok("a\n[stderr]\nb"));
        assert_eq!(output(Some(2), "a\n", ""), ToolOutput::error("a\n\n[exit code 2]"));
    }

    #[tokio::test]
    async fn without_a_sandbox_commands_are_refused_with_the_reason() {
        let shell = Shell::new(None, Path::new("."));
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
        let shell = Shell::new(Some(bwrap), folder.path());
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
        let outside = folder.path().with_extension("outside");
        run(&format!("touch {}", outside.display())).await;
        assert!(!outside.exists(), "the sandbox has a /tmp of its own");
        let output = shell.call(json!({ "command": "sleep 30", "timeout_s": 1 })).await;
        assert!(output.is_error && output.text.contains("after 1 s"), "{}", output.text);
        assert!(shell.call(json!({ "command": "ls", "cwd": "../.." })).await.is_error);
    }
}
