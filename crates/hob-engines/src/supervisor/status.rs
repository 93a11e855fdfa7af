//! The status of a supervisor. Its task publishes it, and all other code reads it.
//! A caller that waits for a load compares counts, because it may miss a short phase.

use std::sync::Arc;
use std::time::Duration;

use hob_core::budget::Bytes;
use hob_core::{LoadTimes, ModelError, Shortage};
use tokio::time::Instant;

use super::session::WorkerSession;

#[derive(Clone, Debug)]
pub(super) struct Status {
    pub(super) phase: Phase,
    /// Attempts to load that have ended, successful or not.
    pub(super) attempts: u64,
    /// Attempts that were successful.
    pub(super) loads: u64,
    /// Unloads that have ended, also those of a model that was not loaded.
    pub(super) unloads: u64,
    /// Why the last attempt did not start a process.
    pub(super) refusal: Option<ModelError>,
    pub(super) load_times: LoadTimes,
    pub(super) load_took: Option<Duration>,
    /// Predicted bytes of each pool for the last load, and why it was not where it was to go.
    pub(super) predicted: Bytes,
    pub(super) placement_note: Option<String>,
    /// Measured bytes on graphics cards of the last load.
    pub(super) taken: Bytes,
}

#[derive(Clone, Debug)]
pub(super) enum Phase {
    Cold,
    /// Other models have the memory that it needs, and are in use.
    Waiting {
        shortage: Shortage,
    },
    Loading {
        ready_at: Instant,
    },
    Ready(Arc<WorkerSession>),
    /// Its process is ending because it was unloaded.
    Leaving,
    /// The last attempt failed; another follows.
    Down {
        reason: String,
    },
    Stopped,
}

impl Status {
    pub(super) fn new(load_guess: Duration) -> Status {
        let load_times = LoadTimes::new(load_guess);
        Status {
            phase: Phase::Cold,
            attempts: 0,
            loads: 0,
            unloads: 0,
            refusal: None,
            load_times,
            load_took: None,
            predicted: Bytes::new(),
            placement_note: None,
            taken: Bytes::new(),
        }
    }

    pub(super) fn no_room(&self, shortage: Shortage) -> ModelError {
        ModelError::NoRoom { shortage, retry_after: Some(self.load_times.retry_after()) }
    }
}
