//! What a row holds. The names of its columns are the names here.
//! What was not measured is none, and never 0.

use std::time::Duration;

/// One request that a model was asked.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct RequestRecord {
    /// When its headers were read, in milliseconds since 1970.
    pub started_unix_ms: u64,
    /// `chat`, `speech`, `transcription` or `embeddings`.
    pub route: String,
    /// The name that was asked for.
    pub alias: String,
    /// The model that answered.
    pub target: String,
    /// The name of the key that it came with.
    pub key: Option<String>,
    pub is_streamed: bool,
    /// Whether the model was in memory when the request came.
    pub is_warm: bool,
    /// Waiting for the model to be loaded.
    pub load_ms: Option<f64>,
    /// Waiting for a turn.
    pub queue_ms: Option<f64>,
    /// From the request's headers to the first token, or the first sound.
    pub first_ms: Option<f64>,
    pub total_ms: f64,
    /// From the first token to the last, by the engine's clock.
    pub predicted_ms: Option<f64>,
    /// Of speech: the characters of a text that was read aloud.
    pub prompt_tokens: u32,
    /// Of the prompt, not computed again.
    pub cached_tokens: u32,
    /// Thinking included.
    pub completion_tokens: u32,
    pub reasoning_tokens: u32,
    /// Sound that was made, or heard.
    pub audio_ms: f64,
    pub outcome: Outcome,
    /// The error's code, where one ended it.
    pub error: Option<String>,
    /// Targets that were asked before and failed, how, and after how long.
    pub attempts: Option<String>,
    /// Of the time to the first token, what was hob's own, where other servers answered.
    pub overhead_ms: Option<f64>,
    /// Thinking was switched off, and came all the same.
    pub thought_anyway: bool,
    /// Tokens were counted by hob, because the target did not say.
    pub counted_here: bool,
}

/// How a request ended.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Outcome {
    Complete,
    Failed,
    /// The client left, or was cut off when the server stopped.
    #[default]
    Abandoned,
}

impl Outcome {
    pub const ALL: [Outcome; 3] = [Outcome::Complete, Outcome::Failed, Outcome::Abandoned];

    pub fn name(self) -> &'static str {
        match self {
            Outcome::Complete => "complete",
            Outcome::Failed => "failed",
            Outcome::Abandoned => "abandoned",
        }
    }
}

/// Which rows are meant.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Period {
    /// None: from the first on.
    pub since_unix_ms: Option<u64>,
    /// The latest so many; none: all.
    pub rows_max: Option<u32>,
}

impl RequestRecord {
    /// What it counts against its key's tokens of the day.
    pub fn tokens(&self) -> u64 {
        u64::from(self.prompt_tokens) + u64::from(self.completion_tokens)
    }

    /// Tokens per second of an answer after its first, where there were two.
    pub fn tokens_per_s(&self) -> Option<f64> {
        let seconds = Duration::try_from_secs_f64(self.predicted_ms? / 1e3).ok()?.as_secs_f64();
        let after_first = self.completion_tokens.checked_sub(1).filter(|tokens| *tokens > 0)?;
        (seconds > 0.0).then(|| f64::from(after_first) / seconds)
    }
}
