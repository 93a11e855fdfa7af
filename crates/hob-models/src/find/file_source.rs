//! Files of one folder or below one address, behind one interface.
//! Header readers do not know which of the two it is.

use std::fs::File;
use std::io::{self, Read};
use std::path::PathBuf;

use super::remote::Remote;
use super::{FilePlace, FindError, FoundFile};
use crate::gguf::{Gguf, GgufError};
use crate::safetensors::{Header, SafetensorsError};

/// Enough for the header of most GGUF files, except those with the largest vocabularies.
const GGUF_FIRST_BYTES: u64 = 1 << 20;
/// Safetensors headers have no vocabulary, and a model may have many files.
const TENSORS_FIRST_BYTES: u64 = 256 << 10;

pub(super) enum FileSource<'r> {
    Folder(PathBuf),
    Web { remote: &'r Remote, base: String },
}

impl FileSource<'_> {
    /// Path or address of a file, for people.
    pub(super) fn at(&self, file: &str) -> String {
        match self {
            FileSource::Folder(folder) => folder.join(file).display().to_string(),
            FileSource::Web { base, .. } => format!("{base}/{file}"),
        }
    }

    /// Place and length of a file whose header was read.
    pub(super) fn found(&self, file: &str, gguf: &Gguf) -> FoundFile {
        let place = match self {
            FileSource::Folder(folder) => FilePlace::Path(folder.join(file)),
            FileSource::Web { .. } => FilePlace::Address(self.at(file)),
        };
        let missing_bytes = gguf.missing_bytes();
        FoundFile { place, bytes: gguf.file_bytes(), missing_bytes, sha256: None }
    }

    /// A whole short file. `None` if it does not exist.
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

    /// Header of a GGUF file. `None` if it does not exist.
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
                // A file of unknown length counts as long enough.
                let bytes = found.file_bytes().unwrap_or(u64::MAX);
                Gguf::header(found, bytes).map(Some).map_err(wrong)
            }
        }
    }

    /// Header of a safetensors file, and its length if known. `None` if it does not exist.
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
