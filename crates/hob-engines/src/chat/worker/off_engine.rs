//! Streams of the requests that are prepared, compiled or embedded on other threads than the engine's. These threads check
//! the set before each step, so that a request whose client has left takes no more time.

use std::collections::HashSet;
use std::sync::{Arc, Mutex};

use hob_core::locked;

/// Clones are the same set. The engine writes it, the other threads read it.
#[derive(Clone, Debug, Default)]
pub(super) struct OffEngineStreams(Arc<Mutex<HashSet<u32>>>);

impl OffEngineStreams {
    pub(super) fn insert(&self, stream: u32) {
        locked(&self.0).insert(stream);
    }

    /// Whether the stream was there.
    pub(super) fn remove(&self, stream: u32) -> bool {
        locked(&self.0).remove(&stream)
    }

    pub(super) fn contains(&self, stream: u32) -> bool {
        locked(&self.0).contains(&stream)
    }

    pub(super) fn len(&self) -> usize {
        locked(&self.0).len()
    }
}
