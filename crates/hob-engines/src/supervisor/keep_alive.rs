//! How long a worker without requests stays: a wish that may change while it runs.
//! Read by the supervisor's task at each beat, and by whoever asks when the model will go.

use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use hob_core::KeepAlive;
use tokio::time::Instant;

use super::session::Session;

#[derive(Debug)]
pub(super) struct KeepAliveCell(Mutex<KeepAlive>);

impl KeepAliveCell {
    pub(super) fn new(idle_unload: Option<Duration>) -> KeepAliveCell {
        KeepAliveCell(Mutex::new(idle_unload.map_or(KeepAlive::Forever, KeepAlive::For)))
    }

    pub(super) fn set(&self, wish: KeepAlive) {
        *self.0.lock().unwrap_or_else(PoisonError::into_inner) = wish;
    }

    /// When the session's worker goes if nobody asks for anything; none: never, or not while it
    /// works.
    pub(super) fn expires_at(&self, session: &Session) -> Option<Instant> {
        match *self.0.lock().unwrap_or_else(PoisonError::into_inner) {
            KeepAlive::Forever => None,
            // A time that no clock can show is as good as never.
            KeepAlive::For(time) => session.idle_since()?.checked_add(time),
        }
    }
}
