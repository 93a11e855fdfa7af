//! Files that lie together: in a folder, or below an address.
//! Whoever reads headers need not know which.

use std::fs::File;
use std::io::{self, Read};
use std::path::PathBuf;

use super::remote::Remote;
use super::{FilePlace, FindError, FoundFile};
use crate::gguf::{Gguf, GgufError};
use crate::safetensors::{Header, SafetensorsError};

/// Most headers of GGUF files, but for the largest vocabularies.
const GGUF_FIRST_BYTES: u64 = 1 << 20;
/// Headers of safetensors have no vocabulary; a model of many files has many of them.
const TENSORS_FIRST_BYTES: u64 = 256 << 10;

pub(super) enum FileSource<'r> {
    Folder(PathBuf),
    Web { remote: &'r Remote, base: String },
}

impl FileSource<'_> {
    /// For people.
    pub(super) fn at(&self, file: &str) -> String {
        match self {
            FileSource::Folder(folder) => folder.join(file).display().to_string(),
            FileSource::Web { base, .. } => format!("{base}/{file}"),
        }
    }

    /// A file as it was found here, with the length that was told.
    pub(super) fn found(&self, file: &str, gguf: &Gguf) -> FoundFile {
        let place = match self {
            FileSource::Folder(folder) => FilePlace::Path(folder.join(file)),
            FileSource::Web { .. } => FilePlace::Address(self.at(file)),
        };
        let missing_bytes = gguf.missing_bytes();
        FoundFile { place, bytes: gguf.file_bytes(), missing_bytes, sha256: None }
    }

    /// A whole file, which is short; none where there is no such file.
    pub(super) fn text(&self, file: &str, bytes_max: u64) -> Result<Option<Vec<u8>>, FindError> {
        match self {
            FileSource::Folder(folder) => {
                let Some(found) = there(File::open(folder.join(file)), || self.at(file))? else {
                    return Ok(None);
                };
                let mut text = Vec::new();
                let read = found.take(bytes_max).read_to_end(&mut text);
                read.map_err(|error| unreadable(self.at(file), &error))?;
                if text.len() as u64 == bytes_max {
                    return Err(FindError::TooLong { at: self.at(file), bytes_max });
                }
                Ok(Some(text))
            }
            FileSource::Web { remote, .. } => match remote.text(&self.at(file), bytes_max) {
                Err(FindError::Missing { .. }) => Ok(None),
                answer => answer.map(|(text, _)| Some(text)),
            },
        }
    }

    /// None where there is no such file.
    pub(super) fn gguf(&self, file: &str) -> Result<Option<Gguf>, FindError> {
        let wrong = |error: GgufError| FindError::Gguf { at: self.at(file), error };
        match self {
            FileSource::Folder(folder) => {
                let Some(found) = there(File::open(folder.join(file)), || self.at(file))? else {
                    return Ok(None);
                };
                let bytes = found.metadata().map_err(|error| unreadable(self.at(file), &error))?;
                Gguf::header(found, bytes.len()).map(Some).map_err(wrong)
            }
            FileSource::Web { remote, .. } => {
                let Some(found) = missing(remote.open(&self.at(file), GGUF_FIRST_BYTES))? else {
                    return Ok(None);
                };
                // What the server does not say is taken as enough.
                let bytes = found.file_bytes().unwrap_or(u64::MAX);
                Gguf::header(found, bytes).map(Some).map_err(wrong)
            }
        }
    }

    /// With how many bytes the file has, where that is known; none where there is no such file.
    pub(super) fn tensors(&self, file: &str) -> Result<Option<(Header, Option<u64>)>, FindError> {
        let wrong = |error: SafetensorsError| FindError::Safetensors { at: self.at(file), error };
        match self {
            FileSource::Folder(folder) => {
                let Some(found) = there(File::open(folder.join(file)), || self.at(file))? else {
                    return Ok(None);
                };
                let bytes = found.metadata().ok().map(|found| found.len());
                let header = Header::read(io::BufReader::new(found)).map_err(wrong)?;
                Ok(Some((header, bytes)))
            }
            FileSource::Web { remote, .. } => {
                let Some(found) = missing(remote.open(&self.at(file), TENSORS_FIRST_BYTES))? else {
                    return Ok(None);
                };
                let bytes = found.file_bytes();
                Ok(Some((Header::read(found).map_err(wrong)?, bytes)))
            }
        }
    }
}

fn there(opened: io::Result<File>, at: impl Fn() -> String) -> Result<Option<File>, FindError> {
    match opened {
        Ok(file) => Ok(Some(file)),
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
        Err(error) => Err(unreadable(at(), &error)),
    }
}

fn missing<T>(opened: Result<T, FindError>) -> Result<Option<T>, FindError> {
    match opened {
        Err(FindError::Missing { .. }) => Ok(None),
        opened => opened.map(Some),
    }
}

pub(super) fn unreadable(at: String, error: &io::Error) -> FindError {
    FindError::Unreadable { at, detail: error.to_string() }
}
