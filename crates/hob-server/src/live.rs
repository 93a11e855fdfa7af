//! What may be exchanged while the server runs: the models by name, and the keys.
//! A request keeps what it began with; the next one sees the new.

use std::sync::{Arc, OnceLock, PoisonError, RwLock};

use hob_core::Registry;

use crate::keys::{KeyOptions, Keys};
use crate::ledger::Ledger;

/// Models and keys that are in force. Clones are the same.
#[derive(Clone, Debug, Default)]
pub struct ReloadableState(Arc<InForce>);

#[derive(Debug, Default)]
struct InForce {
    registry: RwLock<Arc<Registry>>,
    keys: RwLock<Arc<Keys>>,
    /// What keys have spent is read from there.
    ledger: OnceLock<Option<Arc<Ledger>>>,
}

impl From<Registry> for ReloadableState {
    fn from(registry: Registry) -> ReloadableState {
        let live = ReloadableState::default();
        live.set_registry(registry);
        live
    }
}

impl ReloadableState {
    /// From now on, these. A key that did not change keeps what is left of its limits.
    pub fn replace(&self, registry: Registry, keys: &[KeyOptions]) {
        self.set_registry(registry);
        self.set_keys(keys);
    }

    pub(crate) fn begin(&self, keys: &[KeyOptions], ledger: Option<Arc<Ledger>>) {
        self.0.ledger.get_or_init(|| ledger);
        self.set_keys(keys);
    }

    pub(crate) fn registry(&self) -> Arc<Registry> {
        Arc::clone(&self.0.registry.read().unwrap_or_else(PoisonError::into_inner))
    }

    pub(crate) fn keys(&self) -> Arc<Keys> {
        Arc::clone(&self.0.keys.read().unwrap_or_else(PoisonError::into_inner))
    }

    fn set_registry(&self, registry: Registry) {
        *self.0.registry.write().unwrap_or_else(PoisonError::into_inner) = Arc::new(registry);
    }

    fn set_keys(&self, keys: &[KeyOptions]) {
        let ledger = self.0.ledger.get().and_then(Option::as_deref);
        let renewed = Keys::renewed(keys, &self.keys(), ledger);
        *self.0.keys.write().unwrap_or_else(PoisonError::into_inner) = Arc::new(renewed);
    }
}
