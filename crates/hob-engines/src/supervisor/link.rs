//! Reads frames from a worker's socket. Dropping the future of the next frame loses no bytes, because
//! bytes that were read are kept.

use std::io;

use tokio::io::AsyncReadExt;
use tokio::net::unix::OwnedReadHalf;

use crate::frame::{Frame, FrameDecoder, FrameError};

/// Maximum bytes of one read from the socket: about a second of sound.
const READ_BYTES: usize = 96 << 10;

#[derive(Debug)]
pub(super) struct FrameSource {
    socket: OwnedReadHalf,
    decoder: FrameDecoder,
    chunk: Vec<u8>,
}

#[derive(Debug, thiserror::Error)]
pub(super) enum LinkError {
    #[error("the worker closed its socket")]
    Closed,
    #[error("the worker's frames cannot be read: {0}")]
    Frame(#[from] FrameError),
    #[error("the worker's socket cannot be read: {0}")]
    Io(io::Error),
}

impl FrameSource {
    pub(super) fn new(socket: OwnedReadHalf) -> FrameSource {
        FrameSource { socket, decoder: FrameDecoder::default(), chunk: vec![0; READ_BYTES] }
    }

    pub(super) async fn next(&mut self) -> Result<Frame, LinkError> {
        loop {
            if let Some(frame) = self.decoder.next_frame()? {
                return Ok(frame);
            }
            match self.socket.read(&mut self.chunk).await {
                Ok(0) => return Err(LinkError::Closed),
                Ok(bytes) => self.decoder.push(&self.chunk[..bytes]),
                // The worker died before it read everything.
                Err(error) if error.kind() == io::ErrorKind::ConnectionReset => {
                    return Err(LinkError::Closed);
                }
                Err(error) => return Err(LinkError::Io(error)),
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use tokio::io::AsyncWriteExt;
    use tokio::net::UnixStream;
    use tokio::time::{Duration, timeout};

    use super::*;
    use crate::frame::FrameKind;

    #[tokio::test]
    async fn a_dropped_read_loses_no_bytes() {
        let (mut worker, server) = UnixStream::pair().expect("a socket pair");
        let mut source = FrameSource::new(server.into_split().0);
        let frame = Frame { kind: FrameKind::Model, stream: 7, payload: (0..100).collect() };
        let mut bytes = Vec::new();
        frame.encode(&mut bytes).expect("small");
        let (beginning, rest) = bytes.split_at(40);
        worker.write_all(beginning).await.expect("sent");
        let half = timeout(Duration::from_millis(20), source.next()).await;
        assert!(half.is_err(), "half a frame is not returned");
        worker.write_all(rest).await.expect("sent");
        assert_eq!(source.next().await.expect("whole"), frame);
        drop(worker);
        assert!(matches!(source.next().await, Err(LinkError::Closed)));
    }

    #[tokio::test]
    async fn garbage_is_an_error() {
        let (mut worker, server) = UnixStream::pair().expect("a socket pair");
        let mut source = FrameSource::new(server.into_split().0);
        worker.write_all(&[255; 32]).await.expect("sent");
        let error = source.next().await.expect_err("no such kind");
        assert!(
            matches!(error, LinkError::Frame(FrameError::UnknownKind { kind: 255 })),
            "{error}"
        );
    }
}
