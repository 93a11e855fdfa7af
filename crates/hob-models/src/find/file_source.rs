//! Files of one folder or below one address, behind one interface.
//! Header readers do not know which of the two it is.

use std::fs::File;
use std::io::{self, Read, Seek};
use std::path::PathBuf;

use super::remote::Remote;
use super::{FilePlace, FindError, FoundFile};
use crate::gguf::{Gguf, GgufError};
use crate::safetensors::{Header, SafetensorsError};

/// Enough for the header of most GGUF files, except those with the largest vocabularies.
const GGUF_FIRST_BYTES: u64 = 1 << 20;
/// Safetensors headers have no vocabulary, and a model may have many files.
const TENSORS_FIRST_BYTES: u64 = 256 << 10;

/// A file of a folder or a repository, with its path there.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct FileEntry {
    pub(super) path: String,
    pub(super) bytes: u64,
}

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
        if let FileSource::Web { remote, .. } = self {
            return existing(remote.text(&self.at(file), bytes_max).map(|(text, _)| text));
        }
        let Some((found, _)) = self.open(file, 0)? else { return Ok(None) };
        let mut text = Vec::new();
        let read = found.take(bytes_max).read_to_end(&mut text);
        read.map_err(|error| unreadable(self.at(file), &error))?;
        if text.len() as u64 == bytes_max {
            return Err(FindError::TooLong { at: self.at(file), bytes_max });
        }
        Ok(Some(text))
    }

    /// Header of a GGUF file. `None` if it does not exist.
    pub(super) fn gguf(&self, file: &str) -> Result<Option<Gguf>, FindError> {
        let wrong = |error: GgufError| FindError::Gguf { at: self.at(file), error };
        let Some((found, bytes)) = self.open(file, GGUF_FIRST_BYTES)? else { return Ok(None) };
        // A file of unknown length counts as long enough.
        Gguf::header(found, bytes.unwrap_or(u64::MAX)).map(Some).map_err(wrong)
    }

    /// Header of a safetensors file, and its length if known. `None` if it does not exist.
    pub(super) fn tensors(&self, file: &str) -> Result<Option<(Header, Option<u64>)>, FindError> {
        let wrong = |error: SafetensorsError| FindError::Safetensors { at: self.at(file), error };
        let Some((found, bytes)) = self.open(file, TENSORS_FIRST_BYTES)? else { return Ok(None) };
        Ok(Some((Header::read(found).map_err(wrong)?, bytes)))
    }

    /// An open file, and its length if known. Over HTTP, the request already asks for the first `first_bytes`.
    fn open(&self, file: &str, first_bytes: u64) -> Result<Option<OpenFile<'_>>, FindError> {
        match self {
            FileSource::Folder(folder) => match File::open(folder.join(file)) {
                Ok(found) => {
                    let about = found.metadata();
                    let about = about.map_err(|error| unreadable(self.at(file), &error))?;
                    Ok(Some((Box::new(found), Some(about.len()))))
                }
                Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
                Err(error) => Err(unreadable(self.at(file), &error)),
            },
            FileSource::Web { remote, .. } => {
                let found = existing(remote.open(&self.at(file), first_bytes))?;
                Ok(found.map(|found| {
                    let bytes = found.file_bytes();
                    let found: Box<dyn ReadSeek + '_> = Box::new(found);
                    (found, bytes)
                }))
            }
        }
    }
}

trait ReadSeek: Read + Seek {}

impl<T: Read + Seek> ReadSeek for T {}

type OpenFile<'f> = (Box<dyn ReadSeek + 'f>, Option<u64>);

fn existing<T>(found: Result<T, FindError>) -> Result<Option<T>, FindError> {
    match found {
        Err(FindError::Missing { .. }) => Ok(None),
        found => found.map(Some),
    }
}

pub(super) fn unreadable(at: String, error: &io::Error) -> FindError {
    FindError::Unreadable { at, detail: error.to_string() }
}
