//! Requests sent when they are due, and answers put on recording: nothing else happens here.
//! A blocking thread for each connection, so that a stamp is taken by whoever the kernel wakes, right after the read, unless the kernel has one.

mod arrivals;
mod endpoint;
mod recording;
mod tls;
mod user;

use std::io;
use std::sync::atomic::{AtomicBool, AtomicUsize};
use std::sync::{OnceLock, mpsc};
use std::thread;
use std::time::{Duration, Instant};

use bytes::Bytes;

pub use arrivals::Arrivals;
pub use endpoint::{Endpoint, EndpointError};
pub use recording::Recording;
use user::{User, Worked};

/// A thread for each, which measures well up to here and no farther: `docs/reference/performance.md`.
pub const CONNECTIONS_MAX: usize = 1024;
/// A thread that asks needs little, and has its buffers elsewhere; TLS takes the most of it.
const STACK_BYTES: usize = 256 << 10;

/// What is sent, to whom, and when.
#[derive(Clone, Debug)]
pub struct Drive {
    pub endpoint: Endpoint,
    /// Each a whole request, ready to be written.
    pub jobs: Vec<Bytes>,
    pub arrivals: Arrivals,
    pub seed: u64,
    pub patience: Patience,
    /// Room that is made for an answer before it is asked for.
    pub answer_bytes: usize,
}

/// How long is waited for what.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Patience {
    pub connect: Duration,
    /// Between two reads.
    pub silence: Duration,
    /// For a whole answer.
    pub total: Duration,
}

impl Default for Patience {
    /// As long as a slow machine takes for a long prompt.
    fn default() -> Patience {
        let (connect, silence) = (Duration::from_secs(5), Duration::from_secs(300));
        Patience { connect, silence, total: Duration::from_secs(1800) }
    }
}

/// One request and what came of it. Times are from the drive's start.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Exchange {
    /// Which of the jobs.
    pub job: usize,
    /// When it was due.
    pub sched: Duration,
    /// What a new connection took; none of a reused one.
    pub connect: Option<Duration>,
    /// Right before its last bytes were written.
    pub sent: Duration,
    pub recording: Recording,
    pub end: End,
}

/// How an answer ended, as far as its frame tells.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum End {
    Whole,
    /// The server hung up in the middle.
    CutOff,
    /// Nothing came for too long.
    Silent,
    /// It never ended.
    TooSlow,
    /// It is no answer of HTTP.
    Unreadable,
    Unreachable {
        cause: String,
    },
    /// Whoever measures does not want to go on.
    Stopped,
}

/// All that came of a drive, in the order of the jobs.
#[derive(Clone, Debug, Default)]
pub struct Driven {
    pub exchanges: Vec<Exchange>,
    /// From the first moment in which something was due to the last answer's end.
    pub wall: Duration,
    /// Processor time of the threads that read, together, and of the busiest of them.
    pub cpu: Duration,
    pub cpu_busiest: Duration,
}

/// There is nothing that could be driven like this.
#[derive(Clone, Copy, Debug, PartialEq, thiserror::Error)]
pub enum DriveError {
    #[error("{asked} connections were asked for; from 1 to {CONNECTIONS_MAX} are possible")]
    Connections { asked: usize },
    #[error("a rate of {per_second} requests a second has no times")]
    Rate { per_second: f64 },
    #[error("{asked} threads were asked for, and cannot be had: {reason}")]
    Threads { asked: usize, reason: io::ErrorKind },
}

impl Drive {
    /// Until all jobs are done, or `stop` is set; then what is under way ends as it stands.
    ///
    /// # Errors
    /// It could not begin. Whatever a server does is no error but an [`End`].
    pub fn run(&self, stop: &AtomicBool) -> Result<Driven, DriveError> {
        let asked = self.arrivals.connections();
        if !(1..=CONNECTIONS_MAX).contains(&asked) {
            return Err(DriveError::Connections { asked });
        }
        if let Arrivals::Constant { per_second, .. } | Arrivals::Poisson { per_second, .. } =
            self.arrivals
            && !(per_second > 0.0 && per_second.is_finite())
        {
            return Err(DriveError::Rate { per_second });
        }
        self.drive(stop)
    }

    fn drive(&self, stop: &AtomicBool) -> Result<Driven, DriveError> {
        let users = self.arrivals.connections().min(self.jobs.len().max(1));
        let schedule = self.arrivals.schedule(self.jobs.len(), self.seed);
        let next = AtomicUsize::new(0);
        // None where it is called off.
        let start: OnceLock<Option<Instant>> = OnceLock::new();
        let mut wall = Duration::ZERO;
        let worked: io::Result<Vec<Worked>> = thread::scope(|scope| {
            let (connected, all_connected) = mpsc::sync_channel::<()>(0);
            let begin = |connected: mpsc::SyncSender<()>| {
                thread::Builder::new().stack_size(STACK_BYTES).spawn_scoped(scope, || {
                    let mut user = User::connect(self, stop);
                    drop(connected);
                    let start = *start.wait();
                    start.map_or_else(Worked::default, |start| {
                        user.work(start, schedule.as_deref(), &next)
                    })
                })
            };
            let threads: io::Result<Vec<_>> =
                (0..users).map(|_| begin(connected.clone())).collect();
            drop(connected);
            // Nothing is ever sent: it ends when the last has dropped its end.
            let _closed = all_connected.recv();
            let begun = Instant::now();
            // Whoever waits has to hear of it, also where some are missing.
            let _only_here = start.set(threads.is_ok().then_some(begun));
            let worked = threads?.into_iter().map(|user| user.join().unwrap_or_default()).collect();
            wall = begun.elapsed();
            Ok(worked)
        });
        let worked =
            worked.map_err(|error| DriveError::Threads { asked: users, reason: error.kind() })?;
        let cpu = worked.iter().map(|user| user.cpu).sum();
        let cpu_busiest = worked.iter().map(|user| user.cpu).max().unwrap_or_default();
        let mut exchanges: Vec<Exchange> =
            worked.into_iter().flat_map(|user| user.exchanges).collect();
        exchanges.sort_by_key(|exchange| exchange.job);
        Ok(Driven { exchanges, wall, cpu, cpu_busiest })
    }
}

/// Nothing came yet, which is no failure.
fn is_pause(error: &io::Error) -> bool {
    use io::ErrorKind::{Interrupted, TimedOut, WouldBlock};
    matches!(error.kind(), WouldBlock | TimedOut | Interrupted)
}
