//! `systemctl_status`: the state of a systemd unit, by a fixed command.
//! The unit's name is the only part that a model chooses, and it cannot be an option.

use std::process::Stdio;
use std::time::Duration;

use futures::FutureExt;
use futures::future::BoxFuture;
use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::Value;
use tokio::process::Command;
use tokio::time::timeout;

use super::{arguments, spec_of};
use crate::tool::{AgentTool, ToolClass, ToolOutput, ToolSpec};

const PROPERTIES: &str = "ActiveState,SubState,Result,ExecMainStatus,NRestarts";
const LIMIT: Duration = Duration::from_secs(10);
const UNIT_MAX: usize = 128;

#[derive(Debug)]
pub struct SystemctlStatus {
    spec: ToolSpec,
}

#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct StatusArguments {
    /// The name of a systemd unit, for example `ssh.service`
    unit: String,
}

impl Default for SystemctlStatus {
    fn default() -> SystemctlStatus {
        let description = "Show the state of a systemd unit of this machine.";
        SystemctlStatus {
            spec: spec_of::<StatusArguments>("systemctl_status", description, ToolClass::Read),
        }
    }
}

impl AgentTool for SystemctlStatus {
    fn spec(&self) -> &ToolSpec {
        &self.spec
    }

    fn call(&self, value: Value) -> BoxFuture<'_, ToolOutput> {
        async move {
            match arguments::<StatusArguments>(value) {
                Ok(asked) if is_unit(&asked.unit) => status(&asked.unit).await,
                Ok(asked) => ToolOutput::error(format!("'{}' is no name of a unit", asked.unit)),
                Err(reason) => ToolOutput::error(reason),
            }
        }
        .boxed()
    }
}

async fn status(unit: &str) -> ToolOutput {
    let mut command = Command::new("systemctl");
    command.args(["show", "-p", PROPERTIES, "--", unit]).stdin(Stdio::null()).kill_on_drop(true);
    match timeout(LIMIT, command.output()).await {
        Err(_) => {
            ToolOutput::error(format!("systemctl did not answer within {} s", LIMIT.as_secs()))
        }
        Ok(Err(error)) => ToolOutput::error(format!("systemctl cannot be started: {error}")),
        Ok(Ok(done)) if !done.status.success() => {
            ToolOutput::error(String::from_utf8_lossy(&done.stderr).trim().to_owned())
        }
        Ok(Ok(done)) => ToolOutput::ok(String::from_utf8_lossy(&done.stdout).trim().to_owned()),
    }
}

fn is_unit(name: &str) -> bool {
    let is_first = |c: char| c.is_ascii_alphanumeric() || c == '_';
    name.len() <= UNIT_MAX
        && name.starts_with(is_first)
        && name.chars().all(|c| is_first(c) || matches!(c, '@' | '.' | ':' | '-'))
}

#[cfg(test)]
mod tests {
    use super::*;

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
