//! How long a worker without requests stays loaded. Requests may change it at any time.
//! The supervisor's task checks it regularly, and the API reports when the model will be unloaded.

use std::sync::Mutex;
use std::time::Duration;

use hob_core::{KeepAlive, locked};
use tokio::time::Instant;

use super::session::WorkerSession;

#[derive(Debug)]
pub(super) struct KeepAliveCell(Mutex<KeepAlive>);

impl KeepAliveCell {
    pub(super) fn new(idle_unload: Option<Duration>) -> KeepAliveCell {
        KeepAliveCell(Mutex::new(idle_unload.map_or(KeepAlive::Forever, KeepAlive::For)))
    }

    pub(super) fn set(&self, keep_alive: KeepAlive) {
        *locked(&self.0) = keep_alive;
    }

    /// When the worker is unloaded if no request comes. `None`: never, or not while streams are open.
    pub(super) fn expires_at(&self, session: &WorkerSession) -> Option<Instant> {
        match *locked(&self.0) {
            KeepAlive::Forever => None,
            // A time beyond the range of the clock means never.
            KeepAlive::For(time) => session.idle_since()?.checked_add(time),
        }
    }
}
