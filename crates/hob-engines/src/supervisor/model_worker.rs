//! A model in a worker process, for every kind of model: its supervisor, and the data of its client.
//! Loading, unloading and memory are the same for all kinds, so they are here once.

use std::ops::Deref;
use std::time::Duration;

use futures::FutureExt;
use futures::future::BoxFuture;
use hob_core::{KeepAlive, MemoryUse, ModelError, ModelLifecycle, ModelState};

use super::Supervisor;

/// `C` holds what requests need besides the process. For each `C`, a `client.rs` implements the trait of its kind of model.
/// Dereferences to the supervisor, so that the supervisor's methods are also methods of the worker.
#[derive(Debug)]
pub struct ModelWorker<C> {
    pub(crate) supervisor: Supervisor,
    pub(crate) client: C,
}

impl<C> Deref for ModelWorker<C> {
    type Target = Supervisor;

    fn deref(&self) -> &Supervisor {
        &self.supervisor
    }
}

impl<C: Send + Sync> ModelLifecycle for ModelWorker<C> {
    fn state(&self) -> ModelState {
        self.supervisor.state()
    }

    fn load(&self) -> BoxFuture<'_, Result<(), ModelError>> {
        self.supervisor.load().boxed()
    }

    fn unload(&self) -> BoxFuture<'_, ()> {
        self.supervisor.unload().boxed()
    }

    fn unload_if_idle(&self) -> BoxFuture<'_, bool> {
        self.supervisor.unload_if_idle().boxed()
    }

    fn idle_for(&self) -> Option<Duration> {
        self.supervisor.idle_for()
    }

    fn keep_alive(&self, keep_alive: KeepAlive) {
        self.supervisor.keep_alive(keep_alive);
    }

    fn memory_use(&self) -> MemoryUse {
        self.supervisor.memory_use()
    }
}
