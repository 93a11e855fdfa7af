//! Processor time and memory of a process and its children, as Linux reports them in `/proc`.
//! On other systems this returns an error: figures from another source could not be compared.

use std::io;
use std::time::Duration;

/// Unit of the times in `/proc`, on every architecture that hob is built for.
const TICKS_PER_SECOND: u64 = 100;

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ProcessUsage {
    /// User and system time.
    pub cpu: Duration,
    pub rss_bytes: u64,
    /// The sum of each process's own peak. The processes together may have had less.
    pub peak_bytes: u64,
}

impl ProcessUsage {
    /// Reads the process and all its descendants.
    ///
    /// # Errors
    /// There is no process with this id, or the system has no `/proc`.
    pub fn read(pid: u32) -> io::Result<ProcessUsage> {
        let mut usage = alone(pid)?;
        for child in children(pid)? {
            // A child may end meanwhile; it is then not counted.
            if let Ok(more) = ProcessUsage::read(child) {
                usage.cpu += more.cpu;
                usage.rss_bytes += more.rss_bytes;
                usage.peak_bytes += more.peak_bytes;
            }
        }
        Ok(usage)
    }
}

/// Peak memory of the first descendant whose command line has these two words next to each other.
pub fn peak_bytes_of(pid: u32, words: [&str; 2]) -> Option<u64> {
    children(pid).ok()?.into_iter().find_map(|child| {
        let line = std::fs::read(format!("/proc/{child}/cmdline")).unwrap_or_default();
        if is_called(&line, words) {
            return alone(child).ok().map(|usage| usage.peak_bytes);
        }
        peak_bytes_of(child, words)
    })
}

/// `line` is `/proc/PID/cmdline`, where each word ends with a zero byte.
fn is_called(line: &[u8], [first, second]: [&str; 2]) -> bool {
    let words: Vec<&[u8]> = line.split(|byte| *byte == 0).collect();
    words.windows(2).any(|pair| pair == [first.as_bytes(), second.as_bytes()])
}

fn alone(pid: u32) -> io::Result<ProcessUsage> {
    let malformed =
        || io::Error::new(io::ErrorKind::InvalidData, "unexpected format of /proc/PID/stat");
    let stat = std::fs::read_to_string(format!("/proc/{pid}/stat"))?;
    let status = std::fs::read_to_string(format!("/proc/{pid}/status"))?;
    let millis = ticks(&stat).ok_or_else(malformed)? * 1000 / TICKS_PER_SECOND;
    let bytes = |field| memory_bytes(&status, field).unwrap_or(0);
    Ok(ProcessUsage {
        cpu: Duration::from_millis(millis),
        rss_bytes: bytes("VmRSS:"),
        peak_bytes: bytes("VmHWM:"),
    })
}

/// Linux lists a child under the thread that started it.
fn children(pid: u32) -> io::Result<Vec<u32>> {
    let mut found = Vec::new();
    for thread in std::fs::read_dir(format!("/proc/{pid}/task"))? {
        let listed = std::fs::read_to_string(thread?.path().join("children")).unwrap_or_default();
        found.extend(listed.split_whitespace().filter_map(|pid| pid.parse::<u32>().ok()));
    }
    Ok(found)
}

/// User and system time. The program's name may contain any character and ends at the last bracket.
fn ticks(stat: &str) -> Option<u64> {
    let mut cells = stat.rsplit_once(')')?.1.split_whitespace().skip(11);
    let user: u64 = cells.next()?.parse().ok()?;
    let system: u64 = cells.next()?.parse().ok()?;
    Some(user + system)
}

/// None if the process has ended and has no memory any more.
fn memory_bytes(status: &str, field: &str) -> Option<u64> {
    let line = status.lines().find_map(|line| line.strip_prefix(field))?;
    let kib: u64 = line.split_whitespace().next()?.parse().ok()?;
    Some(kib << 10)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_follow_the_name_of_any_program() {
        let stat = "7 (a ) (b) 9 9) S 1 7 7 0 -1 4194560 100 0 0 0 31 11 0 0 20 0 1 0 100 1000 9";
        assert_eq!(ticks(stat), Some(42));
        assert_eq!(ticks("7 (a) S"), None);
    }

    #[test]
    fn memory_is_read_by_its_field() {
        let status = "VmHWM:\t 9 kB\nVmRSS:\t    2048 kB\n";
        assert_eq!(memory_bytes(status, "VmRSS:"), Some(2 << 20));
        assert_eq!(memory_bytes(status, "VmHWM:"), Some(9 << 10));
        assert_eq!(memory_bytes("State:\tZ (zombie)\n", "VmRSS:"), None);
    }

    #[test]
    fn a_worker_is_recognised_by_its_command_line() {
        let words = ["worker", "speech"];
        assert!(is_called(b"/usr/bin/hob\0worker\0speech\0--model\0a\0", words));
        assert!(!is_called(b"/usr/bin/hob\0worker\0chat\0speech\0", words));
        assert!(!is_called(b"", words));
    }

    #[test]
    #[cfg(target_os = "linux")]
    fn a_child_is_found_below_its_parent() {
        // The shell waits for its input, which ends with this test.
        let mut child = std::process::Command::new("sh")
            .args(["-c", "read nothing", "worker", "speech"])
            .stdin(std::process::Stdio::piped())
            .spawn()
            .expect("a shell");
        // Right after the start its command line is still that of this test.
        while peak_bytes_of(std::process::id(), ["worker", "speech"]).is_none() {
            std::thread::yield_now();
        }
        assert_eq!(peak_bytes_of(std::process::id(), ["worker", "chat"]), None);
        drop(child.stdin.take());
        child.wait().expect("it ends");
    }

    #[test]
    #[cfg(target_os = "linux")]
    fn this_process_is_found() {
        assert!(ProcessUsage::read(std::process::id()).unwrap().rss_bytes > 0);
    }
}
