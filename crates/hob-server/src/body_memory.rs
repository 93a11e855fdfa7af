//! Memory for request bodies: one budget for all requests, reserved before a body is read and released with its answer.
//! When the budget is used up, bodies that arrive too slowly are rejected in favour of those that wait.

use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, Weak};
use std::time::Duration;

use hob_core::locked;
use tokio::sync::{OwnedSemaphorePermit, Semaphore};
use tokio::time::{Instant, timeout};
use tokio_util::sync::CancellationToken;

use crate::api_error::ApiError;

/// Bodies up to this size need no reservation: the connection limit bounds them.
pub(crate) const SMALL_BYTES_MAX: usize = 64 << 10;
/// How long a body may wait for memory.
const RESERVE_TIME_MAX: Duration = Duration::from_secs(10);
/// Interval between checks for slow bodies.
const SLOW_CHECK_INTERVAL: Duration = Duration::from_millis(500);
/// Minimum rate of a body while others wait, once it has arrived for [`SLOW_AFTER`].
pub(crate) const BYTES_PER_S_MIN: usize = 128 << 10;
const SLOW_AFTER: Duration = Duration::from_secs(2);
/// Bytes per permit. `acquire_many` takes a `u32`, so one permit per byte would limit a reservation to 4 GiB.
const BYTES_PER_PERMIT: usize = 1 << 10;
/// Number of large bodies that are parsed at the same time. Parsing needs memory for the values in addition to the text.
const PARSED_AT_ONCE: usize = 1;

#[derive(Debug)]
pub(crate) struct BodyMemory {
    bytes_max: usize,
    free: Arc<Semaphore>,
    incoming: Mutex<Vec<Weak<IncomingBody>>>,
    pub(crate) parsing: Arc<Semaphore>,
}

/// Memory that is reserved for one body. Dropping it releases the memory.
#[derive(Debug)]
pub(crate) struct BodyReservation(OwnedSemaphorePermit);

/// A body with a reservation, while it arrives.
#[derive(Debug)]
pub(crate) struct IncomingBody {
    since: Instant,
    bytes: AtomicUsize,
    /// Cancelled when others wait and this body is too slow.
    pub(crate) too_slow: CancellationToken,
}

impl BodyMemory {
    pub(crate) fn new(bytes_max: usize) -> BodyMemory {
        BodyMemory {
            bytes_max,
            free: Arc::new(Semaphore::new(bytes_max / BYTES_PER_PERMIT)),
            incoming: Mutex::default(),
            parsing: Arc::new(Semaphore::new(PARSED_AT_ONCE)),
        }
    }

    /// Waits for memory for a body of at most `bytes`.
    ///
    /// # Errors
    /// No memory was free in time.
    pub(crate) async fn reserve(
        &self,
        bytes: usize,
    ) -> Result<(BodyReservation, Arc<IncomingBody>), ApiError> {
        // A body larger than the budget reserves the whole budget, so hob reads no other large body with it.
        let permits = permits(bytes.min(self.bytes_max));
        let waiting = Arc::clone(&self.free).acquire_many_owned(permits);
        tokio::pin!(waiting);
        let give_up = Instant::now() + RESERVE_TIME_MAX;
        let mut interval = Duration::ZERO;
        while Instant::now() < give_up {
            match timeout(interval, &mut waiting).await {
                Ok(Ok(permit)) => return Ok((BodyReservation(permit), self.register())),
                Ok(Err(_closed)) => break,
                Err(_) => self.cancel_slowest(),
            }
            interval = SLOW_CHECK_INTERVAL;
        }
        Err(ApiError::BodiesFull { bytes_max: self.bytes_max })
    }

    fn register(&self) -> Arc<IncomingBody> {
        let (bytes, too_slow) = (AtomicUsize::new(0), CancellationToken::new());
        let body = Arc::new(IncomingBody { since: Instant::now(), bytes, too_slow });
        let mut bodies = locked(&self.incoming);
        bodies.retain(|body| body.strong_count() > 0);
        bodies.push(Arc::downgrade(&body));
        body
    }

    fn cancel_slowest(&self) {
        let bodies = locked(&self.incoming);
        let slow = bodies.iter().filter_map(Weak::upgrade).filter(|body| body.is_slow());
        if let Some(body) = slow.min_by_key(|body| body.bytes_per_s()) {
            body.too_slow.cancel();
        }
    }
}

impl BodyReservation {
    /// Releases what the body did not need.
    pub(crate) fn shrink_to(&mut self, bytes: usize) {
        let excess = self.0.num_permits().saturating_sub(permits(bytes) as usize);
        drop(self.0.split(excess));
    }
}

impl IncomingBody {
    pub(crate) fn add_received(&self, bytes: usize) {
        self.bytes.fetch_add(bytes, Ordering::Relaxed);
    }

    fn is_slow(&self) -> bool {
        self.since.elapsed() >= SLOW_AFTER && self.bytes_per_s() < BYTES_PER_S_MIN
    }

    fn bytes_per_s(&self) -> usize {
        let bytes = self.bytes.load(Ordering::Relaxed);
        (bytes as f64 / self.since.elapsed().as_secs_f64().max(0.001)) as usize
    }
}

fn permits(bytes: usize) -> u32 {
    u32::try_from(bytes.div_ceil(BYTES_PER_PERMIT)).unwrap_or(u32::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test(start_paused = true)]
    async fn a_slow_body_is_cancelled_and_a_fast_one_is_not() {
        let bodies = BodyMemory::new(2 << 20);
        let (_fast_room, fast) = bodies.reserve(1 << 20).await.expect("memory");
        let (slow_room, slow) = bodies.reserve(1 << 20).await.expect("memory");
        tokio::time::advance(SLOW_AFTER).await;
        fast.add_received(3 * BYTES_PER_S_MIN);
        slow.add_received(1000);
        let leaves = async {
            slow.too_slow.cancelled().await;
            drop((slow_room, slow));
        };
        let (next, ()) = tokio::join!(bodies.reserve(1 << 20), leaves);
        assert!(next.is_ok() && !fast.too_slow.is_cancelled());
    }

    #[tokio::test(start_paused = true)]
    async fn a_body_waits_for_memory_and_not_for_ever() {
        let bodies = BodyMemory::new(1 << 20);
        let (mut free, arrival) = bodies.reserve(8 << 20).await.expect("the whole budget");
        drop(arrival);
        let refused = bodies.reserve(1 << 20).await.expect_err("it has arrived, and is used");
        assert_eq!(refused.status(), 503);
        free.shrink_to(512 << 10);
        bodies.reserve(512 << 10).await.expect("the other half");
    }
}
