//! Places a new stored form: built under a hidden name, written to the disk, then renamed.
//! A crash at any moment leaves the old form, the new one, or none.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

use super::integrity;
use super::manifest::{Manifest, PartSource, StoredFile};
use super::{Store, StoreError};
use crate::Sha256;
use crate::catalog::Entry;
use crate::disk::{self, DiskError, clear, make_folder, sync};
use crate::progress::{PullStep, Watch};

/// First character of names that are not complete models.
const HIDDEN: char = '.';

/// A stored form under construction. The caller holds the model's lock. Dropping it before placing removes it.
#[derive(Debug)]
pub(crate) struct Parcel {
    folder: tempfile::TempDir,
    parent: PathBuf,
}

/// What is known about the new form.
#[derive(Debug)]
pub(crate) struct NewModel<'a> {
    pub(crate) entry: &'a Entry,
    pub(crate) transform_version: u32,
    pub(crate) sources: Vec<PartSource>,
    /// What [`Manifest::asked`] keeps.
    pub(crate) asked: Option<String>,
}

impl Parcel {
    /// An empty folder on the file system of the final place, so that a rename works. Removes leftovers of
    /// interrupted pulls.
    pub(crate) fn new(store: &Store, name: &str) -> Result<Parcel, DiskError> {
        let parent = store.model(name);
        make_folder(&parent)?;
        clear_hidden(&parent)?;
        let folder = tempfile::Builder::new()
            .prefix(&format!("{HIDDEN}new-"))
            .tempdir_in(&parent)
            .map_err(DiskError::at(&parent))?;
        Ok(Parcel { folder, parent })
    }

    pub(crate) fn folder(&self) -> &Path {
        self.folder.path()
    }

    /// Writes the manifest, gives the folder its final name, and removes older forms.
    pub(crate) fn place(self, new: NewModel<'_>, watch: &mut Watch<'_>) -> Result<(), StoreError> {
        let form = form_name(&new.entry.version, new.transform_version);
        let files = sum_files(self.folder.path(), watch)?;
        let NewModel { entry, transform_version, sources, asked } = new;
        let manifest = Manifest::new(entry, transform_version, sources, files, asked);
        manifest.write(self.folder.path())?;
        integrity::record(self.folder.path(), &manifest)?;
        sync_all(self.folder.path())?;
        let target = self.parent.join(&form);
        self.set_aside(&target)?;
        let built = self.folder.keep();
        std::fs::rename(&built, &target).map_err(DiskError::at(&target))?;
        sync(&self.parent)?;
        clear_others(&self.parent, &form)?;
        Ok(())
    }

    /// An existing form of the same name is damaged or unwanted.
    fn set_aside(&self, target: &Path) -> Result<(), DiskError> {
        if !target.exists() {
            return Ok(());
        }
        let aside = self.parent.join(format!("{HIDDEN}old-{}", std::process::id()));
        clear(&aside)?;
        std::fs::rename(target, &aside).map_err(DiskError::at(target))
    }
}

fn form_name(version: &str, transform_version: u32) -> String {
    format!("{version}-t{transform_version}")
}

/// The transformation version in the name of a form's folder.
pub(super) fn transform_version(form: &str) -> Option<u32> {
    form.rsplit_once("-t").and_then(|(_, version)| version.parse().ok())
}

fn clear_hidden(parent: &Path) -> Result<(), DiskError> {
    for name in children(parent)? {
        if name.starts_with(HIDDEN) {
            clear(&parent.join(name))?;
        }
    }
    Ok(())
}

fn clear_others(parent: &Path, form: &str) -> Result<(), DiskError> {
    for name in children(parent)? {
        if name != form {
            clear(&parent.join(name))?;
        }
    }
    Ok(())
}

fn children(folder: &Path) -> Result<Vec<String>, DiskError> {
    let entries = std::fs::read_dir(folder).map_err(DiskError::at(folder))?;
    let names = entries.map(|entry| Ok(entry?.file_name().to_string_lossy().into_owned()));
    names.collect::<std::io::Result<_>>().map_err(DiskError::at(folder))
}

/// All files below a folder, by relative path, sorted.
fn files_below(folder: &Path) -> Result<Vec<(String, PathBuf)>, DiskError> {
    let mut files = Vec::new();
    let mut waiting = vec![String::new()];
    while let Some(prefix) = waiting.pop() {
        for name in children(&folder.join(&prefix))? {
            let path = format!("{prefix}{name}");
            if folder.join(&path).is_dir() {
                waiting.push(format!("{path}/"));
            } else {
                files.push((path.clone(), folder.join(path)));
            }
        }
    }
    files.sort();
    Ok(files)
}

fn sum_files(folder: &Path, watch: &mut Watch<'_>) -> Result<Vec<StoredFile>, StoreError> {
    watch.begin(PullStep::Verifying, Some(disk::used_bytes([folder])));
    let mut files = Vec::new();
    for (path, file) in files_below(folder)? {
        let bytes = std::fs::metadata(&file).map_err(DiskError::at(&file))?.len();
        let sha256 = Sha256::of_file::<StoreError>(&file, watch)?;
        watch.item_done(bytes);
        files.push(StoredFile { path, bytes, sha256 });
    }
    Ok(files)
}

/// Flushes the files, then each folder once.
fn sync_all(folder: &Path) -> Result<(), DiskError> {
    let mut folders = BTreeSet::from([folder.to_path_buf()]);
    for (_, file) in files_below(folder)? {
        sync(&file)?;
        folders.extend(file.parent().map(Path::to_path_buf));
    }
    folders.iter().try_for_each(|folder| sync(folder))
}
