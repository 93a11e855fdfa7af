//! Parses one HTTP/1.1 response as it arrives: its status, and its body without the framing.
//! A body without a length ends with its connection, which the reader reports.

use std::io;

use bytes::{Buf, BytesMut};
use memchr::memmem;

use crate::head;

/// The part of the response that comes next.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Stage {
    Head,
    /// Remaining bytes of the body.
    Sized(usize),
    ChunkSize,
    /// Remaining bytes of the chunk.
    Chunk(usize),
    ChunkEnd,
    Trailer,
    /// A body that ends with the connection.
    Rest,
    Over,
}

#[derive(Debug)]
pub(crate) struct HttpResponse {
    stage: Stage,
    /// 0 until the header has arrived.
    pub(crate) status: u16,
}

impl HttpResponse {
    pub(crate) fn expected() -> HttpResponse {
        HttpResponse { stage: Stage::Head, status: 0 }
    }

    pub(crate) fn is_over(&self) -> bool {
        self.stage == Stage::Over
    }

    /// Whether closing the connection is the normal end of this body.
    pub(crate) fn ends_with_connection(&self) -> bool {
        self.stage == Stage::Rest
    }

    /// Parses a recorded response, as far as its bytes go. Returns it with its body.
    ///
    /// # Errors
    /// The bytes are not an HTTP response. The body has what comes before the error.
    pub(crate) fn recorded(bytes: &[u8]) -> (HttpResponse, Vec<u8>, io::Result<()>) {
        let (mut response, mut body) = (HttpResponse::expected(), Vec::new());
        let taken = response.push(&mut bytes.into(), |bytes| body.extend_from_slice(bytes));
        (response, body, taken)
    }

    /// Parses the bytes that have arrived, and passes the body's bytes to `body`.
    ///
    /// # Errors
    /// The bytes are not an HTTP response.
    pub(crate) fn push(
        &mut self,
        unread: &mut BytesMut,
        mut body: impl FnMut(&[u8]),
    ) -> io::Result<()> {
        while let Some(next) = self.step(unread, &mut body)? {
            self.stage = next;
        }
        Ok(())
    }

    /// None if more bytes are needed.
    fn step(
        &mut self,
        unread: &mut BytesMut,
        body: &mut impl FnMut(&[u8]),
    ) -> io::Result<Option<Stage>> {
        Ok(match self.stage {
            Stage::Head => self.head(unread)?,
            Stage::Sized(0) => Some(Stage::Over),
            Stage::Sized(left) => passed(left, unread, body).map(Stage::Sized),
            Stage::ChunkSize => chunk_size(unread)?,
            Stage::Chunk(0) => Some(Stage::ChunkEnd),
            Stage::Chunk(left) => passed(left, unread, body).map(Stage::Chunk),
            Stage::ChunkEnd => line(unread).map(|_| Stage::ChunkSize),
            Stage::Trailer => {
                line(unread).map(|line| if line.is_empty() { Stage::Over } else { Stage::Trailer })
            }
            Stage::Rest => passed(unread.len(), unread, body).map(|_| Stage::Rest),
            Stage::Over => None,
        })
    }

    fn head(&mut self, unread: &mut BytesMut) -> io::Result<Option<Stage>> {
        let Some(bytes) = head::length(unread) else {
            return if unread.len() > head::BYTES_MAX {
                Err(malformed("the header has no end"))
            } else {
                Ok(None)
            };
        };
        let head = unread.split_to(bytes);
        self.status = status(&head).ok_or_else(|| malformed("there is no status"))?;
        match head::content_length(&head) {
            Some(bytes) => Ok(Some(Stage::Sized(bytes))),
            None if is_chunked(&head) => Ok(Some(Stage::ChunkSize)),
            None => Ok(Some(Stage::Rest)),
        }
    }
}

fn malformed(what: &'static str) -> io::Error {
    io::Error::new(io::ErrorKind::InvalidData, what)
}

fn status(head: &[u8]) -> Option<u16> {
    let version = head.strip_prefix(b"HTTP/1.1 ").or_else(|| head.strip_prefix(b"HTTP/1.0 "));
    let status = version?.get(..3)?;
    std::str::from_utf8(status).ok()?.parse().ok()
}

fn is_chunked(head: &[u8]) -> bool {
    head::field(head, "transfer-encoding").is_some_and(|how| how.eq_ignore_ascii_case(b"chunked"))
}

/// Passes on up to `left` bytes. Returns how many are still missing, or None if there was no byte.
fn passed(left: usize, unread: &mut BytesMut, body: &mut impl FnMut(&[u8])) -> Option<usize> {
    let here = left.min(unread.len());
    if here == 0 {
        return None;
    }
    body(&unread[..here]);
    unread.advance(here);
    Some(left - here)
}

fn chunk_size(unread: &mut BytesMut) -> io::Result<Option<Stage>> {
    let Some(line) = line(unread) else { return Ok(None) };
    // Text after a semicolon is a chunk extension, which is ignored.
    let digits = line[..].split(|byte| *byte == b';').next().unwrap_or_default().trim_ascii();
    let size = std::str::from_utf8(digits).ok();
    let size = size.and_then(|digits| usize::from_str_radix(digits, 16).ok());
    match size {
        Some(0) => Ok(Some(Stage::Trailer)),
        Some(size) => Ok(Some(Stage::Chunk(size))),
        None => Err(malformed("a chunk has no size")),
    }
}

/// The next line without its end, once it is complete.
fn line(unread: &mut BytesMut) -> Option<BytesMut> {
    let end = memmem::find(unread, b"\r\n")?;
    let line = unread.split_to(end);
    unread.advance(2);
    Some(line)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The status, the body, whether the response is complete, and the number of unread bytes.
    fn read(pieces: &[&[u8]]) -> io::Result<(u16, Vec<u8>, bool, usize)> {
        let (mut answer, mut unread, mut body) =
            (HttpResponse::expected(), BytesMut::new(), Vec::new());
        for piece in pieces {
            unread.extend_from_slice(piece);
            answer.push(&mut unread, |bytes| body.extend_from_slice(bytes))?;
        }
        Ok((answer.status, body, answer.is_over(), unread.len()))
    }

    #[test]
    fn where_the_bytes_are_cut_does_not_matter() {
        let rows: [(&[u8], u16, &[u8]); 3] = [
            (b"HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nhello", 200, b"hello"),
            (b"HTTP/1.1 404 Not Found\r\ncontent-length: 0\r\n\r\n", 404, b""),
            (
                b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n\
                  3\r\nhel\r\nA;x=y\r\nlo, world!\r\n0\r\nx-trailer: 1\r\n\r\n",
                200,
                b"hello, world!",
            ),
        ];
        for (bytes, status, body) in rows {
            for cut in 0..bytes.len() {
                let (before, after) = bytes.split_at(cut);
                let expected = (status, body.to_vec(), true, 0);
                assert_eq!(read(&[before, after]).unwrap(), expected, "{cut}");
            }
        }
    }

    #[test]
    fn bytes_after_the_response_are_left() {
        let two = b"HTTP/1.1 200 OK\r\nContent-Length: 1\r\n\r\naHTTP/1.1 200 OK\r\n";
        assert_eq!(read(&[two]).unwrap(), (200, b"a".to_vec(), true, 17));
    }

    #[test]
    fn a_body_without_a_length_ends_with_its_connection() {
        let bytes = b"HTTP/1.0 200 OK\r\n\r\nuntil the end";
        assert_eq!(read(&[bytes]).unwrap(), (200, b"until the end".to_vec(), false, 0));
    }

    #[test]
    fn other_bytes_are_rejected() {
        let rows: [&[u8]; 2] =
            [b"SSH-2.0-x\r\n\r\n", b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\nzz\r\n"];
        for bytes in rows {
            assert!(read(&[bytes]).is_err());
        }
    }
}
