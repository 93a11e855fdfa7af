//! What can go wrong in a model, said so that the reader knows who can act and has the numbers.
//! Nothing here knows HTTP: `hob-server` maps each variant to a status in one place.

use std::time::Duration;

use crate::Language;

/// The failure of a model, before or during its answer.
#[derive(Clone, Debug, PartialEq, thiserror::Error)]
pub enum ModelError {
    #[error("there is nothing to say: the text is empty, or holds only what is not spoken")]
    EmptyText,
    #[error("the text has {chars} characters and the limit is {chars_max}")]
    TextTooLong { chars: usize, chars_max: usize },
    #[error("no voice is called '{voice}'{}", did_you_mean(near))]
    UnknownVoice { voice: String, near: Vec<String> },
    #[error(
        "voice '{voice}' speaks {language}, which hob cannot read aloud yet; English voices begin with 'a' or 'b'"
    )]
    LanguageNotSpoken { voice: String, language: Language },
    #[error("this model needs '{field}' and the request has none")]
    MissingField { field: &'static str },
    #[error("'{field}' {reason}")]
    InvalidField { field: &'static str, reason: String },
    /// Nothing is cut silently: who sent it decides what to leave out.
    #[error("the prompt needs {needed} tokens and the context holds {available}")]
    TooLong { needed: u32, available: u32 },
    #[error("this model has no chat template; it continues texts at /v1/completions")]
    NoTemplate,
    #[error(
        "loading the model needs about {} MB and {} MB are free; a shorter context, a smaller KV type or a smaller model needs less",
        needed_bytes.div_ceil(1_000_000), available_bytes / 1_000_000
    )]
    OutOfMemory { needed_bytes: u64, available_bytes: u64 },
    #[error("the model is busy; try again in {} s", retry_after.as_secs().max(1))]
    Busy { retry_after: Duration },
    #[error("the model is still loading; try again in {} s", retry_after.as_secs().max(1))]
    Loading { retry_after: Duration },
    #[error("the {engine} engine is not built into this hob")]
    NotBuilt { engine: &'static str },
    /// The worker process died or could not be reached. The request is lost; the next may work.
    #[error("the {engine} worker ended unexpectedly: {detail}")]
    WorkerLost { engine: &'static str, detail: String },
    /// The engine reported a failure and lives on.
    #[error("the {engine} engine failed: {detail}")]
    EngineFailed { engine: &'static str, detail: String },
}

fn did_you_mean(near: &[String]) -> String {
    if near.is_empty() { String::new() } else { format!("; the nearest are {}", near.join(", ")) }
}
