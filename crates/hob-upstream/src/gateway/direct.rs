//! Models that were asked for by their server's name and their own: made when they are first asked for.
//! Names come from outside, so they are not remembered without end.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, PoisonError};

use hob_core::{ChatTarget, SpeechTarget, TranscriptTarget};

/// Names of one kind that are remembered.
const NAMES_MAX: usize = 1024;

#[derive(Debug, Default)]
pub(super) struct Direct {
    chat: Known<ChatTarget>,
    speech: Known<SpeechTarget>,
    transcript: Known<TranscriptTarget>,
}

#[derive(Debug)]
struct Known<T>(Mutex<BTreeMap<String, Arc<T>>>);

impl<T> Default for Known<T> {
    fn default() -> Known<T> {
        Known(Mutex::default())
    }
}

impl<T> Known<T> {
    fn find(&self, name: &str, make: impl FnOnce() -> Option<T>) -> Option<Arc<T>> {
        let mut known = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(target) = known.get(name) {
            return Some(Arc::clone(target));
        }
        let target = Arc::new(make()?);
        if known.len() >= NAMES_MAX {
            known.clear();
        }
        known.insert(name.to_owned(), Arc::clone(&target));
        Some(target)
    }
}

impl Direct {
    pub(super) fn chat(
        &self,
        name: &str,
        make: impl FnOnce() -> Option<ChatTarget>,
    ) -> Option<Arc<ChatTarget>> {
        self.chat.find(name, make)
    }

    pub(super) fn speech(
        &self,
        name: &str,
        make: impl FnOnce() -> Option<SpeechTarget>,
    ) -> Option<Arc<SpeechTarget>> {
        self.speech.find(name, make)
    }

    pub(super) fn transcript(
        &self,
        name: &str,
        make: impl FnOnce() -> Option<TranscriptTarget>,
    ) -> Option<Arc<TranscriptTarget>> {
        self.transcript.find(name, make)
    }
}
