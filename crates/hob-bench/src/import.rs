//! Results of other programs as records: always unverified, with the hash of the original and a list of what was lost.
//! Fields that the original does not have stay null. A figure with another definition gets another name.

mod aiperf;
mod format;
mod guidellm;
mod llama_bench;
mod llama_benchy;
mod published;
#[cfg(test)]
mod tests;
pub(crate) mod values;
mod vllm;

use std::collections::BTreeSet;
use std::path::PathBuf;

pub use format::ImportFormat;
use jiff::Timestamp;
use sha2::{Digest as _, Sha256};
use thiserror::Error;
use uuid::{Builder, Uuid};

use crate::record::{
    Confidence, Doubt, Label, RawSample, Record, RecordError, RecordKind, RecordSource,
    RecordStore, SourceType, sha256_hex,
};

/// Published runs, transcribed. They are part of the program, so that the page can show them for comparison.
pub const PUBLISHED: &str = include_str!("../../../bench/published/runs.yaml");

/// Maximum size of an original. A thousand requests with all their gaps need a tenth of it.
pub const ORIGINAL_BYTES_MAX: usize = 256 << 20;

#[derive(Debug, Error)]
pub enum ImportError {
    #[error("{file} has {bytes} bytes; the maximum is {ORIGINAL_BYTES_MAX}")]
    TooLong { file: String, bytes: usize },
    #[error("{file}: neither JSON, JSON lines nor YAML: {reason}")]
    Unreadable { file: String, reason: String },
    #[error("{file}: unknown format (expected the output of {})", ImportFormat::names())]
    Unknown { file: String },
    #[error("{file}: not a result of {format}: {reason}")]
    WrongFormat { file: String, format: ImportFormat, reason: String },
    #[error("{file}: this file of {format} has no results")]
    Empty { file: String, format: ImportFormat },
    #[error("{file}: already imported, as {id}")]
    AlreadyImported { file: String, id: Uuid },
    #[error(transparent)]
    Record(#[from] RecordError),
}

/// A record made from an original, with raw samples where the original has them.
#[derive(Clone, Debug, PartialEq)]
pub struct Imported {
    pub record: Record,
    pub samples: Vec<RawSample>,
}

/// Reads an original. `file` names it in errors. Without a format, the contents decide.
///
/// # Errors
/// The file cannot be read as any format, or not as the given one.
pub fn import(
    file: &str,
    bytes: &[u8],
    format: Option<ImportFormat>,
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
    let wrong_format = |reason| ImportError::WrongFormat { file: file.to_owned(), format, reason };
    let mut imported = format.read(text).map_err(wrong_format)?;
    if imported.is_empty() {
        return Err(ImportError::Empty { file: file.to_owned(), format });
    }
    let sha256 = sha256_hex(bytes);
    for (index, one) in imported.iter_mut().enumerate() {
        mark_imported(one, &sha256, index);
    }
    Ok(imported)
}

/// Adds model and load from AIPerf's summary, which lies in the same folder as the requests.
///
/// # Errors
/// The bytes are not such a summary.
pub fn complete(file: &str, imported: &mut [Imported], summary: &[u8]) -> Result<(), ImportError> {
    let wrong_format = |error: serde_json::Error| ImportError::WrongFormat {
        file: file.to_owned(),
        format: ImportFormat::AiPerf,
        reason: error.to_string(),
    };
    let summary: aiperf::summary::Summary =
        serde_json::from_slice(summary).map_err(wrong_format)?;
    for one in imported {
        summary.complete(&mut one.record);
        values::set_family(&mut one.record.model);
    }
    Ok(())
}

/// Stores the records that are not stored yet. So an import that was cut off can be completed.
///
/// # Errors
/// All records are stored already, or a file cannot be written.
pub fn store_imported(
    file: &str,
    imported: &[Imported],
    store: &RecordStore,
) -> Result<Vec<PathBuf>, ImportError> {
    let found = if store.folder().is_dir() { store.read()?.records } else { Vec::new() };
    let known: BTreeSet<Uuid> = found.iter().map(|(_, record)| record.id).collect();
    let new: Vec<&Imported> =
        imported.iter().filter(|one| !known.contains(&one.record.id)).collect();
    if let (true, Some(first)) = (new.is_empty(), imported.first()) {
        return Err(ImportError::AlreadyImported { file: file.to_owned(), id: first.record.id });
    }
    new.iter().map(|one| Ok(store.put(&one.record, &one.samples)?)).collect()
}

/// Sets the id of an import, and marks it as imported and unverified.
fn mark_imported(imported: &mut Imported, sha256: &str, index: usize) {
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
    values::set_family(&mut record.model);
}

/// Makes the id from the original, so that the same original has the same ids on every machine.
fn id_of(sha256: &str, index: usize, started: Option<Timestamp>) -> Uuid {
    let digest = Sha256::digest(format!("{sha256} {index}"));
    let mut random = [0; 10];
    random.copy_from_slice(&digest[..10]);
    // Ids keep the order of the file for results of the same time: a later run is compared with the one before it.
    let place = u16::try_from(index).unwrap_or(u16::MAX).min(0x0fff);
    random[..2].copy_from_slice(&place.to_be_bytes());
    let millis = started.map_or(0, |time| u64::try_from(time.as_millisecond()).unwrap_or(0));
    Builder::from_unix_timestamp_millis(millis, &random).into_uuid()
}

/// A record of a program's result. `lossy` lists what the record cannot keep. The id is set later.
fn record(kind: RecordKind, tool: &str, version: Option<String>, lossy: Vec<String>) -> Record {
    let source = RecordSource {
        r#type: SourceType::Import,
        tool: tool.to_owned(),
        version,
        sha256: None,
        lossy,
    };
    Record::new(Uuid::nil(), kind, source)
}
