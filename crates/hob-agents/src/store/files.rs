//! The files that a run has made in its own folder. Runs in a folder of the user have none here.
//! The folder is a capability, as it is for the tools: no path and no link leaves it.

use std::io::{self, Read as _};
use std::path::{Path, PathBuf};

use cap_std::ambient_authority;
use cap_std::fs::Dir;

use super::{RunStore, StoredRun};

/// Name of the folder with the files that a run has made, inside the run's folder.
const FILES: &str = "files";
/// Maximum files of a run in a list.
pub const RUN_FILES_MAX: usize = 200;
/// Maximum depth of the folders that are listed.
const DEPTH_MAX: usize = 8;
/// Largest file in bytes that is read.
const FILE_BYTES_MAX: u64 = 16 << 20;

/// A file of a run.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RunFile {
    /// Relative to the run's folder of files, with `/`.
    pub path: String,
    pub bytes: u64,
}

impl StoredRun {
    /// Makes the run's own folder of files.
    ///
    /// # Errors
    /// The folder cannot be made, or exists.
    pub fn make_files_folder(&self) -> io::Result<PathBuf> {
        let folder = self.files_folder();
        std::fs::create_dir(&folder)?;
        Ok(folder)
    }

    /// The run's own folder of files. Runs in a folder of the user have none.
    pub fn files_folder(&self) -> PathBuf {
        self.folder().join(FILES)
    }
}

impl RunStore {
    /// The files of a run in order, at most [`RUN_FILES_MAX`]. Links are left out.
    ///
    /// # Errors
    /// There is no such run, or its files cannot be listed.
    pub fn files(&self, run_id: &str) -> io::Result<Vec<RunFile>> {
        let mut files = Vec::new();
        if let Some(folder) = self.files_of(run_id)? {
            list(&folder, Path::new(""), &mut files)?;
        }
        files.sort_by(|a, b| a.path.cmp(&b.path));
        Ok(files)
    }

    /// The content of one file of a run. `None`: there is no such file, or the path leaves the folder.
    ///
    /// # Errors
    /// There is no such run, or the file is too large or cannot be read.
    pub fn file(&self, run_id: &str, path: &str) -> io::Result<Option<Vec<u8>>> {
        let Some(folder) = self.files_of(run_id)? else { return Ok(None) };
        // Before it is opened: opening a FIFO waits for a writer.
        let Ok(found) = folder.metadata(path) else { return Ok(None) };
        if !found.is_file() {
            return Ok(None);
        }
        let mut bytes = Vec::new();
        folder.open(path)?.take(FILE_BYTES_MAX + 1).read_to_end(&mut bytes)?;
        if bytes.len() as u64 > FILE_BYTES_MAX {
            let reason = format!("{path} has more than {FILE_BYTES_MAX} bytes, which is the limit");
            return Err(io::Error::new(io::ErrorKind::FileTooLarge, reason));
        }
        Ok(Some(bytes))
    }

    fn files_of(&self, run_id: &str) -> io::Result<Option<Dir>> {
        self.state_path(run_id)?;
        let folder = self.folder_of(run_id).join(FILES);
        match Dir::open_ambient_dir(folder, ambient_authority()) {
            Ok(folder) => Ok(Some(folder)),
            Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
            Err(error) => Err(error),
        }
    }
}

fn list(folder: &Dir, inside: &Path, files: &mut Vec<RunFile>) -> io::Result<()> {
    for entry in folder.entries()? {
        let entry = entry?;
        let (path, kind) = (inside.join(entry.file_name()), entry.file_type()?);
        if files.len() == RUN_FILES_MAX {
            return Ok(());
        }
        // A command of the run may have removed an entry since, or may have closed a folder.
        if kind.is_dir()
            && inside.components().count() < DEPTH_MAX
            && let Ok(folder) = entry.open_dir()
        {
            list(&folder, &path, files)?;
        } else if kind.is_file()
            && let (Some(path), Ok(found)) = (path.to_str(), entry.metadata())
        {
            files.push(RunFile { path: path.to_owned(), bytes: found.len() });
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::super::tests::stored_run;
    use super::*;

    #[test]
    fn files_are_listed_and_read() {
        let (_folder, store) = stored_run();
        assert_eq!(store.files("run-1").expect("none"), []);
        let files = store.folder_of("run-1").join(FILES);
        std::fs::create_dir_all(files.join("src")).expect("made");
        std::fs::write(files.join("src/main.rs"), "fn main() {}").expect("written");
        std::fs::write(files.join("a.txt"), "a").expect("written");
        let listed = store.files("run-1").expect("files");
        let listed: Vec<_> = listed.iter().map(|file| (file.path.as_str(), file.bytes)).collect();
        assert_eq!(listed, [("a.txt", 1), ("src/main.rs", 12)]);
        let read = store.file("run-1", "src/main.rs").expect("read");
        assert_eq!(read.as_deref(), Some(&b"fn main() {}"[..]));
    }

    /// Shows nothing where root runs it, because root can open every folder.
    #[cfg(unix)]
    #[test]
    fn a_folder_that_cannot_be_opened_hides_no_other_file() {
        use std::os::unix::fs::PermissionsExt as _;

        let (_folder, store) = stored_run();
        let files = store.folder_of("run-1").join(FILES);
        let closed = files.join("closed");
        std::fs::create_dir_all(&closed).expect("made");
        std::fs::write(files.join("a.txt"), "a").expect("written");
        let allow = |mode: u32| {
            std::fs::set_permissions(&closed, std::fs::Permissions::from_mode(mode))
                .expect("changed");
        };
        allow(0);
        let listed = store.files("run-1");
        allow(0o700);
        assert_eq!(listed.expect("files"), [RunFile { path: "a.txt".to_owned(), bytes: 1 }]);
    }

    #[cfg(unix)]
    #[test]
    fn no_path_leaves_the_folder() {
        let (_folder, store) = stored_run();
        let files = store.folder_of("run-1").join(FILES);
        std::fs::create_dir(&files).expect("made");
        std::os::unix::fs::symlink("../state.json", files.join("link")).expect("linked");
        std::os::unix::fs::symlink("/etc", files.join("etc")).expect("linked");
        assert_eq!(store.files("run-1").expect("none"), []);
        for path in
            ["../state.json", "link", "/etc/passwd", "etc/passwd", "x/../../state.json", ".", ""]
        {
            assert_eq!(store.file("run-1", path).expect("no error"), None, "{path}");
        }
        assert!(store.file("../run-1", "a").is_err());
    }
}
