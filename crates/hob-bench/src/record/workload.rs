//! The workload: requests, their number, users at the same time, and the cache state.
//! Prompts are not stored, only a hash that identifies the set.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// What was requested.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct RecordedWorkload {
    /// `short_short`, `long_short`, `short_long`, `agentic`, or another workload
    pub shape: Option<String>,
    /// Version of the shapes
    pub version: Option<u32>,
    /// SHA-256 of all prompts
    pub prompts_sha256: Option<String>,
    pub prompt_tokens: Option<PromptTokens>,
    /// Limit of an answer, as sent
    pub max_tokens: Option<u64>,
    /// Whether the server was asked not to end an answer early, and every answer reached its limit
    pub ignore_eos: Option<bool>,
    pub temperature: Option<f64>,
    pub reasoning: Option<Reasoning>,
    /// What switched reasoning off, such as `reasoning_effort: none`
    #[serde(alias = "reasoning_lever")]
    pub reasoning_switch: Option<String>,
    /// Schemas of tools in each request
    pub tools: Option<u32>,
    /// Whether the next request waits for an answer
    pub r#loop: Option<Loop>,
    pub concurrency: Option<u32>,
    /// Requests per second, in an open loop
    pub rate: Option<f64>,
    /// When requests are due, in an open loop
    pub arrival: Option<Arrival>,
    /// Requests that count
    pub requests: Option<u64>,
    /// Requests before the first that counts
    pub warmup: Option<u64>,
    pub cache: Option<Cache>,
    /// Whether the server's own count proves it
    pub cache_verified: Option<bool>,
    pub connection: Option<Connection>,
}

impl RecordedWorkload {
    /// Users of which each waits for its answer before it sends its next request.
    pub fn closed_loop(users: usize, connection: Connection) -> RecordedWorkload {
        RecordedWorkload {
            r#loop: Some(Loop::Closed),
            concurrency: u32::try_from(users).ok(),
            connection: Some(connection),
            ..RecordedWorkload::default()
        }
    }
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct PromptTokens {
    /// Length that was asked for
    pub target: Option<u64>,
    pub min: Option<u64>,
    pub p50: Option<u64>,
    pub max: Option<u64>,
}

/// Whether the model thinks before it answers.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Reasoning {
    /// It thinks
    Enabled,
    /// It does not think
    Disabled,
    /// It was asked not to think, and thinks
    CannotDisable,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Loop {
    /// Each user waits for the answer before the next request
    Closed,
    /// Requests at a rate that does not depend on answers
    Open,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Arrival {
    /// At equal intervals
    Constant,
    /// At random: a Poisson process
    Poisson,
}

/// What the server knew of the prompts.
#[derive(
    Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize, JsonSchema,
)]
#[serde(rename_all = "snake_case")]
pub enum Cache {
    /// Nothing
    Cold,
    /// Nine tenths or more
    Cached,
    /// Partly cached or unknown; not comparable
    Mixed,
}

/// Whether requests share connections.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Connection {
    /// One connection for each user
    Reused,
    /// A new connection for each request
    Fresh,
}

/// Who counted the tokens; figures of different counts are not compared.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum CountSource {
    /// The server, in `usage`
    Usage,
    /// The engine, by token ids
    Engine,
    /// The client, with a tokenizer
    Tokenizer,
    /// One chunk was taken for one token
    Chunks,
}
