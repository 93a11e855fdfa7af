//! Protects a record by a hash over its content, which is checked at each read.
//! Also distinguishes foreign files, files of later versions, and damaged files.

use serde::Deserialize;
use serde_saphyr::{budget, options};
use sha2::{Digest as _, Sha256};
use thiserror::Error;

use super::{Record, SCHEMA};

/// Maximum size of a record; one with a thousand attempts has a tenth of it.
pub const RECORD_BYTES_MAX: usize = 1 << 20;
const NODES_MAX: usize = 100_000;
const DEPTH_MAX: usize = 32;

/// Prefix of all versions of the schema.
const FAMILY: &str = "bench-run/";

#[derive(Debug, Error)]
pub enum RecordError {
    #[error("{file}:{line}: damaged: {reason}")]
    Damaged { file: String, line: usize, reason: String },
    #[error("{file}: not a benchmark record: its schema is {said} (expected {SCHEMA})")]
    Foreign { file: String, said: String },
    #[error("{file}: written by a later hob: its schema is {said} (this hob reads {SCHEMA})")]
    Future { file: String, said: String },
    #[error("{file} exists already; a record is never overwritten, and a correction supersedes it")]
    Exists { file: String },
    #[error("cannot {what} {file}: {source}")]
    Io { what: &'static str, file: String, source: std::io::Error },
}

impl RecordError {
    pub(crate) fn io(what: &'static str, file: &str, source: std::io::Error) -> RecordError {
        RecordError::Io { what, file: file.to_owned(), source }
    }
}

pub(crate) fn sha256_hex(bytes: &[u8]) -> String {
    hex(&Sha256::digest(bytes))
}

pub(crate) fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}

/// The hash over everything except the hash itself.
///
/// # Errors
/// A figure is not a finite number.
pub fn content_hash(record: &Record) -> Result<String, RecordError> {
    let blank = Record { content_hash: String::new(), ..record.clone() };
    let json =
        serde_json::to_string(&blank).map_err(|error| unwritable(record, &error.to_string()))?;
    Ok(sha256_hex(with_former_names(&json).as_bytes()))
}

/// Replaces names by those of the first files, such as `"label":"hard"`. Hashes use the first names, so older records and
/// cell keys stay valid.
pub(crate) fn with_former_names(json: &str) -> String {
    const NAMES: [(&str, &str); 9] = [
        ("\"label\":\"verified\"", "\"label\":\"hard\""),
        ("\"label\":\"unverified\"", "\"label\":\"soft\""),
        ("\"kind\":\"concurrency\"", "\"kind\":\"degrade\""),
        ("\"kind\":\"max_context\"", "\"kind\":\"ctx_ceiling\""),
        ("\"kind\":\"max-context\"", "\"kind\":\"ceiling\""),
        ("\"slowdown\":", "\"degrade\":"),
        ("\"max_context\":", "\"ctx_ceiling\":"),
        ("\"reasoning_switch\":", "\"reasoning_lever\":"),
        ("\"proven_by\":\"reported\"", "\"proven_by\":\"told\""),
    ];
    NAMES.iter().fold(json.to_owned(), |json, (now, before)| json.replace(now, before))
}

/// Writes the record with its hash as YAML.
///
/// # Errors
/// A figure is not a finite number.
pub fn to_yaml(record: &Record) -> Result<String, RecordError> {
    let sealed = Record { content_hash: content_hash(record)?, ..record.clone() };
    if sealed
        .metrics
        .spreads
        .values()
        .any(|spread| spread.numbers().any(|number| !number.is_finite()))
    {
        return Err(unwritable(record, "a figure is not a number"));
    }
    serde_saphyr::to_string(&sealed).map_err(|error| unwritable(record, &error.to_string()))
}

fn unwritable(record: &Record, reason: &str) -> RecordError {
    RecordError::Damaged { file: record.id.to_string(), line: 1, reason: reason.to_owned() }
}

/// Parses a record. `file` names it in errors.
///
/// # Errors
/// The file is foreign, of a later version, or damaged; the error has the line.
pub fn from_yaml(file: &str, text: &str) -> Result<Record, RecordError> {
    let damaged = |line, reason| RecordError::Damaged { file: file.to_owned(), line, reason };
    if text.len() > RECORD_BYTES_MAX {
        return Err(damaged(
            1,
            format!("{} bytes long; a record has {RECORD_BYTES_MAX} at most", text.len()),
        ));
    }
    let record: Record = parse(text).map_err(|error| match schema_of(file, text) {
        Err(other) => other,
        Ok(()) => damaged(yaml_line(&error) as usize, yaml_message(&error)),
    })?;
    schema_of(file, text)?;
    if content_hash(&record)? != record.content_hash {
        return Err(damaged(
            1,
            "its content_hash is not that of its content: it was changed by hand, or cut"
                .to_owned(),
        ));
    }
    Ok(record)
}

fn parse<'a, T: Deserialize<'a>>(text: &'a str) -> Result<T, serde_saphyr::Error> {
    let limits = budget! { max_nodes: NODES_MAX, max_depth: DEPTH_MAX };
    serde_saphyr::from_str_with_options(text, options! { budget: limits, with_snippet: false })
}

/// Checks the schema of a file, also of one that cannot be parsed otherwise.
fn schema_of(file: &str, text: &str) -> Result<(), RecordError> {
    let said = text.lines().find_map(|line| line.strip_prefix("schema:"));
    let said = said
        .map(|said| said.split(" #").next().unwrap_or_default().trim().trim_matches(['"', '\'']));
    let file = file.to_owned();
    match said {
        Some(SCHEMA) => Ok(()),
        Some(said) if said.starts_with(FAMILY) => {
            Err(RecordError::Future { file, said: said.to_owned() })
        }
        Some(said) => Err(RecordError::Foreign { file, said: format!("`{said}`") }),
        None => Err(RecordError::Foreign { file, said: "missing".to_owned() }),
    }
}

/// The line of an error in YAML.
pub(crate) fn yaml_line(error: &serde_saphyr::Error) -> u64 {
    error.location().map_or(1, |place| place.line())
}

/// The message of an error in YAML, without its position, which hob reports first, and without advice for programmers.
pub(crate) fn yaml_message(error: &serde_saphyr::Error) -> String {
    let said = error.to_string();
    let ends = [" at line ", ", set ", "; use "];
    let end = ends.into_iter().filter_map(|end| said.find(end)).min();
    said[..end.unwrap_or(said.len())].replace(char::is_control, "\u{fffd}")
}
