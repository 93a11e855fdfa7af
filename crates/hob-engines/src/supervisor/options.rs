//! The supervisor's settings: limits, waits, and the memory that the worker shares with others.
//! The defaults are a speech worker's. Chat and transcription workers have longer limits.

use std::sync::Arc;
use std::time::Duration;

use hob_core::{KeepAlive, MemoryBroker};

use super::{Backoff, Placer};

#[derive(Clone, Debug)]
pub struct SupervisorOptions {
    /// For errors and logs: "speech".
    pub engine: &'static str,
    pub backoff: Backoff,
    /// A worker that is not ready within this time is killed.
    pub load_limit: Duration,
    /// Decides before a worker starts, and before a stream opens in it.
    pub room: Option<Arc<dyn MemoryBroker>>,
    /// Chooses the command for each start. `None`: always the same command.
    pub placer: Option<Arc<dyn Placer>>,
    /// Memory that the worker is expected to take. Shown next to the measured value. A placer knows it for each place.
    pub predicted_bytes: Option<u64>,
    /// How long a load is expected to take before one was measured.
    pub load_guess: Duration,
    /// A worker that has not ended this long after its socket was closed is killed.
    pub stop_limit: Duration,
    /// How often the engine of a worker with open streams gets a ping that it must answer.
    pub ping_every: Duration,
    /// A worker whose process sends nothing for this long is killed. A running process sends heartbeats
    /// every 2 s, also while its engine computes.
    pub silence_limit: Duration,
    /// A worker with open streams whose engine finishes no step for this long is killed.
    pub stall_limit: Duration,
    /// A worker without open streams is unloaded after this long (checked every `ping_every`).
    /// Requests may set another time, until the next unload.
    pub idle_unload: KeepAlive,
    /// Maximum open streams. Admission refuses requests long before; this bounds the memory.
    pub streams_max: usize,
}

impl SupervisorOptions {
    pub fn new(engine: &'static str) -> SupervisorOptions {
        SupervisorOptions {
            engine,
            backoff: Backoff::default(),
            room: None,
            placer: None,
            predicted_bytes: None,
            load_limit: Duration::from_secs(60),
            load_guess: Duration::from_secs(2),
            stop_limit: Duration::from_secs(2),
            ping_every: Duration::from_secs(5),
            silence_limit: Duration::from_secs(30),
            stall_limit: Duration::from_secs(60),
            idle_unload: KeepAlive::Forever,
            streams_max: 256,
        }
    }
}
