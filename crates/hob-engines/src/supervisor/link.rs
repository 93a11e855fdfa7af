//! Reads frames from a worker's socket. Dropping the future of the next frame loses no bytes, because
//! bytes that were read are kept.

use std::{fmt, io};

use tokio::io::AsyncReadExt;
use tokio::net::unix::OwnedReadHalf;

use super::command::EndReason;
use crate::frame::{Frame, FrameDecoder};

/// Maximum bytes of one read from the socket: about a second of sound.
const READ_BYTES: usize = 96 << 10;

#[derive(Debug)]
pub(super) struct FrameSource {
    socket: OwnedReadHalf,
    decoder: FrameDecoder,
    chunk: Vec<u8>,
}

impl FrameSource {
    pub(super) fn new(socket: OwnedReadHalf) -> FrameSource {
        FrameSource { socket, decoder: FrameDecoder::default(), chunk: vec![0; READ_BYTES] }
    }

    /// # Errors
    /// Why the worker has to end: its socket is closed or broken.
    pub(super) async fn next(&mut self) -> Result<Frame, EndReason> {
        let unreadable = |what: &str, error: &dyn fmt::Display| {
            EndReason::Unfit(format!("the worker's {what} cannot be read: {error}"))
        };
        loop {
            let frame = self.decoder.next_frame();
            if let Some(frame) = frame.map_err(|error| unreadable("frames", &error))? {
                return Ok(frame);
            }
            match self.socket.read(&mut self.chunk).await {
                Ok(0) => return Err(EndReason::Vanished),
                Ok(bytes) => self.decoder.push(&self.chunk[..bytes]),
                // The worker died before it read everything.
                Err(error) if error.kind() == io::ErrorKind::ConnectionReset => {
                    return Err(EndReason::Vanished);
                }
                Err(error) => return Err(unreadable("socket", &error)),
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
        assert!(matches!(source.next().await, Err(EndReason::Vanished)));
    }

    #[tokio::test]
    async fn garbage_is_an_error() {
        let (mut worker, server) = UnixStream::pair().expect("a socket pair");
        let mut source = FrameSource::new(server.into_split().0);
        worker.write_all(&[255; 32]).await.expect("sent");
        let EndReason::Unfit(reason) = source.next().await.expect_err("no such kind") else {
            panic!("the socket is open");
        };
        let expected = "the worker's frames cannot be read: a frame has the unknown kind 255";
        assert_eq!(reason, expected);
    }
}
