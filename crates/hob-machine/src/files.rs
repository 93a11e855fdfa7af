//! Reading what the system says in files, and asking its programs.
//! What is not there is not known: nothing here fails.

use std::path::Path;
use std::process::{Command, Stdio};

/// Empty where there is none.
pub(crate) fn read(path: impl AsRef<Path>) -> String {
    fs_err::read_to_string(path.as_ref()).unwrap_or_default()
}

/// Without the white space around it; none where nothing is left.
pub(crate) fn said(text: &str) -> Option<String> {
    Some(text.trim()).filter(|text| !text.is_empty()).map(str::to_owned)
}

pub(crate) fn number(path: impl AsRef<Path>) -> Option<u64> {
    read(path).trim().parse().ok()
}

/// What a program says on its standard output; empty where there is no such program.
pub(crate) fn told_by(program: &str, arguments: &[&str]) -> String {
    let mut command = Command::new(program);
    command.args(arguments).stdin(Stdio::null()).stderr(Stdio::null());
    let output = command.output().ok().filter(|output| output.status.success());
    output.map(|output| String::from_utf8_lossy(&output.stdout).into_owned()).unwrap_or_default()
}

/// A folder with the files of a system that is not this one.
#[cfg(test)]
pub(crate) fn written(files: &[(&str, &str)]) -> tempfile::TempDir {
    let folder = tempfile::tempdir().expect("a folder");
    for (name, text) in files {
        let path = folder.path().join(name);
        fs_err::create_dir_all(path.parent().expect("a folder")).expect("a folder");
        fs_err::write(path, text).expect("a file");
    }
    folder
}
