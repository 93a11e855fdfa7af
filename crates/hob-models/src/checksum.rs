//! A SHA-256 digest: pinned in the catalog, written into manifests, computed from files.
//! As text it has 64 hex digits; a text that has not is refused when it is read.

use std::fmt;
use std::fs::File;
use std::io::{self, Read, Write};
use std::path::{Path, PathBuf};
use std::str::FromStr;

use serde::{Deserialize, Serialize};
use sha2::Digest;

use crate::DiskError;
use crate::progress::{Cancelled, Watch};

/// Bytes read at a time: enough to be fast, and few enough to stop soon.
const CHUNK_BYTES: usize = 256 * 1024;

#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub struct Sha256([u8; 32]);

#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("'{0}' is not a SHA-256 digest (expected 64 hex digits)")]
pub struct NotAChecksum(pub String);

impl Sha256 {
    /// Digest of these bytes.
    pub fn of(bytes: &[u8]) -> Sha256 {
        Sha256(sha2::Sha256::digest(bytes).into())
    }

    /// Digest of these files, one after the other.
    ///
    /// # Errors
    /// A file cannot be read.
    pub fn of_files(paths: &[PathBuf]) -> Result<Sha256, DiskError> {
        let mut sink = Summed::new(io::sink());
        for path in paths {
            let mut file = File::open(path).map_err(DiskError::at(path))?;
            io::copy(&mut file, &mut sink).map_err(DiskError::at(path))?;
        }
        Ok(sink.finish().1)
    }

    /// Digest of a file. Reports progress after every chunk.
    ///
    /// # Errors
    /// The file cannot be read, or the watch was cancelled.
    pub(crate) fn of_file<E>(path: &Path, watch: &mut Watch<'_>) -> Result<Sha256, E>
    where
        E: From<DiskError> + From<Cancelled>,
    {
        let mut file = File::open(path).map_err(DiskError::at(path))?;
        let mut hasher = sha2::Sha256::new();
        let mut chunk = vec![0; CHUNK_BYTES];
        let mut done_bytes = 0;
        loop {
            watch.check()?;
            let read = file.read(&mut chunk).map_err(DiskError::at(path))?;
            if read == 0 {
                return Ok(Sha256(hasher.finalize().into()));
            }
            hasher.update(&chunk[..read]);
            done_bytes += read as u64;
            watch.at(done_bytes);
        }
    }
}

/// A writer that computes the digest of what is written.
pub(crate) struct Summed<W> {
    out: W,
    hasher: sha2::Sha256,
}

impl<W: Write> Summed<W> {
    pub(crate) fn new(out: W) -> Summed<W> {
        Summed { out, hasher: sha2::Sha256::new() }
    }

    pub(crate) fn finish(self) -> (W, Sha256) {
        (self.out, Sha256(self.hasher.finalize().into()))
    }
}

impl<W: Write> Write for Summed<W> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        let written = self.out.write(bytes)?;
        self.hasher.update(&bytes[..written]);
        Ok(written)
    }

    fn flush(&mut self) -> io::Result<()> {
        self.out.flush()
    }
}

impl FromStr for Sha256 {
    type Err = NotAChecksum;

    fn from_str(text: &str) -> Result<Sha256, NotAChecksum> {
        let not_one = || NotAChecksum(text.to_owned());
        if text.len() != 64 || !text.bytes().all(|byte| byte.is_ascii_hexdigit()) {
            return Err(not_one());
        }
        let mut bytes = [0; 32];
        for (index, byte) in bytes.iter_mut().enumerate() {
            let digits = &text[2 * index..2 * index + 2];
            *byte = u8::from_str_radix(digits, 16).map_err(|_| not_one())?;
        }
        Ok(Sha256(bytes))
    }
}

impl fmt::Display for Sha256 {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.iter().try_for_each(|byte| write!(f, "{byte:02x}"))
    }
}

impl fmt::Debug for Sha256 {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

impl TryFrom<String> for Sha256 {
    type Error = NotAChecksum;

    fn try_from(text: String) -> Result<Sha256, NotAChecksum> {
        text.parse()
    }
}

impl From<Sha256> for String {
    fn from(sum: Sha256) -> String {
        sum.to_string()
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn the_known_sum_of_nothing() {
        let nothing = "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855";
        assert_eq!(Sha256::of(b"").to_string(), nothing);
    }

    #[test]
    fn what_is_not_one_is_refused() {
        let long = "0".repeat(65);
        let odd = format!("{}+1", "0".repeat(62));
        for text in ["", "abc", &long, &odd] {
            assert_eq!(text.parse::<Sha256>(), Err(NotAChecksum(text.to_owned())));
        }
    }

    proptest! {
        #[test]
        fn text_and_back(bytes: [u8; 32]) {
            let sum = Sha256(bytes);
            prop_assert_eq!(sum.to_string().parse(), Ok(sum));
        }
    }
}
