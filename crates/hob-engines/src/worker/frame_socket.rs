//! A socket on which whole frames are sent and received, for threads that may wait for it.
//! Async code has sockets of its own, which do not block a thread.

use std::io::{self, Read, Write};
use std::os::unix::net::UnixStream;

use crate::frame::{Frame, FrameDecoder};

/// Maximum bytes of one read from the socket.
const READ_BYTES: usize = 4 << 10;

/// One end of the socket.
#[derive(Debug)]
pub struct FrameSocket {
    pub stream: UnixStream,
    decoder: FrameDecoder,
}

impl FrameSocket {
    pub fn new(stream: UnixStream) -> FrameSocket {
        FrameSocket { stream, decoder: FrameDecoder::default() }
    }

    /// # Errors
    /// A frame is too large, or the socket cannot be written to.
    pub fn send(&mut self, frames: impl IntoIterator<Item = Frame>) -> io::Result<()> {
        let mut bytes = Vec::new();
        for frame in frames {
            frame.encode(&mut bytes).map_err(io::Error::other)?;
        }
        self.stream.write_all(&bytes)
    }

    /// The next frame.
    ///
    /// # Errors
    /// The bytes are no frame, or cannot be read. [`io::ErrorKind::UnexpectedEof`] if the other side has closed the socket.
    pub fn receive(&mut self) -> io::Result<Frame> {
        let mut chunk = [0; READ_BYTES];
        loop {
            if let Some(frame) = self.decoder.next_frame().map_err(io::Error::other)? {
                return Ok(frame);
            }
            match self.stream.read(&mut chunk)? {
                0 => return Err(io::ErrorKind::UnexpectedEof.into()),
                bytes => self.decoder.push(&chunk[..bytes]),
            }
        }
    }
}
