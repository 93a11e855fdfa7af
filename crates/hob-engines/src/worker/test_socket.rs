//! The server's side of a worker in tests: the socket of a worker that runs on a thread, and frames for a shell script that
//! takes the place of a process.

use std::os::unix::net::UnixStream;

use serde::de::DeserializeOwned;

use super::frame_socket::FrameSocket;
use super::protocol::{AnyReport, Report, WorkerMessage, hello};
use crate::frame::Frame;

impl FrameSocket {
    /// This end, and the worker's.
    pub(crate) fn pair() -> (FrameSocket, UnixStream) {
        let (stream, theirs) = UnixStream::pair().expect("a socket pair");
        (FrameSocket::new(stream), theirs)
    }

    /// The next report, with its stream. Leaves out what every worker sends: the handshake and heartbeats.
    pub(crate) fn report<R: DeserializeOwned>(&mut self) -> (u32, AnyReport<R>) {
        loop {
            let frame = self.receive().expect("a frame");
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

/// A line of a shell script that sends these frames.
pub(crate) fn printf(frames: &[Frame]) -> String {
    let mut bytes = Vec::new();
    for frame in frames {
        frame.encode(&mut bytes).expect("small");
    }
    let octal: String = bytes.iter().map(|byte| format!("\\{byte:03o}")).collect();
    format!("printf '{octal}' >&0\n")
}
