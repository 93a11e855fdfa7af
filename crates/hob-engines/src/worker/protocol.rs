//! What every worker is told and what every worker says, whatever its model does.
//! There is no order to end: closing the socket is that order, so a lost server gives it too.

use crate::frame::{Frame, FrameError};

/// Both ends come from the same binary unless it was replaced on disk while running.
pub const PROTOCOL_VERSION: u32 = 1;

/// Kinds from here on belong to the model's own protocol.
pub const MODEL_KINDS: u8 = 32;

const CANCEL: u8 = 1;
const CREDIT: u8 = 2;
const PING: u8 = 3;
const HELLO: u8 = 16;
const READY: u8 = 17;
const LOAD_FAILED: u8 = 18;
const STATS: u8 = 19;
const DONE: u8 = 20;
const FAILED: u8 = 21;
const LOADED: u8 = 22;

/// Reasons travel cut to this many bytes.
const REASON_BYTES_MAX: usize = 4096;

/// To any worker.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Order {
    /// Nobody wants the stream any more; nothing is answered.
    Cancel { stream: u32 },
    /// The stream may send this much more, in the model's own unit.
    Credit { stream: u32, amount: u32 },
    /// Answered by [`Report::Stats`] between two windows, so it also shows that the worker lives.
    Ping { stream: u32 },
}

/// From any worker.
#[derive(Clone, Debug, PartialEq)]
pub enum Report {
    /// The process runs and begins to load.
    Hello {
        version: u32,
    },
    /// Loaded and warm; `about` is what the model says of itself in its own protocol.
    Ready {
        load_ms: u32,
        about: Vec<u8>,
    },
    LoadFailed {
        reason: String,
    },
    /// This part of the model is in memory, from 0 to 1.
    Loaded {
        part: f32,
    },
    /// The answer to [`Order::Ping`].
    Stats {
        stream: u32,
        stats: WorkerStats,
    },
    /// The stream's answer is complete.
    Done {
        stream: u32,
    },
    /// The stream's answer ends here, and is not complete.
    Failed {
        stream: u32,
        failure: Failure,
    },
}

/// What a worker is doing.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct WorkerStats {
    /// Requests that are open in it.
    pub streams: u32,
    /// Windows rendered, or steps computed, since it started.
    pub windows: u64,
}

/// Why a stream ended early.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Failure {
    /// There was nothing to do in it.
    Empty,
    /// The engine's own words.
    Engine(String),
}

impl Order {
    pub fn to_frame(&self) -> Frame {
        match *self {
            Order::Cancel { stream } => Frame::new(CANCEL, stream, Vec::new()),
            Order::Credit { stream, amount } => {
                Frame::new(CREDIT, stream, amount.to_le_bytes().to_vec())
            }
            Order::Ping { stream } => Frame::new(PING, stream, Vec::new()),
        }
    }

    /// None when the frame belongs to the model's own protocol.
    ///
    /// # Errors
    /// The kind is unknown or its payload malformed.
    pub fn from_frame(frame: &Frame) -> Result<Option<Order>, FrameError> {
        let stream = frame.stream;
        let mut fields = frame.fields();
        let order = match frame.kind {
            CANCEL => Order::Cancel { stream },
            CREDIT => Order::Credit { stream, amount: fields.u32()? },
            PING => Order::Ping { stream },
            MODEL_KINDS.. => return Ok(None),
            kind => return Err(FrameError::UnknownKind { kind }),
        };
        fields.end()?;
        Ok(Some(order))
    }
}

impl Report {
    pub fn to_frame(&self) -> Frame {
        match self {
            Report::Hello { version } => Frame::new(HELLO, 0, version.to_le_bytes().to_vec()),
            Report::Ready { load_ms, about } => {
                Frame::new(READY, 0, [&load_ms.to_le_bytes(), about.as_slice()].concat())
            }
            Report::Loaded { part } => Frame::new(LOADED, 0, part.to_le_bytes().to_vec()),
            Report::LoadFailed { reason } => Frame::new(LOAD_FAILED, 0, cut(reason).into()),
            Report::Stats { stream, stats } => {
                let mut payload = stats.streams.to_le_bytes().to_vec();
                payload.extend(stats.windows.to_le_bytes());
                Frame::new(STATS, *stream, payload)
            }
            Report::Done { stream } => Frame::new(DONE, *stream, Vec::new()),
            Report::Failed { stream, failure } => Frame::new(FAILED, *stream, failure.to_payload()),
        }
    }

    /// None when the frame belongs to the model's own protocol.
    ///
    /// # Errors
    /// The kind is unknown or its payload malformed.
    pub fn from_frame(frame: &Frame) -> Result<Option<Report>, FrameError> {
        let stream = frame.stream;
        let mut fields = frame.fields();
        let report = match frame.kind {
            HELLO => Report::Hello { version: fields.u32()? },
            LOADED => Report::Loaded { part: fields.f32()? },
            READY => {
                return Ok(Some(Report::Ready {
                    load_ms: fields.u32()?,
                    about: fields.bytes().to_vec(),
                }));
            }
            LOAD_FAILED => {
                return Ok(Some(Report::LoadFailed { reason: fields.text()?.to_owned() }));
            }
            STATS => {
                let stats = WorkerStats { streams: fields.u32()?, windows: fields.u64()? };
                Report::Stats { stream, stats }
            }
            DONE => Report::Done { stream },
            FAILED => {
                return Ok(Some(Report::Failed { stream, failure: Failure::from_frame(frame)? }));
            }
            MODEL_KINDS.. => return Ok(None),
            kind => return Err(FrameError::UnknownKind { kind }),
        };
        fields.end()?;
        Ok(Some(report))
    }
}

/// Whether nothing more comes for the frame's stream.
pub fn is_last(frame: &Frame) -> bool {
    matches!(frame.kind, DONE | FAILED | STATS)
}

impl Failure {
    fn to_payload(&self) -> Vec<u8> {
        match self {
            Failure::Empty => vec![0],
            Failure::Engine(detail) => [&[1], cut(detail).as_bytes()].concat(),
        }
    }

    fn from_frame(frame: &Frame) -> Result<Failure, FrameError> {
        let mut fields = frame.fields();
        match fields.u8()? {
            0 => fields.end().map(|()| Failure::Empty),
            1 => Ok(Failure::Engine(fields.text()?.to_owned())),
            _ => Err(fields.malformed("no failure has this code")),
        }
    }
}

fn cut(reason: &str) -> &str {
    &reason[..reason.floor_char_boundary(REASON_BYTES_MAX)]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn orders_come_back_as_they_went() {
        for order in [
            Order::Cancel { stream: 1 },
            Order::Credit { stream: u32::MAX, amount: 48_000 },
            Order::Ping { stream: 0 },
        ] {
            assert_eq!(Order::from_frame(&order.to_frame()), Ok(Some(order)));
        }
    }

    #[test]
    fn reports_come_back_as_they_went() {
        let stats = WorkerStats { streams: 3, windows: 1 << 40 };
        for report in [
            Report::Hello { version: PROTOCOL_VERSION },
            Report::Ready { load_ms: 812, about: vec![1, 2, 3] },
            Report::LoadFailed { reason: "no such file".to_owned() },
            Report::Stats { stream: 4, stats },
            Report::Done { stream: 5 },
            Report::Failed { stream: 6, failure: Failure::Empty },
            Report::Failed { stream: 7, failure: Failure::Engine("NaN in window 3".to_owned()) },
        ] {
            assert_eq!(Report::from_frame(&report.to_frame()), Ok(Some(report)));
        }
    }

    #[test]
    fn a_long_reason_is_cut_between_characters() {
        let reason = "é".repeat(REASON_BYTES_MAX);
        let frame = Report::LoadFailed { reason }.to_frame();
        let expect = Report::LoadFailed { reason: "é".repeat(REASON_BYTES_MAX / 2) };
        assert_eq!(Report::from_frame(&frame), Ok(Some(expect)));
    }

    #[test]
    fn the_models_own_kinds_are_left_to_it_and_unknown_ones_refused() {
        let own = Frame::new(MODEL_KINDS, 1, Vec::new());
        assert_eq!(Order::from_frame(&own), Ok(None));
        assert_eq!(Report::from_frame(&own), Ok(None));
        let unknown = Frame::new(0, 1, Vec::new());
        assert_eq!(Order::from_frame(&unknown), Err(FrameError::UnknownKind { kind: 0 }));
        assert_eq!(Report::from_frame(&unknown), Err(FrameError::UnknownKind { kind: 0 }));
    }

    #[test]
    fn malformed_payloads_are_refused() {
        let malformed = |kind, what| Err(FrameError::Malformed { kind, what });
        let long = Frame::new(CANCEL, 1, vec![0]);
        assert_eq!(Order::from_frame(&long), malformed(CANCEL, "it is too long"));
        let code = Frame::new(FAILED, 1, vec![9]);
        let expect = Err(FrameError::Malformed { kind: FAILED, what: "no failure has this code" });
        assert_eq!(Report::from_frame(&code), expect);
    }
}
