//! `model.json`: what a stored model is, where it came from, and its files.
//! Written last, while the folder has a temporary name.

use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};

use crate::catalog::{Entry, Licence};
use crate::{DiskError, Sha256};

const FILE: &str = "model.json";
/// Increases when the manifest's format changes.
const FORMAT: u32 = 1;
/// A manifest has a few kilobytes. Larger files are rejected.
const BYTES_MAX: u64 = 1 << 20;

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Manifest {
    format: u32,
    pub name: String,
    pub title: String,
    pub version: String,
    pub licences: Vec<Licence>,
    /// The source of each part, for people.
    pub sources: Vec<PartSource>,
    /// What the user asked for, if neither the name nor the sources say where to find the model again.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub asked: Option<String>,
    pub transform_version: u32,
    /// Sorted by path.
    pub files: Vec<StoredFile>,
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct PartSource {
    pub part: String,
    pub source: String,
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct StoredFile {
    pub path: String,
    pub bytes: u64,
    pub sha256: Sha256,
}

impl Manifest {
    /// Path of the manifest in a model's folder.
    pub fn file(folder: &Path) -> PathBuf {
        folder.join(FILE)
    }

    pub(crate) fn new(
        entry: &Entry,
        transform_version: u32,
        sources: Vec<PartSource>,
        files: Vec<StoredFile>,
        asked: Option<String>,
    ) -> Manifest {
        Manifest {
            format: FORMAT,
            name: entry.name.clone(),
            title: entry.title.clone(),
            version: entry.version.clone(),
            licences: entry.licences.clone(),
            sources,
            asked,
            transform_version,
            files,
        }
    }

    /// Bytes of all stored files.
    pub fn bytes(&self) -> u64 {
        self.files.iter().map(|file| file.bytes).sum()
    }

    pub(super) fn write(&self, folder: &Path) -> Result<(), DiskError> {
        let path = Manifest::file(folder);
        let text = serde_json::to_vec_pretty(self)
            .map_err(|error| DiskError::new(&path, &error.into()))?;
        std::fs::write(&path, text).map_err(DiskError::at(&path))
    }

    /// Reads a manifest.
    ///
    /// # Errors
    /// What is wrong with it, for people.
    pub(super) fn read(folder: &Path) -> Result<Manifest, String> {
        let path = Manifest::file(folder);
        let bytes = std::fs::metadata(&path).map_err(|error| format!("{FILE}: {error}"))?.len();
        if bytes > BYTES_MAX {
            return Err(format!("{FILE} has {bytes} bytes, and {BYTES_MAX} is the limit"));
        }
        let text = std::fs::read(&path).map_err(|error| format!("{FILE}: {error}"))?;
        let manifest: Manifest =
            serde_json::from_slice(&text).map_err(|error| format!("{FILE}: {error}"))?;
        if manifest.format != FORMAT {
            let format = manifest.format;
            return Err(format!("{FILE} has format {format}, and this hob reads {FORMAT}"));
        }
        Ok(manifest)
    }

    /// A cheap check for every lookup: all files exist with the right lengths.
    pub(super) fn check_sizes(&self, folder: &Path) -> Result<(), String> {
        self.files.iter().try_for_each(|file| match std::fs::metadata(folder.join(&file.path)) {
            Ok(found) if found.len() == file.bytes => Ok(()),
            Ok(found) => {
                let got = found.len();
                Err(format!("{} has {got} bytes instead of {}", file.path, file.bytes))
            }
            Err(error) => Err(format!("{}: {error}", file.path)),
        })
    }
}
