//! The configuration that can change while the server runs: models by name, and keys.
//! It changes as a whole. A request reads it once, when it arrives, and keeps it to its end.

use std::sync::{Arc, OnceLock, PoisonError, RwLock};

use hob_core::Registry;

use crate::keys::{KeyOptions, Keys};
use crate::ledger::Ledger;

/// The configuration in force. Clones share it.
#[derive(Clone, Debug, Default)]
pub struct ReloadableState(Arc<Shared>);

#[derive(Debug, Default)]
struct Shared {
    config: RwLock<Arc<Configuration>>,
    /// The request log. It holds the tokens that each key has spent today.
    ledger: OnceLock<Option<Arc<Ledger>>>,
}

/// Models and keys that belong together.
#[derive(Debug, Default)]
pub(crate) struct Configuration {
    pub(crate) registry: Arc<Registry>,
    pub(crate) keys: Keys,
}

impl From<Registry> for ReloadableState {
    fn from(registry: Registry) -> ReloadableState {
        let state = ReloadableState::default();
        state.set(Arc::new(registry), &[]);
        state
    }
}

impl ReloadableState {
    /// Replaces models and keys for requests that arrive from now on. A key that keeps its name keeps what it has used.
    pub fn replace(&self, registry: Registry, keys: &[KeyOptions]) {
        self.set(Arc::new(registry), keys);
    }

    pub(crate) fn begin(&self, keys: &[KeyOptions], ledger: Option<Arc<Ledger>>) {
        self.0.ledger.get_or_init(|| ledger);
        self.set(Arc::clone(&self.config().registry), keys);
    }

    pub(crate) fn config(&self) -> Arc<Configuration> {
        Arc::clone(&self.0.config.read().unwrap_or_else(PoisonError::into_inner))
    }

    fn set(&self, registry: Arc<Registry>, keys: &[KeyOptions]) {
        let ledger = self.0.ledger.get().and_then(Option::as_deref);
        let keys = Keys::renewed(keys, &self.config().keys, ledger);
        let config = Arc::new(Configuration { registry, keys });
        *self.0.config.write().unwrap_or_else(PoisonError::into_inner) = config;
    }
}
