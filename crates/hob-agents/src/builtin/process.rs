//! Runs the command of a tool, bounded in time and output.
//! Whenever the future ends or is dropped, the command's process group dies.

use std::io;
use std::process::Stdio;
use std::time::Duration;

use tokio::io::{AsyncRead, AsyncReadExt as _};
use tokio::process::Command;
use tokio::time::timeout;

use crate::process_group::ProcessGroup;
use crate::tool::ToolOutput;

/// Bytes of each output that are kept: the first half and the last half. More is read and dropped, so that a command that
/// prints a lot comes to its end.
const KEPT_BYTES: usize = 8 * 1024;
/// A command that prints more is ended.
const PRINTED_BYTES_MAX: u64 = 64 << 20;

/// Runs a command without input.
///
/// # Errors
/// It cannot be started, prints too much, or takes longer than `limit`.
pub(super) async fn run(command: &mut Command, limit: Duration) -> Result<ToolOutput, String> {
    run_by(ProcessGroup::spawn, command, limit).await
}

/// Like [`run`], where the command is a supervisor.
///
/// # Errors
/// Like [`run`].
pub(super) async fn run_supervised(
    command: &mut Command,
    limit: Duration,
) -> Result<ToolOutput, String> {
    run_by(ProcessGroup::spawn_supervised, command, limit).await
}

async fn run_by(
    spawn: fn(&mut Command) -> io::Result<ProcessGroup>,
    command: &mut Command,
    limit: Duration,
) -> Result<ToolOutput, String> {
    command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped());
    let mut group =
        spawn(command).map_err(|error| format!("the command cannot be started: {error}"))?;
    let (stdout, stderr) = (group.leader().stdout.take(), group.leader().stderr.take());
    let reading = async { futures::join!(kept(stdout), kept(stderr)) };
    let Ok((out, err)) = timeout(limit, reading).await else {
        group.end().await;
        return Err(format!("the command was ended after {} s", limit.as_secs()));
    };
    if out.is_excessive || err.is_excessive {
        group.end().await;
        return Err(format!(
            "the command printed more than {PRINTED_BYTES_MAX} bytes, and was ended"
        ));
    }
    let waited = timeout(limit, group.leader().wait()).await;
    let status = waited.map_err(|_| "the command did not end".to_owned())?;
    let code = status.map_err(|error| error.to_string())?.code();
    Ok(output(code, &out.text(), &err.text()))
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

    #[test]
    fn the_exit_code_is_told() {
        assert_eq!(output(Some(0), "", ""), ToolOutput::ok("[exit code 0, no output]"));
        assert_eq!(output(Some(0), "a", "b"), ToolOutput::ok("a\n[stderr]\nb"));
        assert_eq!(output(Some(2), "a\n", ""), ToolOutput::error("a\n\n[exit code 2]"));
    }
}
