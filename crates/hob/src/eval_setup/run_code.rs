//! Runs the code of answers in the sandbox that agents' commands have: no network, no keys, a folder of its own.
//! Time and memory are bounded, so that an endless loop is a wrong answer and not a stopped evaluation.

use std::path::Path;

use hob_agents::AgentTool as _;
use hob_agents::builtin::{SandboxPrograms, Shell};
use hob_eval::{CODE_MEMORY_MAX_BYTES, CODE_SECONDS_MAX, CodeOutcome, RunCode};
use serde_json::json;

use crate::teams::sandbox_programs;
use std::ffi::OsStr;

const SCRIPT: &str = "answer.py";
const BYTES_PER_KIB: u64 = 1024;
/// The last line of an output that was cut off by the limit.
const TIMED_OUT: &str = "hob-timed-out";
/// How a shell sees a program that was killed.
const KILLED: u32 = 137;
const SPARE_SECONDS: u64 = 2;

/// Python in a sandbox.
#[derive(Debug)]
pub(crate) struct SandboxedPython {
    programs: SandboxPrograms,
}

pub(super) fn python(path: &OsStr) -> SandboxedPython {
    SandboxedPython { programs: sandbox_programs(path) }
}

impl RunCode for SandboxedPython {
    fn run(&self, program: &str) -> CodeOutcome {
        self.try_run(program).unwrap_or_else(|reason| CodeOutcome::CouldNotStart { reason })
    }
}

impl SandboxedPython {
    fn try_run(&self, program: &str) -> Result<CodeOutcome, String> {
        let folder = tempfile::tempdir().map_err(|error| error.to_string())?;
        fs_err::write(folder.path().join(SCRIPT), program).map_err(|error| error.to_string())?;
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
        let runtime = runtime.map_err(|error| error.to_string())?;
        runtime.block_on(self.run_in(folder.path()))
    }

    async fn run_in(&self, folder: &Path) -> Result<CodeOutcome, String> {
        let shell = Shell::new(self.programs.clone(), folder);
        // If `timeout` fails, the tool ends the command at this later limit, and its output is lost.
        let (command, limit_s) = (command(CODE_SECONDS_MAX), CODE_SECONDS_MAX + SPARE_SECONDS);
        let output = shell.call(json!({ "command": command, "timeout_s": limit_s })).await;
        Ok(match output.is_error {
            false => match output.text.rsplit_once(TIMED_OUT) {
                Some((stdout, _)) => CodeOutcome::TimedOut { stdout: stdout.to_owned() },
                None => CodeOutcome::Ended { stdout: output.text },
            },
            true if output.text.contains("was ended after") => {
                CodeOutcome::TimedOut { stdout: String::new() }
            }
            true if output.text.contains("no-python3") => {
                CodeOutcome::CouldNotStart { reason: "python3 is not installed".to_owned() }
            }
            true => CodeOutcome::CouldNotStart { reason: output.text },
        })
    }
}

/// Runs the script for at most this many seconds. The output of a program that fails or is killed is kept: tests before
/// that have passed. Without a `timeout` that keeps the process group, only the tool's own limit holds.
fn command(seconds: u64) -> String {
    let kib = CODE_MEMORY_MAX_BYTES / BYTES_PER_KIB;
    let limit = "timeout --foreground -s KILL";
    format!(
        "command -v python3 >/dev/null || {{ echo no-python3 >&2; exit 127; }}; \
         limit=; {limit} {seconds} true 2>/dev/null && limit='{limit} {seconds}'; \
         ulimit -v {kib}; $limit python3 -I {SCRIPT} 2>/dev/null; \
         [ $? -ne {KILLED} ] || {{ echo; echo {TIMED_OUT}; }}"
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Long enough for Python to start on a machine that does much else.
    const LIMIT_SECONDS: u64 = 10;

    #[test]
    fn what_was_written_before_the_limit_is_kept() {
        let rows = [
            ("print(1)", "1\n"),
            ("print(1)\nraise SystemExit(3)", "1\n"),
            ("print(1, flush=True)\nimport time\ntime.sleep(600)", "1\n\nhob-timed-out\n"),
        ];
        for (script, expected) in rows {
            let folder = tempfile::tempdir().expect("a folder");
            fs_err::write(folder.path().join(SCRIPT), script).expect("written");
            let mut shell = std::process::Command::new("/bin/sh");
            let ran =
                shell.args(["-c", &command(LIMIT_SECONDS)]).current_dir(folder.path()).output();
            let ran = ran.expect("a shell");
            assert_eq!(String::from_utf8_lossy(&ran.stdout), expected, "{script}");
            assert!(ran.status.success(), "{script}: {:?}", ran.status);
        }
    }
}
