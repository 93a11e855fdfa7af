//! The messages that every worker and its supervisor understand, whatever the model does.
//! There is no order to end: a worker ends when its socket is closed, so it also ends when the server crashes.

use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};

use crate::frame::{Frame, FrameError, FrameKind};

/// Increases when a message changes. Both ends come from the same binary, unless the binary was replaced on disk
/// while the server ran.
pub const PROTOCOL_VERSION: u32 = 8;

/// Maximum bytes of an error text in a message; the rest is cut off.
const REASON_BYTES_MAX: usize = 4096;

/// From the supervisor to any worker, about one stream.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum CommonOrder {
    /// The reader has left. The worker answers nothing.
    Cancel,
    /// The stream may send this much more, in the model's own unit.
    Credit(u32),
    /// The engine answers with [`Report::Stats`] between two steps.
    Ping,
}

/// From any worker to its supervisor.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub enum Report {
    /// Part of the model that is in memory, 0 to 1.
    Loaded(f32),
    LoadFailed(String),
    /// Loading failed because a graphics card had no room. With fewer layers on the card, the load may succeed.
    NoDeviceRoom {
        reason: String,
        shortage: DeviceShortage,
    },
    /// Loaded and warm. `vram_bytes` is the memory on graphics cards. `about` describes the model, encoded by
    /// the model's own protocol.
    Ready {
        vram_bytes: u64,
        about: Vec<u8>,
    },
    /// The process runs. A thread of its own sends this, also while the engine computes.
    Alive,
    /// The answer to [`CommonOrder::Ping`].
    Stats(WorkerStats),
    /// The stream's answer is complete.
    Done,
    /// The stream's answer ends here and is not complete.
    Failed(StreamFailure),
}

/// Memory that a graphics card could not give.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct DeviceShortage {
    /// The card's two names: that of the engine, and that of the driver.
    pub device: String,
    /// Bytes of the one buffer that could not be allocated.
    pub needed_bytes: u64,
    /// Bytes that were free without the model.
    pub free_bytes: u64,
}

/// The current work of a worker.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct WorkerStats {
    /// Open requests.
    pub streams: u32,
    /// Steps since the process started: windows of speech, batches of tokens, or parts of a recording.
    pub steps: u64,
}

/// Why a stream ended early.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum StreamFailure {
    /// The request contained nothing to do.
    Empty,
    /// The engine's own error text.
    Engine(String),
}

/// A message of the common protocol, or of the model's own.
#[derive(Clone, Debug, PartialEq)]
pub enum WorkerMessage<Common, Model> {
    Common(Common),
    Model(Model),
}

/// From the supervisor to a worker of a model with the orders `O`.
pub type AnyOrder<O> = WorkerMessage<CommonOrder, O>;

/// From a worker of a model with the reports `R`.
pub type AnyReport<R> = WorkerMessage<Report, R>;

impl<Common: DeserializeOwned, Model: DeserializeOwned> WorkerMessage<Common, Model> {
    /// # Errors
    /// The payload is malformed, or the frame is a handshake.
    pub fn from_frame(frame: &Frame) -> Result<WorkerMessage<Common, Model>, FrameError> {
        match frame.kind {
            FrameKind::Common => frame.decode().map(WorkerMessage::Common),
            FrameKind::Model => frame.decode().map(WorkerMessage::Model),
            FrameKind::Hello => Err(misplaced(frame)),
        }
    }

    /// The message with its stream.
    ///
    /// # Errors
    /// As [`WorkerMessage::from_frame`].
    pub fn of_stream(frame: &Frame) -> Result<(u32, WorkerMessage<Common, Model>), FrameError> {
        Ok((frame.stream, WorkerMessage::from_frame(frame)?))
    }
}

impl CommonOrder {
    /// # Errors
    /// Never: an order is small. The signature is that of [`Frame::new`].
    pub fn to_frame(&self, stream: u32) -> Result<Frame, FrameError> {
        Frame::new(FrameKind::Common, stream, self)
    }
}

impl Report {
    pub fn load_failed(reason: &str) -> Report {
        Report::LoadFailed(cut(reason).to_owned())
    }

    pub fn no_device_room(reason: &str, shortage: DeviceShortage) -> Report {
        Report::NoDeviceRoom { reason: cut(reason).to_owned(), shortage }
    }

    pub fn failed(detail: &str) -> Report {
        Report::Failed(StreamFailure::Engine(cut(detail).to_owned()))
    }

    /// # Errors
    /// [`FrameError::TooLarge`], for a description of the model that is too large.
    pub fn to_frame(&self, stream: u32) -> Result<Frame, FrameError> {
        Frame::new(FrameKind::Common, stream, self)
    }

    /// # Errors
    /// The frame is not of the common protocol, or its payload is malformed.
    pub fn from_frame(frame: &Frame) -> Result<Report, FrameError> {
        if frame.kind == FrameKind::Common { frame.decode() } else { Err(misplaced(frame)) }
    }

    /// Whether the stream sends nothing after this.
    pub fn is_last(&self) -> bool {
        matches!(self, Report::Done | Report::Failed(_) | Report::Stats(_))
    }
}

/// The first frame of a worker.
pub fn hello() -> Frame {
    let payload = PROTOCOL_VERSION.to_le_bytes().to_vec();
    Frame { kind: FrameKind::Hello, stream: 0, payload }
}

/// The protocol's version in a worker's first frame.
///
/// # Errors
/// The frame is not a handshake.
pub fn hello_version(frame: &Frame) -> Result<u32, FrameError> {
    match (frame.kind, frame.payload.as_array()) {
        (FrameKind::Hello, Some(version)) => Ok(u32::from_le_bytes(*version)),
        _ => Err(misplaced(frame)),
    }
}

fn misplaced(frame: &Frame) -> FrameError {
    FrameError::Malformed { kind: frame.kind, reason: "it does not belong here".to_owned() }
}

fn cut(reason: &str) -> &str {
    &reason[..reason.floor_char_boundary(REASON_BYTES_MAX)]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn orders_come_back_unchanged() {
        for order in [CommonOrder::Cancel, CommonOrder::Credit(48_000), CommonOrder::Ping] {
            let frame = order.to_frame(7).expect("small");
            assert_eq!(frame.stream, 7);
            assert_eq!(AnyOrder::<()>::from_frame(&frame), Ok(WorkerMessage::Common(order)));
        }
    }

    #[test]
    fn reports_come_back_unchanged() {
        for report in [
            Report::Loaded(0.5),
            Report::load_failed("no such file"),
            Report::no_device_room(
                "no room",
                DeviceShortage { device: "Vulkan0".to_owned(), needed_bytes: 9, free_bytes: 3 },
            ),
            Report::Ready { vram_bytes: 1 << 40, about: vec![1, 2, 3] },
            Report::Alive,
            Report::Stats(WorkerStats { streams: 3, steps: 1 << 40 }),
            Report::Done,
            Report::Failed(StreamFailure::Empty),
            Report::failed("NaN in window 3"),
        ] {
            let frame = report.to_frame(4).expect("small");
            assert_eq!(Report::from_frame(&frame), Ok(report));
        }
    }

    #[test]
    fn a_long_reason_is_cut_between_characters() {
        let expected = "é".repeat(REASON_BYTES_MAX / 2);
        let long = "é".repeat(REASON_BYTES_MAX);
        assert_eq!(Report::load_failed(&long), Report::LoadFailed(expected));
    }

    #[test]
    fn the_handshake_carries_the_version_and_nothing_else_is_one() {
        assert_eq!(hello_version(&hello()), Ok(PROTOCOL_VERSION));
        let done = Report::Done.to_frame(1).expect("small");
        assert!(hello_version(&done).is_err());
        let short = Frame { payload: vec![1], ..hello() };
        assert!(hello_version(&short).is_err());
        assert!(Report::from_frame(&hello()).is_err());
        assert!(AnyReport::<u8>::from_frame(&hello()).is_err());
    }
}
