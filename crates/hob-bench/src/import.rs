//! Results of other programs, as records: always soft, with the hash of the original and a list of what was lost.
//! Nothing is made up: what an original does not say is null, and a figure it defines otherwise gets another name.

mod aiperf;
mod format;
mod guidellm;
mod llama_bench;
mod llama_benchy;
mod published;
#[cfg(test)]
mod tests;
mod vllm;
pub(crate) mod words;

use std::collections::BTreeSet;
use std::path::PathBuf;

pub use format::Format;
use jiff::Timestamp;
use sha2::{Digest as _, Sha256};
use thiserror::Error;
use uuid::{Builder, Uuid};

use crate::record::{
    Confidence, Doubt, Label, RawSample, Record, RecordError, Shelf, Source, SourceType, sha256_hex,
};

/// What others published, transcribed: it comes with the program, so that a page has something to compare with.
pub const PUBLISHED: &str = include_str!("../../../bench/published/runs.yaml");

/// A thousand requests with all their gaps are a tenth of this.
pub const ORIGINAL_BYTES_MAX: usize = 256 << 20;

#[derive(Debug, Error)]
pub enum ImportError {
    #[error("{file}: {bytes} bytes long; {ORIGINAL_BYTES_MAX} are read at most")]
    TooLong { file: String, bytes: usize },
    #[error("{file}: neither JSON, JSON lines nor YAML: {reason}")]
    Unreadable { file: String, reason: String },
    #[error("{file}: of no format that is known; --format takes {}", Format::names())]
    Unknown { file: String },
    #[error("{file}: not what {format} writes: {reason}")]
    Misfit { file: String, format: Format, reason: String },
    #[error("{file}: {format} wrote no result into it")]
    Empty { file: String, format: Format },
    #[error("{file}: imported already, as {id}")]
    Again { file: String, id: Uuid },
    #[error(transparent)]
    Record(#[from] RecordError),
}

/// A record that was made of an original, and its raw samples where the original has them.
#[derive(Clone, Debug, PartialEq)]
pub struct Imported {
    pub record: Record,
    pub samples: Vec<RawSample>,
}

/// Reads an original; `file` is what it is called in complaints. The format is found out where none is given.
///
/// # Errors
/// Nothing in it that could be read, with what was expected.
pub fn import(
    file: &str,
    bytes: &[u8],
    format: Option<Format>,
) -> Result<Vec<Imported>, ImportError> {
    if bytes.len() > ORIGINAL_BYTES_MAX {
        return Err(ImportError::TooLong { file: file.to_owned(), bytes: bytes.len() });
    }
    let text = std::str::from_utf8(bytes).map_err(|error| ImportError::Unreadable {
        file: file.to_owned(),
        reason: error.to_string(),
    })?;
    let format = match format {
        Some(format) => format,
        None => format::recognise(file, text)?,
    };
    let misfit = |reason| ImportError::Misfit { file: file.to_owned(), format, reason };
    let mut imported = format.read(text).map_err(misfit)?;
    if imported.is_empty() {
        return Err(ImportError::Empty { file: file.to_owned(), format });
    }
    let sha256 = sha256_hex(bytes);
    for (index, one) in imported.iter_mut().enumerate() {
        seal(one, &sha256, index);
    }
    Ok(imported)
}

/// Adds what AIPerf's summary says of the requests that it wrote beside it: model and load.
///
/// # Errors
/// It is no such summary.
pub fn complete(file: &str, imported: &mut [Imported], summary: &[u8]) -> Result<(), ImportError> {
    let misfit = |error: serde_json::Error| ImportError::Misfit {
        file: file.to_owned(),
        format: Format::AiPerf,
        reason: error.to_string(),
    };
    let summary: aiperf::summary::Summary = serde_json::from_slice(summary).map_err(misfit)?;
    for one in imported {
        summary.complete(&mut one.record);
        words::name_family(&mut one.record.model);
    }
    Ok(())
}

/// Puts what is not there yet on the shelf: a second import of the same original adds nothing, and one that was cut
/// off is completed.
///
/// # Errors
/// All of it is there already, or the disk refuses.
pub fn keep(file: &str, imported: &[Imported], shelf: &Shelf) -> Result<Vec<PathBuf>, ImportError> {
    let found = if shelf.folder().is_dir() { shelf.read()?.records } else { Vec::new() };
    let known: BTreeSet<Uuid> = found.iter().map(|(_, record)| record.id).collect();
    let new: Vec<&Imported> =
        imported.iter().filter(|one| !known.contains(&one.record.id)).collect();
    if let (true, Some(first)) = (new.is_empty(), imported.first()) {
        return Err(ImportError::Again { file: file.to_owned(), id: first.record.id });
    }
    new.iter().map(|one| Ok(shelf.put(&one.record, &one.samples)?)).collect()
}

/// What holds of every import, whatever program it came from.
fn seal(imported: &mut Imported, sha256: &str, index: usize) {
    let record = &mut imported.record;
    record.id = id_of(sha256, index, record.time.started);
    record.source.r#type = SourceType::Import;
    record.source.sha256 = Some(sha256.to_owned());
    record.confidence = Confidence {
        label: Label::Unverified,
        reasons: vec![Doubt::Imported],
        runs: record.confidence.runs,
        ..Confidence::default()
    };
    words::name_family(&mut record.model);
}

/// Made from the original, so that the same original has the same ids wherever it is imported.
fn id_of(sha256: &str, index: usize, started: Option<Timestamp>) -> Uuid {
    let digest = Sha256::digest(format!("{sha256} {index}"));
    let mut random = [0; 10];
    random.copy_from_slice(&digest[..10]);
    // Results of one time stay in the order of their file: ids sort, and the later of two is compared with the earlier.
    let place = u16::try_from(index).unwrap_or(u16::MAX).min(0x0fff);
    random[..2].copy_from_slice(&place.to_be_bytes());
    let millis = started.map_or(0, |time| u64::try_from(time.as_millisecond()).unwrap_or(0));
    Builder::from_unix_timestamp_millis(millis, &random).into_uuid()
}

fn source(tool: &str, version: Option<String>, lossy: Vec<String>) -> Source {
    Source { r#type: SourceType::Import, tool: tool.to_owned(), version, sha256: None, lossy }
}
