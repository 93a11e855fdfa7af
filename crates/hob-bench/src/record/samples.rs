//! The raw samples of a record: one line of JSON per request in a compressed file, which the record names and hashes.
//! Gzip and not zstd: it is in the tree already, and every language reads it (docs/decisions/0011).

use std::io::{BufRead, BufReader, Read as _, Write as _};

use flate2::Compression;
use flate2::read::GzDecoder;
use flate2::write::GzEncoder;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::RecordError;
use super::seal::sha256_hex;

/// Maximum requests of one record, and maximum bytes of the unpacked file, so that a page stays usable.
const SAMPLES_MAX: usize = 200_000;
const BYTES_MAX: u64 = 1 << 30;

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

/// One request, in microseconds from the run's start or from when it was sent.
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

/// Packs samples into the bytes of a file. Also returns the file's entry for the record.
///
/// # Errors
/// Packing fails. This does not happen in memory.
pub fn pack_samples(
    name: &str,
    samples: &[RawSample],
) -> Result<(Vec<u8>, SampleFile), RecordError> {
    let failed = |error| RecordError::io("pack", name, error);
    let mut packer = GzEncoder::new(Vec::new(), Compression::default());
    for sample in samples {
        let line = serde_json::to_string(sample).map_err(|error| failed(error.into()))?;
        packer.write_all(line.as_bytes()).and_then(|()| packer.write_all(b"\n")).map_err(failed)?;
    }
    let bytes = packer.finish().map_err(failed)?;
    let sha256 = sha256_hex(&bytes);
    let n = samples.len() as u64;
    Ok((bytes, SampleFile { file: name.to_owned(), sha256, n }))
}

/// Unpacks the samples, and checks them against the record.
///
/// # Errors
/// The hash differs, the bytes are not gzip, a line is not a sample, or a limit is exceeded.
pub fn unpack_samples(file: &SampleFile, bytes: &[u8]) -> Result<Vec<RawSample>, RecordError> {
    let damaged =
        |line, reason: String| RecordError::Damaged { file: file.file.clone(), line, reason };
    if sha256_hex(bytes) != file.sha256 {
        return Err(damaged(1, "its hash is not the one that the record names".to_owned()));
    }
    let mut samples = Vec::new();
    for (number, line) in BufReader::new(GzDecoder::new(bytes).take(BYTES_MAX)).lines().enumerate()
    {
        let line = line.map_err(|error| damaged(number + 1, error.to_string()))?;
        let sample =
            serde_json::from_str(&line).map_err(|error| damaged(number + 1, error.to_string()))?;
        samples.push(sample);
        if samples.len() > SAMPLES_MAX {
            return Err(damaged(number + 1, format!("it holds more than {SAMPLES_MAX} requests")));
        }
    }
    match samples.len() as u64 == file.n {
        true => Ok(samples),
        false => Err(damaged(
            samples.len(),
            format!("it holds {} requests and not {}", samples.len(), file.n),
        )),
    }
}
