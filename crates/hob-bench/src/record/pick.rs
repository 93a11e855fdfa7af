//! Finds a record by its file, its id, or the end of its id, and reads its samples.
//! A folder stands for all its records except corrected ones.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

use thiserror::Error;
use uuid::Uuid;

use super::samples::BYTES_MAX;
use super::{RawSample, Record, RecordError, RecordStore, read_bytes, read_file, unpack_samples};

#[derive(Debug, Error)]
pub enum PickError {
    #[error("no run in {folder} ends in '{wanted}'")]
    None { folder: String, wanted: String },
    #[error("several runs end in '{wanted}'")]
    Several { wanted: String },
    #[error(transparent)]
    Record(#[from] RecordError),
}

impl RecordStore {
    /// Reads a file, or finds the record whose id ends with this text. Returns its path too.
    ///
    /// # Errors
    /// There is no such record, there are several, or it is damaged.
    pub fn pick(&self, wanted: &str) -> Result<(PathBuf, Record), PickError> {
        let file = Path::new(wanted);
        if file.is_file() {
            return Ok((file.to_owned(), read_file(file)?));
        }
        let none = || PickError::None {
            folder: self.folder().display().to_string(),
            wanted: wanted.to_owned(),
        };
        if !self.folder().is_dir() {
            return Err(none());
        }
        let end = wanted.to_lowercase().replace('-', "");
        let is_wanted = |record: &Record| record.id.simple().to_string().ends_with(&end);
        let all = self.read()?.records.into_iter();
        let mut fitting = all.filter(|(_, record)| !end.is_empty() && is_wanted(record));
        match (fitting.next(), fitting.next()) {
            (Some((place, record)), None) => Ok((self.folder().join(place), record)),
            (Some(_), Some(_)) => Err(PickError::Several { wanted: wanted.to_owned() }),
            (None, _) => Err(none()),
        }
    }

    /// Like [`RecordStore::pick`], and all records of a folder that no other one of it corrects.
    ///
    /// # Errors
    /// See [`RecordStore::pick`]. Other files in a folder are ignored.
    pub fn pick_all(&self, wanted: &str) -> Result<Vec<(PathBuf, Record)>, PickError> {
        let folder = Path::new(wanted);
        if !folder.is_dir() {
            return Ok(vec![self.pick(wanted)?]);
        }
        let mut records = RecordStore::new(folder).read()?.records;
        let corrected: BTreeSet<Uuid> =
            records.iter().filter_map(|(_, record)| record.supersedes).collect();
        records.retain(|(_, record)| !corrected.contains(&record.id));
        Ok(records.into_iter().map(|(place, record)| (folder.join(place), record)).collect())
    }
}

/// Reads the samples file of a record. None if the record has no samples, or if its folder lacks the file.
///
/// # Errors
/// The file does not match the record's hash.
pub fn samples_beside(file: &Path, record: &Record) -> Result<Option<Vec<RawSample>>, RecordError> {
    let Some(kept) = &record.samples else { return Ok(None) };
    let path = kept.path_in(file.parent().unwrap_or(Path::new("")));
    match path.map(|path| read_bytes(&path, BYTES_MAX)) {
        Some(Ok(bytes)) => unpack_samples(kept, &bytes).map(Some),
        Some(Err(_)) | None => Ok(None),
    }
}
