//! A model of another server: where it is, how it is called there, and what it does not take.
//! Chat, speech and transcription each ask it in their own words.

use std::collections::BTreeSet;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use hob_core::{Fault, ModelError, one_line};

use crate::Upstream;

/// One model of one server.
#[derive(Debug)]
pub(crate) struct Served {
    pub(crate) upstream: Arc<Upstream>,
    /// As the server calls it.
    pub(crate) model: String,
    /// `upstream/model`.
    pub(crate) target: String,
    /// Fields that the server said it does not take.
    unknown_there: Mutex<BTreeSet<String>>,
}

impl Served {
    pub(crate) fn new(upstream: Arc<Upstream>, model: &str) -> Served {
        let target = format!("{}/{model}", upstream.name());
        Served { upstream, model: model.to_owned(), target, unknown_there: Mutex::default() }
    }

    /// From now on this field is left out of requests.
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

    /// What a server says within an answer may repeat its key, and may hold anything.
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
