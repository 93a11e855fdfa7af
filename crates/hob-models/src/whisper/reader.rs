//! Reads a file of known length: nothing is read, skipped or allocated beyond its end.
//! All numbers are little-endian.

use std::io::{BufReader, Read, Seek, SeekFrom};

use super::WhisperError;
use super::error::within;

/// Maximum bytes that one call keeps in memory.
const KEPT_BYTES_MAX: u64 = 64 << 10;

#[derive(Debug)]
pub(super) struct Reader<R> {
    file: BufReader<R>,
    position: u64,
    file_bytes: u64,
}

impl<R: Read + Seek> Reader<R> {
    pub(super) fn new(mut file: R) -> Result<Reader<R>, WhisperError> {
        let failed = |error| WhisperError::unreadable(&error);
        let file_bytes = file.seek(SeekFrom::End(0)).map_err(failed)?;
        file.seek(SeekFrom::Start(0)).map_err(failed)?;
        Ok(Reader { file: BufReader::new(file), position: 0, file_bytes })
    }

    pub(super) fn position(&self) -> u64 {
        self.position
    }

    pub(super) fn file_bytes(&self) -> u64 {
        self.file_bytes
    }

    pub(super) fn take<const N: usize>(&mut self) -> Result<[u8; N], WhisperError> {
        let mut bytes = [0; N];
        self.fill(&mut bytes)?;
        Ok(bytes)
    }

    pub(super) fn fill(&mut self, bytes: &mut [u8]) -> Result<(), WhisperError> {
        self.advance(bytes.len() as u64)?;
        self.file.read_exact(bytes).map_err(|error| WhisperError::unreadable(&error))
    }

    pub(super) fn u8(&mut self) -> Result<u8, WhisperError> {
        Ok(u8::from_le_bytes(self.take()?))
    }

    pub(super) fn u16(&mut self) -> Result<u16, WhisperError> {
        Ok(u16::from_le_bytes(self.take()?))
    }

    pub(super) fn u32(&mut self) -> Result<u32, WhisperError> {
        Ok(u32::from_le_bytes(self.take()?))
    }

    pub(super) fn read_bytes(
        &mut self,
        what: &'static str,
        bytes: u64,
    ) -> Result<Vec<u8>, WhisperError> {
        within(what, bytes, 0, KEPT_BYTES_MAX)?;
        let mut kept = vec![0; bytes as usize];
        self.fill(&mut kept)?;
        Ok(kept)
    }

    pub(super) fn skip(&mut self, bytes: u64) -> Result<(), WhisperError> {
        self.advance(bytes)?;
        // `advance` has compared the end with the length of a file, which fits `i64`.
        self.file.seek_relative(bytes as i64).map_err(|error| WhisperError::unreadable(&error))
    }

    /// Continues at this byte of the file.
    pub(super) fn go_to(&mut self, position: u64) -> Result<(), WhisperError> {
        self.position = 0;
        self.advance(position)?;
        let moved = self.file.seek(SeekFrom::Start(position));
        moved.map(drop).map_err(|error| WhisperError::unreadable(&error))
    }

    fn advance(&mut self, bytes: u64) -> Result<(), WhisperError> {
        let needed_bytes = self.position.saturating_add(bytes);
        if needed_bytes > self.file_bytes {
            return Err(WhisperError::CutShort { needed_bytes, file_bytes: self.file_bytes });
        }
        self.position = needed_bytes;
        Ok(())
    }
}
