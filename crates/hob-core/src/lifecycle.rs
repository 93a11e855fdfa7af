//! Models that hob loads and unloads, and the state that every model reports.
//! Models of other servers have no lifecycle here. A model that has one implements this trait and its model trait.

use std::time::{Duration, SystemTime};

use futures::FutureExt;
use futures::future::BoxFuture;

use crate::ModelError;
use crate::fit::Pool;

/// What a model would do with a request now.
#[derive(Clone, Debug, PartialEq)]
pub enum ModelState {
    /// Not in memory: the first request waits for a load.
    Cold,
    Loading {
        ready_in: Duration,
    },
    Ready,
    /// The model keeps failing to start; `reason` is for people.
    Down {
        reason: String,
    },
}

/// A model that hob itself holds in memory.
pub trait ModelLifecycle: Send + Sync {
    fn state(&self) -> ModelState;

    /// Resolves when the model is in memory.
    fn load(&self) -> BoxFuture<'_, Result<(), ModelError>>;

    /// Ends running answers and frees all memory.
    fn unload(&self) -> BoxFuture<'_, ()>;

    /// Frees all memory if no request uses the model, and says whether it is unloaded now. This never
    /// ends a running answer. A model that cannot promise that stays loaded.
    fn unload_if_idle(&self) -> BoxFuture<'_, bool> {
        async { false }.boxed()
    }

    /// Time since the last request ended, or since the load. `None`: in use, not in memory, or unknown.
    fn idle_for(&self) -> Option<Duration> {
        None
    }

    /// Sets how long the model stays loaded after its last request. A request may set it again.
    fn keep_alive(&self, time: KeepAlive);

    fn memory_use(&self) -> MemoryUse;
}

/// How long a model stays in memory after its last request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
pub enum KeepAlive {
    /// Zero unloads it when its last request ends.
    For(Duration),
    Forever,
}

/// The memory and the requests of one model, now.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct MemoryUse {
    /// Resident bytes of its process, where the system reports them.
    pub resident_bytes: Option<u64>,
    /// The estimate made before the load.
    pub predicted_bytes: Option<u64>,
    /// Memory on graphics cards: of this model where the system reports it, otherwise of all programs.
    pub vram_bytes: u64,
    /// Predicted and taken bytes of each memory pool, for the last load.
    pub pools: Vec<PoolUse>,
    /// Why the model is not where it was to be loaded, and where it is. `None`: it is there, or it has no such choice.
    pub placement_note: Option<String>,
    /// Requests that the model works on or holds in its queue.
    pub in_flight: usize,
    /// When the model will be unloaded if no request comes. `None`: never, or not loaded.
    pub expires_at: Option<SystemTime>,
    /// How long its last load took.
    pub load_took: Option<Duration>,
}

/// What a load took of one memory pool, and what was expected.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PoolUse {
    pub pool: Pool,
    pub predicted_bytes: u64,
    /// `None`: not loaded, or the system does not report it.
    pub taken_bytes: Option<u64>,
}
