//! Faults of a GGUF file, one sentence each, with the numbers.
//! Names from the file are shortened and escaped, because their authors are unknown.

use std::io;

use hob_core::nearest_hint;

/// Maximum length of a name in a message.
const SHOWN_CHARS_MAX: usize = 64;

#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum GgufError {
    #[error("the file cannot be read: {detail}")]
    Unreadable { detail: String },
    #[error("this is not a GGUF file")]
    NotGguf,
    #[error("the file was made for big-endian machines; get the little-endian one")]
    BigEndian,
    #[error("the file is GGUF version {version}, and hob reads 2 and 3; newer conversions exist")]
    UnknownVersion { version: u32 },
    /// If the header itself is truncated, the missing bytes are unknown.
    #[error(
        "cut short: the header says {needed_bytes} bytes and the file has {file_bytes}; {} are \
         missing, so fetch it again", needed_bytes - file_bytes
    )]
    CutShort { needed_bytes: u64, file_bytes: u64 },
    #[error("the header says {count} {what}, and {count_max} is the limit")]
    TooMany { what: &'static str, count: u64, count_max: u64 },
    #[error("{what} in the header has {bytes} bytes, and {bytes_max} is the limit")]
    TooLong { what: &'static str, bytes: u64, bytes_max: u64 },
    #[error("{what} in the header is not UTF-8")]
    NotText { what: &'static str },
    #[error("the header has the {what} '{name}' twice")]
    Duplicate { what: &'static str, name: String },
    #[error("'{key}' has a value of type {id}, which GGUF does not allow here")]
    UnknownValueType { key: String, id: u32 },
    #[error("tensor '{name}' has type {id}, which hob's engine does not know")]
    UnknownTensorType { name: String, id: u32 },
    #[error("tensor '{name}' would get the type {kind}, which hob does not know")]
    UnknownTypeName { name: String, kind: String },
    #[error("tensor '{name}' cannot have the dimensions {dims:?}")]
    Dimensions { name: String, dims: Vec<u64> },
    #[error("tensor '{name}' has {dimensions} dimensions, and 4 is the limit")]
    TooManyDimensions { name: String, dimensions: u32 },
    #[error("tensor '{name}' is too large for any machine")]
    Overflow { name: String },
    #[error("tensor '{name}' begins at byte {offset} of the data and must begin at {expected}")]
    Offset { name: String, offset: u64, expected: u64 },
    #[error("the header lacks '{key}'")]
    MissingKey { key: String },
    #[error("'{key}' {reason}")]
    WrongValue { key: String, reason: String },
    #[error("hob's engine does not know the architecture '{name}'{}", nearest_hint(near))]
    UnknownArchitecture { name: String, near: Vec<String> },
    #[error("this is one of {count} parts of a model; join them with `llama-gguf-split --merge`")]
    Split { count: u64 },
    #[error("the parts have {found} tensors together and must have {expected}")]
    PartsDiffer { found: u64, expected: u64 },
    #[error("the file has no weights, only a vocabulary")]
    NoWeights,
}

impl GgufError {
    pub(crate) fn unreadable(error: &io::Error) -> GgufError {
        GgufError::Unreadable { detail: error.to_string() }
    }

    pub(super) fn duplicate(what: &'static str, name: &str) -> GgufError {
        GgufError::Duplicate { what, name: printable_name(name) }
    }

    /// `name` is the tensor's.
    pub(super) fn overflow(name: &str) -> GgufError {
        GgufError::Overflow { name: printable_name(name) }
    }

    /// `name` is the tensor's.
    pub(super) fn offset(name: &str, offset: u64, expected: u64) -> GgufError {
        GgufError::Offset { name: printable_name(name), offset, expected }
    }

    pub(super) fn wrong(key: &str, reason: impl Into<String>) -> GgufError {
        GgufError::WrongValue { key: printable_name(key), reason: reason.into() }
    }

    pub(super) fn missing(key: &str) -> GgufError {
        GgufError::MissingKey { key: printable_name(key) }
    }
}

/// A name from the file, made safe for terminals and logs.
pub(crate) fn printable_name(name: &str) -> String {
    let mut shown: String =
        name.chars().take(SHOWN_CHARS_MAX).flat_map(char::escape_debug).collect();
    if name.chars().nth(SHOWN_CHARS_MAX).is_some() {
        shown.push('…');
    }
    shown
}
