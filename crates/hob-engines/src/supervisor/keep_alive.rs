//! How long a worker without requests stays loaded. Requests may change it at any time, until the next unload.
//! The supervisor's task checks it regularly, and the API reports when the model will be unloaded.

use std::sync::Mutex;

use hob_core::{KeepAlive, locked};
use tokio::time::Instant;

use super::session::WorkerSession;

#[derive(Debug)]
pub(super) struct KeepAliveCell {
    usual: KeepAlive,
    current: Mutex<KeepAlive>,
}

impl KeepAliveCell {
    pub(super) fn new(usual: KeepAlive) -> KeepAliveCell {
        KeepAliveCell { usual, current: Mutex::new(usual) }
    }

    pub(super) fn set(&self, keep_alive: KeepAlive) {
        *locked(&self.current) = keep_alive;
    }

    /// Forgets what requests have set.
    pub(super) fn reset(&self) {
        self.set(self.usual);
    }

    /// When the worker is unloaded if no request comes. `None`: never, or not while streams are open.
    pub(super) fn expires_at(&self, session: &WorkerSession) -> Option<Instant> {
        match *locked(&self.current) {
            KeepAlive::Forever => None,
            // A time beyond the range of the clock means never.
            KeepAlive::For(time) => session.idle_since()?.checked_add(time),
        }
    }
}
