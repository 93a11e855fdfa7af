//! Reads system files and the output of system programs.
//! Nothing here fails: a missing file or program gives an empty result.

use std::io::Read;
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::sync::mpsc::sync_channel;
use std::thread;
use std::time::{Duration, Instant};

/// Longer than `nvidia-smi` takes on a server whose driver has to start first. With a broken driver it never ends.
pub(crate) const OUTPUT_TIME_MAX: Duration = Duration::from_secs(10);
/// Between two looks at a program that has closed its output.
const END_LOOK: Duration = Duration::from_millis(5);

/// Returns an empty string if the file cannot be read.
pub(crate) fn read(path: impl AsRef<Path>) -> String {
    fs_err::read_to_string(path.as_ref()).unwrap_or_default()
}

/// Trims white space. Returns `None` if nothing is left.
pub(crate) fn non_empty(text: &str) -> Option<String> {
    Some(text.trim()).filter(|text| !text.is_empty()).map(str::to_owned)
}

pub(crate) fn number(path: impl AsRef<Path>) -> Option<u64> {
    read(path).trim().parse().ok()
}

/// Runs a program and returns its standard output. Returns an empty string if the program is missing or fails, or if it does
/// not end in time.
pub(crate) fn output_of(program: &str, arguments: &[&str]) -> String {
    output_within(OUTPUT_TIME_MAX, program, arguments).unwrap_or_default()
}

fn output_within(time_max: Duration, program: &str, arguments: &[&str]) -> Option<String> {
    let until = Instant::now() + time_max;
    let mut command = Command::new(program);
    command.args(arguments).stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::null());
    let mut child = command.spawn().ok()?;
    let mut stdout = child.stdout.take()?;
    let (sender, received) = sync_channel(1);
    thread::spawn(move || {
        let mut bytes = Vec::new();
        let all = stdout.read_to_end(&mut bytes).map(|_| bytes);
        // After the limit, the output is not needed any more.
        drop(sender.send(all));
    });
    let output = received.recv_timeout(time_max).ok().and_then(Result::ok);
    let is_complete = output.is_some() && has_succeeded(&mut child, until);
    if !is_complete {
        drop(child.kill());
        // A program that waits inside a broken driver cannot be killed, so no caller waits for its end.
        thread::spawn(move || drop(child.wait()));
    }
    let output = output.filter(|_| is_complete)?;
    Some(String::from_utf8_lossy(&output).into_owned())
}

/// Waits for the end of a program that has closed its output.
fn has_succeeded(child: &mut Child, until: Instant) -> bool {
    loop {
        match child.try_wait() {
            Ok(Some(status)) => return status.success(),
            Ok(None) if Instant::now() < until => thread::sleep(END_LOOK),
            Ok(None) | Err(_) => return false,
        }
    }
}

/// Creates a folder with the files of another system.
#[cfg(test)]
pub(crate) fn folder_with(files: &[(&str, &str)]) -> tempfile::TempDir {
    let folder = tempfile::tempdir().expect("a folder");
    for (name, text) in files {
        let path = folder.path().join(name);
        fs_err::create_dir_all(path.parent().expect("a folder")).expect("a folder");
        fs_err::write(path, text).expect("a file");
    }
    folder
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_program_s_output_is_read_and_one_that_hangs_is_given_up() {
        let output = |script| output_within(Duration::from_secs(20), "sh", &["-c", script]);
        assert_eq!(output("echo 6083, 8188").as_deref(), Some("6083, 8188\n"));
        assert_eq!(output("echo broken; exit 9"), None);
        assert_eq!(output_of("/nowhere/nvidia-smi", &[]), "");
        let started = Instant::now();
        for hangs in ["exec sleep 600", "exec >&-; exec sleep 600"] {
            let limit = Duration::from_millis(100);
            assert_eq!(output_within(limit, "sh", &["-c", hangs]), None);
        }
        assert!(started.elapsed() < Duration::from_secs(60));
    }
}
