//! Bytes of a connection → events. Every length is checked against its limit before memory is reserved for it.
//! Where the bytes are cut does not matter.

use bytes::{Buf, Bytes, BytesMut};
use memchr::memchr;
use serde::Deserialize;
use serde_json::{Map, Value};

use super::error::WyomingError;
use super::event::WyomingEvent;
use crate::fields::Fields;
use crate::request_value::Name;

/// Maximum bytes of the line that begins an event.
const HEADER_BYTES_MAX: usize = 64 << 10;
/// Maximum bytes of the JSON after the line.
const DATA_BYTES_MAX: u64 = 1 << 20;
/// Maximum bytes of the samples after the JSON.
const PAYLOAD_BYTES_MAX: u64 = 1 << 20;

/// Decodes the events of one connection.
#[derive(Debug, Default)]
pub struct WyomingDecoder {
    buffer: BytesMut,
    /// The event whose line has arrived, and whose other parts have not.
    begun: Option<Begun>,
    /// Bytes of the line that were searched for its end.
    searched: usize,
}

#[derive(Debug)]
struct Begun {
    kind: String,
    data: Map<String, Value>,
    data_bytes: usize,
    payload_bytes: usize,
}

/// The line. Further members, such as the version, have no effect.
#[derive(Deserialize)]
struct Header {
    #[serde(rename = "type")]
    kind: Name,
    data: Option<Map<String, Value>>,
    data_length: Option<u64>,
    payload_length: Option<u64>,
}

impl WyomingDecoder {
    pub fn push(&mut self, bytes: &[u8]) {
        self.buffer.extend_from_slice(bytes);
    }

    /// The next event that has arrived completely; `None`: more bytes are needed.
    ///
    /// # Errors
    /// [`WyomingError`]: the rest of the connection cannot be read.
    pub fn next_event(&mut self) -> Result<Option<WyomingEvent>, WyomingError> {
        let begun = match self.begun.take() {
            Some(begun) => begun,
            None => match self.header()? {
                Some(begun) => begun,
                None => return Ok(None),
            },
        };
        if self.buffer.len() < begun.data_bytes + begun.payload_bytes {
            self.begun = Some(begun);
            return Ok(None);
        }
        let data = self.buffer.split_to(begun.data_bytes);
        let payload = self.buffer.split_to(begun.payload_bytes).freeze();
        event(begun, &data, payload).map(Some)
    }

    /// Bytes after the line of the event that is arriving; 0 if its line has not arrived.
    pub fn announced_bytes(&self) -> usize {
        self.begun.as_ref().map_or(0, |begun| begun.data_bytes + begun.payload_bytes)
    }

    /// Whether a part of an event has arrived and its rest has not.
    pub fn is_in_event(&self) -> bool {
        self.begun.is_some() || !self.buffer.is_empty()
    }

    fn header(&mut self) -> Result<Option<Begun>, WyomingError> {
        let end = memchr(b'\n', &self.buffer[self.searched..]).map(|at| self.searched + at);
        self.searched = if end.is_some() { 0 } else { self.buffer.len() };
        if end.unwrap_or(self.buffer.len()) > HEADER_BYTES_MAX {
            return Err(WyomingError::HeaderTooLong { bytes_max: HEADER_BYTES_MAX });
        }
        let Some(end) = end else { return Ok(None) };
        let line = self.buffer.split_to(end);
        self.buffer.advance(1);
        let header = Fields::parse(&line).and_then(|mut fields| fields.read::<Header>());
        let Header { kind, data, data_length, payload_length } =
            header.map_err(WyomingError::Header)?;
        Ok(Some(Begun {
            kind: kind.0,
            data: data.unwrap_or_default(),
            data_bytes: checked("data", data_length, DATA_BYTES_MAX)?,
            payload_bytes: checked("payload", payload_length, PAYLOAD_BYTES_MAX)?,
        }))
    }
}

fn checked(
    part: &'static str,
    announced: Option<u64>,
    bytes_max: u64,
) -> Result<usize, WyomingError> {
    let bytes = announced.unwrap_or(0);
    if bytes > bytes_max {
        return Err(WyomingError::TooLarge { part, bytes, bytes_max });
    }
    Ok(bytes as usize)
}

/// Members of the separate data win over those of the line.
fn event(begun: Begun, data: &[u8], payload: Bytes) -> Result<WyomingEvent, WyomingError> {
    let mut fields = Fields::of(begun.data);
    if !data.is_empty() {
        fields.replace_by(Fields::parse(data).map_err(WyomingError::Data)?);
    }
    WyomingEvent::read(&begun.kind, &mut fields, payload)
}

#[cfg(test)]
mod tests;
