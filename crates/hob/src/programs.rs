//! Finds installed programs on the PATH, and hob's own.
//! The caller passes the PATH, so that a test can use its own.

use std::ffi::OsStr;
use std::io;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};

/// The program that a shell would start for this name. A name with a folder is a path.
pub(crate) fn find(name: &Path, path: &OsStr) -> Option<PathBuf> {
    if name.components().count() > 1 {
        return is_executable(name).then(|| name.to_path_buf());
    }
    std::env::split_paths(path).map(|folder| folder.join(name)).find(|file| is_executable(file))
}

/// The program of this process, or after an upgrade the one in its place.
///
/// # Errors
/// The system refuses to tell.
pub(crate) fn own_program() -> io::Result<PathBuf> {
    std::env::current_exe().map(upgraded)
}

/// Linux adds a note to the path of a program that was replaced or removed while it runs.
fn upgraded(program: PathBuf) -> PathBuf {
    let plain = program.as_os_str().as_bytes().strip_suffix(b" (deleted)");
    let plain = plain.map(|plain| PathBuf::from(OsStr::from_bytes(plain)));
    plain.filter(|plain| is_executable(plain)).unwrap_or(program)
}

fn is_executable(file: &Path) -> bool {
    let metadata = fs_err::metadata(file);
    metadata.is_ok_and(|found| found.is_file() && found.permissions().mode() & 0o111 != 0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn after_an_upgrade_the_program_is_the_one_in_its_place() {
        let folder = tempfile::tempdir().expect("a folder");
        let place = |name: &str| folder.path().join(name);
        assert_eq!(upgraded(place("hob (deleted)")), place("hob (deleted)"));
        fs_err::write(place("hob"), "").expect("a file");
        fs_err::set_permissions(place("hob"), PermissionsExt::from_mode(0o755)).expect("a mode");
        assert_eq!(upgraded(place("hob (deleted)")), place("hob"));
        assert_eq!(upgraded(place("hob")), place("hob"));
    }

    #[test]
    fn only_what_can_be_started_is_found_and_the_first_wins() {
        let folder = tempfile::tempdir().expect("a folder");
        let place = |name: &str, mode| {
            let file = folder.path().join(name);
            fs_err::create_dir_all(file.parent().expect("a parent")).expect("a folder");
            fs_err::write(&file, "").expect("a file");
            fs_err::set_permissions(&file, PermissionsExt::from_mode(mode)).expect("a mode");
            file
        };
        place("a/play", 0o644);
        let second = place("b/play", 0o755);
        place("c/play", 0o755);
        let path = std::env::join_paths(["a", "b", "c"].map(|name| folder.path().join(name)))
            .expect("a PATH");
        assert_eq!(find(Path::new("play"), &path), Some(second.clone()));
        assert_eq!(find(Path::new("aplay"), &path), None);
        assert_eq!(find(&second, OsStr::new("")), Some(second));
    }
}
