//! Worker processes that report line by line on stdout, and the variables of workers that compute.
//! Drivers and llama.cpp print lines of their own among the reports.

use std::path::Path;
use std::process::Stdio;

use hob_engines::supervisor::worker_environment;
use serde::de::DeserializeOwned;
use tokio::io::{AsyncBufRead, Split};
use tokio::process::Command;

/// How many turns a thread of the engine waits before it sleeps. By default, GNU OpenMP waits
/// for a millisecond and more, and takes the core from the thread that it waits for. Without any waiting,
/// sleeping takes longer than the work (`docs/reference/performance.md`).
pub(super) const SPIN_COUNT: &str = "500";

/// Makes GNU's allocator use large pages. Mapped files have none, and a processor that looks up fewer
/// pages decodes 6 % faster.
pub(super) const LARGE_PAGES: &str = "glibc.malloc.hugetlb=1";

/// A process that reports, with the environment of a worker: it runs native code on foreign files.
pub(super) fn reporting_process(program: &Path) -> Command {
    let mut command = Command::new(program);
    command
        .env_clear()
        .envs(worker_environment())
        .env("GOMP_SPINCOUNT", SPIN_COUNT)
        .env("GLIBC_TUNABLES", LARGE_PAGES)
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .stderr(Stdio::null())
        .kill_on_drop(true);
    command
}

/// The next report. Skips lines of native code, which may not be UTF-8. `None` at the end.
pub(super) async fn next_report<T: DeserializeOwned>(
    lines: &mut Split<impl AsyncBufRead + Unpin>,
) -> Option<T> {
    while let Ok(Some(line)) = lines.next_segment().await {
        if let Ok(report) = serde_json::from_slice(&line) {
            return Some(report);
        }
    }
    None
}

#[cfg(test)]
mod tests {
    use tokio::io::{AsyncBufReadExt as _, BufReader};

    use super::*;

    /// cargo sets CARGO_PKG_NAME for every test.
    #[tokio::test]
    async fn a_process_that_reports_inherits_no_other_variables() {
        assert!(std::env::vars_os().any(|(name, _)| name == "CARGO_PKG_NAME"));
        let output = reporting_process(Path::new("/usr/bin/env")).output().await.expect("env");
        let variables = String::from_utf8_lossy(&output.stdout);
        assert!(variables.contains("GOMP_SPINCOUNT="), "{variables}");
        assert!(!variables.contains("CARGO_PKG_NAME="), "{variables}");
    }

    #[tokio::test]
    async fn lines_of_native_code_are_skipped() {
        let mut lines = BufReader::new(&b"1\nloading\n\xff\n2\n"[..]).split(b'\n');
        assert_eq!(next_report::<u32>(&mut lines).await, Some(1));
        assert_eq!(next_report::<u32>(&mut lines).await, Some(2));
        assert_eq!(next_report::<u32>(&mut lines).await, None);
    }
}
