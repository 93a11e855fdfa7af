//! Reads system files and the output of system programs.
//! Nothing here fails: a missing file or program gives an empty result.

use std::path::Path;
use std::process::{Command, Stdio};

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

/// Runs a program and returns its standard output. Returns an empty string if the program is missing or fails.
pub(crate) fn output_of(program: &str, arguments: &[&str]) -> String {
    let mut command = Command::new(program);
    command.args(arguments).stdin(Stdio::null()).stderr(Stdio::null());
    let output = command.output().ok().filter(|output| output.status.success());
    output.map(|output| String::from_utf8_lossy(&output.stdout).into_owned()).unwrap_or_default()
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
