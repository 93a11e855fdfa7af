//! Names the protected files, which decide what agents may do, and undoes what commands do to them. A sandbox keeps commands from
//! changing those that exist. It cannot keep them from making files that are missing, or replacing links: these are watched.

use std::collections::BTreeMap;
use std::fs::Permissions;
use std::io;
use std::os::unix::fs::{MetadataExt as _, PermissionsExt as _, symlink};
use std::path::{Path, PathBuf};
use std::sync::{Mutex, MutexGuard};

use fs_err as fs;
use hob_core::locked;

/// Files that decide what agents may do.
pub(super) const PROTECTED: [&str; 2] = ["teams", "hob.toml"];

/// Workspaces in which commands run. One map for the whole process, because several runs may have the same workspace.
static WATCHED: Mutex<BTreeMap<PathBuf, WatchedWorkspace>> = Mutex::new(BTreeMap::new());

#[derive(Debug)]
struct WatchedWorkspace {
    /// Commands that run.
    commands: usize,
    /// Protected files that a sandbox cannot keep as they are, when the first of these commands began.
    before: Vec<(PathBuf, Unguarded)>,
    /// What commands made since then, as sentences for the model.
    found: Vec<String>,
}

/// A protected file over which nothing can be mounted.
#[derive(Debug, PartialEq, Eq)]
enum Unguarded {
    Missing,
    Link {
        text: PathBuf,
        target: Option<PathBuf>,
        /// Device and inode of a target in the workspace: a command can replace such a target.
        inner: Option<(u64, u64)>,
    },
}

impl Unguarded {
    /// `None` for a file or folder that exists: the sandbox keeps it as it is.
    fn of(path: &Path) -> Option<Unguarded> {
        let Ok(found) = path.symlink_metadata() else { return Some(Unguarded::Missing) };
        if !found.is_symlink() {
            return None;
        }
        let target = path.canonicalize().ok();
        let is_inner =
            |target: &PathBuf| path.parent().is_some_and(|root| target.starts_with(root));
        let inner = target.as_ref().filter(|target| is_inner(target));
        let inner = inner.and_then(|target| target.metadata().ok());
        let inner = inner.map(|found| (found.dev(), found.ino()));
        Some(Unguarded::Link { text: path.read_link().ok()?, target, inner })
    }

    /// Restores a protected file. Returns a sentence if it had changed.
    fn restore(&mut self, path: &Path) -> Option<String> {
        if Unguarded::of(path).as_ref() == Some(&*self) {
            return None;
        }
        let said = move_aside_and_report(path);
        let Unguarded::Link { text, .. } = &*self else { return said };
        let is_back = symlink(text, path).is_ok() && Unguarded::of(path).as_ref() == Some(&*self);
        if is_back {
            let name = path.file_name().unwrap_or_default().to_string_lossy();
            let again =
                || format!("hob made the link '{name}' again: it decides what agents may do");
            return said.or_else(|| Some(again()));
        }
        // The link leads to something that a command has made.
        let led = move_aside_and_report(path);
        *self = Unguarded::Missing;
        said.or(led)
    }
}

/// Whether a path below the workspace names a file that decides what agents may do.
pub(super) fn is_protected(path: &Path) -> bool {
    let path = path.strip_prefix(".").unwrap_or(path);
    PROTECTED.into_iter().any(|name| is_in(path, Path::new(name)))
}

/// Whether a path is that of `place` or of something in it. Case is ignored, because some file systems ignore it. Those of a Mac
/// also take `ſ` for `s`, which have the same capital letter, and HFS+ ignores invisible signs.
pub(super) fn is_in(path: &Path, place: &Path) -> bool {
    let is_visible = |sign: &char| {
        !matches!(sign, '\u{200c}'..='\u{200f}' | '\u{202a}'..='\u{202e}'
            | '\u{206a}'..='\u{206f}' | '\u{feff}')
    };
    let capitals = |path: &Path| {
        let name: String = path.to_string_lossy().chars().filter(is_visible).collect();
        PathBuf::from(name.to_uppercase())
    };
    capitals(path).starts_with(capitals(place))
}

/// What the protected names lead to in the workspace. Nothing can be mounted over a link itself.
pub(super) fn guarded(workspace: &Path) -> impl Iterator<Item = PathBuf> {
    let targets = PROTECTED.iter().filter_map(move |name| workspace.join(name).canonicalize().ok());
    targets.filter(move |target| target.starts_with(workspace))
}

/// One command that runs in a workspace. Dropping it restores the protected files, like [`ProtectedWatch::end`].
#[derive(Debug)]
pub(super) struct ProtectedWatch {
    workspace: PathBuf,
    /// Number of sentences that were found before this command.
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
            let before = paths.filter_map(|path| Some((path.clone(), Unguarded::of(&path)?)));
            WatchedWorkspace { commands: 0, before: before.collect(), found: Vec::new() }
        });
        watched.commands += 1;
        let earlier = watched.found.len();
        ProtectedWatch { workspace, earlier, is_over: false }
    }

    /// Ends after the command and all its processes. Says what commands made since this one began. If several ran at the
    /// same time, it is unknown which one did it.
    pub(super) fn end(mut self) -> Vec<String> {
        self.finish()
    }

    /// Restores the files, the first time that it is called.
    fn finish(&mut self) -> Vec<String> {
        let mut all = watched();
        let is_over = std::mem::replace(&mut self.is_over, true);
        let Some(watched) = all.get_mut(&self.workspace).filter(|_| !is_over) else {
            return Vec::new();
        };
        let restored = watched.before.iter_mut().filter_map(|(path, before)| before.restore(path));
        watched.found.extend(restored);
        let found = watched.found[self.earlier..].to_vec();
        watched.commands -= 1;
        if watched.commands == 0 {
            all.remove(&self.workspace);
        }
        found
    }
}

/// For a call that was dropped while its command ran.
impl Drop for ProtectedWatch {
    fn drop(&mut self) {
        self.finish();
    }
}

fn watched() -> MutexGuard<'static, BTreeMap<PathBuf, WatchedWorkspace>> {
    locked(&WATCHED)
}

/// Renames what is there, because it may be the user's own file. The model and the log get a sentence about it.
fn move_aside_and_report(path: &Path) -> Option<String> {
    path.symlink_metadata().ok()?;
    let name = path.file_name().unwrap_or_default().to_string_lossy();
    let moved = match move_aside(path) {
        Ok(aside) => format!("and is now '{aside}'"),
        Err(error) => format!("and cannot be moved aside: {error}"),
    };
    let sentence =
        format!("'{name}' decides what agents may do. It was made while a command ran, {moved}");
    tracing::warn!(path = %path.display(), "{sentence}");
    Some(sentence)
}

/// Gives the new name, in the same folder.
fn move_aside(path: &Path) -> io::Result<String> {
    let name = path.file_name().unwrap_or_default().to_string_lossy();
    let asides = (1_u64..).map(|number| format!("{name}.from-a-command-{number}"));
    let mut free = asides.filter(|aside| !is_there(&path.with_file_name(aside)));
    let aside = free.next().unwrap_or_default();
    let target = path.with_file_name(&aside);
    if fs::rename(path, &target).is_err() {
        // The command may have made the workspace read-only.
        let folder = path.parent().unwrap_or(path);
        let mode = fs::metadata(folder)?.permissions().mode() | 0o700;
        fs::set_permissions(folder, Permissions::from_mode(mode))?;
        fs::rename(path, &target)?;
    }
    Ok(aside)
}

/// Also true for a link to nothing.
fn is_there(path: &Path) -> bool {
    path.symlink_metadata().is_ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_a_user_makes_while_a_command_runs_is_kept() {
        let folder = tempfile::tempdir().expect("a folder");
        for number in [1, 2] {
            let watch = ProtectedWatch::begin(folder.path());
            fs::create_dir(folder.path().join("teams")).expect("a folder");
            fs::write(folder.path().join("teams/mine.toml"), "mine").expect("a file");
            let aside = format!("teams.from-a-command-{number}");
            let found = watch.end();
            assert!(matches!(&found[..], [one] if one.contains(&aside)), "{found:?}");
            assert!(!is_there(&folder.path().join("teams")));
            let kept = fs::read_to_string(folder.path().join(aside).join("mine.toml"));
            assert_eq!(kept.expect("a file"), "mine");
        }
        assert_eq!(ProtectedWatch::begin(folder.path()).end(), [""; 0]);
    }
}
