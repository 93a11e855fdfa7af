//! A worker process's side of the socket: orders come in on a thread of their own, reports go out
//! from the engine's. What the orders mean is the model's business.

pub mod protocol;

use std::io::{self, Read, Write};
use std::net::Shutdown;
use std::os::fd::AsFd;
use std::os::unix::net::UnixStream;
use std::panic::PanicHookInfo;
use std::sync::mpsc::{Receiver, RecvTimeoutError, SyncSender, TryRecvError, sync_channel};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread;
use std::time::Duration;

use protocol::Report;

use crate::frame::{Frame, FrameDecoder, FrameError};

/// Orders that wait for the engine; beyond them the reader waits, and the socket behind it.
const ORDERS_MAX: usize = 256;

/// Bytes read from the socket at once.
const READ_BYTES: usize = 64 << 10;

/// Makes this process a worker: returns the socket that a supervisor gave it as its standard input,
/// and lets panics be silent about what users wrote.
///
/// # Errors
/// Standard input is not a socket: the process was not started by a supervisor.
pub fn become_worker() -> io::Result<UnixStream> {
    let socket = UnixStream::from(io::stdin().as_fd().try_clone_to_owned()?);
    socket.local_addr()?;
    keep_texts_out_of_panics();
    Ok(socket)
}

/// Lets a panic say where it happened, and what only if that was written in the source: a
/// formatted message may quote a text, and texts do not belong in logs.
fn keep_texts_out_of_panics() {
    std::panic::set_hook(Box::new(|panic| {
        // There is nobody left to tell when standard error is closed.
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

/// The orders of a supervisor, read and decoded by a thread of their own.
#[derive(Debug)]
pub struct Inbox<Order> {
    orders: Receiver<Arrival<Order>>,
    sender: SyncSender<Arrival<Order>>,
    socket: UnixStream,
    /// Dropped with the inbox, which tells the reader that the engine has ended.
    _engine_lives: SyncSender<()>,
}

/// What comes in: an order, the end of all orders (none), or why there will be no more.
type Arrival<Order> = Result<Option<Order>, InboxError>;

/// Puts what other threads have to say among the orders.
#[derive(Debug)]
pub struct InboxSender<Order>(SyncSender<Arrival<Order>>);

impl<Order> Clone for InboxSender<Order> {
    fn clone(&self) -> InboxSender<Order> {
        InboxSender(self.0.clone())
    }
}

impl<Order> InboxSender<Order> {
    /// Waits while the inbox is full.
    ///
    /// # Errors
    /// The engine has ended, and nobody listens any more.
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
    /// Reads until the socket is closed. The process is aborted if the engine has not ended
    /// `orphan_limit` after that: nobody would ever hear what it still makes.
    ///
    /// # Errors
    /// The socket cannot be shared or the thread not started.
    pub fn start(
        socket: &UnixStream,
        decode: fn(&Frame) -> Result<Order, FrameError>,
        orphan_limit: Duration,
    ) -> io::Result<Inbox<Order>> {
        let (sender, orders) = sync_channel(ORDERS_MAX);
        let (engine_lives, engine_ended) = sync_channel(0);
        let mut reading = socket.try_clone()?;
        let orders_in = sender.clone();
        thread::Builder::new().name("orders".to_owned()).spawn(move || {
            let end = read_orders(&mut reading, decode, &orders_in).map(|()| None);
            // The engine has ended already when it no longer listens.
            let _nobody_listens = orders_in.send(end);
            if engine_ended.recv_timeout(orphan_limit) == Err(RecvTimeoutError::Timeout) {
                std::process::abort();
            }
        })?;
        Ok(Inbox { orders, sender, socket: socket.try_clone()?, _engine_lives: engine_lives })
    }

    /// An order that is there already.
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

    /// Waits for an order; none when the server has closed the socket.
    ///
    /// # Errors
    /// The server's bytes make no sense or cannot be read.
    pub fn wait(&self) -> Result<Option<Order>, InboxError> {
        self.orders.recv().unwrap_or(Ok(None))
    }

    /// For threads that work beside the engine.
    pub fn sender(&self) -> InboxSender<Order> {
        InboxSender(self.sender.clone())
    }
}

/// What [`Inbox::poll`] found.
#[derive(Debug, PartialEq, Eq)]
pub enum Polled<Order> {
    Order(Order),
    Empty,
    /// The server has closed the socket, and every order before that was given out.
    Closed,
}

impl<Order> Drop for Inbox<Order> {
    /// Wakes the reader, which may be waiting for bytes.
    fn drop(&mut self) {
        // It has no one to wake when the socket is closed already.
        let _ = self.socket.shutdown(Shutdown::Both);
    }
}

/// Returns when the socket is closed or the engine has ended.
fn read_orders<Order>(
    socket: &mut UnixStream,
    decode: fn(&Frame) -> Result<Order, FrameError>,
    orders: &SyncSender<Arrival<Order>>,
) -> Result<(), InboxError> {
    let mut decoder = FrameDecoder::default();
    let mut chunk = vec![0; READ_BYTES];
    loop {
        let bytes = match socket.read(&mut chunk) {
            Ok(0) => return Ok(()),
            Ok(bytes) => bytes,
            Err(error) if error.kind() == io::ErrorKind::Interrupted => continue,
            // The supervisor ended with something of ours unread: as good as a close.
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

/// Where reports go.
#[derive(Debug)]
pub struct Outlet {
    /// Held for a whole frame: several threads may send.
    socket: Arc<Mutex<UnixStream>>,
    /// Reused, so that sending does not allocate.
    bytes: Vec<u8>,
}

impl Outlet {
    /// # Errors
    /// The socket cannot be shared.
    pub fn new(socket: &UnixStream) -> io::Result<Outlet> {
        let socket = Arc::new(Mutex::new(socket.try_clone()?));
        Ok(Outlet { socket, bytes: Vec::new() })
    }

    /// For another thread; frames of both are never mixed.
    pub fn shared(&self) -> Outlet {
        Outlet { socket: Arc::clone(&self.socket), bytes: Vec::new() }
    }

    /// Waits while the supervisor reads slowly, which it does not.
    ///
    /// # Errors
    /// The supervisor is gone.
    pub fn report(&mut self, report: &Report) -> io::Result<()> {
        self.send(&report.to_frame())
    }

    /// # Errors
    /// The supervisor is gone, or the frame is over the limit.
    pub fn send(&mut self, frame: &Frame) -> io::Result<()> {
        self.bytes.clear();
        frame.encode(&mut self.bytes).map_err(io::Error::other)?;
        let mut socket = self.socket.lock().unwrap_or_else(PoisonError::into_inner);
        socket.write_all(&self.bytes)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::worker::protocol::Order;
    use std::iter;

    fn decode(frame: &Frame) -> Result<Order, FrameError> {
        Order::from_frame(frame)?.ok_or(FrameError::UnknownKind { kind: frame.kind })
    }

    fn inbox() -> (UnixStream, Inbox<Order>) {
        let (server, worker) = UnixStream::pair().expect("a socket pair");
        let inbox = Inbox::start(&worker, decode, Duration::from_secs(60)).expect("a thread");
        (server, inbox)
    }

    #[test]
    fn orders_arrive_in_order_and_the_end_after_them() {
        let (server, inbox) = inbox();
        let sent = [Order::Ping { stream: 1 }, Order::Cancel { stream: 1 }];
        let mut outlet = Outlet::new(&server).expect("a socket");
        for order in &sent {
            outlet.send(&order.to_frame()).expect("sent");
        }
        drop((outlet, server));
        for order in sent {
            assert_eq!(inbox.wait().expect("well-formed"), Some(order));
        }
        let mut polled = iter::repeat_with(|| inbox.poll().expect("closed, not broken"));
        assert_eq!(polled.find(|polled| *polled != Polled::Empty), Some(Polled::Closed));
    }

    #[test]
    fn other_threads_speak_among_the_orders_until_the_engine_has_ended() {
        let (_server, inbox) = inbox();
        let sender = inbox.sender();
        sender.clone().send(Order::Ping { stream: 7 }).expect("it listens");
        assert_eq!(inbox.wait().expect("no error"), Some(Order::Ping { stream: 7 }));
        drop(inbox);
        assert_eq!(sender.send(Order::Ping { stream: 8 }), Err(EngineEnded));
    }

    #[test]
    fn bytes_that_make_no_sense_are_an_error_for_the_engine() {
        let (mut server, inbox) = inbox();
        server.write_all(&[200; 64]).expect("sent");
        let error = inbox.wait().expect_err("too large");
        assert!(matches!(error, InboxError::Frame(FrameError::TooLarge { .. })), "{error}");
    }

    #[test]
    fn a_socket_that_cannot_be_read_is_an_error_for_the_engine() {
        let (_server, worker) = UnixStream::pair().expect("a socket pair");
        worker.set_nonblocking(true).expect("a socket");
        let inbox = Inbox::start(&worker, decode, Duration::from_secs(60)).expect("a thread");
        assert!(matches!(inbox.wait(), Err(InboxError::Io(_))));
    }

    #[test]
    fn sending_to_nobody_is_an_error() {
        let (server, worker) = UnixStream::pair().expect("a socket pair");
        let mut outlet = Outlet::new(&worker).expect("a socket");
        drop(server);
        assert!(outlet.report(&Report::Done { stream: 1 }).is_err());
    }
}
