//! Grammars that ended a worker while they were compiled. hob refuses such a grammar when it comes again,
//! because the client's retry would end the next worker too.

use std::collections::VecDeque;
use std::hash::{DefaultHasher, Hash, Hasher};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use hob_core::ModelError;
use hob_core::chat::{ChatRequest, OutputFormat, Prompt};
use tokio::time::Instant;

use crate::supervisor::session::Session;

/// Maximum grammars that are remembered. The oldest is forgotten first.
const SUSPECTS_MAX: usize = 64;
const REMEMBERED_FOR: Duration = Duration::from_secs(600);

/// A hash of a request's constraints. Equal grammars have equal fingerprints.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Fingerprint {
    hash: u64,
    field: &'static str,
}

impl Fingerprint {
    /// `None` where nothing has to be compiled.
    pub(super) fn of(request: &ChatRequest) -> Option<Fingerprint> {
        let tools = match &request.prompt {
            Prompt::Chat(conversation) => conversation.tools.as_slice(),
            Prompt::Text(_) | Prompt::Tokens(_) | Prompt::Infill { .. } => &[],
        };
        let field = match (&request.output, tools) {
            (OutputFormat::Text, []) => return None,
            (OutputFormat::Text, _) => "tools",
            _ => "response_format",
        };
        let mut hasher = DefaultHasher::new();
        postcard::to_allocvec(&(&request.output, tools)).ok()?.hash(&mut hasher);
        Some(Fingerprint { hash: hasher.finish(), field })
    }
}

#[derive(Debug, Default)]
pub(super) struct Suspects(Mutex<Lists>);

#[derive(Debug, Default)]
struct Lists {
    convicted: VecDeque<(Fingerprint, Instant)>,
    /// Their clients left during compilation. It is not known yet whether the worker survives.
    open: VecDeque<(Fingerprint, Arc<Session>)>,
}

impl Suspects {
    /// # Errors
    /// The grammar has ended a worker.
    pub(super) fn check(&self, fingerprint: Fingerprint) -> Result<(), ModelError> {
        let mut lists = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        lists.settle();
        let is_convicted = lists.convicted.iter().any(|(known, _)| *known == fingerprint);
        if is_convicted { Err(refusal(fingerprint)) } else { Ok(()) }
    }

    /// Records that the worker ended while it compiled this grammar. Returns the client's error.
    pub(super) fn convict(&self, fingerprint: Fingerprint) -> ModelError {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).convict(fingerprint);
        refusal(fingerprint)
    }

    fn watch(&self, fingerprint: Fingerprint, session: Arc<Session>) {
        let mut lists = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        lists.open.push_back((fingerprint, session));
        if lists.open.len() > SUSPECTS_MAX {
            lists.open.pop_front();
        }
    }
}

impl Lists {
    fn convict(&mut self, fingerprint: Fingerprint) {
        self.convicted.push_back((fingerprint, Instant::now()));
        if self.convicted.len() > SUSPECTS_MAX {
            self.convicted.pop_front();
        }
    }

    /// Convicts open grammars of workers that ended, and forgets old convictions.
    fn settle(&mut self) {
        self.convicted.retain(|(_, at)| at.elapsed() < REMEMBERED_FOR);
        let open = std::mem::take(&mut self.open);
        for (fingerprint, session) in open {
            if session.is_lost() {
                self.convict(fingerprint);
            } else {
                self.open.push_back((fingerprint, session));
            }
        }
    }
}

/// A grammar while it is compiled: dropped when its client leaves.
#[derive(Debug)]
pub(super) struct Compiling<'a> {
    pub(super) suspects: &'a Suspects,
    pub(super) fingerprint: Option<Fingerprint>,
    pub(super) session: Arc<Session>,
    pub(super) is_compiling: bool,
}

impl Compiling<'_> {
    /// The error for the client whose stream failed with `error`.
    pub(super) fn blamed(&mut self, error: ModelError) -> ModelError {
        let fingerprint = self.fingerprint.filter(|_| self.is_compiling);
        self.is_compiling = false;
        match (fingerprint, error) {
            (Some(fingerprint), ModelError::WorkerLost { .. }) => {
                self.suspects.convict(fingerprint)
            }
            (_, error) => error,
        }
    }
}

impl Drop for Compiling<'_> {
    fn drop(&mut self) {
        if let Some(fingerprint) = self.fingerprint.filter(|_| self.is_compiling) {
            self.suspects.watch(fingerprint, Arc::clone(&self.session));
        }
    }
}

fn refusal(fingerprint: Fingerprint) -> ModelError {
    let minutes = REMEMBERED_FOR.as_secs() / 60;
    let reason = format!(
        "ended the chat worker when it was compiled; it is refused for {minutes} minutes, so do not send it again"
    );
    ModelError::InvalidField { field: fingerprint.field, reason }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::supervisor::session::LoadedModel;

    #[test]
    fn a_grammar_whose_client_left_is_refused_once_its_worker_has_ended() {
        let output = OutputFormat::Regex("a".to_owned());
        let request = ChatRequest { output, ..ChatRequest::default() };
        let fingerprint = Fingerprint::of(&request).expect("a grammar");
        let (session, _to_write) = Session::new("chat", LoadedModel::default(), None, 1);
        let suspects = Suspects::default();
        let compiling = |fingerprint, is_compiling| Compiling {
            suspects: &suspects,
            fingerprint: Some(fingerprint),
            session: Arc::clone(&session),
            is_compiling,
        };
        drop(compiling(fingerprint, true));
        assert_eq!(suspects.check(fingerprint), Ok(()), "the worker may survive it");
        session.lose("killed by signal 11 (SIGSEGV)");
        assert!(suspects.check(fingerprint).is_err());

        let other = Fingerprint { hash: 1, ..fingerprint };
        drop(compiling(other, false));
        assert_eq!(suspects.check(other), Ok(()), "it was not being compiled");
        assert_eq!(Fingerprint::of(&ChatRequest::default()), None);
    }

    #[test]
    fn only_so_many_are_remembered() {
        let suspects = Suspects::default();
        let numbered = |hash| Fingerprint { hash, field: "tools" };
        (0..65).for_each(|hash| drop(suspects.convict(numbered(hash))));
        assert_eq!(suspects.check(numbered(0)), Ok(()));
        assert!(suspects.check(numbered(1)).is_err() && suspects.check(numbered(64)).is_err());
    }
}
