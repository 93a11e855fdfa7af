//! Slots for sessions. Beyond them a client is refused before the upgrade, with the time until a slot is probably
//! free.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use hob_core::locked;
use tokio::sync::Semaphore;
use tokio::time::timeout;
use tokio_util::sync::CancellationToken;

use crate::api_error::ApiError;

/// A session's length, until the first sessions have ended.
const LENGTH_GUESS: Duration = Duration::from_secs(60);
/// How much the latest session weighs in the mean length.
const LATEST_WEIGHT: f64 = 0.2;

/// All slots of a server.
#[derive(Debug)]
pub(crate) struct SessionSlots {
    max: usize,
    free: Arc<Semaphore>,
    /// Cancelled when the server stops.
    stop: CancellationToken,
    taken: Mutex<TakenSlots>,
}

#[derive(Debug)]
struct TakenSlots {
    last: u64,
    since: BTreeMap<u64, Instant>,
    length_mean_s: f64,
}

/// One slot. Dropping it frees the slot.
#[derive(Debug)]
pub(crate) struct SessionSlot {
    slots: Arc<SessionSlots>,
    number: u64,
    /// Cancelled when the server stops.
    pub(crate) stop: CancellationToken,
    _permit: tokio::sync::OwnedSemaphorePermit,
}

impl SessionSlots {
    pub(crate) fn new(max: usize) -> SessionSlots {
        let length_mean_s = LENGTH_GUESS.as_secs_f64();
        let taken = TakenSlots { last: 0, since: BTreeMap::new(), length_mean_s };
        let free = Arc::new(Semaphore::new(max));
        SessionSlots { max, free, stop: CancellationToken::new(), taken: Mutex::new(taken) }
    }

    /// # Errors
    /// All slots are taken, or the server stops.
    pub(crate) fn enter(self: &Arc<SessionSlots>) -> Result<SessionSlot, ApiError> {
        if self.stop.is_cancelled() {
            return Err(ApiError::Stopping);
        }
        let Ok(permit) = Arc::clone(&self.free).try_acquire_owned() else {
            let retry_after = locked(&self.taken).free_in(Instant::now());
            return Err(ApiError::SessionsFull { sessions_max: self.max, retry_after });
        };
        let mut taken = locked(&self.taken);
        taken.last += 1;
        let number = taken.last;
        taken.since.insert(number, Instant::now());
        let stop = self.stop.child_token();
        Ok(SessionSlot { slots: Arc::clone(self), number, stop, _permit: permit })
    }

    /// Ends all sessions, and waits for their last words.
    pub(crate) async fn stop(&self, time_max: Duration) {
        self.stop.cancel();
        let all = u32::try_from(self.max).unwrap_or(u32::MAX);
        if timeout(time_max, self.free.acquire_many(all)).await.is_err() {
            tracing::warn!("cut off realtime sessions that did not end in time");
        }
    }
}

impl TakenSlots {
    /// The oldest session ends first, if it is as long as others were. At least a second.
    fn free_in(&self, now: Instant) -> Duration {
        let oldest = self.since.values().min().map_or(Duration::ZERO, |since| now - *since);
        let left = (self.length_mean_s - oldest.as_secs_f64()).max(1.0);
        Duration::from_secs_f64(left.ceil())
    }
}

impl Drop for SessionSlot {
    fn drop(&mut self) {
        let mut taken = locked(&self.slots.taken);
        if let Some(since) = taken.since.remove(&self.number) {
            let length_s = since.elapsed().as_secs_f64();
            taken.length_mean_s += LATEST_WEIGHT * (length_s - taken.length_mean_s);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_slot_is_free_again_when_its_session_ends() {
        let slots = Arc::new(SessionSlots::new(1));
        let slot = slots.enter().expect("the first");
        let full = slots.enter().map(drop).expect_err("full");
        let ApiError::SessionsFull { sessions_max: 1, retry_after } = full else {
            panic!("{full:?}");
        };
        assert!((59..=60).contains(&retry_after.as_secs()), "{retry_after:?}");
        drop(slot);
        let _slot = slots.enter().expect("the next");
        let full = slots.enter().map(drop).expect_err("full");
        let ApiError::SessionsFull { retry_after, .. } = full else { panic!("{full:?}") };
        assert!(retry_after.as_secs() < 60, "the first session was short");
    }
}
