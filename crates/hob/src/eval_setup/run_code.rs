//! Runs the code of answers in the sandbox that agents' commands have: no network, no keys, a folder of its own.
//! Time and memory are bounded, so that an endless loop is a wrong answer and not a stopped evaluation.

use std::io::Read as _;
use std::path::Path;

use hob_agents::AgentTool as _;
use hob_agents::builtin::{SandboxPrograms, Shell};
use hob_eval::{CODE_MEMORY_MAX_BYTES, CODE_SECONDS_MAX, CodeOutcome, RunCode};
use serde_json::json;

use crate::teams::sandbox_programs;
use std::ffi::OsStr;

const SCRIPT: &str = "answer.py";
/// What the script writes. The tool would keep only the beginning and the end of it.
const RESULTS: &str = "results.txt";
/// Also the limit of any other file that the script writes.
const RESULTS_BYTES_MAX: u64 = 64 << 20;
/// POSIX counts the blocks of `ulimit -f` so.
const BLOCK_BYTES: u64 = 512;
const BYTES_PER_KIB: u64 = 1024;
/// The first line of the results: the sandbox works and has Python. If a limit ends the script now, its code is wrong.
const STARTED: &str = "hob-started\n";
/// The output of a script that was ended by the limit.
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
        // Opened here: the code may put a link or another file in its place.
        let path = folder.path().join(RESULTS);
        let results = fs_err::OpenOptions::new().read(true).write(true).create_new(true).open(path);
        let results = results.map_err(|error| error.to_string())?;
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
        let runtime = runtime.map_err(|error| error.to_string())?;
        runtime.block_on(self.run_in(folder.path(), results))
    }

    async fn run_in(&self, folder: &Path, results: fs_err::File) -> Result<CodeOutcome, String> {
        let shell = Shell::new(self.programs.clone(), folder);
        // If `timeout` fails, the tool ends the command at this later limit.
        let (command, limit_s) = (command(CODE_SECONDS_MAX), CODE_SECONDS_MAX + SPARE_SECONDS);
        let output = shell.call(json!({ "command": command, "timeout_s": limit_s })).await;
        let mut written = Vec::new();
        let read = results.take(RESULTS_BYTES_MAX).read_to_end(&mut written);
        read.map_err(|error| error.to_string())?;
        let written = String::from_utf8_lossy(&written);
        let is_late = [TIMED_OUT, "was ended after"].iter().any(|text| output.text.contains(text));
        // A script that ended by itself has started, also if it has written over the first line.
        let unmarked = (!output.is_error).then_some(&*written);
        Ok(match written.strip_prefix(STARTED).or(unmarked).map(str::to_owned) {
            Some(stdout) if is_late => CodeOutcome::TimedOut { stdout },
            Some(stdout) => CodeOutcome::Ended { stdout },
            None if output.text.contains("no-python3") => {
                CodeOutcome::CouldNotStart { reason: "python3 is not installed".to_owned() }
            }
            None => CodeOutcome::CouldNotStart { reason: output.text },
        })
    }
}

/// Runs the script for at most this many seconds. The results of a program that fails or is killed are kept: tests before
/// that have passed. Without a `timeout` that keeps the process group, only the tool's own limit holds.
fn command(seconds: u64) -> String {
    let (kib, blocks) = (CODE_MEMORY_MAX_BYTES / BYTES_PER_KIB, RESULTS_BYTES_MAX / BLOCK_BYTES);
    let (limit, started) = ("timeout --foreground -s KILL", STARTED.trim_end());
    format!(
        "command -v python3 >/dev/null || {{ echo no-python3 >&2; exit 127; }}; \
         limit=; {limit} {seconds} true 2>/dev/null && limit='{limit} {seconds}'; \
         ulimit -v {kib}; ulimit -f {blocks}; echo {started} >{RESULTS}; $limit python3 -I {SCRIPT} >>{RESULTS} 2>/dev/null; \
         [ $? -ne {KILLED} ] || echo {TIMED_OUT}"
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
            ("print(1)", ""),
            ("print(1)\nraise SystemExit(3)", ""),
            ("print(1, flush=True)\nimport time\ntime.sleep(600)", "hob-timed-out\n"),
        ];
        for (script, expected) in rows {
            let folder = tempfile::tempdir().expect("a folder");
            fs_err::write(folder.path().join(SCRIPT), script).expect("written");
            let mut shell = std::process::Command::new("/bin/sh");
            let ran =
                shell.args(["-c", &command(LIMIT_SECONDS)]).current_dir(folder.path()).output();
            let ran = ran.expect("a shell");
            assert_eq!(String::from_utf8_lossy(&ran.stdout), expected, "{script}");
            let results = fs_err::read_to_string(folder.path().join(RESULTS));
            assert_eq!(results.expect("a file"), format!("{STARTED}1\n"), "{script}");
            assert!(ran.status.success(), "{script}: {:?}", ran.status);
        }
    }

    #[cfg(target_os = "linux")]
    #[test]
    fn what_code_does_against_the_sandbox_is_its_own_end() {
        let folder = tempfile::tempdir().expect("a folder");
        // A sandbox that refuses nothing.
        let restrict = folder.path().join("restrict");
        let script = "#!/bin/sh\nwhile [ \"$1\" != -- ]; do shift; done\nshift\nexec \"$@\"\n";
        crate::executable::write_executable(&restrict, script);
        let restrict = vec![restrict.into()];
        let programs = SandboxPrograms { restrict, ..SandboxPrograms::default() };
        let python = SandboxedPython { programs };
        let replaced = format!(
            "import os\nprint(1, flush=True)\nos.remove('{RESULTS}')\nos.symlink('{SCRIPT}', '{RESULTS}')"
        );
        let endless = format!(
            "print(1, flush=True)\nwith open('big', 'wb') as big:\n    big.truncate({RESULTS_BYTES_MAX} + 1)\nprint(2)"
        );
        let protected = "import os\nprint(1, flush=True)\nos.mkdir('teams')".to_owned();
        let emptied = format!("open('{RESULTS}', 'w').close()\nprint(1)");
        for code in [replaced, endless, protected, emptied] {
            let ended = CodeOutcome::Ended { stdout: "1\n".to_owned() };
            assert_eq!(python.run(&code), ended, "{code}");
        }
    }
}
