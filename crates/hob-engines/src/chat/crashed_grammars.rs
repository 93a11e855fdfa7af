//! Grammars whose compilation crashed a worker. hob rejects such a grammar when a client sends it again,
//! because the retry would crash the next worker too.

use std::collections::VecDeque;
use std::hash::{DefaultHasher, Hash, Hasher};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use hob_core::chat::{ChatRequest, OutputFormat, Prompt, ToolChoice};
use hob_core::{ModelError, locked};
use tokio::time::Instant;

use crate::supervisor::session::WorkerSession;

/// Maximum grammars that are remembered. The oldest is forgotten first.
const GRAMMARS_MAX: usize = 64;
const BLOCK_TIME: Duration = Duration::from_secs(600);

/// A hash of a request's constraints. Equal grammars have equal fingerprints.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Fingerprint {
    hash: u64,
    pub(super) field: &'static str,
}

impl Fingerprint {
    /// `None` if the request needs no grammar.
    pub(super) fn of(request: &ChatRequest) -> Option<Fingerprint> {
        let tools = match &request.prompt {
            Prompt::Chat(conversation) if conversation.tool_choice != ToolChoice::None => {
                conversation.tools.as_slice()
            }
            Prompt::Chat(_) | Prompt::Text(_) | Prompt::Tokens(_) | Prompt::Infill { .. } => &[],
        };
        let field = match (&request.output, tools) {
            (OutputFormat::Text, []) => return None,
            (OutputFormat::Text, _) => "tools",
            (output, _) => output.field(),
        };
        let mut hasher = DefaultHasher::new();
        postcard::to_allocvec(&(&request.output, tools)).ok()?.hash(&mut hasher);
        Some(Fingerprint { hash: hasher.finish(), field })
    }
}

#[derive(Debug, Default)]
pub(super) struct CrashedGrammars(Mutex<Lists>);

#[derive(Debug, Default)]
struct Lists {
    blocked: VecDeque<(Fingerprint, Instant)>,
    /// Grammars whose clients disconnected during compilation. The worker may still crash.
    pending: VecDeque<(Fingerprint, Arc<WorkerSession>)>,
}

impl CrashedGrammars {
    /// # Errors
    /// The grammar has crashed a worker.
    pub(super) fn check(&self, fingerprint: Fingerprint) -> Result<(), ModelError> {
        let mut lists = locked(&self.0);
        lists.update();
        let is_blocked = lists.blocked.iter().any(|(known, _)| *known == fingerprint);
        if is_blocked { Err(blocked_error(fingerprint)) } else { Ok(()) }
    }

    /// Blocks a grammar whose compilation crashed the worker. Returns the client's error.
    pub(super) fn block(&self, fingerprint: Fingerprint) -> ModelError {
        locked(&self.0).block(fingerprint);
        blocked_error(fingerprint)
    }

    fn watch(&self, fingerprint: Fingerprint, session: Arc<WorkerSession>) {
        let mut lists = locked(&self.0);
        lists.pending.push_back((fingerprint, session));
        if lists.pending.len() > GRAMMARS_MAX {
            lists.pending.pop_front();
        }
    }
}

impl Lists {
    fn block(&mut self, fingerprint: Fingerprint) {
        self.blocked.push_back((fingerprint, Instant::now()));
        if self.blocked.len() > GRAMMARS_MAX {
            self.blocked.pop_front();
        }
    }

    /// Blocks the pending grammars of workers that were lost, and drops those of workers that were unloaded. Also drops expired
    /// entries.
    fn update(&mut self) {
        self.blocked.retain(|(_, at)| at.elapsed() < BLOCK_TIME);
        let pending = std::mem::take(&mut self.pending);
        for (fingerprint, session) in pending {
            if session.is_lost() {
                self.block(fingerprint);
            } else if session.is_open() {
                self.pending.push_back((fingerprint, session));
            }
        }
    }
}

/// A grammar that is being compiled. If its client disconnects, `Drop` adds it to the pending ones.
#[derive(Debug)]
pub(super) struct Compiling<'a> {
    pub(super) grammars: &'a CrashedGrammars,
    pub(super) fingerprint: Option<Fingerprint>,
    pub(super) session: Arc<WorkerSession>,
    pub(super) is_compiling: bool,
}

impl Compiling<'_> {
    /// The error for the client whose stream failed with `error`.
    pub(super) fn error_for(&mut self, error: ModelError) -> ModelError {
        let fingerprint = self.fingerprint.filter(|_| self.is_compiling);
        self.is_compiling = false;
        match (fingerprint, error) {
            (Some(fingerprint), ModelError::WorkerLost { .. }) if self.session.is_lost() => {
                self.grammars.block(fingerprint)
            }
            (_, error) => error,
        }
    }
}

impl Drop for Compiling<'_> {
    fn drop(&mut self) {
        if let Some(fingerprint) = self.fingerprint.filter(|_| self.is_compiling) {
            self.grammars.watch(fingerprint, Arc::clone(&self.session));
        }
    }
}

fn blocked_error(fingerprint: Fingerprint) -> ModelError {
    let minutes = BLOCK_TIME.as_secs() / 60;
    let reason = format!(
        "crashed the chat worker during compilation; hob rejects it for {minutes} minutes, so change it before you retry"
    );
    ModelError::InvalidField { field: fingerprint.field, reason }
}

#[cfg(test)]
mod tests {
    use hob_core::chat::{Conversation, Tool};

    use super::*;
    use crate::supervisor::session::LoadedModel;

    #[test]
    fn tools_that_may_not_be_called_need_no_grammar() {
        let needs_grammar = |tool_choice| {
            let tools = vec![Tool::default()];
            let prompt =
                Prompt::Chat(Conversation { tools, tool_choice, ..Conversation::default() });
            Fingerprint::of(&ChatRequest { prompt, ..ChatRequest::default() }).is_some()
        };
        assert!(needs_grammar(ToolChoice::Auto) && !needs_grammar(ToolChoice::None));
    }

    #[test]
    fn a_pending_grammar_is_blocked_when_its_worker_ends() {
        let output = OutputFormat::Regex("a".to_owned());
        let request = ChatRequest { output, ..ChatRequest::default() };
        let fingerprint = Fingerprint::of(&request).expect("a grammar");
        let (session, _to_write) = WorkerSession::new("chat", LoadedModel::default(), None, 1);
        let grammars = CrashedGrammars::default();
        let compiling = |fingerprint, is_compiling| Compiling {
            grammars: &grammars,
            fingerprint: Some(fingerprint),
            session: Arc::clone(&session),
            is_compiling,
        };
        drop(compiling(fingerprint, true));
        assert_eq!(grammars.check(fingerprint), Ok(()), "the worker may survive it");
        session.lose("killed by signal 11 (SIGSEGV)");
        assert!(grammars.check(fingerprint).is_err());

        let other = Fingerprint { hash: 1, ..fingerprint };
        drop(compiling(other, false));
        assert_eq!(grammars.check(other), Ok(()), "it was not being compiled");
        assert_eq!(Fingerprint::of(&ChatRequest::default()), None);
    }

    #[test]
    fn a_grammar_is_not_blocked_when_its_worker_is_unloaded() {
        let fingerprint = Fingerprint { hash: 1, field: "tools" };
        let (session, _to_write) = WorkerSession::new("chat", LoadedModel::default(), None, 1);
        let grammars = CrashedGrammars::default();
        grammars.watch(fingerprint, Arc::clone(&session));
        session.leave();
        session.lose("it was unloaded");
        assert_eq!(grammars.check(fingerprint), Ok(()), "its client left");

        let (grammars, fingerprint) = (&grammars, Some(fingerprint));
        let mut compiling = Compiling { grammars, fingerprint, session, is_compiling: true };
        let lost = ModelError::WorkerLost { engine: "chat", detail: "it was unloaded".to_owned() };
        assert_eq!(compiling.error_for(lost.clone()), lost, "its client waited");
    }

    #[test]
    fn at_most_64_grammars_are_remembered() {
        let grammars = CrashedGrammars::default();
        let numbered = |hash| Fingerprint { hash, field: "tools" };
        (0..65).for_each(|hash| drop(grammars.block(numbered(hash))));
        assert_eq!(grammars.check(numbered(0)), Ok(()));
        assert!(grammars.check(numbered(1)).is_err() && grammars.check(numbered(64)).is_err());
    }
}
