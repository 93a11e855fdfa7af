//! Failures of models. Each says who can act, and carries the numbers.
//! Nothing here knows HTTP: `hob-server` maps each variant to a status in one place.

use std::time::Duration;

use crate::attempt::FailedAttempt;
use crate::budget::Shortage;
use crate::{Fault, Language, nearest_hint};

/// The failure of a model, before or during its answer.
#[derive(Clone, Debug, PartialEq, thiserror::Error)]
pub enum ModelError {
    #[error("there is nothing to speak: the text is empty or has no speakable characters")]
    EmptyText,
    #[error("the text has {chars} characters and the limit is {chars_max}")]
    TextTooLong { chars: usize, chars_max: usize },
    #[error("no voice is called '{voice}'{}", nearest_hint(near))]
    UnknownVoice { voice: String, near: Vec<String> },
    /// This machine has no program or no data for the language. `needs` names it and says how to get it.
    #[error("voice '{voice}' speaks {language}, which needs {needs}")]
    SpeechPartMissing { voice: String, language: Language, needs: String },
    #[error("this model needs '{field}' and the request has none")]
    MissingField { field: &'static str },
    #[error("'{field}' {reason}")]
    InvalidField { field: &'static str, reason: String },
    /// The prompt is never cut silently: the client decides what to leave out.
    /// LiteLLM, LangChain and agents search for "maximum context length is", and then send less.
    #[error(
        "this model's maximum context length is {available} tokens, and the prompt alone has {needed} tokens: shorten it"
    )]
    TooLong { needed: u32, available: u32 },
    #[error("this model has no chat template; it continues texts at /v1/completions")]
    NoTemplate,
    #[error(
        "loading the model needs about {} MB and {} MB are free; {}",
        needed_bytes.div_ceil(1_000_000), available_bytes / 1_000_000,
        what_fits.as_deref().unwrap_or("a shorter context, a smaller KV type or a smaller model needs less")
    )]
    OutOfMemory {
        needed_bytes: u64,
        available_bytes: u64,
        /// Settings with which the model fits, for people. `None`: not known.
        what_fits: Option<String>,
    },
    /// Other models use the memory. `retry_after` is `None` if waiting does not help.
    #[error("there is no room for the model: {shortage}{}", retry_hint(*retry_after))]
    NoRoom { shortage: Shortage, retry_after: Option<Duration> },
    #[error("the model is busy; try again in {} s", whole_seconds(*retry_after))]
    Busy { retry_after: Duration },
    #[error("the model is still loading; try again in {} s", whole_seconds(*retry_after))]
    Loading { retry_after: Duration },
    #[error("the {engine} engine is not built into this hob")]
    NotBuilt { engine: &'static str },
    /// The worker process died or cannot be reached. This request is lost; the next may succeed.
    #[error("the {engine} worker ended unexpectedly: {detail}")]
    WorkerLost { engine: &'static str, detail: String },
    /// The engine reported a failure and keeps running.
    #[error("the {engine} engine failed: {detail}")]
    EngineFailed { engine: &'static str, detail: String },
    /// Another server, requested as `target`, did not answer.
    #[error("{target}: {fault}")]
    Upstream { target: String, fault: Fault },
    /// No target of an alias answered. `last` is the failure of the last target that was tried.
    #[error("no target of '{alias}' answered{}", joined_messages(attempts))]
    Unanswered {
        alias: String,
        attempts: Vec<FailedAttempt>,
        last: Box<ModelError>,
        /// When one of the targets may answer again.
        retry_after: Option<Duration>,
    },
    #[error("every target of '{alias}' has an open circuit after failures; try again in {} s", whole_seconds(*retry_after))]
    Resting { alias: String, retry_after: Duration },
    /// No target of the alias supports what the request needs.
    #[error("no target of '{alias}' can do what this request needs: {needs}")]
    NoneCapable { alias: String, needs: String },
    /// This target does not support what the request needs.
    #[error("'{target}' does not support {needs}")]
    Incapable { target: String, needs: String },
}

impl ModelError {
    pub fn upstream(target: impl Into<String>, fault: Fault) -> ModelError {
        ModelError::Upstream { target: target.into(), fault }
    }

    /// The failure without the words of other servers, for logs and status pages.
    /// The client of the failed request also gets those words.
    pub fn summary(&self) -> String {
        match self {
            ModelError::Upstream { target, fault } => format!("{target}: {}", fault.summary()),
            ModelError::Unanswered { alias, attempts, .. } => {
                let each: Vec<String> = attempts.iter().map(FailedAttempt::summary).collect();
                format!("no target of '{alias}' answered: {}", each.join(", "))
            }
            other => other.to_string(),
        }
    }

    /// Whether the same request to the same model would fail again: the request, the model's name, a key or an account is
    /// wrong.
    pub fn is_permanent(&self) -> bool {
        match self {
            // One of the targets may answer a moment later.
            ModelError::Unanswered { attempts, last, .. } => {
                let is_each = attempts.iter().all(|attempt| is_permanent_kind(attempt.kind));
                is_each && last.is_permanent()
            }
            other => is_permanent_kind(other.kind()),
        }
    }

    /// The failure in one word, for metrics and for the ledger.
    pub fn kind(&self) -> &'static str {
        match self {
            ModelError::EmptyText => "empty_text",
            ModelError::TextTooLong { .. } => "text_too_long",
            ModelError::UnknownVoice { .. } => "unknown_voice",
            ModelError::SpeechPartMissing { .. } => "speech_part_missing",
            ModelError::MissingField { .. } => "missing_field",
            ModelError::InvalidField { .. } => "invalid_field",
            ModelError::TooLong { .. } => "too_long",
            ModelError::NoTemplate => "no_template",
            ModelError::OutOfMemory { .. } => "out_of_memory",
            ModelError::NoRoom { .. } => "no_room",
            ModelError::Busy { .. } => "queue_full",
            ModelError::Loading { .. } => "model_loading",
            ModelError::NotBuilt { .. } => "not_built",
            ModelError::WorkerLost { .. } => "worker_lost",
            ModelError::EngineFailed { .. } => "engine_failed",
            ModelError::Upstream { fault, .. } => fault.kind(),
            ModelError::Unanswered { last, .. } => last.kind(),
            ModelError::Resting { .. } => "no_target",
            ModelError::NoneCapable { .. } | ModelError::Incapable { .. } => "none_capable",
        }
    }
}

/// Whether a failure of this kind comes again with the same request. `unknown_parameter` does not: hob leaves the parameter
/// out the next time.
fn is_permanent_kind(kind: &str) -> bool {
    const PERMANENT: [&str; 14] = [
        "empty_text",
        "text_too_long",
        "unknown_voice",
        "speech_part_missing",
        "missing_field",
        "invalid_field",
        "too_long",
        "no_template",
        "not_built",
        "none_capable",
        "key_refused",
        "no_credit",
        "no_such_model",
        "refused",
    ];
    PERMANENT.contains(&kind)
}

fn retry_hint(retry_after: Option<Duration>) -> String {
    retry_after.map_or_else(String::new, |time| format!("; try again in {} s", whole_seconds(time)))
}

/// A wait as clients read it: rounded up, so that nothing is tried too early, and at least 1.
pub fn whole_seconds(wait: Duration) -> u64 {
    u64::try_from(wait.as_millis().div_ceil(1000)).unwrap_or(u64::MAX).max(1)
}

fn joined_messages(attempts: &[FailedAttempt]) -> String {
    let said: Vec<&str> = attempts.iter().map(|attempt| attempt.message.as_str()).collect();
    if said.is_empty() { String::new() } else { format!(": {}", said.join("; ")) }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn upstream(fault: fn(String) -> Fault) -> ModelError {
        ModelError::upstream("a/m", fault("no".to_owned()))
    }

    /// No target of an alias answered: these attempts failed, and then this one.
    fn unanswered(kinds: &[&'static str], last: ModelError) -> ModelError {
        let attempt = |kind: &&'static str| FailedAttempt {
            target: "a/m".to_owned(),
            kind,
            message: "no".to_owned(),
            took: Duration::ZERO,
        };
        let attempts = kinds.iter().map(attempt).collect();
        ModelError::Unanswered {
            alias: "a".into(),
            attempts,
            last: Box::new(last),
            retry_after: None,
        }
    }

    #[test]
    fn what_a_second_try_cannot_change_is_permanent() {
        let refused = || upstream(|message| Fault::Refused { message });
        let rows = [
            (ModelError::TooLong { needed: 9000, available: 8192 }, true),
            (ModelError::InvalidField { field: "model", reason: "is wrong".into() }, true),
            (refused(), true),
            (upstream(|message| Fault::KeyRefused { message }), true),
            (upstream(|message| Fault::NoCredit { message }), true),
            (upstream(|message| Fault::NoSuchModel { message }), true),
            (upstream(|message| Fault::TooLong { message, needed: None, available: None }), true),
            (upstream(|message| Fault::Limited { message, retry_after: None }), false),
            (upstream(|message| Fault::Overloaded { message, retry_after: None }), false),
            (upstream(|message| Fault::Failed { message }), false),
            (ModelError::upstream("a/m", Fault::CutOff), false),
            (ModelError::Busy { retry_after: Duration::ZERO }, false),
            (ModelError::WorkerLost { engine: "chat", detail: "9".into() }, false),
            (unanswered(&["key_refused", "refused"], refused()), true),
            (unanswered(&["overloaded", "refused"], refused()), false),
        ];
        for (error, is_permanent) in rows {
            assert_eq!(error.is_permanent(), is_permanent, "{error}");
        }
    }
}
