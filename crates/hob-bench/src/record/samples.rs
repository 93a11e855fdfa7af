//! The raw samples of a record: one line of JSON per request in a compressed file, which the record names and hashes.
//! Gzip and not zstd: it is in the tree already, and every language reads it (docs/decisions/0011).

use std::io::{self, BufRead as _, BufReader, Read as _, Write as _};
use std::path::{Path, PathBuf};

use flate2::Compression;
use flate2::read::GzDecoder;
use flate2::write::GzEncoder;
use schemars::JsonSchema;
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};

use super::RecordError;
use super::seal::sha256_hex;

/// Maximum requests of one record, so that a page stays usable.
pub(super) const SAMPLES_MAX: usize = 200_000;
/// Maximum bytes of the unpacked file.
pub(super) const BYTES_MAX: u64 = 1 << 30;

/// Where the samples are.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct SampleFile {
    /// In the record's own folder
    pub file: String,
    /// SHA-256 of the compressed file
    pub sha256: String,
    /// Requests
    pub n: u64,
}

/// One request, in microseconds. `t_sched_us` is its due time from the run's start, `dispatch_us` the delay after it, and
/// `connect_us` the time to connect. The other times count from when the request was sent.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct RawSample {
    /// Number of the run, from 0
    pub run: u32,
    /// Which start of the server, from 0
    pub start: u32,
    pub t_sched_us: Option<u64>,
    pub dispatch_us: Option<u64>,
    pub connect_us: Option<u64>,
    pub ttfb_us: Option<u64>,
    pub ttft_us: Option<u64>,
    pub ttfat_us: Option<u64>,
    pub ttfa_us: Option<u64>,
    pub e2e_us: Option<u64>,
    /// Between chunks
    pub gaps_us: Vec<u64>,
    pub tokens: RecordedTokens,
    pub finish: Option<String>,
    pub error: Option<String>,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct RecordedTokens {
    pub prompt: Option<u64>,
    pub cached: Option<u64>,
    pub reasoning: Option<u64>,
    pub content: Option<u64>,
}

impl SampleFile {
    /// Its path in the folder of the record's own file. None if the name leads out of that folder.
    pub(crate) fn path_in(&self, folder: &Path) -> Option<PathBuf> {
        let name = Path::new(&self.file).file_name()?;
        (name == self.file.as_str()).then(|| folder.join(name))
    }
}

/// Packs samples into the bytes of a file. Also returns the file's entry for the record.
///
/// # Errors
/// Packing fails. This does not happen in memory.
pub fn pack_samples(
    name: &str,
    samples: &[RawSample],
) -> Result<(Vec<u8>, SampleFile), RecordError> {
    let line = |sample: &RawSample| serde_json::to_string(sample).map_err(io::Error::from);
    pack_lines(name, samples.iter().map(line))
}

/// Packs lines one by one, because the text of many answers is long. See [`pack_samples`].
pub(crate) fn pack_lines(
    name: &str,
    lines: impl IntoIterator<Item = io::Result<String>>,
) -> Result<(Vec<u8>, SampleFile), RecordError> {
    let failed = |error| RecordError::io("pack", name, error);
    let (mut packer, mut n) = (GzEncoder::new(Vec::new(), Compression::default()), 0);
    for line in lines {
        line.and_then(|line| writeln!(packer, "{line}")).map_err(failed)?;
        n += 1;
    }
    let bytes = packer.finish().map_err(failed)?;
    let sha256 = sha256_hex(&bytes);
    Ok((bytes, SampleFile { file: name.to_owned(), sha256, n }))
}

/// Unpacks the samples, and checks them against the record.
///
/// # Errors
/// The hash differs, the bytes are not gzip, a line is not a sample, or a limit is exceeded.
pub fn unpack_samples(file: &SampleFile, bytes: &[u8]) -> Result<Vec<RawSample>, RecordError> {
    let lines = unpack_lines::<RawSample>(file, &file.file, bytes, BYTES_MAX)?;
    let samples: Vec<RawSample> = lines.take(SAMPLES_MAX + 1).collect::<Result<_, _>>()?;
    let reason = match samples.len() {
        n if n > SAMPLES_MAX => format!("it holds more than {SAMPLES_MAX} requests"),
        n if n as u64 != file.n => format!("it holds {n} requests and not {}", file.n),
        _ => return Ok(samples),
    };
    Err(RecordError::Damaged { file: file.file.clone(), line: samples.len(), reason })
}

/// Unpacks lines of JSON one by one, after it has compared the hash. `shown` names the file in errors.
///
/// # Errors
/// The hash differs. An item is an error if the bytes are not gzip, or if its line is of another type.
pub(crate) fn unpack_lines<T: DeserializeOwned>(
    file: &SampleFile,
    shown: &str,
    bytes: &[u8],
    bytes_max: u64,
) -> Result<impl Iterator<Item = Result<T, RecordError>>, RecordError> {
    let damaged = move |line, reason| RecordError::Damaged { file: shown.to_owned(), line, reason };
    if sha256_hex(bytes) != file.sha256 {
        return Err(damaged(1, "its hash is not the one that the record names".to_owned()));
    }
    let lines = BufReader::new(GzDecoder::new(bytes).take(bytes_max)).lines();
    Ok((1..).zip(lines).map(move |(number, line)| {
        let line = line.map_err(|error| damaged(number, error.to_string()))?;
        serde_json::from_str(&line).map_err(|error| damaged(number, error.to_string()))
    }))
}
