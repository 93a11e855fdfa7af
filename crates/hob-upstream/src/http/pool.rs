//! The pool of idle connections to one server: connections with a complete last answer.
//! No task watches them. `take` checks whether a connection is still open, and whether its last body has ended.

use std::sync::Mutex;
use std::time::{Duration, Instant};

use hob_core::locked;
use hyper::body::Incoming;

use super::connection::Connection;

/// Maximum number of idle connections to one server. Further ones are closed after their answer.
const IDLE_CONNECTIONS_MAX: usize = 64;
/// Most servers close idle connections after this time or later.
const IDLE_MAX: Duration = Duration::from_secs(90);

#[derive(Debug, Default)]
pub(super) struct ConnectionPool(Mutex<Vec<IdleConnection>>);

#[derive(Debug)]
struct IdleConnection {
    since: Instant,
    connection: Connection,
    /// A body with complete content, before its end mark has arrived. After the mark, another request can be sent.
    unended: Option<Incoming>,
}

impl ConnectionPool {
    /// Takes the connection that was used last, so that unneeded ones become too old and are closed.
    pub(super) fn take(&self) -> Option<Connection> {
        while let Some(IdleConnection { mut connection, unended, .. }) = self.pop() {
            let has_ended = unended.is_none_or(|mut body| connection.has_ended(&mut body));
            if has_ended && connection.is_free() {
                return Some(connection);
            }
        }
        None
    }

    /// Keeps a connection whose last body was read to its end.
    pub(super) fn keep(&self, mut connection: Connection) {
        if connection.is_free() {
            self.push(connection, None);
        }
    }

    /// Keeps a connection on which only the end of this body is missing.
    pub(super) fn keep_unended(&self, connection: Connection, body: Incoming) {
        self.push(connection, Some(body));
    }

    // Both functions only move a connection: other threads wait for the lock, so nothing is read while it is held.

    fn pop(&self) -> Option<IdleConnection> {
        let now = Instant::now();
        let mut idle = locked(&self.0);
        idle.retain(|kept| now.saturating_duration_since(kept.since) < IDLE_MAX);
        idle.pop()
    }

    fn push(&self, connection: Connection, unended: Option<Incoming>) {
        connection.forget_task();
        let mut idle = locked(&self.0);
        if idle.len() < IDLE_CONNECTIONS_MAX {
            idle.push(IdleConnection { since: Instant::now(), connection, unended });
        }
    }
}
