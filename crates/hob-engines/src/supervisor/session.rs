//! The connection to one running worker: its open streams, and the frames to and from each of them.
//! Reading never waits for a slow stream: credit limits what a worker sends to a stream that does not read.

use std::collections::{BTreeMap, HashMap};
use std::error::Error;
use std::sync::{Arc, Mutex};

use hob_core::{ModelError, locked};
use serde::Serialize;
use serde::de::DeserializeOwned;
use tokio::io::AsyncWriteExt;
use tokio::net::unix::OwnedWriteHalf;
use tokio::sync::{Notify, mpsc};
use tokio::time::Instant;

use crate::frame::{Frame, FrameKind};
use crate::worker::protocol::{
    AnyReport, CommonOrder, Report, StreamFailure, WorkerMessage, WorkerStats,
};

/// Maximum frames on their way to the worker. A sender waits when there are more.
const OUTGOING_MAX: usize = 64;

/// Maximum unread frames of a stream. Credit stops a worker much earlier. This limits the memory if a worker
/// ignores credit.
const UNREAD_MAX: usize = 4096;

/// What a worker reports about its model when it is ready.
#[derive(Clone, Debug, Default)]
pub(crate) struct LoadedModel {
    /// Memory on graphics cards.
    pub(crate) vram_bytes: u64,
    /// The model's description, encoded by the model's own protocol.
    pub(crate) about: Vec<u8>,
}

#[derive(Debug)]
pub(crate) struct WorkerSession {
    /// The engine's name in errors, such as "speech".
    engine: &'static str,
    pub(crate) model: LoadedModel,
    pub(super) pid: Option<u32>,
    streams_max: usize,
    outgoing: mpsc::Sender<Frame>,
    streams: Mutex<Streams>,
    /// Orders from code that cannot wait, because it is being dropped or polled. At most one entry per
    /// stream, so the streams bound it.
    urgent: Mutex<UrgentOrders>,
    has_urgent: Notify,
}

#[derive(Debug, Default)]
struct Streams {
    open: HashMap<u32, mpsc::Sender<Frame>>,
    last_stream: u32,
    /// When a stream last ended or was dropped, or else when the session began. It counts only while no stream is open.
    idle_since: Option<Instant>,
    /// The worker is being unloaded. New requests get another worker, not an error.
    is_leaving: bool,
    /// How the worker ended, or that it is ending. No stream opens after that.
    lost: Option<String>,
}

#[derive(Debug, Default)]
struct UrgentOrders {
    cancelled: Vec<u32>,
    credits: BTreeMap<u32, u32>,
}

/// Why no stream was opened.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum NotOpened {
    Full,
    Leaving,
    Lost(String),
}

/// A report about one stream that is not a failure.
#[derive(Debug, PartialEq)]
pub(crate) enum StreamReport<R> {
    Model(R),
    Stats(WorkerStats),
    /// The answer is complete.
    Done,
}

impl WorkerSession {
    /// The session, and the frames that [`WorkerSession::write_all`] has to write.
    pub(crate) fn new(
        engine: &'static str,
        model: LoadedModel,
        pid: Option<u32>,
        streams_max: usize,
    ) -> (Arc<WorkerSession>, mpsc::Receiver<Frame>) {
        let (outgoing, to_write) = mpsc::channel(OUTGOING_MAX);
        let session = WorkerSession {
            engine,
            model,
            pid,
            streams_max,
            outgoing,
            streams: Mutex::new(Streams { idle_since: Some(Instant::now()), ..Streams::default() }),
            urgent: Mutex::default(),
            has_urgent: Notify::new(),
        };
        (Arc::new(session), to_write)
    }

    pub(crate) fn in_flight(&self) -> usize {
        locked(&self.streams).open.len()
    }

    /// Since when no stream has been open. `None` while one is.
    pub(super) fn idle_since(&self) -> Option<Instant> {
        let streams = locked(&self.streams);
        if streams.open.is_empty() { streams.idle_since } else { None }
    }

    pub(crate) fn open(self: &Arc<Self>) -> Result<OpenStream, NotOpened> {
        let mut streams = locked(&self.streams);
        if streams.is_leaving {
            return Err(NotOpened::Leaving);
        }
        if let Some(detail) = &streams.lost {
            return Err(NotOpened::Lost(detail.clone()));
        }
        if streams.open.len() >= self.streams_max {
            return Err(NotOpened::Full);
        }
        let (sender, frames) = mpsc::channel(UNREAD_MAX);
        let stream = streams.free_stream();
        streams.open.insert(stream, sender);
        Ok(OpenStream { session: Arc::clone(self), stream, frames })
    }

    /// Gives a frame to its stream. A frame of a closed stream is dropped: it crossed the cancel on its way.
    pub(crate) fn route(&self, frame: Frame) {
        let stream = frame.stream;
        let is_last = Report::from_frame(&frame).is_ok_and(|report| report.is_last());
        let mut streams = locked(&self.streams);
        let Some(frames) = streams.open.get(&stream) else {
            return;
        };
        let is_overrun = frames.try_send(frame).is_err();
        if is_last || is_overrun {
            streams.close(stream);
        }
        drop(streams);
        if is_overrun {
            self.cancel(stream);
        }
    }

    /// Whether new streams may open.
    pub(super) fn is_open(&self) -> bool {
        let streams = locked(&self.streams);
        !streams.is_leaving && streams.lost.is_none()
    }

    /// Whether the worker has ended, or is about to, and was not unloaded.
    pub(crate) fn is_lost(&self) -> bool {
        let streams = locked(&self.streams);
        streams.lost.is_some() && !streams.is_leaving
    }

    /// Opens no more streams if none is open, under the lock that opens them.
    pub(super) fn leave_if_idle(&self) -> bool {
        let mut streams = locked(&self.streams);
        let leaves = streams.open.is_empty() && !streams.is_leaving && streams.lost.is_none();
        streams.is_leaving |= leaves;
        leaves
    }

    /// Opens no more streams. Open streams end with the worker.
    pub(crate) fn leave(&self) {
        locked(&self.streams).is_leaving = true;
    }

    /// Opens no more streams: the worker is about to end.
    pub(super) fn close(&self) {
        locked(&self.streams).lost = Some("it is ending".to_owned());
    }

    /// Ends every stream, because the worker has ended.
    pub(crate) fn lose(&self, detail: &str) {
        let mut streams = locked(&self.streams);
        streams.lost = Some(detail.to_owned());
        streams.open.clear();
    }

    /// Asks the engine for its statistics. If the queue to the worker is full, hob sends nothing, and the missing answer
    /// counts like that of an engine that hangs.
    pub(super) fn ping(&self) {
        if let Ok(frame) = CommonOrder::Ping.to_frame(0) {
            drop(self.outgoing.try_send(frame));
        }
    }

    /// Writes frames and urgent orders until the worker takes no more.
    pub(super) async fn write_all(
        &self,
        mut socket: OwnedWriteHalf,
        mut to_write: mpsc::Receiver<Frame>,
    ) -> Result<(), Box<dyn Error + Send + Sync>> {
        let mut bytes = Vec::new();
        loop {
            bytes.clear();
            tokio::select! {
                // Frames before urgent orders, so that a cancel never overtakes its stream's first frame.
                biased;
                Some(frame) = to_write.recv() => frame.encode(&mut bytes)?,
                () = self.has_urgent.notified() => {
                    for (stream, order) in self.take_urgent() {
                        order.to_frame(stream)?.encode(&mut bytes)?;
                    }
                }
            }
            socket.write_all(&bytes).await?;
        }
    }

    pub(crate) fn take_urgent(&self) -> Vec<(u32, CommonOrder)> {
        let urgent = std::mem::take(&mut *locked(&self.urgent));
        let cancelled = urgent.cancelled.into_iter().map(|stream| (stream, CommonOrder::Cancel));
        let credits = urgent
            .credits
            .into_iter()
            .map(|(stream, amount)| (stream, CommonOrder::Credit(amount)));
        cancelled.chain(credits).collect()
    }

    fn credit(&self, stream: u32, amount: u32) {
        let mut urgent = locked(&self.urgent);
        let credit = urgent.credits.entry(stream).or_default();
        *credit = credit.saturating_add(amount);
        drop(urgent);
        self.has_urgent.notify_one();
    }

    fn cancel(&self, stream: u32) {
        let mut urgent = locked(&self.urgent);
        urgent.credits.remove(&stream);
        urgent.cancelled.push(stream);
        drop(urgent);
        self.has_urgent.notify_one();
    }

    fn failed(&self, detail: impl Into<String>) -> ModelError {
        ModelError::EngineFailed { engine: self.engine, detail: detail.into() }
    }
}

impl Streams {
    /// Returns whether the stream was open.
    fn close(&mut self, stream: u32) -> bool {
        self.idle_since = Some(Instant::now());
        self.open.remove(&stream).is_some()
    }

    /// The number of a new stream. It is never 0, and never that of an open stream, also after the numbers have wrapped.
    fn free_stream(&mut self) -> u32 {
        loop {
            self.last_stream = self.last_stream.wrapping_add(1);
            if self.last_stream != 0 && !self.open.contains_key(&self.last_stream) {
                return self.last_stream;
            }
        }
    }
}

/// An open stream. Dropping it cancels the worker's work for it.
#[derive(Debug)]
pub(crate) struct OpenStream {
    session: Arc<WorkerSession>,
    stream: u32,
    frames: mpsc::Receiver<Frame>,
}

/// Sends the orders of one stream. It may outlive the stream; the worker ignores late orders.
#[derive(Clone, Debug)]
pub(crate) struct OrderSender {
    session: Arc<WorkerSession>,
    stream: u32,
}

impl OrderSender {
    /// Waits while the queue to the worker is full. A lost worker is not an error here: the stream's next
    /// report says it, with the reason.
    ///
    /// # Errors
    /// The order is larger than a frame may be.
    pub(crate) async fn send(&self, order: &impl Serialize) -> Result<(), ModelError> {
        let frame = Frame::new(FrameKind::Model, self.stream, order)
            .map_err(|error| self.session.failed(format!("it cannot get this request: {error}")))?;
        drop(self.session.outgoing.send(frame).await);
        Ok(())
    }
}

impl OpenStream {
    pub(crate) fn orders(&self) -> OrderSender {
        OrderSender { session: self.session(), stream: self.stream }
    }

    pub(crate) fn session(&self) -> Arc<WorkerSession> {
        Arc::clone(&self.session)
    }

    /// Lets the worker send this much more.
    pub(crate) fn credit(&self, amount: u32) {
        self.session.credit(self.stream, amount);
    }

    /// Asks the engine for its statistics. If the worker is lost, the stream's next report says why.
    pub(super) async fn ping(&self) {
        if let Ok(frame) = CommonOrder::Ping.to_frame(self.stream) {
            drop(self.session.outgoing.send(frame).await);
        }
    }

    /// The next report about this stream.
    ///
    /// # Errors
    /// The worker failed, refused or was lost, or its report cannot be read.
    pub(crate) async fn report<R: DeserializeOwned>(
        &mut self,
    ) -> Result<StreamReport<R>, ModelError> {
        match self.frames.recv().await {
            Some(frame) => self.read(&frame),
            None => Err(self.end_reason()),
        }
    }

    fn read<R: DeserializeOwned>(&self, frame: &Frame) -> Result<StreamReport<R>, ModelError> {
        match AnyReport::from_frame(frame)
            .map_err(|error| self.session.failed(error.to_string()))?
        {
            WorkerMessage::Model(report) => Ok(StreamReport::Model(report)),
            WorkerMessage::Common(Report::Done) => Ok(StreamReport::Done),
            WorkerMessage::Common(Report::Stats(stats)) => Ok(StreamReport::Stats(stats)),
            WorkerMessage::Common(Report::Failed(StreamFailure::Empty)) => {
                Err(ModelError::EmptyText)
            }
            WorkerMessage::Common(Report::Failed(StreamFailure::Engine(detail))) => {
                Err(self.session.failed(detail))
            }
            WorkerMessage::Common(other) => {
                Err(self.session.failed(format!("its stream contains {other:?}")))
            }
        }
    }

    /// The error for a report that is not expected now. It does not quote the report, which may hold a user's text.
    pub(crate) fn unexpected<R>(&self, report: &StreamReport<R>) -> ModelError {
        self.session.failed(match report {
            StreamReport::Done => "its stream ended before its answer",
            StreamReport::Model(_) | StreamReport::Stats(_) => {
                "its stream has an unexpected report"
            }
        })
    }

    /// Why the frames ended without a last report.
    fn end_reason(&self) -> ModelError {
        match &locked(&self.session.streams).lost {
            Some(detail) => {
                ModelError::WorkerLost { engine: self.session.engine, detail: detail.clone() }
            }
            None => self.session.failed("it sent more than it had credit for"),
        }
    }
}

impl Drop for OpenStream {
    fn drop(&mut self) {
        let was_open = locked(&self.session.streams).close(self.stream);
        if was_open {
            self.session.cancel(self.stream);
        }
    }
}

#[cfg(test)]
mod tests;
