//! Reads a file of known length: nothing is read, skipped or allocated beyond its end.
//! Limits how many bytes of a header stay in memory.

use std::io::{BufReader, Read, Seek, SeekFrom};

use super::GgufError;

/// Ten times the largest known header: 6.5 MB with a vocabulary of 262,144 tokens.
const HEADER_BYTES_MAX: u64 = 64 << 20;
/// Limit for texts and numbers that are kept; skipped ones do not count.
const KEPT_BYTES_MAX: u64 = 16 << 20;

pub(super) struct Source<R> {
    file: BufReader<R>,
    position: u64,
    file_bytes: u64,
    kept_bytes: u64,
}

impl<R: Read + Seek> Source<R> {
    pub(super) fn new(mut file: R) -> Result<Source<R>, GgufError> {
        let failed = |error| GgufError::unreadable(&error);
        let file_bytes = file.seek(SeekFrom::End(0)).map_err(failed)?;
        Source::beginning(file, file_bytes)
    }

    /// Reads a file of which only the beginning is available.
    pub(super) fn beginning(mut file: R, file_bytes: u64) -> Result<Source<R>, GgufError> {
        file.seek(SeekFrom::Start(0)).map_err(|error| GgufError::unreadable(&error))?;
        let file = BufReader::new(file);
        Ok(Source { file, position: 0, file_bytes, kept_bytes: 0 })
    }

    pub(super) fn position(&self) -> u64 {
        self.position
    }

    pub(super) fn file_bytes(&self) -> u64 {
        self.file_bytes
    }

    pub(super) fn take<const N: usize>(&mut self) -> Result<[u8; N], GgufError> {
        let mut bytes = [0; N];
        self.advance(N as u64)?;
        self.file.read_exact(&mut bytes).map_err(|error| GgufError::unreadable(&error))?;
        Ok(bytes)
    }

    pub(super) fn u32(&mut self) -> Result<u32, GgufError> {
        Ok(u32::from_le_bytes(self.take()?))
    }

    pub(super) fn u64(&mut self) -> Result<u64, GgufError> {
        Ok(u64::from_le_bytes(self.take()?))
    }

    pub(super) fn text(&mut self, what: &'static str, bytes_max: u64) -> Result<String, GgufError> {
        let bytes = self.length(what, bytes_max)?;
        self.keep(bytes)?;
        self.advance(bytes)?;
        // At most `KEPT_BYTES_MAX`, and at most what the file has.
        let mut text = vec![0; bytes as usize];
        self.file.read_exact(&mut text).map_err(|error| GgufError::unreadable(&error))?;
        String::from_utf8(text).map_err(|_| GgufError::NotText { what })
    }

    /// Reads a text into `short`. Skips a text that is longer, and returns an empty one.
    pub(super) fn short_text<'b>(
        &mut self,
        what: &'static str,
        bytes_max: u64,
        short: &'b mut [u8],
    ) -> Result<&'b [u8], GgufError> {
        let bytes = self.length(what, bytes_max)?;
        if bytes > short.len() as u64 {
            self.skip(bytes)?;
            return Ok(&[]);
        }
        self.advance(bytes)?;
        let text = &mut short[..bytes as usize];
        self.file.read_exact(text).map_err(|error| GgufError::unreadable(&error))?;
        Ok(text)
    }

    pub(super) fn skip(&mut self, bytes: u64) -> Result<(), GgufError> {
        self.advance(bytes)?;
        // At most `HEADER_BYTES_MAX`.
        self.file.seek_relative(bytes as i64).map_err(|error| GgufError::unreadable(&error))
    }

    /// Counts bytes that stay in memory.
    pub(super) fn keep(&mut self, bytes: u64) -> Result<(), GgufError> {
        self.kept_bytes = self.kept_bytes.saturating_add(bytes);
        if self.kept_bytes > KEPT_BYTES_MAX {
            let (what, bytes) = ("the metadata", self.kept_bytes);
            return Err(GgufError::TooLong { what, bytes, bytes_max: KEPT_BYTES_MAX });
        }
        Ok(())
    }

    fn length(&mut self, what: &'static str, bytes_max: u64) -> Result<u64, GgufError> {
        let bytes = self.u64()?;
        if bytes > bytes_max {
            return Err(GgufError::TooLong { what, bytes, bytes_max });
        }
        Ok(bytes)
    }

    fn advance(&mut self, bytes: u64) -> Result<(), GgufError> {
        let end = self.position.saturating_add(bytes);
        if end > HEADER_BYTES_MAX {
            let what = "everything";
            return Err(GgufError::TooLong { what, bytes: end, bytes_max: HEADER_BYTES_MAX });
        }
        if end > self.file_bytes {
            return Err(GgufError::CutShort { needed_bytes: end, file_bytes: self.file_bytes });
        }
        self.position = end;
        Ok(())
    }
}
