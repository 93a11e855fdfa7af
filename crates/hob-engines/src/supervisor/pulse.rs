//! Looks at a worker that runs: whether it answers, and whether anybody needs it.
//! Once in a while, and told of everything that the worker says in between.

use tokio::time::Instant;

use super::SupervisorOptions;
use super::actor::{Parting, Wish};
use super::keep_alive::KeepAliveCell;
use super::session::Session;

/// Whether the worker answers, and whether anybody needs it.
pub(super) struct Pulse {
    unanswered_since: Option<Instant>,
}

impl Pulse {
    pub(super) fn new() -> Pulse {
        Pulse { unanswered_since: None }
    }

    /// It said something.
    pub(super) fn answered(&mut self) {
        self.unanswered_since = None;
    }

    /// Why the worker has to go, if it has to.
    pub(super) fn beat(
        &mut self,
        session: &Session,
        options: &SupervisorOptions,
        keep_alive: &KeepAliveCell,
    ) -> Option<Parting> {
        if session.in_flight() == 0 {
            self.unanswered_since = None;
            let is_over = keep_alive.expires_at(session).is_some_and(|at| Instant::now() >= at);
            // Somebody may have come between the two looks, and then it stays.
            let leaves = is_over && session.leave_if_idle();
            return leaves.then_some(Parting::Wished(Wish::Unload));
        }
        match self.unanswered_since {
            None => {
                // What finds no place to go out to the worker is as unanswered as what did.
                session.ping();
                self.unanswered_since = Some(Instant::now());
                None
            }
            // The ping went out up to one beat after the worker fell silent.
            Some(since) => {
                (since.elapsed() + options.ping_every >= options.stall_limit).then(|| {
                    let seconds = options.stall_limit.as_secs_f32();
                    Parting::Unfit(format!("it did not answer for {seconds} s"))
                })
            }
        }
    }
}
