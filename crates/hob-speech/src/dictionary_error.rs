//! Why the dictionary of Japanese or Mandarin cannot be used.
//! Both are folders of files that hob fetches like a model.

use std::io;
use std::path::{Path, PathBuf};

use thiserror::Error;

#[derive(Debug, Error, PartialEq, Eq)]
pub(crate) enum DictionaryError {
    #[error("{path} cannot be read: {detail}")]
    Unreadable { path: PathBuf, detail: String },
    #[error("{path} is not a dictionary that hob reads: {what}")]
    Malformed { path: PathBuf, what: &'static str },
}

impl DictionaryError {
    /// Turns an error about the file at this path into one that names it.
    pub(crate) fn at(path: &Path) -> impl Fn(io::Error) -> DictionaryError {
        move |error: io::Error| DictionaryError::Unreadable {
            path: path.to_path_buf(),
            detail: error.to_string(),
        }
    }

    pub(crate) fn malformed(path: &Path, what: &'static str) -> DictionaryError {
        DictionaryError::Malformed { path: path.to_path_buf(), what }
    }
}
