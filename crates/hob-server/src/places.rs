//! Places for connections. When all are taken, the connection that has been idle for longest makes room:
//! who holds thousands open and asks nothing keeps nobody else out.

use std::collections::BTreeMap;
use std::pin::Pin;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::task::{Context, Poll, ready};
use std::time::Duration;

use axum::body::Body;
use axum::http::Request;
use axum::response::Response;
use bytes::Bytes;
use hyper::body::{Body as HttpBody, Frame, SizeHint};
use tokio::sync::Notify;
use tokio::time::{Instant, timeout};
use tokio_util::sync::CancellationToken;

/// For the body of a request to come, while others wait for a place.
const BODY_TIME: Duration = Duration::from_secs(2);
/// Between two looks at whose body does not come.
const LOOK_AGAIN: Duration = Duration::from_millis(500);

/// All places of a server.
#[derive(Debug)]
pub(crate) struct Places {
    max: usize,
    taken: Mutex<Taken>,
    freed: Notify,
}

#[derive(Debug, Default)]
struct Taken {
    last: u64,
    seats: BTreeMap<u64, Seat>,
}

#[derive(Debug)]
struct Seat {
    /// Requests that are being answered; HTTP/1.1 has one at most.
    busy: usize,
    /// Of the last request, all of the body has come.
    is_read: bool,
    idle_since: Instant,
    leave: CancellationToken,
}

/// One place; dropping it frees it.
#[derive(Debug)]
pub(crate) struct Place {
    places: Arc<Places>,
    number: u64,
    /// Cancelled when it has to make room.
    pub(crate) leave: CancellationToken,
}

impl Places {
    pub(crate) fn new(max: usize) -> Arc<Places> {
        Arc::new(Places { max, taken: Mutex::default(), freed: Notify::new() })
    }

    /// Waits for a place, and sees to it that there will be one if anybody is idle.
    pub(crate) async fn take(self: &Arc<Places>) -> Place {
        loop {
            let freed = self.freed.notified();
            if let Some(place) = self.try_take() {
                return place;
            }
            // Who sends nothing more frees no place, and is looked at again.
            let _nobody_left = timeout(LOOK_AGAIN, freed).await;
        }
    }

    /// The system has no socket to give, though there are places: the connection that has been idle for longest is
    /// closed.
    pub(crate) fn make_room(&self) {
        self.taken().make_room();
    }

    fn try_take(self: &Arc<Places>) -> Option<Place> {
        let mut taken = self.taken();
        if taken.seats.len() >= self.max {
            taken.make_room();
            return None;
        }
        taken.last += 1;
        let (number, leave) = (taken.last, CancellationToken::new());
        let seat =
            Seat { busy: 0, is_read: true, idle_since: Instant::now(), leave: leave.clone() };
        taken.seats.insert(number, seat);
        Some(Place { places: Arc::clone(self), number, leave })
    }

    fn taken(&self) -> MutexGuard<'_, Taken> {
        self.taken.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Taken {
    /// Asks who has been idle for longest to leave, unless somebody was asked and has not left yet.
    fn make_room(&mut self) {
        if self.seats.values().any(|seat| seat.leave.is_cancelled()) {
            return;
        }
        let idle = self.seats.values().filter(|seat| seat.busy == 0);
        let slow = self.seats.values().filter(|seat| seat.is_slow());
        let longest = |seat: &&Seat| seat.idle_since;
        if let Some(seat) = idle.min_by_key(longest).or_else(|| slow.min_by_key(longest)) {
            seat.leave.cancel();
        }
    }
}

impl Seat {
    /// A request began to come, and does not go on: thousands of those are as much in the way as the idle.
    fn is_slow(&self) -> bool {
        self.busy > 0 && !self.is_read && self.idle_since.elapsed() > BODY_TIME
    }
}

impl Place {
    /// A request is being answered for as long as this lives.
    pub(crate) fn busy(&self) -> Busy {
        let busy = Busy(Number { places: Arc::clone(&self.places), number: self.number });
        busy.count(|busy| busy + 1);
        busy
    }
}

impl Drop for Place {
    fn drop(&mut self) {
        self.places.taken().seats.remove(&self.number);
        self.places.freed.notify_one();
    }
}

/// Whose seat it is, for whoever has something to say of it.
#[derive(Clone, Debug)]
struct Number {
    places: Arc<Places>,
    number: u64,
}

impl Number {
    fn seat(&self, change: impl FnOnce(&mut Seat)) {
        let mut taken = self.places.taken();
        if let Some(seat) = taken.seats.get_mut(&self.number) {
            change(seat);
        }
    }
}

/// A request that is being answered.
#[derive(Debug)]
pub(crate) struct Busy(Number);

impl Busy {
    fn count(&self, change: impl FnOnce(usize) -> usize) {
        self.0.seat(|seat| {
            seat.busy = change(seat.busy);
            seat.idle_since = Instant::now();
        });
    }

    /// The request, whose connection may have to make room while its body does not come.
    pub(crate) fn while_read<B: HttpBody>(&self, request: Request<B>) -> Request<Arriving<B>> {
        let is_read = request.body().is_end_stream();
        self.0.seat(|seat| seat.is_read = is_read);
        let unread = (!is_read).then(|| self.0.clone());
        request.map(|body| Arriving { body, unread })
    }

    /// The response, which keeps its connection busy until its body has been written or given up.
    pub(crate) fn until_written(self, response: Response) -> Response {
        response.map(|body| Body::new(BusyBody { body, _busy: self }))
    }
}

impl Drop for Busy {
    fn drop(&mut self) {
        self.count(|busy| busy.saturating_sub(1));
        // Somebody may have waited for anybody to be idle.
        self.0.places.freed.notify_one();
    }
}

/// A request's body, which says when it has come.
pub(crate) struct Arriving<B> {
    body: B,
    unread: Option<Number>,
}

impl<B> Drop for Arriving<B> {
    /// Nobody wants the rest of it.
    fn drop(&mut self) {
        if let Some(number) = self.unread.take() {
            number.seat(|seat| seat.is_read = true);
        }
    }
}

impl<B: HttpBody<Data = Bytes> + Unpin> HttpBody for Arriving<B> {
    type Data = Bytes;
    type Error = B::Error;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, B::Error>>> {
        let frame = ready!(Pin::new(&mut self.body).poll_frame(cx));
        if self.body.is_end_stream() || frame.is_none() {
            let unread = self.unread.take();
            unread.into_iter().for_each(|number| number.seat(|seat| seat.is_read = true));
        }
        Poll::Ready(frame)
    }

    fn is_end_stream(&self) -> bool {
        self.body.is_end_stream()
    }

    fn size_hint(&self) -> SizeHint {
        self.body.size_hint()
    }
}

struct BusyBody {
    body: Body,
    _busy: Busy,
}

impl HttpBody for BusyBody {
    type Data = Bytes;
    type Error = axum::Error;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, axum::Error>>> {
        Pin::new(&mut self.body).poll_frame(cx)
    }

    fn is_end_stream(&self) -> bool {
        self.body.is_end_stream()
    }

    fn size_hint(&self) -> SizeHint {
        self.body.size_hint()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn who_has_been_idle_for_longest_makes_room() {
        let places = Places::new(2);
        let (first, second) = (places.take().await, places.take().await);
        let answering = first.busy();
        let mut third = std::pin::pin!(places.take());
        assert!(futures::poll!(&mut third).is_pending());
        assert!(second.leave.is_cancelled() && !first.leave.is_cancelled(), "the first is busy");
        drop(second);
        let third = third.await;
        let mut fourth = std::pin::pin!(places.take());
        assert!(futures::poll!(&mut fourth).is_pending());
        assert!(third.leave.is_cancelled(), "it asked nothing");
        drop((answering, third));
        fourth.await;
    }

    #[tokio::test]
    async fn without_a_socket_the_longest_idle_connection_is_closed_though_places_are_free() {
        let places = Places::new(8);
        let (first, second) = (places.take().await, places.take().await);
        let _answering = first.busy();
        places.make_room();
        assert!(second.leave.is_cancelled() && !first.leave.is_cancelled());
    }

    #[tokio::test(start_paused = true)]
    async fn whose_request_does_not_come_makes_room_before_who_is_answered() {
        let places = Places::new(2);
        let (answered, slow) = (places.take().await, places.take().await);
        let (answering, reading) = (answered.busy(), slow.busy());
        let whole = answering.while_read(Request::new(Body::empty()));
        let never = Body::from_stream(futures::stream::pending::<Result<Bytes, axum::Error>>());
        let half = reading.while_read(Request::new(never));
        let next = places.take();
        let leaves = async {
            slow.leave.cancelled().await;
            drop((half, reading, slow));
        };
        tokio::join!(next, leaves);
        assert!(!answered.leave.is_cancelled() && whole.body().is_end_stream());
    }

    #[tokio::test]
    async fn when_all_are_busy_the_next_waits_for_whoever_is_idle_first() {
        let places = Places::new(1);
        let only = places.take().await;
        let answering = only.busy();
        let mut next = std::pin::pin!(places.take());
        assert!(futures::poll!(&mut next).is_pending());
        assert!(!only.leave.is_cancelled());
        drop(answering);
        assert!(futures::poll!(&mut next).is_pending());
        assert!(only.leave.is_cancelled(), "idle now, and in the way");
        drop(only);
        next.await;
    }
}
