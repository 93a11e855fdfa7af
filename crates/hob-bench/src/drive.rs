//! Sends requests when they are due, and records the answers with time stamps. Parsing happens later.
//! Each connection has a blocking thread. If the kernel gives no time stamp, the thread takes one when the kernel wakes it.

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
pub(crate) use endpoint::BenchConnection;
pub use endpoint::{Endpoint, EndpointError};
pub use recording::Recording;
pub(crate) use user::thread_cpu;
use user::{ThreadResult, User};

/// Maximum number of connections, each with a thread. More measure badly: `docs/reference/performance.md`.
pub const CONNECTIONS_MAX: usize = 1024;
/// Stack of a client thread. Buffers are elsewhere; TLS takes most of it.
const STACK_BYTES: usize = 256 << 10;

/// Requests, their server, and when to send them.
#[derive(Clone, Debug)]
pub struct Drive {
    pub endpoint: Endpoint,
    /// Complete requests, ready to be written.
    pub jobs: Vec<Bytes>,
    pub arrivals: Arrivals,
    pub seed: u64,
    pub limits: RequestLimits,
    /// Expected size of an answer. Memory for it is allocated before the request is sent.
    pub answer_bytes: usize,
}

/// Limits of a request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RequestLimits {
    pub connect: Duration,
    /// Limit between two reads.
    pub silence: Duration,
    /// Limit for a whole answer.
    pub total: Duration,
    /// Limit for the bytes of an answer, all of which are kept.
    pub bytes_max: usize,
}

/// Default limit for a whole answer, in seconds.
pub const ANSWER_SECONDS_MAX: u64 = 1800;
/// Default limit for an answer: more than an hour of sound, or a million tokens.
const ANSWER_BYTES_MAX: usize = 256 << 20;

impl Default for RequestLimits {
    /// Long enough for a long prompt on a slow machine.
    fn default() -> RequestLimits {
        let (connect, silence) = (Duration::from_secs(5), Duration::from_secs(300));
        let total = Duration::from_secs(ANSWER_SECONDS_MAX);
        RequestLimits { connect, silence, total, bytes_max: ANSWER_BYTES_MAX }
    }
}

/// One request and its answer. Times count from the start of the drive.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Exchange {
    /// Index into the jobs.
    pub job: usize,
    /// When the request was due.
    pub sched: Duration,
    /// Time to open the connection; None for a reused connection.
    pub connect: Option<Duration>,
    /// Right before the last bytes of the request were written.
    pub sent: Duration,
    pub recording: Recording,
    pub end: End,
}

impl Exchange {
    /// From the request's last byte to the answer's last byte. Zero without an answer.
    pub(crate) fn total(&self) -> Duration {
        let last = self.recording.reads.last();
        last.map_or(Duration::ZERO, |read| read.at.saturating_sub(self.sent))
    }
}

/// How an answer ended, as far as its HTTP framing shows.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum End {
    Whole,
    /// The server closed the connection before the end.
    CutOff,
    /// No byte arrived within the silence timeout.
    Silent,
    /// The answer did not end within the total timeout.
    TooSlow,
    /// The answer did not end within its limit of bytes.
    TooLong,
    /// The bytes are not an HTTP response.
    Unreadable,
    Unreachable {
        cause: String,
    },
    /// The measurement was stopped.
    Stopped,
}

/// The results of a drive, in the order of the jobs.
#[derive(Clone, Debug, Default)]
pub struct DriveResult {
    pub exchanges: Vec<Exchange>,
    /// From the start to the end of the last answer.
    pub wall: Duration,
    /// Processor time of all client threads, and of the busiest one.
    pub cpu: Duration,
    pub cpu_busiest: Duration,
}

/// Why a drive cannot start.
#[derive(Clone, Copy, Debug, PartialEq, thiserror::Error)]
pub enum DriveError {
    #[error("{asked} connections are not possible (expected 1 to {CONNECTIONS_MAX})")]
    Connections { asked: usize },
    #[error("a rate of {per_second} requests per second is not possible (expected more than 0)")]
    Rate { per_second: f64 },
    #[error("cannot start {asked} threads: {reason}")]
    Threads { asked: usize, reason: io::ErrorKind },
}

impl Drive {
    /// Sends all jobs, or stops early when `stop` is set; running requests then end as [`End::Stopped`].
    ///
    /// # Errors
    /// The arrivals are impossible, or threads cannot be started. A failure of the server is an [`End`].
    pub fn run(&self, stop: &AtomicBool) -> Result<DriveResult, DriveError> {
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

    fn drive(&self, stop: &AtomicBool) -> Result<DriveResult, DriveError> {
        let users = self.arrivals.connections().min(self.jobs.len().max(1));
        let schedule = self.arrivals.schedule(self.jobs.len(), self.seed);
        let next = AtomicUsize::new(0);
        // None: some threads could not start, so the others end at once.
        let start: OnceLock<Option<Instant>> = OnceLock::new();
        let mut wall = Duration::ZERO;
        let worked: io::Result<Vec<ThreadResult>> = thread::scope(|scope| {
            let (connected, all_connected) = mpsc::sync_channel::<()>(0);
            let begin = |connected: mpsc::SyncSender<()>| {
                thread::Builder::new().stack_size(STACK_BYTES).spawn_scoped(scope, || {
                    let mut user = User::connect(self, stop);
                    drop(connected);
                    let start = *start.wait();
                    start.map_or_else(ThreadResult::default, |start| {
                        user.work(start, schedule.as_deref(), &next)
                    })
                })
            };
            let threads: io::Result<Vec<_>> =
                (0..users).map(|_| begin(connected.clone())).collect();
            drop(connected);
            // No message is sent: the channel closes when the last thread has connected.
            let _closed = all_connected.recv();
            let begun = Instant::now();
            // The waiting threads need a value even if some threads could not start.
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
        Ok(DriveResult { exchanges, wall, cpu, cpu_busiest })
    }
}
