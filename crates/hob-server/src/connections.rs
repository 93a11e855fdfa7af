//! The connection limit. When all slots are taken, hob closes the connection that has been idle for longest, so
//! that a client with thousands of idle connections does not keep other clients out.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use axum::body::Body;
use axum::http::Request;
use axum::response::Response;
use hob_core::locked;
use http_body_util::BodyExt as _;
use http_body_util::combinators::MapErr;
use hyper::body::Body as HttpBody;
use tokio::sync::Notify;
use tokio::time::{Instant, timeout};
use tokio_util::sync::CancellationToken;

/// How long a request body may pause while other connections wait for a slot.
const BODY_TIME: Duration = Duration::from_secs(2);
/// Interval between two checks for connections whose request body has stalled.
const RECHECK_INTERVAL: Duration = Duration::from_millis(500);

/// All connection slots of a server.
#[derive(Debug)]
pub(crate) struct ConnectionLimit {
    max: usize,
    open: Mutex<OpenConnections>,
    freed: Notify,
}

#[derive(Debug, Default)]
struct OpenConnections {
    last_number: u64,
    by_number: BTreeMap<u64, ConnectionState>,
}

#[derive(Debug)]
struct ConnectionState {
    /// Requests in flight. HTTP/1.1 has at most one.
    in_flight: usize,
    /// Whether the handler of the latest request needs no more of its body.
    is_read: bool,
    idle_since: Instant,
    close: CancellationToken,
}

/// One connection slot. Dropping it frees the slot.
#[derive(Debug)]
pub(crate) struct ConnectionSlot {
    limit: Arc<ConnectionLimit>,
    number: u64,
    /// Cancelled when this connection must close to make room for another one.
    pub(crate) close: CancellationToken,
}

impl ConnectionLimit {
    pub(crate) fn new(max: usize) -> Arc<ConnectionLimit> {
        Arc::new(ConnectionLimit { max, open: Mutex::default(), freed: Notify::new() })
    }

    /// Waits for a slot. Closes an idle connection if all slots are taken.
    pub(crate) async fn take(self: &Arc<ConnectionLimit>) -> ConnectionSlot {
        loop {
            let freed = self.freed.notified();
            if let Some(slot) = self.try_take() {
                return slot;
            }
            // A connection whose body stalls sends no notification, so the loop also checks at intervals.
            let _elapsed = timeout(RECHECK_INTERVAL, freed).await;
        }
    }

    /// Closes the connection that has been idle for longest. Called when the system has no socket left.
    pub(crate) fn make_room(&self) {
        locked(&self.open).make_room();
    }

    fn try_take(self: &Arc<ConnectionLimit>) -> Option<ConnectionSlot> {
        let mut open = locked(&self.open);
        if open.by_number.len() >= self.max {
            open.make_room();
            return None;
        }
        open.last_number += 1;
        let (number, close) = (open.last_number, CancellationToken::new());
        let state = ConnectionState {
            in_flight: 0,
            is_read: true,
            idle_since: Instant::now(),
            close: close.clone(),
        };
        open.by_number.insert(number, state);
        Some(ConnectionSlot { limit: Arc::clone(self), number, close })
    }
}

impl OpenConnections {
    /// Tells the longest idle connection to close, unless another one is closing already.
    fn make_room(&mut self) {
        if self.by_number.values().any(|state| state.close.is_cancelled()) {
            return;
        }
        let idle = self.by_number.values().filter(|state| state.in_flight == 0);
        let stalled = self.by_number.values().filter(|state| state.is_stalled());
        let longest = |state: &&ConnectionState| state.idle_since;
        if let Some(state) = idle.min_by_key(longest).or_else(|| stalled.min_by_key(longest)) {
            state.close.cancel();
        }
    }
}

impl ConnectionState {
    /// Whether a request has started to arrive but its body does not continue. Thousands of such connections
    /// block a server as much as idle ones.
    fn is_stalled(&self) -> bool {
        self.in_flight > 0 && !self.is_read && self.idle_since.elapsed() > BODY_TIME
    }
}

impl ConnectionSlot {
    /// Marks a request as in flight until the guard is dropped.
    pub(crate) fn begin_request(&self) -> RequestGuard {
        let guard =
            RequestGuard(SlotHandle { limit: Arc::clone(&self.limit), number: self.number });
        guard.count(|in_flight| in_flight + 1);
        guard
    }
}

impl Drop for ConnectionSlot {
    fn drop(&mut self) {
        locked(&self.limit.open).by_number.remove(&self.number);
        self.limit.freed.notify_one();
    }
}

/// Access to the state of one connection, for its guard and its request body.
#[derive(Clone, Debug)]
struct SlotHandle {
    limit: Arc<ConnectionLimit>,
    number: u64,
}

impl SlotHandle {
    fn update(&self, change: impl FnOnce(&mut ConnectionState)) {
        let mut open = locked(&self.limit.open);
        if let Some(state) = open.by_number.get_mut(&self.number) {
            change(state);
        }
    }
}

/// A request in flight.
#[derive(Debug)]
pub(crate) struct RequestGuard(SlotHandle);

impl RequestGuard {
    fn count(&self, change: impl FnOnce(usize) -> usize) {
        self.0.update(|state| {
            state.in_flight = change(state.in_flight);
            state.idle_since = Instant::now();
        });
    }

    /// Wraps a request's body. While it has not arrived, the connection may have to close to make room.
    pub(crate) fn while_read<B: HttpBody>(
        &self,
        request: Request<B>,
    ) -> Request<MapErr<B, impl FnMut(B::Error) -> B::Error + Send + use<B>>> {
        let is_read = request.body().is_end_stream();
        self.0.update(|state| state.is_read = is_read);
        let unread = (!is_read).then(|| UnreadBody(self.0.clone()));
        request.map(|body| {
            body.map_err(move |error| {
                // The function owns it, so it is dropped with the body.
                let _unread = &unread;
                error
            })
        })
    }

    /// Wraps a response so that its connection counts as busy until the body was written or dropped.
    pub(crate) fn until_written(self, response: Response) -> Response {
        response.map(|body| {
            Body::new(body.map_err(move |error| {
                // The function owns the guard, so the guard is dropped with the body.
                let _guard = &self;
                error
            }))
        })
    }
}

impl Drop for RequestGuard {
    fn drop(&mut self) {
        self.count(|in_flight| in_flight.saturating_sub(1));
        // This connection may be idle now, so a waiting `take` can close it.
        self.0.limit.freed.notify_one();
    }
}

/// A request body that has not arrived. Dropping it says that the handler needs no more of it.
struct UnreadBody(SlotHandle);

impl Drop for UnreadBody {
    fn drop(&mut self) {
        self.0.update(|state| state.is_read = true);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn the_longest_idle_connection_closes_first() {
        let limit = ConnectionLimit::new(2);
        let (first, second) = (limit.take().await, limit.take().await);
        let request = first.begin_request();
        let mut third = std::pin::pin!(limit.take());
        assert!(futures::poll!(&mut third).is_pending());
        assert!(second.close.is_cancelled() && !first.close.is_cancelled(), "the first is busy");
        drop(second);
        let third = third.await;
        let mut fourth = std::pin::pin!(limit.take());
        assert!(futures::poll!(&mut fourth).is_pending());
        assert!(third.close.is_cancelled(), "it sent no request");
        drop((request, third));
        fourth.await;
    }

    #[tokio::test]
    async fn without_a_socket_the_longest_idle_connection_closes_although_slots_are_free() {
        let limit = ConnectionLimit::new(8);
        let (first, second) = (limit.take().await, limit.take().await);
        let _request = first.begin_request();
        limit.make_room();
        assert!(second.close.is_cancelled() && !first.close.is_cancelled());
    }

    #[tokio::test]
    async fn a_connection_is_busy_until_the_body_of_its_answer_is_dropped() {
        let limit = ConnectionLimit::new(1);
        let only = limit.take().await;
        let answer = only.begin_request().until_written(Response::new(Body::from("Hello")));
        limit.make_room();
        assert!(!only.close.is_cancelled(), "the answer is not written yet");
        drop(answer);
        limit.make_room();
        assert!(only.close.is_cancelled(), "it is idle now");
    }

    #[tokio::test(start_paused = true)]
    async fn a_connection_with_a_stalled_body_closes_before_one_that_is_answered() {
        let limit = ConnectionLimit::new(2);
        let (answered, stalled) = (limit.take().await, limit.take().await);
        let (answering, reading) = (answered.begin_request(), stalled.begin_request());
        let whole = answering.while_read(Request::new(Body::empty()));
        let never =
            Body::from_stream(futures::stream::pending::<Result<bytes::Bytes, axum::Error>>());
        let half = reading.while_read(Request::new(never));
        let next = limit.take();
        let closes = async {
            stalled.close.cancelled().await;
            drop((half, reading, stalled));
        };
        tokio::join!(next, closes);
        assert!(!answered.close.is_cancelled() && whole.body().is_end_stream());
    }

    #[tokio::test]
    async fn when_all_are_busy_the_next_waits_for_the_first_idle_connection() {
        let limit = ConnectionLimit::new(1);
        let only = limit.take().await;
        let request = only.begin_request();
        let mut next = std::pin::pin!(limit.take());
        assert!(futures::poll!(&mut next).is_pending());
        assert!(!only.close.is_cancelled());
        drop(request);
        assert!(futures::poll!(&mut next).is_pending());
        assert!(only.close.is_cancelled(), "it is idle now");
        drop(only);
        next.await;
    }
}
