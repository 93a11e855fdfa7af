//! A model of another server: its server, its name there, and the request fields that its server rejects.
//! Chat, speech and transcription each send their own requests to it.

use std::collections::BTreeSet;
use std::sync::{Arc, Mutex};

use hob_core::{Fault, ModelError, locked, one_line};

use crate::client::Upstream;

/// One model of one server.
#[derive(Debug)]
pub(crate) struct UpstreamModel {
    pub(crate) upstream: Arc<Upstream>,
    /// Name of the model on the server.
    pub(crate) model: String,
    /// `upstream/model`.
    pub(crate) target: String,
    /// Request fields that the server rejected as unknown.
    rejected_fields: Mutex<BTreeSet<String>>,
}

impl UpstreamModel {
    pub(crate) fn new(upstream: Arc<Upstream>, model: &str) -> UpstreamModel {
        let target = format!("{}/{model}", upstream.name());
        UpstreamModel {
            upstream,
            model: model.to_owned(),
            target,
            rejected_fields: Mutex::default(),
        }
    }

    /// Leaves this field out of further requests. Does nothing if 32 fields are left out already.
    pub(crate) fn leave_out(&self, field: &str) {
        const FIELDS_MAX: usize = 32;
        let mut fields = locked(&self.rejected_fields);
        if fields.len() < FIELDS_MAX {
            fields.insert(field.to_owned());
        }
    }

    pub(crate) fn fields_left_out(&self) -> Vec<String> {
        locked(&self.rejected_fields).iter().cloned().collect()
    }

    /// The error for this fault. A server's message may contain the key or control characters, so both are removed.
    pub(crate) fn failed(&self, fault: Fault) -> ModelError {
        let cleaned = |words: &str| one_line(&self.upstream.scrubbed(words));
        ModelError::upstream(&self.target, fault.with_words(cleaned))
    }

    pub(crate) fn incapable(&self, needs: &str) -> ModelError {
        ModelError::Incapable { target: self.target.clone(), needs: needs.to_owned() }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::options::{UpstreamKind, UpstreamOptions};

    #[test]
    fn an_error_for_a_single_target_mentions_no_alias() {
        let options = UpstreamOptions::plain("gpu", UpstreamKind::Ollama, "http://127.0.0.1:9");
        let upstream = Arc::new(Upstream::new(options).expect("a valid upstream"));
        let error = UpstreamModel::new(upstream, "x").incapable("speech");
        assert_eq!(error.to_string(), "'gpu/x' does not support speech");
    }
}
