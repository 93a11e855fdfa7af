//! Runs the command of a tool, bounded in time and output.
//! Whenever the future ends or is dropped, the command's process group dies.

use std::io;
use std::path::Path;
use std::process::Stdio;
use std::time::Duration;

use tokio::io::{AsyncRead, AsyncReadExt as _};
use tokio::process::Command;
use tokio::time::timeout;

use super::limits::{self, PRINTED_BYTES_MAX};
use crate::process_group::ProcessGroup;
use crate::tool::ToolOutput;

/// Bytes of each output that are kept: the first half and the last half. More is read and dropped, so that a command that
/// prints a lot comes to its end.
const KEPT_BYTES: usize = 8 * 1024;

/// How a command is started, and what limits it besides time and output.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum ProcessLimits {
    /// No other limit.
    Free,
    /// The limits of [`limits`].
    Limited,
    /// The limits of [`limits`]; and the command is a command supervisor, which ends all processes of its own command.
    Supervised,
}

/// Runs a command without input.
///
/// # Errors
/// It cannot be started, prints too much, or takes longer than `limit`.
pub(super) async fn run(command: &mut Command, limit: Duration) -> Result<ToolOutput, String> {
    let group = started(ProcessGroup::spawn, command)?;
    let ended = until_end(group, limit, std::future::pending()).await?;
    let reason = ended.code.and_then(limits::killed);
    Ok(output(ended.code, reason, &ended.out, &ended.err))
}

/// Runs a command without input in this workspace, with these limits.
///
/// # Errors
/// Those of [`run`], or the command exceeds the limits.
pub(super) async fn run_limited(
    command: &mut Command,
    process_limits: ProcessLimits,
    workspace: &Path,
    limit: Duration,
) -> Result<ToolOutput, String> {
    let mut group = match process_limits {
        ProcessLimits::Free => return run(command, limit).await,
        ProcessLimits::Limited => started(ProcessGroup::spawn, command)?,
        ProcessLimits::Supervised => started(ProcessGroup::spawn_supervised, command)?,
    };
    let excess = limits::excess(group.leader().id(), workspace);
    let ended = until_end(group, limit, excess).await?;
    let reason = ended.code.and_then(limits::reason);
    Ok(output(ended.code, reason, &ended.out, &ended.err))
}

fn started(
    spawn: fn(&mut Command) -> io::Result<ProcessGroup>,
    command: &mut Command,
) -> Result<ProcessGroup, String> {
    command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped());
    spawn(command).map_err(|error| format!("the command cannot be started: {error}"))
}

/// A command that has ended by itself.
struct Ended {
    /// `None`: a signal ended it.
    code: Option<i32>,
    out: String,
    err: String,
}

/// Reads the output until the command ends. `excess` resolves with the reason to end it earlier.
async fn until_end(
    mut group: ProcessGroup,
    limit: Duration,
    excess: impl Future<Output = String>,
) -> Result<Ended, String> {
    let (stdout, stderr) = (group.leader().stdout.take(), group.leader().stderr.take());
    // A command may close its output and go on, so its end is waited for within the same limit.
    let ending = timeout(limit, async {
        let (out, err) = futures::join!(kept(stdout), kept(stderr));
        if out.is_excessive || err.is_excessive {
            return Err(format!(
                "the command printed more than {PRINTED_BYTES_MAX} bytes, and was ended"
            ));
        }
        let status = group.leader().wait().await.map_err(|error| error.to_string())?;
        Ok(Ended { code: status.code(), out: out.text(), err: err.text() })
    });
    let late = |_| Err(format!("the command was ended after {} s", limit.as_secs()));
    let ended = tokio::select! {
        ended = ending => ended.unwrap_or_else(late),
        reason = excess => Err(reason),
    };
    if ended.is_err() {
        group.end().await;
    }
    ended
}

/// `reason`: why a limit ended the command.
fn output(code: Option<i32>, reason: Option<String>, out: &str, err: &str) -> ToolOutput {
    let mut text = out.to_owned();
    if !err.is_empty() {
        text += if text.is_empty() || text.ends_with('\n') { "" } else { "\n" };
        text += &format!("[stderr]\n{err}");
    }
    match code {
        Some(0) if text.is_empty() => ToolOutput::ok("[exit code 0, no output]"),
        Some(0) => ToolOutput::ok(text),
        Some(code) => {
            let reason = reason.map(|reason| format!(": {reason}")).unwrap_or_default();
            ToolOutput::error(format!("{text}\n[exit code {code}{reason}]"))
        }
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

#[cfg(test)]
mod tests {
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

    #[tokio::test]
    async fn a_command_that_closes_its_output_has_no_more_time_than_others() {
        let mut command = Command::new("/bin/sh");
        command.args(["-c", "exec >&- 2>&-; sleep 1000"]);
        let ended = run(&mut command, Duration::from_secs(1)).await;
        assert_eq!(ended, Err("the command was ended after 1 s".to_owned()));
    }

    #[test]
    fn the_exit_code_is_shown() {
        let ended = |code, out, err| output(Some(code), None, out, err);
        assert_eq!(ended(0, "", ""), ToolOutput::ok("[exit code 0, no output]"));
        assert_eq!(ended(0, "a", "b"), ToolOutput::ok("a\n[stderr]\nb"));
        assert_eq!(ended(2, "a\n", ""), ToolOutput::error("a\n\n[exit code 2]"));
        let limited = output(Some(153), Some("too large".to_owned()), "", "");
        assert_eq!(limited, ToolOutput::error("\n[exit code 153: too large]"));
    }
}
