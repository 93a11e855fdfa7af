//! Faults of a Whisper file, one sentence each, with the numbers.
//! Names from the file are shortened and escaped, because their authors are unknown.

use std::io;

#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum WhisperError {
    #[error("the file cannot be read: {detail}")]
    Unreadable { detail: String },
    #[error("this is not a Whisper model in whisper.cpp's format (a file ggml-NAME.bin)")]
    NotGgml,
    #[error("this is not a Whisper model in CTranslate2's format")]
    NotCTranslate2,
    #[error("the file has version {version} of CTranslate2's format, and hob reads 4 to 6")]
    UnknownVersion { version: u32 },
    #[error(
        "cut short: {needed_bytes} bytes are needed and the file has {file_bytes}; fetch it again"
    )]
    CutShort { needed_bytes: u64, file_bytes: u64 },
    #[error("{what} is {value} and must be {min} to {max}")]
    OutOfRange { what: &'static str, value: u64, min: u64, max: u64 },
    #[error("{what} is {value}, which is not a multiple of {of}")]
    NotAMultiple { what: &'static str, value: u32, of: u32 },
    #[error("the file lacks the tensor '{name}'")]
    Missing { name: String },
    #[error("the file has a tensor '{name}' that no such model has, or has it twice")]
    Surplus { name: String },
    #[error("tensor '{name}' has the dimensions {found:?} instead of {expected:?}")]
    Shape { name: String, found: Vec<u64>, expected: Vec<u64> },
    #[error("tensor '{name}' has numbers of type {id}, which hob does not read here")]
    NumberType { name: String, id: u32 },
    #[error("tensor '{name}' has {found} bytes instead of {expected}")]
    TensorBytes { name: String, found: u64, expected: u64 },
    #[error("the bias '{name}' of attention keys is not zero; Whisper has no such bias")]
    KeyBias { name: String },
    #[error("the vocabulary has {found} tokens and the model has {expected}")]
    Vocabulary { found: u64, expected: u32 },
    #[error("the vocabulary has no '<|endoftext|>'")]
    NoEndOfText,
    #[error("line {line} of the vocabulary is not a byte-level token")]
    Token { line: usize },
}

impl WhisperError {
    pub(super) fn unreadable(error: &io::Error) -> WhisperError {
        WhisperError::Unreadable { detail: error.to_string() }
    }
}

/// Checks a number of the file.
pub(super) fn within(
    what: &'static str,
    value: u64,
    min: u64,
    max: u64,
) -> Result<(), WhisperError> {
    match (min..=max).contains(&value) {
        true => Ok(()),
        false => Err(WhisperError::OutOfRange { what, value, min, max }),
    }
}
