//! Slots for sessions. Beyond them a client is refused before the upgrade.

use std::sync::Arc;
use std::time::Duration;

use tokio::sync::{OwnedSemaphorePermit, Semaphore};
use tokio::time::timeout;
use tokio_util::sync::CancellationToken;

use crate::api_error::ApiError;

/// All slots of a server.
#[derive(Debug)]
pub(crate) struct SessionSlots {
    max: usize,
    free: Arc<Semaphore>,
    /// Cancelled when the server stops.
    stop: CancellationToken,
}

/// One slot. Dropping it frees the slot.
#[derive(Debug)]
pub(crate) struct SessionSlot {
    /// Cancelled when the server stops.
    pub(crate) stop: CancellationToken,
    _permit: OwnedSemaphorePermit,
}

impl SessionSlots {
    pub(crate) fn new(max: usize) -> SessionSlots {
        SessionSlots { max, free: Arc::new(Semaphore::new(max)), stop: CancellationToken::new() }
    }

    /// # Errors
    /// All slots are taken, or the server stops.
    pub(crate) fn enter(&self) -> Result<SessionSlot, ApiError> {
        if self.stop.is_cancelled() {
            return Err(ApiError::Stopping);
        }
        let permit = Arc::clone(&self.free).try_acquire_owned();
        let permit = permit.map_err(|_| ApiError::SessionsFull { sessions_max: self.max })?;
        Ok(SessionSlot { stop: self.stop.child_token(), _permit: permit })
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_slot_is_free_again_when_its_session_ends() {
        let slots = SessionSlots::new(1);
        let slot = slots.enter().expect("the first");
        let full = slots.enter().map(drop).expect_err("full");
        assert!(matches!(full, ApiError::SessionsFull { sessions_max: 1 }), "{full:?}");
        drop(slot);
        slots.enter().expect("the next");
    }
}
