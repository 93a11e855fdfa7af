//! Uses files that the user already has: a folder with the model's files or packages, or one such file.
//! Copies them, never moves them, and checks the same checksums.

use std::fs::File;
use std::io::{self, Read};
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};

use super::download_folder::has_length;
use super::packages::Arrived;
use super::{DownloadFolder, FetchError, npm, packages};
use crate::catalog::{DownloadSource, Origin, Package, SourceFile};
use crate::disk::DiskError;
use crate::progress::{PullStep, Watch};

/// Bytes copied at a time: enough to be fast, and few enough to stop soon.
const COPIED_BYTES: u64 = 16 << 20;

/// Copies the files of a source from the user's folder or file.
///
/// # Errors
/// [`FetchError::NotThere`] names the first missing file; [`FetchError::Checksum`] the first with other bytes.
pub(super) fn take(
    from: &Path,
    source: &DownloadSource,
    missing: &[&SourceFile],
    folder: &DownloadFolder,
    watch: &mut Watch<'_>,
) -> Result<(), FetchError> {
    let paths: Option<Vec<PathBuf>> = missing.iter().map(|file| whole(from, file)).collect();
    if let Some(paths) = paths {
        watch.begin(PullStep::Fetching, Some(super::bytes_of(missing)));
        for (file, path) in missing.iter().zip(paths) {
            copy(&path, &folder.emptied(&file.path)?, watch)?;
            watch.item_done(file.pin.bytes);
        }
        return folder.accept(missing, watch);
    }
    if source.origin.packages().is_empty() {
        let absent = missing.iter().find(|file| whole(from, file).is_none());
        return absent.map_or(Ok(()), |file| Err(not_there(from, &file.path)));
    }
    packages::fetch(source, missing, folder, watch, |package, watch| {
        let found = archive(from, &source.origin, package);
        let path = found.ok_or_else(|| not_there(from, &package.to_string()))?;
        let copied = folder.fresh_work("local")?.join("package");
        copy(&path, &copied, watch)?;
        Ok(Arrived::Archive(folder.keep_archive(package, &copied, watch)?))
    })
}

/// Copies files of this machine, each from its own path.
pub(super) fn copied(
    missing: &[&SourceFile],
    folder: &DownloadFolder,
    watch: &mut Watch<'_>,
) -> Result<(), FetchError> {
    watch.begin(PullStep::Fetching, Some(super::bytes_of(missing)));
    for file in missing {
        let from = file.pieces.first().map_or("", |piece| &piece.at);
        let from = Path::new(from);
        if !from.is_file() {
            let name = from.file_name().unwrap_or_default().to_string_lossy();
            return Err(not_there(from.parent().unwrap_or(from), &name));
        }
        copy(from, &folder.emptied(&file.path)?, watch)?;
        watch.item_done(file.pin.bytes);
    }
    folder.accept(missing, watch)
}

/// Finds a file by hob's name, by the source's name, or by its bare name. A single file is recognised by its length.
fn whole(from: &Path, file: &SourceFile) -> Option<PathBuf> {
    let is_it = |path: &PathBuf| has_length(path, file.pin.bytes);
    if from.is_file() {
        return Some(from.to_path_buf()).filter(is_it);
    }
    let at = match &file.pieces[..] {
        [piece] => piece.at.as_str(),
        _ => "",
    };
    let bare = |path: &str| path.rsplit('/').next().unwrap_or_default().to_owned();
    let names = [file.path.clone(), at.to_owned(), bare(&file.path), bare(at)];
    let mut paths = names.iter().filter(|name| !name.is_empty()).map(|name| from.join(name));
    paths.find(is_it)
}

/// The wheel or tarball, under the name that its index gives it.
fn archive(from: &Path, origin: &Origin, package: &Package) -> Option<PathBuf> {
    let is_it = |path: &Path| {
        let name = path.file_name().unwrap_or_default().to_string_lossy().into_owned();
        match origin {
            Origin::Tarball(_) => name == npm::tarball_name(package),
            _ => {
                let start =
                    format!("{}-{}-", package.name.replace(['-', '.'], "_"), package.version);
                name.to_lowercase().starts_with(&start.to_lowercase()) && name.ends_with(".whl")
            }
        }
    };
    if from.is_file() {
        return Some(from.to_path_buf()).filter(|path| is_it(path));
    }
    let entries = std::fs::read_dir(from).ok()?;
    entries.flatten().map(|entry| entry.path()).find(|path| is_it(path))
}

/// Copies to a path without a file. Only the user can read the copy until it has the permissions of the file.
fn copy(from: &Path, to: &Path, watch: &mut Watch<'_>) -> Result<(), FetchError> {
    watch.check()?;
    let unreadable = |error: io::Error| DiskError::Other {
        path: from.to_path_buf(),
        kind: error.kind(),
        detail: error.to_string(),
    };
    let file = File::open(from).map_err(unreadable)?;
    let permissions = file.metadata().map_err(unreadable)?.permissions();
    // On macOS, a copy of a whole file shares its blocks, and takes no time.
    if cfg!(target_os = "macos") {
        return Ok(std::fs::copy(from, to).map(drop).map_err(DiskError::at(to))?);
    }
    let mut options = File::options();
    options.write(true).create_new(true).mode(0o600);
    let mut copied = options.open(to).map_err(DiskError::at(to))?;
    let mut done_bytes = 0;
    loop {
        let some = io::copy(&mut (&file).take(COPIED_BYTES), &mut copied);
        match some.map_err(DiskError::at(to))? {
            0 => break,
            bytes => done_bytes += bytes,
        }
        watch.at(done_bytes);
        watch.check()?;
    }
    // Refused where all files belong to another user, as on many mounted disks. Then they have other permissions anyway.
    let _kept = copied.set_permissions(permissions);
    Ok(())
}

fn not_there(folder: &Path, file: &str) -> FetchError {
    FetchError::NotThere { folder: folder.to_path_buf(), file: file.to_owned() }
}
