//! Memory for request bodies: one budget for all requests, reserved before a body is read and released with its answer.
//! When the budget is used up, bodies that arrive too slowly are rejected in favour of those that wait.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use tokio::sync::{OwnedSemaphorePermit, Semaphore};
use tokio::time::{Instant, timeout};
use tokio_util::sync::CancellationToken;

use crate::api_error::ApiError;

/// Bodies up to this size need no reservation: the connection limit bounds them.
pub(crate) const SMALL_BYTES_MAX: usize = 64 << 10;
/// How long a body may wait for memory.
const ROOM_TIME_MAX: Duration = Duration::from_secs(10);
/// Interval between checks for slow bodies.
const LOOK_AGAIN: Duration = Duration::from_millis(500);
/// Minimum rate of a body while others wait, after its first [`SLOW_AFTER`].
pub(crate) const BYTES_PER_S_MIN: usize = 128 << 10;
const SLOW_AFTER: Duration = Duration::from_secs(2);
/// Bytes for each permit, because a semaphore cannot count all bytes.
const UNIT_BYTES: usize = 1 << 10;
/// Large bodies that are parsed at the same time: during parsing, values take memory in addition to the text.
const PARSED_AT_ONCE: usize = 1;

#[derive(Debug)]
pub(crate) struct BodyMemory {
    bytes_max: usize,
    free: Arc<Semaphore>,
    arriving: Arc<Mutex<Arriving>>,
    pub(crate) parsing: Arc<Semaphore>,
}

#[derive(Debug, Default)]
struct Arriving {
    last: u64,
    bodies: BTreeMap<u64, Body>,
}

#[derive(Debug)]
struct Body {
    since: Instant,
    bytes: usize,
    give_way: CancellationToken,
}

/// Memory that is reserved for one body. Dropping it releases the memory.
#[derive(Debug)]
pub(crate) struct BodyReservation(OwnedSemaphorePermit);

/// A body with a reservation, while it arrives.
#[derive(Debug)]
pub(crate) struct Arrival {
    arriving: Arc<Mutex<Arriving>>,
    number: u64,
    /// Cancelled when others wait and this body is too slow.
    pub(crate) give_way: CancellationToken,
}

impl BodyMemory {
    pub(crate) fn new(bytes_max: usize) -> BodyMemory {
        BodyMemory {
            bytes_max,
            free: Arc::new(Semaphore::new(bytes_max / UNIT_BYTES)),
            arriving: Arc::default(),
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
    ) -> Result<(BodyReservation, Arrival), ApiError> {
        // A body that is larger than the budget may be read if no other is.
        let units = units(bytes.min(self.bytes_max));
        let full = ApiError::BodiesFull { bytes_max: self.bytes_max };
        let waiting = Arc::clone(&self.free).acquire_many_owned(units);
        tokio::pin!(waiting);
        let give_up = Instant::now() + ROOM_TIME_MAX;
        let mut look_again = Duration::ZERO;
        while Instant::now() < give_up {
            match timeout(look_again, &mut waiting).await {
                Ok(Ok(permit)) => return Ok((BodyReservation(permit), self.arrival())),
                Ok(Err(_closed)) => break,
                Err(_) => arriving(&self.arriving).ask_slowest_to_leave(),
            }
            look_again = LOOK_AGAIN;
        }
        Err(full)
    }

    fn arrival(&self) -> Arrival {
        let give_way = CancellationToken::new();
        let mut arriving = arriving(&self.arriving);
        arriving.last += 1;
        let number = arriving.last;
        let body = Body { since: Instant::now(), bytes: 0, give_way: give_way.clone() };
        arriving.bodies.insert(number, body);
        Arrival { arriving: Arc::clone(&self.arriving), number, give_way }
    }
}

impl BodyReservation {
    /// Releases what the body did not need.
    pub(crate) fn shrink_to(&mut self, bytes: usize) {
        let excess = self.0.num_permits().saturating_sub(units(bytes) as usize);
        drop(self.0.split(excess));
    }
}

impl Arriving {
    fn ask_slowest_to_leave(&mut self) {
        let slow = self.bodies.values().filter(|body| body.is_slow());
        if let Some(body) = slow.min_by_key(|body| body.bytes_per_s()) {
            body.give_way.cancel();
        }
    }
}

impl Body {
    fn is_slow(&self) -> bool {
        self.since.elapsed() >= SLOW_AFTER && self.bytes_per_s() < BYTES_PER_S_MIN
    }

    fn bytes_per_s(&self) -> usize {
        (self.bytes as f64 / self.since.elapsed().as_secs_f64().max(0.001)) as usize
    }
}

impl Arrival {
    pub(crate) fn came(&self, bytes: usize) {
        if let Some(body) = arriving(&self.arriving).bodies.get_mut(&self.number) {
            body.bytes += bytes;
        }
    }
}

impl Drop for Arrival {
    fn drop(&mut self) {
        arriving(&self.arriving).bodies.remove(&self.number);
    }
}

fn arriving(arriving: &Mutex<Arriving>) -> MutexGuard<'_, Arriving> {
    arriving.lock().unwrap_or_else(PoisonError::into_inner)
}

fn units(bytes: usize) -> u32 {
    u32::try_from(bytes.div_ceil(UNIT_BYTES)).unwrap_or(u32::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test(start_paused = true)]
    async fn a_slow_body_gives_way_and_a_fast_one_does_not() {
        let bodies = BodyMemory::new(2 << 20);
        let (_fast_room, fast) = bodies.reserve(1 << 20).await.expect("memory");
        let (slow_room, slow) = bodies.reserve(1 << 20).await.expect("memory");
        tokio::time::advance(SLOW_AFTER).await;
        fast.came(3 * BYTES_PER_S_MIN);
        slow.came(1000);
        let leaves = async {
            slow.give_way.cancelled().await;
            drop((slow_room, slow));
        };
        let (next, ()) = tokio::join!(bodies.reserve(1 << 20), leaves);
        assert!(next.is_ok() && !fast.give_way.is_cancelled());
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
