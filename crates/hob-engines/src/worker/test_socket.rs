//! The server's end of the socket of a worker that runs on a thread of a test.
//! It reads frames, and leaves out what every worker sends: the handshake and heartbeats.

use std::io::{Read as _, Write as _};
use std::os::unix::net::UnixStream;

use serde::de::DeserializeOwned;

use super::protocol::{AnyReport, Report, WorkerMessage, hello};
use crate::frame::{Frame, FrameDecoder};

pub(crate) struct TestSocket {
    pub(crate) stream: UnixStream,
    decoder: FrameDecoder,
}

impl TestSocket {
    /// This end, and the worker's.
    pub(crate) fn pair() -> (TestSocket, UnixStream) {
        let (stream, theirs) = UnixStream::pair().expect("a socket pair");
        (TestSocket { stream, decoder: FrameDecoder::default() }, theirs)
    }

    pub(crate) fn send(&mut self, frames: impl IntoIterator<Item = Frame>) {
        let mut bytes = Vec::new();
        for frame in frames {
            frame.encode(&mut bytes).expect("small");
        }
        self.stream.write_all(&bytes).expect("sent");
    }

    pub(crate) fn frame(&mut self) -> Frame {
        let mut chunk = [0; 4096];
        loop {
            if let Some(frame) = self.decoder.next_frame().expect("well-formed") {
                return frame;
            }
            let bytes = self.stream.read(&mut chunk).expect("readable");
            assert!(bytes > 0, "the worker has closed the socket");
            self.decoder.push(&chunk[..bytes]);
        }
    }

    /// The next report that is not a heartbeat, with its stream.
    pub(crate) fn report<R: DeserializeOwned>(&mut self) -> (u32, AnyReport<R>) {
        loop {
            let frame = self.frame();
            if frame == hello() {
                continue;
            }
            match AnyReport::<R>::from_frame(&frame).expect("well-formed") {
                WorkerMessage::Common(Report::Alive) => {}
                report => return (frame.stream, report),
            }
        }
    }
}
