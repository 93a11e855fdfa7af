//! Writes the small programs that play other programs in tests.
//! A file that a process has open for writing cannot be started (`ETXTBSY`), and a child that another test starts
//! at that moment inherits the open file. So another process, `cp`, writes the file that will be started.

use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use std::process::Command;

pub(crate) fn write_executable(path: &Path, script: &str) {
    let draft = path.with_extension("draft");
    std::fs::write(&draft, script).expect("a script");
    std::fs::set_permissions(&draft, PermissionsExt::from_mode(0o755)).expect("a mode");
    let copied = Command::new("cp").arg("-p").args([&*draft, path]).status();
    assert!(copied.is_ok_and(|status| status.success()), "{} was not written", path.display());
    std::fs::remove_file(draft).expect("deleted");
}
