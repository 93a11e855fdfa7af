//! The pool of idle connections to one server: their last answer was read to its end.
//! No task watches them. `take` checks whether a connection is still open.

use std::sync::Mutex;
use std::time::{Duration, Instant};

use hob_core::locked;

use super::connection::Connection;

/// Maximum number of idle connections to one server. Further ones are closed after their answer.
const IDLE_CONNECTIONS_MAX: usize = 64;
/// Most servers close idle connections after this time or later.
const IDLE_MAX: Duration = Duration::from_secs(90);

#[derive(Debug, Default)]
pub(super) struct ConnectionPool(Mutex<Vec<(Instant, Connection)>>);

impl ConnectionPool {
    /// The connection that was used last. The others become too old, and are closed.
    pub(super) fn take(&self) -> Option<Connection> {
        let mut idle = locked(&self.0);
        idle.retain(|(since, _)| since.elapsed() < IDLE_MAX);
        while let Some((_, mut connection)) = idle.pop() {
            if connection.is_free() {
                return Some(connection);
            }
        }
        None
    }

    pub(super) fn keep(&self, mut connection: Connection) {
        let mut idle = locked(&self.0);
        if connection.is_free() && idle.len() < IDLE_CONNECTIONS_MAX {
            idle.push((Instant::now(), connection));
        }
    }
}
