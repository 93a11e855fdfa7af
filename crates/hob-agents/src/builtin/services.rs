//! `systemctl_status` and `systemctl_restart`: the state of a systemd unit and its restart, by fixed commands.
//! The unit's name is the only part that a model chooses, and it cannot be an option.

use std::path::PathBuf;
use std::process::Stdio;
use std::time::Duration;

use futures::FutureExt;
use futures::future::BoxFuture;
use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::Value;
use tokio::process::Command;
use tokio::time::timeout;

use super::{run_checked, spec_of};
use crate::tool::{AgentTool, ToolClass, ToolOutput, ToolSpec};

const PROGRAM: &str = "systemctl";
/// `systemctl show` also succeeds for a unit that does not exist: only `LoadState` says so.
const PROPERTIES: &str = "LoadState,ActiveState,SubState,Result,ExecMainStatus,NRestarts";
const STATUS_LIMIT: Duration = Duration::from_secs(10);
/// By default, systemd gives a unit 90 s to stop and 90 s to start.
const RESTART_LIMIT: Duration = Duration::from_mins(3);
const UNIT_BYTES_MAX: usize = 128;

/// Shows the state of a unit. As `systemctl_restart`, it restarts the unit first.
#[derive(Debug)]
pub struct Systemctl {
    spec: ToolSpec,
    program: PathBuf,
    is_restart: bool,
}

#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct UnitArguments {
    /// The name of a systemd unit, for example `ssh.service`
    unit: String,
}

impl Systemctl {
    /// `systemctl_status`.
    pub fn status() -> Systemctl {
        let description = "Show the state of a systemd unit of this machine.";
        let spec = spec_of::<UnitArguments>("systemctl_status", description, ToolClass::Read);
        Systemctl { spec, program: PathBuf::from(PROGRAM), is_restart: false }
    }

    /// `systemctl_restart`. Each call needs approval.
    pub fn restart() -> Systemctl {
        let description = "Restart a systemd unit of this machine, and show its state afterwards.";
        let spec = spec_of::<UnitArguments>("systemctl_restart", description, ToolClass::System);
        Systemctl { spec, program: PathBuf::from(PROGRAM), is_restart: true }
    }

    async fn call_for(&self, unit: &str) -> Result<ToolOutput, String> {
        let command = || Command::new(&self.program);
        if self.is_restart {
            let words = ["--no-ask-password", "restart", "--", unit];
            run(command(), &words, RESTART_LIMIT).await?;
        }
        let words = ["show", "-p", PROPERTIES, "--", unit];
        run(command(), &words, STATUS_LIMIT).await.map(ToolOutput::ok)
    }
}

impl AgentTool for Systemctl {
    fn spec(&self) -> &ToolSpec {
        &self.spec
    }

    fn call(&self, value: Value) -> BoxFuture<'_, ToolOutput> {
        let call = move |UnitArguments { unit }| async move { self.call_for(&unit).await };
        run_checked(value, call).boxed()
    }
}

/// Runs systemctl with these arguments. The last one is a unit, and is checked here.
async fn run(mut command: Command, words: &[&str], limit: Duration) -> Result<String, String> {
    let unit = words.last().copied().unwrap_or_default();
    if !is_unit(unit) {
        return Err(format!(
            "'{unit}' is not a name of a unit (expected one such as `nginx.service`)"
        ));
    }
    command.args(words).stdin(Stdio::null()).kill_on_drop(true);
    let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).trim().to_owned();
    match timeout(limit, command.output()).await {
        Err(_) => Err(format!("systemctl did not answer within {} s", limit.as_secs())),
        Ok(Err(error)) => Err(format!("systemctl cannot be started: {error}")),
        Ok(Ok(done)) if !done.status.success() => match text(&done.stderr) {
            reason if reason.is_empty() => Err(format!("systemctl failed: {}", done.status)),
            reason => Err(reason),
        },
        Ok(Ok(done)) => Ok(text(&done.stdout)),
    }
}

fn is_unit(name: &str) -> bool {
    let is_first = |c: char| c.is_ascii_alphanumeric() || c == '_';
    name.len() <= UNIT_BYTES_MAX
        && name.starts_with(is_first)
        && name.chars().all(|c| is_first(c) || matches!(c, '@' | '.' | ':' | '-'))
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::executable::write_executable;

    #[tokio::test]
    async fn a_unit_is_restarted_by_a_fixed_command() {
        let folder = tempfile::tempdir().expect("a folder");
        let program = folder.path().join("systemctl");
        let script = r#"#!/bin/sh
[ "$4" != bad.service ] || { echo 'not loaded' >&2; exit 5; }
[ "$4" != silent.service ] || exit 6
echo "$@"
"#;
        write_executable(&program, script);
        let tool = Systemctl { program, ..Systemctl::restart() };
        assert_eq!((tool.spec().class, tool.spec().may_repeat), (ToolClass::System, false));
        let restart = async |unit: &str| tool.call(json!({ "unit": unit })).await;
        let shown = format!("show -p {PROPERTIES} -- ollama.service");
        assert_eq!(restart("ollama.service").await, ToolOutput::ok(shown));
        for (unit, part) in [
            ("bad.service", "not loaded"),
            ("silent.service", "systemctl failed: exit status: 6"),
            ("--now", "not a name of a unit"),
        ] {
            let output = restart(unit).await;
            assert!(output.is_error && output.text.contains(part), "{unit}: {}", output.text);
        }
    }

    #[tokio::test]
    async fn the_state_says_whether_a_unit_exists() {
        let folder = tempfile::tempdir().expect("a folder");
        let program = folder.path().join("systemctl");
        let script =
            "#!/bin/sh\ncase \",$3,\" in *,LoadState,*) echo LoadState=not-found ;; esac\n";
        write_executable(&program, script);
        let tool = Systemctl { program, ..Systemctl::status() };
        assert_eq!(tool.spec().class, ToolClass::Read);
        let shown = tool.call(json!({ "unit": "typo.service" })).await;
        assert_eq!(shown, ToolOutput::ok("LoadState=not-found"));
    }

    #[test]
    fn a_unit_is_no_option_and_no_path() {
        for (name, expected) in [
            ("ssh.service", true),
            ("getty@tty1.service", true),
            ("-H", false),
            ("a/b", false),
            ("a b", false),
            ("", false),
            ("a;b", false),
        ] {
            assert_eq!(is_unit(name), expected, "{name}");
        }
    }
}
