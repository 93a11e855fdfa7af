//! A row of the ledger. Columns have the names of these fields.
//! A value that was not measured is `None`, and never 0.

use std::time::Duration;

/// One request to a model.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct RequestRecord {
    /// When its headers were read, in milliseconds since 1970.
    pub started_unix_ms: u64,
    /// `chat`, `speech`, `transcription`, `embeddings`, or `realtime` for a turn of a spoken conversation, whose models
    /// have rows of their own.
    pub route: String,
    /// The requested name.
    pub alias: String,
    /// The model that answered.
    pub target: String,
    /// The name of the request's key.
    pub key: Option<String>,
    pub is_streamed: bool,
    /// Whether the model was in memory when the request came.
    pub is_warm: bool,
    /// Time spent waiting for the model to load.
    pub load_ms: Option<f64>,
    /// Time spent in the queue.
    pub queue_ms: Option<f64>,
    /// From the request's headers to the first token, or the first sound.
    pub first_ms: Option<f64>,
    pub total_ms: f64,
    /// From the first token to the last, by the engine's clock.
    pub predicted_ms: Option<f64>,
    /// Prompt tokens. For speech: characters of the text.
    pub prompt_tokens: u32,
    /// Prompt tokens that were found in the cache.
    pub cached_tokens: u32,
    /// Includes thinking.
    pub completion_tokens: u32,
    pub reasoning_tokens: u32,
    /// Milliseconds of sound, produced or transcribed.
    pub audio_ms: f64,
    pub outcome: Outcome,
    /// The code of the error that ended the request.
    pub error: Option<String>,
    /// Targets that were tried before and failed, with the failure and its duration.
    pub attempts: Option<String>,
    /// The part of the time to the first token that hob itself took, if another server answered.
    pub overhead_ms: Option<f64>,
    /// Thinking was switched off, but the model thought.
    pub thought_anyway: bool,
    /// hob counted the tokens, because the target did not report them.
    pub counted_here: bool,
    /// The parts of the time to the first sound of a realtime turn.
    pub turn_stages: Option<String>,
}

hob_core::enum_table! {
    /// How a request ended.
    #[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
    pub enum Outcome: name {
        Complete = "complete",
        Failed = "failed",
        /// The client left, or was cut off when the server stopped.
        #[default]
        Abandoned = "abandoned",
    }
}

/// Which rows to read.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Period {
    /// `None`: from the first row.
    pub since_unix_ms: Option<u64>,
    /// Only this many of the latest rows; `None`: all.
    pub rows_max: Option<u32>,
}

impl RequestRecord {
    /// Tokens that count against the key's daily budget.
    pub fn tokens(&self) -> u64 {
        u64::from(self.prompt_tokens) + u64::from(self.completion_tokens)
    }

    /// Tokens per second after the first token. `None` with fewer than two tokens.
    pub fn tokens_per_s(&self) -> Option<f64> {
        let seconds = Duration::try_from_secs_f64(self.predicted_ms? / 1e3).ok()?.as_secs_f64();
        let after_first = self.completion_tokens.checked_sub(1).filter(|tokens| *tokens > 0)?;
        (seconds > 0.0).then(|| f64::from(after_first) / seconds)
    }
}
