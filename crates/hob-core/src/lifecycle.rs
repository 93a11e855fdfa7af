//! Being in memory: models that can be put there and taken out again.
//! Upstreams have no lifecycle of ours; whoever has one implements this beside its model trait.

use std::time::{Duration, SystemTime};

use futures::FutureExt;
use futures::future::BoxFuture;

use crate::chat::KeepAlive;
use crate::{ModelError, ModelState};

/// A model that hob itself holds in memory.
pub trait ModelLifecycle: Send + Sync {
    fn state(&self) -> ModelState;

    /// Resolves when the model is in memory.
    fn load(&self) -> BoxFuture<'_, Result<(), ModelError>>;

    /// Ends what it is doing and gives all memory back.
    fn unload(&self) -> BoxFuture<'_, ()>;

    /// Gives all memory back if nobody uses it, and says whether none is taken now. No request is ever
    /// cut off by it: one that begins meanwhile finds the model as if it had never been loaded. Who
    /// cannot promise that stays.
    fn unload_if_idle(&self) -> BoxFuture<'_, bool> {
        async { false }.boxed()
    }

    /// Since its last request has ended, or since it was loaded; none: it is in use, or not in memory,
    /// or does not tell.
    fn idle_for(&self) -> Option<Duration> {
        None
    }

    /// From the last request on; a request's own wish replaces it.
    fn keep_alive(&self, wish: KeepAlive);

    fn memory_use(&self) -> MemoryUse;
}

/// What a model takes now.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct MemoryUse {
    /// Of its process, where the system tells.
    pub resident_bytes: Option<u64>,
    /// What was expected of it before it was loaded.
    pub predicted_bytes: Option<u64>,
    /// Of those, on graphics cards.
    pub vram_bytes: u64,
    /// Requests that it works on or holds in its queue.
    pub in_flight: usize,
    /// When it will be unloaded if nobody asks for anything; none: never, or not loaded.
    pub expires_at: Option<SystemTime>,
    /// How long its last load took.
    pub load_took: Option<Duration>,
}
