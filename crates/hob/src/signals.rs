//! Ctrl-C and SIGTERM, as futures.
//! The waiting code drops its work when a signal comes, which cancels the work.

use std::io;

use tokio::signal::unix::{Signal, SignalKind, signal};

use crate::failure::{CliResult, Exit, Failure};

/// Listens from its creation on, so that no signal is missed between two waits.
#[derive(Debug)]
pub(crate) struct StopSignals {
    interrupt: Signal,
    terminate: Signal,
}

/// What came.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Stop {
    /// Ctrl-C.
    Interrupt,
    /// SIGTERM.
    Terminate,
}

impl StopSignals {
    /// # Errors
    /// The system refuses to tell.
    pub(crate) fn listen() -> CliResult<StopSignals> {
        let listen = || -> io::Result<StopSignals> {
            Ok(StopSignals {
                interrupt: signal(SignalKind::interrupt())?,
                terminate: signal(SignalKind::terminate())?,
            })
        };
        listen().map_err(|error| Failure::io("cannot receive signals", &error))
    }

    /// The next Ctrl-C or SIGTERM.
    pub(crate) async fn next(&mut self) {
        self.which().await;
    }

    /// Waits for the next signal and says which it is, for commands that Ctrl-C does not end.
    pub(crate) async fn which(&mut self) -> Stop {
        tokio::select! {
            _ = self.interrupt.recv() => Stop::Interrupt,
            _ = self.terminate.recv() => Stop::Terminate,
        }
    }

    /// Runs `work` until it ends or a signal comes; what it held is then dropped.
    pub(crate) async fn or<T>(&mut self, work: impl Future<Output = CliResult<T>>) -> CliResult<T> {
        tokio::select! {
            result = work => result,
            () = self.next() => Err(interrupted()),
        }
    }
}

pub(crate) fn interrupted() -> Failure {
    Failure::new(Exit::Interrupted, "interrupted")
}
