//! Reads a worker's standard error: logs each line, and keeps the last ones for the error when the worker dies, and the
//! first one in which a driver reports a fault. Long lines are cut.

use std::collections::VecDeque;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use hob_core::locked;
use tokio::io::{AsyncRead, AsyncReadExt};
use tokio::task::JoinSet;
use tokio::time::timeout;

use super::device_fault::DeviceFault;

const LINE_BYTES_MAX: usize = 1024;

/// Lines that are kept.
const LINES_MAX: usize = 8;

/// Maximum wait for the pipe's end, because a grandchild may hold it open after the worker's death.
const DRAIN_LIMIT: Duration = Duration::from_millis(200);

#[derive(Debug)]
pub(super) struct StderrTail {
    kept: Arc<Mutex<KeptLines>>,
    reading: JoinSet<()>,
}

/// What is kept of a worker's output.
#[derive(Clone, Debug, Default)]
pub(super) struct KeptLines {
    last: VecDeque<String>,
    /// The first fault that a driver reports. A long stack trace may follow it, so it is kept separately.
    pub(super) fault: Option<DeviceFault>,
}

impl StderrTail {
    pub(super) fn follow(
        engine: &'static str,
        stderr: impl AsyncRead + Unpin + Send + 'static,
    ) -> StderrTail {
        let kept = Arc::default();
        let mut reading = JoinSet::new();
        reading.spawn(read(engine, stderr, Arc::clone(&kept)));
        StderrTail { kept, reading }
    }

    /// What a worker that has ended wrote.
    pub(super) async fn last_lines(mut self) -> KeptLines {
        // After the limit, the lines so far are used.
        let _ = timeout(DRAIN_LIMIT, self.reading.join_next()).await;
        locked(&self.kept).clone()
    }
}

impl KeptLines {
    /// The last lines, joined into one.
    pub(super) fn text(&self) -> String {
        Vec::from(self.last.clone()).join("; ")
    }

    fn push(&mut self, line: String) {
        self.fault = self.fault.take().or_else(|| DeviceFault::read(&line));
        self.last.push_back(line);
        if self.last.len() > LINES_MAX {
            self.last.pop_front();
        }
    }
}

async fn read(
    engine: &'static str,
    mut stderr: impl AsyncRead + Unpin,
    kept: Arc<Mutex<KeptLines>>,
) {
    let mut cutter = LineCutter::default();
    let mut chunk = vec![0; LINE_BYTES_MAX];
    let mut keep = |bytes: &[u8]| {
        for line in cutter.push(bytes) {
            tracing::info!(target: "hob::worker", engine, "{line}");
            locked(&kept).push(line);
        }
    };
    // A pipe that cannot be read is treated like a closed one.
    while let Ok(bytes @ 1..) = stderr.read(&mut chunk).await {
        keep(&chunk[..bytes]);
    }
    // A worker that dies may leave its last line without an end.
    keep(b"\n");
}

/// Turns bytes into lines of at most [`LINE_BYTES_MAX`] bytes; what is beyond that is left out.
#[derive(Debug, Default)]
struct LineCutter {
    line: Vec<u8>,
}

impl LineCutter {
    fn push(&mut self, bytes: &[u8]) -> Vec<String> {
        let mut lines = Vec::new();
        for &byte in bytes {
            if byte == b'\n' {
                lines.push(String::from_utf8_lossy(&self.line).trim_end().to_owned());
                self.line.clear();
            } else if self.line.len() < LINE_BYTES_MAX {
                self.line.push(byte);
            }
        }
        lines.retain(|line| !line.is_empty());
        lines
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_are_cut_at_their_ends_and_at_the_limit() {
        let mut cutter = LineCutter::default();
        assert_eq!(cutter.push(b"one\r\n\ntw"), ["one"]);
        assert_eq!(cutter.push(b"o\nthree"), ["two"]);
        let long = [b"x".repeat(LINE_BYTES_MAX * 2), b"\nnext\n".to_vec()].concat();
        let three = format!("three{}", "x".repeat(LINE_BYTES_MAX - 5));
        assert_eq!(cutter.push(&long), [three, "next".to_owned()]);
    }

    #[tokio::test]
    async fn only_the_last_lines_are_kept() {
        let text: String = (0..20).map(|line| format!("line {line}\n")).collect();
        let tail = StderrTail::follow("speech", std::io::Cursor::new(text));
        let expect: Vec<String> = (12..20).map(|line| format!("line {line}")).collect();
        assert_eq!(tail.last_lines().await.text(), expect.join("; "));
    }

    #[tokio::test]
    async fn a_last_line_without_an_end_is_kept() {
        let tail = StderrTail::follow("chat", std::io::Cursor::new("one\nassertion failed"));
        assert_eq!(tail.last_lines().await.text(), "one; assertion failed");
    }

    #[tokio::test]
    async fn a_driver_s_fault_is_kept_however_much_follows() {
        let stack: String = (0..20).map(|frame| format!("#{frame} 0x0\n")).collect();
        let text = format!("ggml_vulkan: device lost on llvmpipe\nCUDA error: later\n{stack}");
        let kept = StderrTail::follow("chat", std::io::Cursor::new(text)).last_lines().await;
        let said = "ggml_vulkan: device lost on llvmpipe".to_owned();
        assert_eq!(kept.fault, Some(DeviceFault::Lost { said }));
    }
}
