//! A worker process's side of its socket. One thread reads orders, one sends heartbeats, and the engine's
//! thread sends reports. The model's own protocol defines what the orders mean.

pub mod frame_socket;
pub mod protocol;
#[cfg(test)]
pub(crate) mod test_socket;

use std::io::{self, Read, Write};
use std::net::Shutdown;
use std::os::fd::AsFd;
use std::os::unix::net::UnixStream;
use std::panic::PanicHookInfo;
use std::sync::mpsc::{Receiver, RecvTimeoutError, SyncSender, TryRecvError, sync_channel};
use std::sync::{Arc, Mutex};
use std::thread;
use std::time::Duration;

use hob_core::locked;
use protocol::{DeviceShortage, Report, hello};
use serde::Serialize;

use crate::frame::{Frame, FrameDecoder, FrameError, FrameKind};

/// Maximum orders that wait for the engine. When there are more, the reader waits, and the socket fills.
const ORDERS_MAX: usize = 256;

/// Between two heartbeats of a worker.
pub(crate) const HEARTBEAT_EVERY: Duration = Duration::from_secs(2);

/// Maximum bytes of one read from the socket.
const READ_BYTES: usize = 64 << 10;

/// Makes this process a worker. Returns the socket that the supervisor passed as standard input, and
/// keeps users' texts out of panic messages.
///
/// # Errors
/// Standard input is not a socket: the process was not started by a supervisor.
pub fn become_worker() -> io::Result<UnixStream> {
    let socket = UnixStream::from(io::stdin().as_fd().try_clone_to_owned()?);
    socket.local_addr()?;
    keep_texts_out_of_panics();
    Ok(socket)
}

/// A panic prints its place. It prints its message only if that is a literal of the source: a formatted
/// message may quote a user's text, which does not belong in logs.
fn keep_texts_out_of_panics() {
    std::panic::set_hook(Box::new(|panic| {
        // A closed standard error has no reader, so the message may be lost.
        let _ = writeln!(io::stderr(), "{}", without_texts(panic));
    }));
}

fn without_texts(panic: &PanicHookInfo<'_>) -> String {
    let place = panic.location().map_or_else(String::new, |at| format!(" at {at}"));
    match panic.payload().downcast_ref::<&'static str>() {
        Some(literal) => format!("panicked{place}: {literal}"),
        None => format!("panicked{place}"),
    }
}

/// Both directions of a worker's socket.
#[derive(Debug)]
pub struct WorkerConnection<Order> {
    pub inbox: Inbox<Order>,
    pub outlet: Outlet,
}

impl<Order: Send + 'static> WorkerConnection<Order> {
    /// Sends the handshake, and starts the threads that read orders and send heartbeats. The process is aborted if the
    /// engine has not ended `orphan_limit` after a heartbeat found the socket closed, because its work has no reader any more.
    ///
    /// # Errors
    /// The socket cannot be shared or written to, or a thread cannot be started.
    pub fn start(
        socket: &UnixStream,
        decode: fn(&Frame) -> Result<Order, FrameError>,
        orphan_limit: Duration,
    ) -> io::Result<WorkerConnection<Order>> {
        let (inbox, engine_ended) = Inbox::start(socket, decode)?;
        let mut outlet = Outlet::new(socket)?;
        outlet.write(&hello())?;
        let mut beats = outlet.shared();
        thread::Builder::new().name("heartbeat".to_owned()).spawn(move || {
            // Ends with the socket. The thread that reads orders may not see that end: it waits while the inbox is full.
            while beats.report(0, &Report::Alive).is_ok() {
                thread::sleep(HEARTBEAT_EVERY);
            }
            if engine_ended.recv_timeout(orphan_limit) == Err(RecvTimeoutError::Timeout) {
                std::process::abort();
            }
        })?;
        Ok(WorkerConnection { inbox, outlet })
    }
}

/// The orders of a supervisor, read and decoded by a thread of their own.
#[derive(Debug)]
pub struct Inbox<Order> {
    orders: Receiver<Incoming<Order>>,
    sender: SyncSender<Incoming<Order>>,
    socket: UnixStream,
    /// Dropped with the inbox, which shows that the engine has ended.
    _engine_lives: SyncSender<()>,
}

/// An order, the end of all orders (`None`), or the reason why there are no more.
type Incoming<Order> = Result<Option<Order>, InboxError>;

/// Puts messages of other threads among the orders.
#[derive(Debug)]
pub struct InboxSender<Order>(SyncSender<Incoming<Order>>);

impl<Order> Clone for InboxSender<Order> {
    fn clone(&self) -> InboxSender<Order> {
        InboxSender(self.0.clone())
    }
}

impl<Order> InboxSender<Order> {
    /// Waits while the inbox is full.
    ///
    /// # Errors
    /// The engine has ended.
    pub fn send(&self, order: Order) -> Result<(), EngineEnded> {
        self.0.send(Ok(Some(order))).map_err(|_| EngineEnded)
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("the engine has ended")]
pub struct EngineEnded;

#[derive(Debug, thiserror::Error)]
pub enum InboxError {
    #[error("the server's frames cannot be read: {0}")]
    Frame(#[from] FrameError),
    #[error("the server's socket cannot be read: {0}")]
    Io(#[from] io::Error),
}

impl<Order: Send + 'static> Inbox<Order> {
    /// See [`WorkerConnection::start`]. The receiver is disconnected when the engine has ended.
    fn start(
        socket: &UnixStream,
        decode: fn(&Frame) -> Result<Order, FrameError>,
    ) -> io::Result<(Inbox<Order>, Receiver<()>)> {
        let (sender, orders) = sync_channel(ORDERS_MAX);
        let (engine_lives, engine_ended) = sync_channel(0);
        let mut reading = socket.try_clone()?;
        let orders_in = sender.clone();
        thread::Builder::new().name("orders".to_owned()).spawn(move || {
            let end = read_orders(&mut reading, decode, &orders_in).map(|()| None);
            // An engine that has ended needs no end of its orders.
            drop(orders_in.send(end));
        })?;
        let socket = socket.try_clone()?;
        Ok((Inbox { orders, sender, socket, _engine_lives: engine_lives }, engine_ended))
    }

    /// The next order, if one has arrived.
    ///
    /// # Errors
    /// The server's bytes make no sense or cannot be read.
    pub fn poll(&self) -> Result<Polled<Order>, InboxError> {
        match self.orders.try_recv() {
            Ok(Ok(Some(order))) => Ok(Polled::Order(order)),
            Ok(Ok(None)) => Ok(Polled::Closed),
            Ok(Err(error)) => Err(error),
            Err(TryRecvError::Empty) => Ok(Polled::Empty),
            Err(TryRecvError::Disconnected) => Ok(Polled::Closed),
        }
    }

    /// Waits for an order. `None` when the server has closed the socket.
    ///
    /// # Errors
    /// The server's bytes make no sense or cannot be read.
    pub fn wait(&self) -> Result<Option<Order>, InboxError> {
        self.orders.recv().unwrap_or(Ok(None))
    }

    /// For threads that work next to the engine.
    pub fn sender(&self) -> InboxSender<Order> {
        InboxSender(self.sender.clone())
    }
}

/// What [`Inbox::poll`] found.
#[derive(Debug, PartialEq, Eq)]
pub enum Polled<Order> {
    Order(Order),
    Empty,
    /// The server has closed the socket, and all orders were returned.
    Closed,
}

impl<Order> Drop for Inbox<Order> {
    /// Wakes the reader, which may be waiting for bytes.
    fn drop(&mut self) {
        // On a socket that is closed already the reader has ended.
        let _ = self.socket.shutdown(Shutdown::Both);
    }
}

/// Returns when the socket is closed or the engine has ended.
fn read_orders<Order>(
    socket: &mut UnixStream,
    decode: fn(&Frame) -> Result<Order, FrameError>,
    orders: &SyncSender<Incoming<Order>>,
) -> Result<(), InboxError> {
    let mut decoder = FrameDecoder::default();
    let mut chunk = vec![0; READ_BYTES];
    loop {
        let bytes = match socket.read(&mut chunk) {
            Ok(0) => return Ok(()),
            Ok(bytes) => bytes,
            Err(error) if error.kind() == io::ErrorKind::Interrupted => continue,
            // The supervisor ended before it read everything, which is a close too.
            Err(error) if error.kind() == io::ErrorKind::ConnectionReset => return Ok(()),
            Err(error) => return Err(error.into()),
        };
        decoder.push(&chunk[..bytes]);
        while let Some(frame) = decoder.next_frame()? {
            if orders.send(Ok(Some(decode(&frame)?))).is_err() {
                return Ok(());
            }
        }
    }
}

/// Why a model does not load.
pub trait LoadError: std::error::Error {
    /// The memory that a graphics card could not give, if that is the reason.
    fn device_shortage(&self) -> Option<DeviceShortage> {
        None
    }
}

/// Sends reports to the supervisor.
#[derive(Debug)]
pub struct Outlet {
    /// Locked for a whole frame, because several threads send.
    socket: Arc<Mutex<UnixStream>>,
    /// Reused, so that sending does not allocate.
    bytes: Vec<u8>,
}

impl Outlet {
    fn new(socket: &UnixStream) -> io::Result<Outlet> {
        let socket = Arc::new(Mutex::new(socket.try_clone()?));
        Ok(Outlet { socket, bytes: Vec::new() })
    }

    /// For another thread. Frames of several threads are never mixed.
    pub fn shared(&self) -> Outlet {
        Outlet { socket: Arc::clone(&self.socket), bytes: Vec::new() }
    }

    /// Sends a report of the common protocol. Blocks while the socket is full.
    ///
    /// # Errors
    /// The supervisor is gone.
    pub fn report(&mut self, stream: u32, report: &Report) -> io::Result<()> {
        let frame = report.to_frame(stream).map_err(io::Error::other)?;
        self.write(&frame)
    }

    /// Sends a report of the model's own protocol. Blocks while the socket is full.
    ///
    /// # Errors
    /// The supervisor is gone, or the report is larger than a frame may be.
    pub fn send(&mut self, stream: u32, report: &impl Serialize) -> io::Result<()> {
        let frame = Frame::new(FrameKind::Model, stream, report).map_err(io::Error::other)?;
        self.write(&frame)
    }

    /// Tells the supervisor why loading failed, before the process ends because of it.
    ///
    /// # Errors
    /// The result's own error, or the supervisor is gone.
    pub fn loaded<T, E>(&mut self, result: Result<T, E>) -> Result<T, E>
    where
        E: LoadError + From<io::Error>,
    {
        if let Err(error) = &result {
            let reason = error.to_string();
            let report = match error.device_shortage() {
                Some(shortage) => Report::no_device_room(&reason, shortage),
                None => Report::load_failed(&reason),
            };
            self.report(0, &report)?;
        }
        result
    }

    /// Tells the supervisor that the model is loaded, and `about` it.
    ///
    /// # Errors
    /// The supervisor is gone.
    pub fn ready(&mut self, vram_bytes: u64, about: &impl Serialize) -> io::Result<()> {
        let about = postcard::to_allocvec(about).map_err(io::Error::other)?;
        self.report(0, &Report::Ready { vram_bytes, about })
    }

    fn write(&mut self, frame: &Frame) -> io::Result<()> {
        self.bytes.clear();
        frame.encode(&mut self.bytes).map_err(io::Error::other)?;
        let mut socket = locked(&self.socket);
        socket.write_all(&self.bytes)
    }
}

#[cfg(test)]
mod tests {
    use std::iter;

    use super::frame_socket::FrameSocket;
    use super::*;
    use crate::worker::protocol::{AnyOrder, CommonOrder, WorkerMessage};

    type Numbered = (u32, AnyOrder<()>);

    fn decode(frame: &Frame) -> Result<Numbered, FrameError> {
        AnyOrder::of_stream(frame)
    }

    fn inbox() -> (UnixStream, Inbox<Numbered>) {
        let (server, worker) = UnixStream::pair().expect("a socket pair");
        let (inbox, _) = Inbox::start(&worker, decode).expect("a thread");
        (server, inbox)
    }

    #[test]
    fn orders_arrive_in_order_and_the_end_after_them() {
        let (server, inbox) = inbox();
        let sent = [(1, CommonOrder::Ping), (1, CommonOrder::Cancel)];
        let mut outlet = Outlet::new(&server).expect("a socket");
        for (stream, order) in &sent {
            outlet.write(&order.to_frame(*stream).expect("small")).expect("sent");
        }
        drop((outlet, server));
        for (stream, order) in sent {
            let received = inbox.wait().expect("well-formed");
            assert_eq!(received, Some((stream, WorkerMessage::Common(order))));
        }
        let mut polled = iter::repeat_with(|| inbox.poll().expect("closed, not broken"));
        assert_eq!(polled.find(|polled| *polled != Polled::Empty), Some(Polled::Closed));
    }

    #[test]
    fn other_threads_send_among_the_orders_until_the_engine_has_ended() {
        let (_server, inbox) = inbox();
        let sender = inbox.sender();
        let ping = |stream| (stream, WorkerMessage::Common(CommonOrder::Ping));
        sender.clone().send(ping(7)).expect("the engine lives");
        assert_eq!(inbox.wait().expect("no error"), Some(ping(7)));
        drop(inbox);
        assert_eq!(sender.send(ping(8)), Err(EngineEnded));
    }

    #[test]
    fn malformed_bytes_are_an_error_for_the_engine() {
        let (mut server, inbox) = inbox();
        server.write_all(&[200; 64]).expect("sent");
        let error = inbox.wait().expect_err("no such kind");
        assert!(matches!(error, InboxError::Frame(FrameError::UnknownKind { kind: 200 })));
    }

    #[test]
    fn a_socket_that_cannot_be_read_is_an_error_for_the_engine() {
        let (_server, worker) = UnixStream::pair().expect("a socket pair");
        worker.set_nonblocking(true).expect("a socket");
        let (inbox, _) = Inbox::start(&worker, decode).expect("a thread");
        assert!(matches!(inbox.wait(), Err(InboxError::Io(_))));
    }

    #[test]
    fn sending_to_a_closed_socket_is_an_error() {
        let (server, worker) = UnixStream::pair().expect("a socket pair");
        let mut outlet = Outlet::new(&worker).expect("a socket");
        drop(server);
        assert!(outlet.report(1, &Report::Done).is_err());
    }

    /// The engine is this test, and does nothing.
    #[test]
    fn a_worker_beats_while_its_engine_does_nothing() {
        let (mut server, worker) = FrameSocket::pair();
        let connection =
            WorkerConnection::start(&worker, decode, Duration::from_secs(60)).expect("threads");
        assert_eq!(server.receive().expect("a frame"), hello());
        for _ in 0..2 {
            let beat = server.receive().expect("a frame");
            assert_eq!(Report::from_frame(&beat), Ok(Report::Alive));
        }
        drop(connection);
    }
}
