//! Where models are kept, found, checked and removed.
//!
//! ```text
//! ROOT/models/NAME/VERSION-tTRANSFORM/   the stored form; model.json is its manifest, checked.json says
//!                                        which files matched their checksums
//! ROOT/downloads/NAME/                   verified raw files, and what interrupted pulls left
//! ROOT/locks/NAME.lock                   held by the process that changes that model
//! ```
//!
//! In the names of folders, characters that not every file system takes are written as `%` and two digits.
//!
//! A folder is a model only under its final name, and it gets that name by one rename after
//! everything in it is on the disk. There is no index that could disagree with the folders.
//!
//! The store keeps raw files: 92 MB for Kokoro, in addition to 120 MB in stored form. Voices are on the disk once, under
//! two names. So a newer hob can make its stored form again without a network. `remove` deletes raw files too.

mod folders;
mod integrity;
mod lock;
mod manifest;
mod place;

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::time::SystemTime;

use hob_core::nearest;

use crate::Sha256;
use crate::catalog::{Entry, Licence, names};
use crate::disk::{self, DiskError};
use crate::gguf::PartName;
use crate::kokoro::{FRONT, packed_name};
use crate::progress::{Cancelled, PullStep, Watch};
use crate::transform::{MODEL_FILE, WEIGHTS_FILE};
use crate::turn_taking::TURN;
use crate::whisper::VAD;

pub(crate) use folders::is_plain;
pub use integrity::check_changed;
pub(crate) use lock::Lock;
pub use manifest::{Manifest, PartSource, StoredFile};
pub(crate) use place::{NewModel, Parcel};

/// The folder with all models. Opening it changes nothing; folders are created when needed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Store {
    root: PathBuf,
}

#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum StoreError {
    #[error("model '{name}' is not stored: `hob pull {name}` fetches it{}", or_stored(near))]
    Missing { name: String, near: Vec<String> },
    #[error("model '{name}' is damaged: {detail}; `hob pull {name}` repairs it")]
    Damaged { name: String, detail: String },
    #[error(
        "model '{name}' is in use by another hob process; try again when that process has finished"
    )]
    InUse { name: String },
    #[error(transparent)]
    Disk(#[from] DiskError),
    #[error(transparent)]
    Cancelled(#[from] Cancelled),
}

fn or_stored(near: &[String]) -> String {
    if near.is_empty() { String::new() } else { format!(" (stored is {})", near.join(", ")) }
}

/// A stored model whose files have the right sizes. [`Store::verify`] reads them all.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct StoredModel {
    pub manifest: Manifest,
    /// Folder of the manifest's files.
    pub folder: PathBuf,
    /// Bytes that removing the model would free: stored form, raw files and leftovers.
    pub disk_bytes: u64,
}

impl StoredModel {
    pub fn name(&self) -> &str {
        &self.manifest.name
    }

    pub fn licences(&self) -> &[Licence] {
        &self.manifest.licences
    }

    /// The file of a chat model; `None` for other models.
    pub fn chat_file(&self) -> Option<PathBuf> {
        self.chat_entry().map(|file| self.folder.join(&file.path))
    }

    /// The checksum of that file.
    pub fn chat_digest(&self) -> Option<String> {
        self.chat_entry().map(|file| file.sha256.to_string())
    }

    /// The files of a transcription model; `None` for other models.
    pub fn whisper_files(&self) -> Option<WhisperFiles> {
        Some(WhisperFiles { weights: self.file(WEIGHTS_FILE)?, vad: self.file(VAD)? })
    }

    /// Whether the weights of a speech model are as published, or packed in fewer bits. `None` for other models.
    pub fn speech_weights(&self) -> Option<SpeechWeights> {
        match (self.file(FRONT), self.file(&packed_name(FRONT))) {
            (Some(_), _) => Some(SpeechWeights::Published),
            (None, Some(_)) => Some(SpeechWeights::Packed),
            (None, None) => None,
        }
    }

    /// The files of the models of turn taking; `None` for other models.
    pub fn turn_taking_files(&self) -> Option<TurnTakingFiles> {
        Some(TurnTakingFiles { turn: self.file(TURN)?, vad: self.file(VAD)? })
    }

    fn file(&self, path: &str) -> Option<PathBuf> {
        let is_listed = self.manifest.files.iter().any(|file| file.path == path);
        is_listed.then(|| self.folder.join(path))
    }

    fn chat_entry(&self) -> Option<&StoredFile> {
        self.manifest.files.iter().find(|file| is_first_file(&file.path))
    }
}

/// A stored form, to notice when another one has taken its place. A repaired form has the folder of the damaged one.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct StoredForm {
    folder: PathBuf,
    /// `None` if its manifest is gone.
    stored_at: Option<SystemTime>,
}

/// How a speech model's weights are stored.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SpeechWeights {
    Published,
    /// By `hob quantize`.
    Packed,
}

/// The files of the stored models of turn taking.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TurnTakingFiles {
    /// Smart Turn as an ONNX graph: hears whether a sentence is complete.
    pub turn: PathBuf,
    /// Silero VAD as an ONNX graph: hears speech.
    pub vad: PathBuf,
}

/// The files of a stored transcription model.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct WhisperFiles {
    /// A ggml file of whisper.cpp.
    pub weights: PathBuf,
    /// Silero VAD as an ONNX graph: finds speech in a recording.
    pub vad: PathBuf,
}

/// What [`Store::remove`] did.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Removed {
    pub freed_bytes: u64,
}

impl Store {
    pub fn open(root: impl Into<PathBuf>) -> Store {
        Store { root: root.into() }
    }

    pub fn root(&self) -> &Path {
        &self.root
    }

    /// Models that are here and complete, by name. Damaged ones are left out; use [`Self::names`] and [`Self::find`].
    ///
    /// # Errors
    /// The folder cannot be read.
    pub fn list(&self) -> Result<Vec<StoredModel>, StoreError> {
        let names = self.names()?;
        Ok(names.iter().filter_map(|name| self.find(name).ok()).collect())
    }

    /// Names of all models that were stored completely and not removed, damaged ones included, sorted.
    ///
    /// # Errors
    /// The folder cannot be read.
    pub fn names(&self) -> Result<Vec<String>, StoreError> {
        let folders = visible_folders(&self.models())?;
        let mut names: Vec<String> =
            folders.iter().filter_map(|folder| folders::name(folder)).collect();
        names
            .retain(|name| visible_folders(&self.model(name)).is_ok_and(|forms| !forms.is_empty()));
        Ok(names)
    }

    /// The stored name for any of a model's names. A repository without a quant means its only stored quant.
    /// A model that is not here gets its catalog name.
    pub fn stored_name(&self, asked: &str) -> String {
        let is_here = |name: &str| folders::is_plain(name) && self.model(name).exists();
        let canonical = names::canonical(asked);
        if is_here(asked) || is_here(&canonical) {
            return if is_here(asked) { asked.to_owned() } else { canonical };
        }
        let stored = self.names().unwrap_or_default();
        if let Some(same) = stored.iter().find(|name| name.eq_ignore_ascii_case(&canonical)) {
            return same.clone();
        }
        match names::only_quant(&canonical, &stored) {
            Some(only) => only.to_owned(),
            None => canonical,
        }
    }

    /// Finds a stored model.
    ///
    /// # Errors
    /// [`StoreError::Missing`], or [`StoreError::Damaged`] if a file is gone or too short.
    pub fn find(&self, name: &str) -> Result<StoredModel, StoreError> {
        let Some(folder) = self.form(name)? else {
            return Err(self.missing(name));
        };
        let damaged = |detail| StoreError::Damaged { name: name.to_owned(), detail };
        let manifest = Manifest::read(&folder).map_err(damaged)?;
        manifest.check_sizes(&folder).map_err(damaged)?;
        let disk_bytes = disk::used_bytes([&*self.model(name), &*self.downloads(name)]);
        Ok(StoredModel { manifest, folder, disk_bytes })
    }

    /// The manifest of a stored model, whether or not its files are whole.
    pub fn manifest(&self, name: &str) -> Option<Manifest> {
        let folder = self.form(name).ok().flatten()?;
        Manifest::read(&folder).ok()
    }

    /// Checks that the disk has space for a pull of this model.
    ///
    /// # Errors
    /// [`DiskError::TooSmall`] with both numbers.
    pub fn check_room(&self, entry: &Entry) -> Result<(), StoreError> {
        let (stored, downloads) = (self.model(&entry.name), self.downloads(&entry.name));
        let mut here_bytes = disk::used_bytes([&*downloads]);
        // Raw files of another version are replaced, and those that the stored form shares stay on the disk until then.
        if self.manifest(&entry.name).is_some_and(|form| form.version != entry.version) {
            let all_bytes = disk::used_bytes([&*stored, &*downloads]);
            here_bytes = all_bytes.saturating_sub(disk::used_bytes([&*stored]));
        }
        let needed_bytes = entry.pull_bytes_max().saturating_sub(here_bytes);
        let folder = self.root.ancestors().find(|folder| folder.is_dir());
        Ok(folder.map_or(Ok(()), |folder| disk::room_for(folder, needed_bytes))?)
    }

    /// The stored form of each model, whether or not its files are whole.
    ///
    /// # Errors
    /// The folder cannot be read.
    pub fn forms_by_name(&self) -> Result<BTreeMap<String, StoredForm>, StoreError> {
        let forms = self.names()?.into_iter().filter_map(|name| {
            let folder = self.form(&name).ok().flatten()?;
            let manifest = std::fs::metadata(Manifest::file(&folder));
            let stored_at = manifest.and_then(|file| file.modified()).ok();
            Some((name, StoredForm { folder, stored_at }))
        });
        Ok(forms.collect())
    }

    /// Reads every file of the model and compares its checksum.
    ///
    /// # Errors
    /// [`StoreError::Damaged`] names the first file that differs.
    pub fn verify(&self, model: &StoredModel, watch: &mut Watch<'_>) -> Result<(), StoreError> {
        watch.set_part(model.name());
        watch.begin(PullStep::Verifying, Some(model.manifest.bytes()));
        for file in &model.manifest.files {
            let path = model.folder.join(&file.path);
            let got = Sha256::of_file::<StoreError>(&path, watch)?;
            if got != file.sha256 {
                let detail =
                    format!("{} has the checksum {got}, expected {}", file.path, file.sha256);
                return Err(StoreError::Damaged { name: model.name().to_owned(), detail });
            }
            watch.item_done(file.bytes);
        }
        Ok(())
    }

    /// Removes the stored form, the raw files and leftovers of interrupted pulls.
    ///
    /// # Errors
    /// [`StoreError::Missing`] if no model has that name; [`StoreError::InUse`] during a pull.
    pub fn remove(&self, name: &str) -> Result<Removed, StoreError> {
        self.check_has_any(name)?;
        let places = [self.model(name), self.downloads(name)];
        let _lock = Lock::try_hold(self, name)?;
        let freed_bytes = disk::used_bytes(places.iter().map(PathBuf::as_path));
        places.iter().try_for_each(|place| disk::clear(place))?;
        Ok(Removed { freed_bytes })
    }

    /// # Errors
    /// [`StoreError::Missing`] if [`Store::remove`] would find nothing of the model.
    pub fn check_has_any(&self, name: &str) -> Result<(), StoreError> {
        let places = [self.model(name), self.downloads(name)];
        match folders::is_plain(name) && places.iter().any(|place| place.exists()) {
            true => Ok(()),
            false => Err(self.missing(name)),
        }
    }

    /// The folder of the stored form. After a crash there may be two; then the newer transformation wins.
    fn form(&self, name: &str) -> Result<Option<PathBuf>, StoreError> {
        if !folders::is_plain(name) {
            return Ok(None);
        }
        let folder = self.model(name);
        let forms = visible_folders(&folder)?;
        let newest = forms.into_iter().max_by_key(|form| place::transform_version(form));
        Ok(newest.map(|form| folder.join(form)))
    }

    fn missing(&self, name: &str) -> StoreError {
        let stored = self.names().unwrap_or_default();
        let near = nearest(name, stored.iter().map(String::as_str), 3);
        StoreError::Missing { name: name.to_owned(), near }
    }

    fn models(&self) -> PathBuf {
        self.root.join("models")
    }

    pub(crate) fn model(&self, name: &str) -> PathBuf {
        self.models().join(folders::folder(name))
    }

    pub(crate) fn downloads(&self, name: &str) -> PathBuf {
        self.root.join("downloads").join(folders::folder(name))
    }

    fn locks(&self) -> PathBuf {
        self.root.join("locks")
    }

    fn lock(&self, name: &str) -> PathBuf {
        self.locks().join(format!("{}.lock", folders::folder(name)))
    }
}

/// Whether it is the file of a chat model, or the first of its parts, by which the engine finds the others.
fn is_first_file(path: &str) -> bool {
    path == MODEL_FILE || PartName::parse(path).is_some_and(|part| part.number == 1)
}

/// Subfolders, sorted, without those under construction, whose names begin with a dot. A missing folder is empty.
fn visible_folders(folder: &Path) -> Result<Vec<String>, DiskError> {
    let entries = match std::fs::read_dir(folder) {
        Ok(entries) => entries,
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => return Ok(Vec::new()),
        Err(error) => return Err(DiskError::new(folder, &error)),
    };
    let mut names = Vec::new();
    for entry in entries {
        let entry = entry.map_err(DiskError::at(folder))?;
        let is_folder = entry.file_type().is_ok_and(|kind| kind.is_dir());
        let name = entry.file_name().to_string_lossy().into_owned();
        if is_folder && !name.starts_with('.') {
            names.push(name);
        }
    }
    names.sort();
    Ok(names)
}
