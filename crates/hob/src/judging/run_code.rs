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
        let kib = CODE_MEMORY_MAX_BYTES / BYTES_PER_KIB;
        // The output of a program that fails is read, too: tests before the failure have passed.
        let command = format!(
            "command -v python3 >/dev/null || {{ echo no-python3 >&2; exit 127; }}; \
             ulimit -v {kib}; python3 -I {SCRIPT} 2>/dev/null || true"
        );
        let output = shell.call(json!({ "command": command, "timeout_s": CODE_SECONDS_MAX })).await;
        Ok(match output.is_error {
            false => CodeOutcome::Ended { stdout: output.text },
            true if output.text.contains("was ended after") => CodeOutcome::TimedOut,
            true if output.text.contains("no-python3") => {
                CodeOutcome::CouldNotStart { reason: "python3 is not installed".to_owned() }
            }
            true => CodeOutcome::CouldNotStart { reason: output.text },
        })
    }
}
