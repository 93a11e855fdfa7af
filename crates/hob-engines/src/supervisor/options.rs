//! How a worker process is kept: its limits, its waits, and the memory that it shares with others.
//! The defaults are for a speech worker; a chat worker's client has longer ones.

use std::sync::Arc;
use std::time::Duration;

use hob_core::MemoryBroker;

use super::Backoff;

#[derive(Clone, Debug)]
pub struct SupervisorOptions {
    /// For errors and logs: "speech".
    pub engine: &'static str,
    pub backoff: Backoff,
    /// A worker that is not ready by then is killed.
    pub load_limit: Duration,
    /// MemoryDecision before a worker is started, and before a stream is opened in it.
    pub room: Option<Arc<dyn MemoryBroker>>,
    /// What it is expected to take, to be told beside what it takes.
    pub predicted_bytes: Option<u64>,
    /// How long a load is expected to take before one was measured.
    pub load_guess: Duration,
    /// A worker that has not ended this long after its socket was closed is killed.
    pub stop_limit: Duration,
    /// How often a worker with open streams is asked whether it lives.
    pub ping_every: Duration,
    /// A worker with open streams that said nothing for this long after a ping is killed.
    pub stall_limit: Duration,
    /// A worker without streams is unloaded after this long (looked at every `ping_every`).
    pub idle_unload: Option<Duration>,
    /// Streams open at once. Admission refuses long before; this is the limit of memory.
    pub streams_max: usize,
}

impl SupervisorOptions {
    pub fn new(engine: &'static str) -> SupervisorOptions {
        SupervisorOptions {
            engine,
            backoff: Backoff::default(),
            room: None,
            predicted_bytes: None,
            load_limit: Duration::from_secs(60),
            load_guess: Duration::from_secs(2),
            stop_limit: Duration::from_secs(2),
            ping_every: Duration::from_secs(5),
            stall_limit: Duration::from_secs(30),
            idle_unload: None,
            streams_max: 256,
        }
    }
}
