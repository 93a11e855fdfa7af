//! Connections whose answer was read to its end, kept for the next request to the same server.
//! Nobody watches them: whether one is still open is looked at when it is taken.

use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use super::connection::Connection;

/// To one server; beyond it, a connection is closed after its answer.
const KEPT_MAX: usize = 64;
/// Servers close theirs after about as long, or later.
const IDLE_MAX: Duration = Duration::from_secs(90);

#[derive(Debug, Default)]
pub(super) struct Kept(Mutex<Vec<(Instant, Connection)>>);

impl Kept {
    /// The one that was used last; the others age, and are closed.
    pub(super) fn take(&self) -> Option<Connection> {
        let mut kept = self.all();
        kept.retain(|(since, _)| since.elapsed() < IDLE_MAX);
        while let Some((_, mut connection)) = kept.pop() {
            if connection.is_free() {
                return Some(connection);
            }
        }
        None
    }

    pub(super) fn keep(&self, mut connection: Connection) {
        let mut kept = self.all();
        if connection.is_free() && kept.len() < KEPT_MAX {
            kept.push((Instant::now(), connection));
        }
    }

    fn all(&self) -> MutexGuard<'_, Vec<(Instant, Connection)>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
