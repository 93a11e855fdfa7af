//! Watches files that decide what agents may do, where the workspace does not have them: a sandbox keeps a command from
//! changing files that are there, and not from making them.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::{Mutex, MutexGuard, PoisonError};

use fs_err as fs;

use super::files::PROTECTED;

/// Workspaces in which commands run. All of this process are here, because several runs may have the same workspace.
static WATCHED: Mutex<BTreeMap<PathBuf, WatchedWorkspace>> = Mutex::new(BTreeMap::new());

#[derive(Debug)]
struct WatchedWorkspace {
    /// Commands that run.
    commands: usize,
    /// Protected files that were not there when the first of these commands began.
    missing: Vec<PathBuf>,
    /// What commands made since then, as sentences for the model.
    found: Vec<String>,
}

/// One command that runs in a workspace. Dropping it looks at the protected files, like [`ProtectedWatch::end`].
#[derive(Debug)]
pub(super) struct ProtectedWatch {
    workspace: PathBuf,
    /// Sentences from before this command.
    earlier: usize,
    is_over: bool,
}

impl ProtectedWatch {
    /// Begins before the command does.
    pub(super) fn begin(workspace: &Path) -> ProtectedWatch {
        let workspace = workspace.canonicalize().unwrap_or_else(|_| workspace.to_owned());
        let mut all = watched();
        let watched = all.entry(workspace.clone()).or_insert_with(|| {
            let paths = PROTECTED.iter().map(|name| workspace.join(name));
            let missing = paths.filter(|path| !is_there(path)).collect();
            WatchedWorkspace { commands: 0, missing, found: Vec::new() }
        });
        watched.commands += 1;
        let earlier = watched.found.len();
        ProtectedWatch { workspace, earlier, is_over: false }
    }

    /// Ends after the command and all its processes. Says what commands made since this one began: which of those that ran
    /// at the same time did it is not known.
    pub(super) fn end(mut self) -> Vec<String> {
        self.look()
    }

    fn look(&mut self) -> Vec<String> {
        let mut all = watched();
        let is_over = std::mem::replace(&mut self.is_over, true);
        let Some(watched) = all.get_mut(&self.workspace).filter(|_| !is_over) else {
            return Vec::new();
        };
        watched.found.extend(watched.missing.iter().filter_map(|path| removed(path)));
        let found = watched.found[self.earlier..].to_vec();
        watched.commands -= 1;
        if watched.commands == 0 {
            all.remove(&self.workspace);
        }
        found
    }
}

/// The call was dropped while its command ran.
impl Drop for ProtectedWatch {
    fn drop(&mut self) {
        self.look();
    }
}

fn watched() -> MutexGuard<'static, BTreeMap<PathBuf, WatchedWorkspace>> {
    WATCHED.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Deletes what is there.
fn removed(path: &Path) -> Option<String> {
    let is_folder = path.symlink_metadata().ok()?.is_dir();
    // What cannot be deleted is named all the same.
    let _left = if is_folder { fs::remove_dir_all(path) } else { fs::remove_file(path) };
    let name = path.file_name().unwrap_or_default().to_string_lossy();
    Some(format!("'{name}' decides what agents may do, so what the command made of it was deleted"))
}

/// A link to nothing is there, too.
fn is_there(path: &Path) -> bool {
    path.symlink_metadata().is_ok()
}
