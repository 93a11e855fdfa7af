//! Turns published files into the stored form, once, when a model is stored.
//! The transformation of each model is in the model's own file.

mod chat;
mod dictionary;
mod eight_bits;
mod kokoro;
mod turn_taking;
mod whisper;

use std::path::{Path, PathBuf};

use crate::catalog::{Entry, Purpose};
use crate::gguf::MixError;
use crate::progress::{Cancelled, Watch};
use crate::{DiskError, disk};

pub use chat::ChatTransform;
pub(crate) use chat::MODEL_FILE;
pub use dictionary::DictionaryTransform;
pub use kokoro::KokoroTransform;
pub use turn_taking::TurnTakingTransform;
pub(crate) use whisper::WEIGHTS_FILE;
pub use whisper::WhisperTransform;

/// Nothing, or why there is no stored form.
pub type Transformed = Result<(), TransformError>;

/// Turns raw files into the stored form.
pub trait Transform: Sync {
    /// Increases with every change of the stored form. A stored model of another version is made again.
    fn version(&self) -> u32;

    /// Writes the stored form into `out`, an empty folder.
    ///
    /// # Errors
    /// A raw file is missing or invalid, or a disk error.
    fn apply(&self, raw: &RawFiles, out: &Path, watch: &mut Watch<'_>) -> Transformed;
}

#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum TransformError {
    #[error("the model has no file '{file}'")]
    FileMissing { file: String },
    #[error("'{file}' could not be transformed: {detail}")]
    Refused { file: String, detail: String },
    #[error(transparent)]
    Disk(#[from] DiskError),
    #[error(transparent)]
    Cancelled(#[from] Cancelled),
}

/// The transformation for a model of the catalog, or one that was found elsewhere.
pub fn transform_for(entry: &Entry) -> Box<dyn Transform> {
    match entry.purpose {
        Purpose::Speech => Box::new(KokoroTransform),
        Purpose::Chat => Box::new(ChatTransform::of(entry)),
        Purpose::Transcription => Box::new(WhisperTransform::of(entry)),
        Purpose::TurnTaking => Box::new(TurnTakingTransform),
        Purpose::Dictionary => Box::new(DictionaryTransform),
    }
}

/// The published files, each verified.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RawFiles {
    folder: PathBuf,
    /// Sorted.
    paths: Vec<String>,
}

impl RawFiles {
    pub fn new(folder: PathBuf, mut paths: Vec<String>) -> RawFiles {
        paths.sort();
        RawFiles { folder, paths }
    }

    pub fn paths(&self) -> impl Iterator<Item = &str> {
        self.paths.iter().map(String::as_str)
    }

    /// Path of a file.
    ///
    /// # Errors
    /// The file does not exist.
    pub fn path(&self, file: &str) -> Result<PathBuf, TransformError> {
        if self.paths().any(|path| path == file) {
            Ok(self.folder.join(file))
        } else {
            Err(TransformError::FileMissing { file: file.to_owned() })
        }
    }

    /// Content of a file.
    ///
    /// # Errors
    /// The file does not exist or cannot be read.
    pub fn read(&self, file: &str) -> Result<Vec<u8>, TransformError> {
        let path = self.path(file)?;
        Ok(std::fs::read(&path).map_err(DiskError::at(&path))?)
    }

    /// Places a file unchanged.
    ///
    /// # Errors
    /// The file does not exist, or a disk error.
    pub fn place(&self, file: &str, to: &Path) -> Transformed {
        let from = self.path(file)?;
        Ok(disk::link_or_copy(&from, to)?)
    }
}

/// Writes a file of the stored form.
pub(crate) fn write(path: &Path, bytes: &[u8]) -> Transformed {
    Ok(std::fs::write(path, bytes).map_err(DiskError::at(path))?)
}

impl From<MixError> for TransformError {
    fn from(error: MixError) -> TransformError {
        match error {
            MixError::Disk(error) => error.into(),
            error => TransformError::refused(MODEL_FILE, error),
        }
    }
}

impl TransformError {
    pub(crate) fn refused(file: &str, detail: impl ToString) -> TransformError {
        TransformError::Refused { file: file.to_owned(), detail: detail.to_string() }
    }
}

/// Applies a transformation to files with these paths and bytes.
#[cfg(test)]
fn apply_to(transform: &dyn Transform, files: &[(&str, &[u8])], out: &Path) -> Transformed {
    let folder = tempfile::tempdir().expect("a folder");
    for (path, bytes) in files {
        let file = folder.path().join(path);
        std::fs::create_dir_all(file.parent().expect("a folder")).expect("a folder");
        std::fs::write(file, bytes).expect("a file");
    }
    let paths = files.iter().map(|(path, _)| (*path).to_owned()).collect();
    let raw = RawFiles::new(folder.path().to_path_buf(), paths);
    let cancel = std::sync::atomic::AtomicBool::new(false);
    transform.apply(&raw, out, &mut Watch::new(&mut |_| {}, &cancel))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Catalog;

    #[test]
    fn each_purpose_is_stored_in_its_own_form() {
        let catalog = Catalog::builtin();
        let version = |name| transform_for(catalog.find(name).expect(name)).version();
        assert_eq!(version("kokoro"), KokoroTransform.version());
        assert_eq!(version("smollm2"), ChatTransform::EIGHT_BITS.version());
        assert_eq!(version("smart-turn"), TurnTakingTransform.version());
        assert_eq!(version("mandarin"), DictionaryTransform.version());
        assert_eq!(version("whisper-base"), WhisperTransform::default().version());
    }

    #[test]
    fn raw_files_give_only_what_was_verified() {
        let folder = tempfile::tempdir().expect("a folder");
        std::fs::create_dir(folder.path().join("voices")).expect("a folder");
        for file in ["voices/b.bin", "voices/a.bin", "stray.bin"] {
            std::fs::write(folder.path().join(file), file).expect("a file");
        }
        let listed = vec!["voices/b.bin".to_owned(), "voices/a.bin".to_owned()];
        let raw = RawFiles::new(folder.path().to_path_buf(), listed);
        assert_eq!(raw.paths().collect::<Vec<_>>(), ["voices/a.bin", "voices/b.bin"]);
        assert_eq!(raw.read("voices/a.bin"), Ok(b"voices/a.bin".to_vec()));
        let missing = TransformError::FileMissing { file: "stray.bin".to_owned() };
        assert_eq!(raw.read("stray.bin"), Err(missing));
    }

    #[test]
    fn a_place_that_cannot_be_written_is_the_disks_refusal() {
        let folder = tempfile::tempdir().expect("a folder");
        std::fs::write(folder.path().join("a"), "a").expect("a file");
        let raw = RawFiles::new(folder.path().to_path_buf(), vec!["a".to_owned()]);
        let below_a_file = folder.path().join("a/b");
        let refused = DiskError::NotAFolder { path: below_a_file.clone() };
        assert_eq!(raw.place("a", &below_a_file), Err(TransformError::Disk(refused)));
    }
}
