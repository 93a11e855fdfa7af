//! One record out of many: by its file, by its id, or by the end of its id; and the samples beside it.
//! A folder is all that holds in it: what another record corrects does not.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

use fs_err as fs;
use thiserror::Error;
use uuid::Uuid;

use super::{RawSample, Record, RecordError, Shelf, read_file, unpack_samples};

#[derive(Debug, Error)]
pub enum PickError {
    #[error("no run in {folder} ends in '{wanted}'")]
    None { folder: String, wanted: String },
    #[error("several runs end in '{wanted}'")]
    Several { wanted: String },
    #[error(transparent)]
    Record(#[from] RecordError),
}

impl Shelf {
    /// A file, or the one whose id ends so; with its place on the disk.
    ///
    /// # Errors
    /// There is none, or there are several, or it is damaged.
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

    /// As [`Shelf::pick`]; of a folder all that hold.
    ///
    /// # Errors
    /// As there. Files of a folder that are no records are left out.
    pub fn pick_all(&self, wanted: &str) -> Result<Vec<(PathBuf, Record)>, PickError> {
        let folder = Path::new(wanted);
        if !folder.is_dir() {
            return Ok(vec![self.pick(wanted)?]);
        }
        let mut records = Shelf::new(folder).read()?.records;
        let corrected: BTreeSet<Uuid> =
            records.iter().filter_map(|(_, record)| record.supersedes).collect();
        records.retain(|(_, record)| !corrected.contains(&record.id));
        Ok(records.into_iter().map(|(place, record)| (folder.join(place), record)).collect())
    }
}

/// None where the record has none, or its file is elsewhere.
///
/// # Errors
/// The file is there and is not what the record says.
pub fn samples_beside(file: &Path, record: &Record) -> Result<Option<Vec<RawSample>>, RecordError> {
    let Some(kept) = &record.samples else { return Ok(None) };
    // A name only: a record must not lead out of its folder.
    let is_name = Path::new(&kept.file).file_name().is_some_and(|name| name == kept.file.as_str());
    match fs::read(file.with_file_name(&kept.file)) {
        Ok(bytes) if is_name => unpack_samples(kept, &bytes).map(Some),
        _ => Ok(None),
    }
}
