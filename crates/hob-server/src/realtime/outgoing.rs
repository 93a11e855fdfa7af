//! What leaves for the client: a bounded queue, and the writer that empties it into the socket.
//! Sound of a response that was cancelled meanwhile is dropped here, so that a user who interrupts hears silence at once.

use std::collections::VecDeque;
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use axum::extract::ws::{CloseFrame, Message, WebSocket};
use bytes::Bytes;
use futures::SinkExt as _;
use futures::stream::SplitSink;
use hob_core::locked;
use tokio::sync::Notify;
use tokio::sync::mpsc::{Receiver, Sender, channel};
use tokio::time::timeout;

use super::pings::Pings;
use super::turn_log::{MeasuredTurn, TurnLog};

/// Events that wait for the socket.
const EVENTS_MAX: usize = 256;
/// While more than half of them wait, neither answers nor voices are read. They would fill the queue of a client that
/// reads no faster than it plays, and the session would wait for room and not hear the person.
const EVENTS_FREE_MIN: usize = EVENTS_MAX / 2;
/// A client that reads nothing for so long is disconnected.
const STALL_TIME_MAX: Duration = Duration::from_secs(10);
/// Cancelled responses whose sound may still wait in the queue.
const CANCELLED_MAX: usize = 32;

/// One message for the client.
#[derive(Debug)]
pub(super) enum Outgoing {
    Event(String),
    /// Sound of a response.
    Sound {
        response_id: String,
        event: String,
    },
    Ping,
    /// The first audible sample of a turn's answer has been sent. A message only for clients that want the times.
    Measured(MeasuredTurn),
    /// The last message.
    Close {
        code: u16,
        reason: String,
    },
}

/// The client read nothing for too long, or is gone.
#[derive(Debug)]
pub(super) struct ClientStalled;

/// The end of the queue that the driver fills.
#[derive(Debug)]
pub(super) struct Outbound {
    queue: Sender<Outgoing>,
    cancelled: Cancelled,
    taken: Arc<Notify>,
}

#[derive(Clone, Debug, Default)]
struct Cancelled(Arc<Mutex<VecDeque<String>>>);

/// The end of the queue that the socket empties.
#[derive(Debug)]
pub(super) struct SocketWriter {
    queue: Receiver<Outgoing>,
    cancelled: Cancelled,
    taken: Arc<Notify>,
}

pub(super) fn outgoing() -> (Outbound, SocketWriter) {
    let (sender, receiver) = channel(EVENTS_MAX);
    let (cancelled, taken) = (Cancelled::default(), Arc::new(Notify::new()));
    let outbound =
        Outbound { queue: sender, cancelled: cancelled.clone(), taken: Arc::clone(&taken) };
    (outbound, SocketWriter { queue: receiver, cancelled, taken })
}

impl Outbound {
    pub(super) async fn send(&self, message: Outgoing) -> Result<(), ClientStalled> {
        let sent = timeout(STALL_TIME_MAX, self.queue.send(message)).await;
        sent.map_err(|_| ClientStalled)?.map_err(|_| ClientStalled)
    }

    /// Whether the client reads so slowly that answers and voices should wait.
    pub(super) fn is_behind(&self) -> bool {
        self.queue.capacity() < EVENTS_FREE_MIN
    }

    /// Resolves when the client has caught up. For one caller at a time.
    pub(super) async fn caught_up(&self) {
        while self.is_behind() {
            self.taken.notified().await;
        }
    }

    /// Drops the sound of this response that still waits.
    pub(super) fn cancel(&self, response_id: &str) {
        let mut all = locked(&self.cancelled.0);
        if all.len() >= CANCELLED_MAX {
            all.pop_front();
        }
        all.push_back(response_id.to_owned());
    }

    /// Waits for `work` before the first event. Pings keep the connection open meanwhile, and find a client that has left.
    pub(super) async fn ping_until<T>(
        &self,
        work: impl Future<Output = T>,
    ) -> Result<T, ClientStalled> {
        let mut pings = Pings::new();
        let mut work = std::pin::pin!(work);
        loop {
            tokio::select! {
                done = &mut work => return Ok(done),
                () = pings.due() => self.send(Outgoing::Ping).await?,
                () = self.closed() => return Err(ClientStalled),
            }
        }
    }

    /// Resolves when the writer has given up the client.
    pub(super) async fn closed(&self) {
        self.queue.closed().await;
    }
}

impl Cancelled {
    fn has(&self, response_id: &str) -> bool {
        let all = locked(&self.0);
        all.iter().any(|cancelled| cancelled == response_id)
    }
}

impl SocketWriter {
    /// Ends after the last message, or when the client reads nothing.
    pub(super) async fn run(mut self, mut socket: SplitSink<WebSocket, Message>, turns: &TurnLog) {
        while let Some(message) = self.queue.recv().await {
            self.taken.notify_one();
            let is_last = matches!(message, Outgoing::Close { .. });
            let message = match message {
                Outgoing::Sound { response_id, .. } if self.cancelled.has(&response_id) => continue,
                Outgoing::Event(event) | Outgoing::Sound { event, .. } => Message::text(event),
                Outgoing::Ping => Message::Ping(Bytes::new()),
                Outgoing::Measured(turn) => match turns.write(&turn, Instant::now()) {
                    Some(event) => Message::text(event),
                    None => continue,
                },
                Outgoing::Close { code, reason } => {
                    Message::Close(Some(CloseFrame { code, reason: reason.into() }))
                }
            };
            let sent = timeout(STALL_TIME_MAX, socket.send(message)).await;
            if !matches!(sent, Ok(Ok(()))) || is_last {
                return;
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test(start_paused = true)]
    async fn a_client_that_reads_slowly_is_waited_for_and_one_that_reads_nothing_is_given_up() {
        let (outbound, mut writer) = outgoing();
        for _ in 0..EVENTS_MAX {
            outbound.send(Outgoing::Ping).await.expect("room in the queue");
        }
        let slow = async {
            tokio::time::sleep(STALL_TIME_MAX / 2).await;
            writer.queue.recv().await
        };
        let (sent, read) = tokio::join!(outbound.send(Outgoing::Ping), slow);
        assert!(sent.is_ok() && read.is_some());
        let began = tokio::time::Instant::now();
        assert!(outbound.send(Outgoing::Ping).await.is_err());
        assert_eq!(began.elapsed(), STALL_TIME_MAX);
        drop(writer);
        assert!(outbound.send(Outgoing::Ping).await.is_err(), "the writer has given up");
    }

    #[tokio::test(start_paused = true)]
    async fn a_client_that_waits_for_a_load_is_pinged_and_may_leave() {
        let (outbound, mut writer) = outgoing();
        let load = tokio::time::sleep(Duration::from_secs(50));
        outbound.ping_until(load).await.expect("a client");
        for _ in 0..2 {
            assert!(matches!(writer.queue.try_recv(), Ok(Outgoing::Ping)));
        }
        assert!(writer.queue.try_recv().is_err());
        drop(writer);
        assert!(outbound.ping_until(std::future::pending::<()>()).await.is_err());
    }

    #[tokio::test]
    async fn a_client_has_caught_up_when_half_of_the_queue_is_free() {
        let (outbound, mut writer) = outgoing();
        while !outbound.is_behind() {
            outbound.send(Outgoing::Ping).await.expect("room in the queue");
        }
        assert_eq!(writer.queue.len(), EVENTS_MAX - EVENTS_FREE_MIN + 1);
        let reading = async {
            tokio::task::yield_now().await;
            writer.queue.recv().await.expect("an event");
            writer.taken.notify_one();
        };
        tokio::join!(outbound.caught_up(), reading);
        assert!(!outbound.is_behind());
    }

    #[test]
    fn only_the_latest_cancelled_responses_are_remembered() {
        let (outbound, writer) = outgoing();
        for number in 0..200 {
            outbound.cancel(&format!("resp_{number}"));
        }
        assert!(writer.cancelled.has("resp_199") && !writer.cancelled.has("resp_0"));
        assert_eq!(writer.cancelled.0.lock().expect("no panic").len(), CANCELLED_MAX);
    }
}
