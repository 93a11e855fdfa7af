//! A model of another server: its server, its name there, and the fields that it does not take.
//! Chat, speech and transcription each send their own requests to it.

use std::collections::BTreeSet;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use hob_core::{Fault, ModelError, one_line};

use crate::Upstream;

/// One model of one server.
#[derive(Debug)]
pub(crate) struct UpstreamModel {
    pub(crate) upstream: Arc<Upstream>,
    /// Its name on the server.
    pub(crate) model: String,
    /// `upstream/model`.
    pub(crate) target: String,
    /// Fields that the server refused as unknown.
    unknown_there: Mutex<BTreeSet<String>>,
}

impl UpstreamModel {
    pub(crate) fn new(upstream: Arc<Upstream>, model: &str) -> UpstreamModel {
        let target = format!("{}/{model}", upstream.name());
        UpstreamModel { upstream, model: model.to_owned(), target, unknown_there: Mutex::default() }
    }

    /// Leaves this field out of further requests.
    pub(crate) fn leave_out(&self, field: &str) {
        const FIELDS_MAX: usize = 32;
        let mut fields = self.unknown_there();
        if fields.len() < FIELDS_MAX {
            fields.insert(field.to_owned());
        }
    }

    pub(crate) fn left_out(&self) -> Vec<String> {
        self.unknown_there().iter().cloned().collect()
    }

    /// The error for this fault. Words of the server may repeat its key, or contain control characters.
    pub(crate) fn failed(&self, fault: Fault) -> ModelError {
        let shown = |words: &str| one_line(&self.upstream.scrubbed(words));
        ModelError::upstream(&self.target, fault.with_words(shown))
    }

    pub(crate) fn incapable(&self, needs: &str) -> ModelError {
        ModelError::NoneCapable { alias: self.target.clone(), needs: needs.to_owned() }
    }

    fn unknown_there(&self) -> MutexGuard<'_, BTreeSet<String>> {
        self.unknown_there.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
