//! One life of one worker: which streams are open in it, what goes to it, what comes back to whom.
//! The reader never waits for a stream: credit bounds what can be on its way to a slow one.

use std::collections::{BTreeMap, HashMap};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::task::{Context, Poll};

use tokio::io::AsyncWriteExt;
use tokio::net::unix::OwnedWriteHalf;
use tokio::sync::{Notify, mpsc};
use tokio::time::Instant;

use crate::frame::{Frame, FrameError};
use crate::worker::protocol::{Order, is_last};

/// Frames on their way to the worker; beyond them whoever sends waits.
const OUTGOING_MAX: usize = 64;

/// Frames that a stream may leave unread. Credit ends long before; this is the limit of memory if
/// a worker ignores it.
const UNREAD_MAX: usize = 4096;

#[derive(Debug)]
pub(crate) struct Session {
    /// What the model said of itself when it was ready.
    pub(crate) about: Vec<u8>,
    pub(super) pid: Option<u32>,
    streams_max: usize,
    outgoing: mpsc::Sender<Frame>,
    routes: Mutex<Routes>,
    /// Orders that must never wait, because whoever gives them is being dropped or polled. One
    /// entry per stream at most, so the streams bound it.
    mailbox: Mutex<Mailbox>,
    mail: Notify,
}

#[derive(Debug, Default)]
struct Routes {
    open: HashMap<u32, mpsc::Sender<Frame>>,
    last_stream: u32,
    /// When the last stream ended; the session's beginning before that.
    idle_since: Option<Instant>,
    /// It is being unloaded: who comes now is to have another worker, and no error.
    is_leaving: bool,
    /// How the worker ended; no stream is opened after that.
    lost: Option<String>,
}

#[derive(Debug, Default)]
struct Mailbox {
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

/// Why a stream's frames ended without a last one.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Cut {
    Lost(String),
    /// The worker sent far more than it had credit for.
    Overrun,
}

impl Session {
    pub(crate) fn new(
        about: Vec<u8>,
        pid: Option<u32>,
        streams_max: usize,
    ) -> (Arc<Session>, mpsc::Receiver<Frame>) {
        let (outgoing, to_write) = mpsc::channel(OUTGOING_MAX);
        let session = Session {
            about,
            pid,
            streams_max,
            outgoing,
            routes: Mutex::new(Routes { idle_since: Some(Instant::now()), ..Routes::default() }),
            mailbox: Mutex::default(),
            mail: Notify::new(),
        };
        (Arc::new(session), to_write)
    }

    pub(crate) fn in_flight(&self) -> usize {
        lock(&self.routes).open.len()
    }

    /// Since when no stream has been open; none while one is.
    pub(super) fn idle_since(&self) -> Option<Instant> {
        let routes = lock(&self.routes);
        if routes.open.is_empty() { routes.idle_since } else { None }
    }

    pub(crate) fn open(self: &Arc<Self>) -> Result<Ticket, NotOpened> {
        let mut routes = lock(&self.routes);
        if routes.is_leaving {
            return Err(NotOpened::Leaving);
        }
        if let Some(detail) = &routes.lost {
            return Err(NotOpened::Lost(detail.clone()));
        }
        if routes.open.len() >= self.streams_max {
            return Err(NotOpened::Full);
        }
        let (sender, frames) = mpsc::channel(UNREAD_MAX);
        let stream = routes.free_stream();
        routes.open.insert(stream, sender);
        Ok(Ticket { session: Arc::clone(self), stream, frames })
    }

    /// Hands a frame to its stream; one that nobody waits for any more is dropped.
    pub(super) fn route(&self, frame: Frame) {
        let stream = frame.stream;
        let is_last = is_last(&frame);
        let mut routes = lock(&self.routes);
        let Some(frames) = routes.open.get(&stream) else {
            return;
        };
        let is_overrun = frames.try_send(frame).is_err();
        if is_last || is_overrun {
            routes.close(stream);
        }
        drop(routes);
        if is_overrun {
            self.cancel(stream);
        }
    }

    /// Whether streams may be opened in it.
    pub(super) fn is_open(&self) -> bool {
        let routes = lock(&self.routes);
        !routes.is_leaving && routes.lost.is_none()
    }

    /// Whether its worker has ended.
    pub(crate) fn is_lost(&self) -> bool {
        lock(&self.routes).lost.is_some()
    }

    /// Opens no more streams if none is open, under the lock that opens them.
    pub(super) fn leave_if_idle(&self) -> bool {
        let mut routes = lock(&self.routes);
        let leaves = routes.open.is_empty() && !routes.is_leaving && routes.lost.is_none();
        routes.is_leaving |= leaves;
        leaves
    }

    /// Opens no more streams; those that are open end with the worker.
    pub(super) fn leave(&self) {
        lock(&self.routes).is_leaving = true;
    }

    /// Opens no more streams: the worker is about to end.
    pub(super) fn close(&self) {
        lock(&self.routes).lost = Some("it is ending".to_owned());
    }

    /// Ends every stream: the worker is no more.
    pub(crate) fn lose(&self, detail: &str) {
        let mut routes = lock(&self.routes);
        routes.lost = Some(detail.to_owned());
        routes.open.clear();
    }

    /// Whether the ping found a place among what goes out.
    pub(super) fn ping(&self) -> bool {
        self.outgoing.try_send(Order::Ping { stream: 0 }.to_frame()).is_ok()
    }

    /// Writes what is sent, for as long as the worker takes it.
    pub(super) async fn write_all(
        &self,
        mut socket: OwnedWriteHalf,
        mut to_write: mpsc::Receiver<Frame>,
    ) -> Result<(), WriteError> {
        let mut bytes = Vec::new();
        loop {
            bytes.clear();
            tokio::select! {
                // Before the mail, so that a cancel never overtakes the stream's own beginning.
                biased;
                Some(frame) = to_write.recv() => frame.encode(&mut bytes)?,
                () = self.mail.notified() => {
                    for order in self.take_mail() {
                        order.to_frame().encode(&mut bytes)?;
                    }
                }
            }
            socket.write_all(&bytes).await?;
        }
    }

    fn take_mail(&self) -> Vec<Order> {
        let mail = std::mem::take(&mut *lock(&self.mailbox));
        let cancelled = mail.cancelled.into_iter().map(|stream| Order::Cancel { stream });
        let credits =
            mail.credits.into_iter().map(|(stream, amount)| Order::Credit { stream, amount });
        cancelled.chain(credits).collect()
    }

    fn credit(&self, stream: u32, amount: u32) {
        let mut mailbox = lock(&self.mailbox);
        let credit = mailbox.credits.entry(stream).or_default();
        *credit = credit.saturating_add(amount);
        drop(mailbox);
        self.mail.notify_one();
    }

    fn cancel(&self, stream: u32) {
        let mut mailbox = lock(&self.mailbox);
        mailbox.credits.remove(&stream);
        mailbox.cancelled.push(stream);
        drop(mailbox);
        self.mail.notify_one();
    }
}

impl Routes {
    /// Whether it was open.
    fn close(&mut self, stream: u32) -> bool {
        self.idle_since = Some(Instant::now());
        self.open.remove(&stream).is_some()
    }

    /// Never 0, and never one that is still open after the numbers have gone round.
    fn free_stream(&mut self) -> u32 {
        loop {
            self.last_stream = self.last_stream.wrapping_add(1);
            if self.last_stream != 0 && !self.open.contains_key(&self.last_stream) {
                return self.last_stream;
            }
        }
    }
}

#[derive(Debug, thiserror::Error)]
pub(super) enum WriteError {
    #[error(transparent)]
    Frame(#[from] FrameError),
    #[error(transparent)]
    Io(#[from] std::io::Error),
}

/// An open stream: dropping it cancels what the worker still does for it.
#[derive(Debug)]
pub(crate) struct Ticket {
    session: Arc<Session>,
    pub(crate) stream: u32,
    frames: mpsc::Receiver<Frame>,
}

impl Ticket {
    /// Where to send this stream's orders.
    pub(crate) fn outgoing(&self) -> mpsc::Sender<Frame> {
        self.session.outgoing.clone()
    }

    pub(crate) fn session(&self) -> Arc<Session> {
        Arc::clone(&self.session)
    }

    /// Lets the worker send this much more.
    pub(crate) fn credit(&self, amount: u32) {
        self.session.credit(self.stream, amount);
    }

    pub(crate) fn poll_frame(&mut self, cx: &mut Context<'_>) -> Poll<Result<Frame, Cut>> {
        self.frames.poll_recv(cx).map(|frame| frame.ok_or_else(|| self.cut()))
    }

    fn cut(&self) -> Cut {
        match &lock(&self.session.routes).lost {
            Some(detail) => Cut::Lost(detail.clone()),
            None => Cut::Overrun,
        }
    }
}

impl Drop for Ticket {
    fn drop(&mut self) {
        let was_open = lock(&self.session.routes).close(self.stream);
        if was_open {
            self.session.cancel(self.stream);
        }
    }
}

/// No panic can leave these maps half-changed, so a poisoned lock is used as it is.
fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

#[cfg(test)]
mod tests;
