//! Disk errors with advice, and free space.
//! The path says which file failed; the caller says which model.

use std::io;
use std::path::{Path, PathBuf};

/// The disk refused an operation.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum DiskError {
    #[error(
        "{} has {} free, and hob needs {}: free some space, or move hob's home to another disk",
        folder.display(), megabytes(*available_bytes), megabytes(*needed_bytes)
    )]
    TooSmall { folder: PathBuf, needed_bytes: u64, available_bytes: u64 },
    #[error(
        "the disk is full: {} could not be written; free some space, or move hob's home to another disk",
        path.display()
    )]
    Full { path: PathBuf },
    #[error("{} is not writable: choose a home for hob that you may write to", path.display())]
    ReadOnly { path: PathBuf },
    #[error("{} is a file, and hob needs a folder there", path.display())]
    NotAFolder { path: PathBuf },
    #[error("{}: {detail}", path.display())]
    Other { path: PathBuf, kind: io::ErrorKind, detail: String },
}

impl DiskError {
    pub(crate) fn new(path: &Path, error: &io::Error) -> DiskError {
        let path = path.to_path_buf();
        match error.kind() {
            io::ErrorKind::StorageFull | io::ErrorKind::QuotaExceeded => DiskError::Full { path },
            io::ErrorKind::ReadOnlyFilesystem | io::ErrorKind::PermissionDenied => {
                DiskError::ReadOnly { path }
            }
            io::ErrorKind::NotADirectory => DiskError::NotAFolder { path },
            kind => DiskError::Other { path, kind, detail: error.to_string() },
        }
    }

    /// For `map_err`: names the path that failed.
    pub(crate) fn at(path: &Path) -> impl Fn(io::Error) -> DiskError {
        move |error| DiskError::new(path, &error)
    }
}

/// Rounded up.
pub(crate) fn megabytes(bytes: u64) -> String {
    format!("{} MB", bytes.div_ceil(1_000_000))
}

/// Creates a folder and its parents.
pub(crate) fn make_folder(path: &Path) -> Result<(), DiskError> {
    std::fs::create_dir_all(path).map_err(|error| match error.kind() {
        // A file has this name. `create_dir_all` would only say "exists".
        io::ErrorKind::AlreadyExists => DiskError::NotAFolder { path: path.to_path_buf() },
        _ => DiskError::new(path, &error),
    })
}

/// Removes a file, or a folder with its content. A missing path is not an error.
pub(crate) fn clear(path: &Path) -> Result<(), DiskError> {
    let removed = match std::fs::symlink_metadata(path) {
        Ok(found) if found.is_dir() => std::fs::remove_dir_all(path),
        Ok(_) => std::fs::remove_file(path),
        Err(error) => Err(error),
    };
    match removed {
        Err(error) if error.kind() != io::ErrorKind::NotFound => Err(DiskError::new(path, &error)),
        _ => Ok(()),
    }
}

/// Waits until a file or folder is on the disk, so that a later rename cannot overtake it. Some file systems, such as those of a
/// network, cannot do this, at least for folders.
pub(crate) fn sync(path: &Path) -> Result<(), DiskError> {
    let cannot = |error: &io::Error| {
        matches!(error.kind(), io::ErrorKind::InvalidInput | io::ErrorKind::Unsupported)
    };
    match std::fs::File::open(path).and_then(|file| file.sync_all()) {
        Err(error) if cannot(&error) => Ok(()),
        done => done.map_err(DiskError::at(path)),
    }
}

/// Bytes that the user may still write where an existing folder is.
///
/// # Errors
/// The system does not report them.
pub fn free_bytes(folder: &Path) -> Result<u64, DiskError> {
    let found = rustix::fs::statvfs(folder)
        .map_err(|error| DiskError::new(folder, &io::Error::from(error)))?;
    Ok(found.f_bavail.saturating_mul(found.f_frsize))
}

/// Checks that `needed_bytes` are free where an existing folder is.
///
/// # Errors
/// [`DiskError::TooSmall`] with both numbers.
pub fn room_for(folder: &Path, needed_bytes: u64) -> Result<(), DiskError> {
    let available_bytes = free_bytes(folder)?;
    if available_bytes < needed_bytes {
        return Err(DiskError::TooSmall { folder: folder.into(), needed_bytes, available_bytes });
    }
    Ok(())
}

/// Bytes of all files below the roots. Hard links count once; files that vanish meanwhile count as 0.
pub(crate) fn used_bytes<'a>(roots: impl IntoIterator<Item = &'a Path>) -> u64 {
    use std::os::unix::fs::MetadataExt;

    let mut seen = std::collections::HashSet::new();
    let mut bytes = 0;
    let mut waiting: Vec<PathBuf> = roots.into_iter().map(Path::to_path_buf).collect();
    while let Some(path) = waiting.pop() {
        let Ok(found) = std::fs::symlink_metadata(&path) else { continue };
        if found.is_dir() {
            let children = std::fs::read_dir(&path).into_iter().flatten().flatten();
            waiting.extend(children.map(|child| child.path()));
        } else if seen.insert((found.dev(), found.ino())) {
            bytes += found.len();
        }
    }
    bytes
}

/// Places a file unchanged: as a hard link where possible, so that it takes no space twice. A copy has the usual permissions: where
/// all files belong to another user, as on many mounted disks, nothing can change them.
///
/// # Errors
/// The file does not exist, or it cannot be placed there.
pub(crate) fn link_or_copy(from: &Path, to: &Path) -> Result<(), DiskError> {
    let linked = std::fs::hard_link(from, to);
    let copy = || io::copy(&mut std::fs::File::open(from)?, &mut std::fs::File::create(to)?);
    linked.or_else(|_| copy().map(drop)).map_err(DiskError::at(to))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_refusal_of_the_disk_has_its_own_name() {
        let path = PathBuf::from("store/model.onnx");
        let named = |kind| DiskError::new(&path, &io::Error::from(kind));
        use io::ErrorKind::*;
        assert_eq!(named(StorageFull), DiskError::Full { path: path.clone() });
        assert_eq!(named(QuotaExceeded), DiskError::Full { path: path.clone() });
        assert_eq!(named(PermissionDenied), DiskError::ReadOnly { path: path.clone() });
        assert_eq!(named(ReadOnlyFilesystem), DiskError::ReadOnly { path: path.clone() });
        assert_eq!(named(NotADirectory), DiskError::NotAFolder { path: path.clone() });
        let detail = io::Error::from(IsADirectory).to_string();
        let other = DiskError::Other { path: path.clone(), kind: IsADirectory, detail };
        assert_eq!(named(IsADirectory), other);
    }

    #[test]
    fn too_little_room_is_said_with_both_numbers() {
        let folder = tempfile::tempdir().expect("a folder");
        assert_eq!(room_for(folder.path(), 1), Ok(()));
        let error = room_for(folder.path(), u64::MAX).expect_err("no disk is that large");
        let DiskError::TooSmall { needed_bytes, available_bytes, .. } = error else {
            panic!("{error}")
        };
        assert_eq!(needed_bytes, u64::MAX);
        assert!(available_bytes > 0);
        let small = DiskError::TooSmall {
            folder: "models".into(),
            needed_bytes: 360_000_001,
            available_bytes: 2_000_000,
        };
        assert!(small.to_string().starts_with("models has 2 MB free, and hob needs 361 MB"));
    }

    #[test]
    fn a_file_in_the_way_of_a_folder_is_named() {
        let folder = tempfile::tempdir().expect("a folder");
        let path = folder.path().join("models");
        std::fs::write(&path, "").expect("a file");
        assert_eq!(make_folder(&path), Err(DiskError::NotAFolder { path: path.clone() }));
        let below = path.join("kokoro");
        assert_eq!(make_folder(&below), Err(DiskError::NotAFolder { path: below.clone() }));
    }

    #[test]
    fn a_place_that_cannot_wait_for_its_disk_is_no_error() {
        // Linux answers EINVAL for it, as for the folders of some file systems.
        assert_eq!(sync(Path::new("/dev/null")), Ok(()));
        let missing = tempfile::tempdir().expect("a folder").path().join("no");
        assert!(sync(&missing).is_err());
    }

    #[test]
    fn two_names_of_one_file_take_its_room_once() {
        let folder = tempfile::tempdir().expect("a folder");
        std::fs::write(folder.path().join("a"), [0; 100]).expect("a file");
        std::fs::create_dir(folder.path().join("below")).expect("a folder");
        std::fs::hard_link(folder.path().join("a"), folder.path().join("below/b")).expect("a link");
        assert_eq!(used_bytes([folder.path()]), 100);
    }
}
