//! The end of a chat answer: why it ended, how many tokens it has, and how long its phases took.
//! Engines fill it in, readers of other servers too, and every API shows a part of it.

/// How an answer ended, and its tokens and times.
#[derive(Clone, Copy, Debug, PartialEq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
pub struct Completion {
    pub finish: FinishReason,
    pub usage: Usage,
    pub timings: Timings,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
pub enum FinishReason {
    /// The model ended the answer, or produced a stop text.
    Stop,
    /// The token limit was reached, or the context is full.
    Length,
    /// The answer ended with tool calls.
    ToolCalls,
    /// The server withheld the rest.
    ContentFilter,
    /// The budget of a team's run is used up, and the answer says what is missing.
    BudgetSpent(SpentBudget),
}

/// A limit of a team's run that was reached.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
pub struct SpentBudget {
    pub unit: BudgetUnit,
    pub limit: u64,
    /// When the limit was noticed; the last answer comes on top.
    pub used: u64,
}

crate::enum_table! {
    /// What a limit of a team's run counts.
    #[derive(Clone, Copy, Debug, PartialEq, Eq)]
    #[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
    pub enum BudgetUnit: name {
        /// Calls of models.
        Turns = "turns",
        Tokens = "tokens",
        Seconds = "seconds",
        /// Millionths of a US dollar.
        MicroUsd = "micro_usd",
    }
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
pub struct Usage {
    pub prompt_tokens: u32,
    /// Prompt tokens that were found in the cache.
    pub cached_tokens: u32,
    /// Includes thinking.
    pub completion_tokens: u32,
    pub reasoning_tokens: u32,
}

impl Usage {
    pub fn total_tokens(&self) -> u32 {
        self.prompt_tokens + self.completion_tokens
    }
}

/// How long each phase of an answer took, in milliseconds, and what made it faster.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
pub struct Timings {
    /// Waiting for the model to load.
    pub load_ms: f64,
    /// Waiting in the queue.
    pub queue_ms: f64,
    /// Computing the prompt, up to the first token.
    pub prompt_ms: f64,
    /// From the first token to the last.
    pub predicted_ms: f64,
    /// Guessed tokens that were computed together with another one.
    pub draft_tokens: u32,
    /// Guessed tokens that were right.
    pub accepted_tokens: u32,
}

impl Timings {
    /// Whether the server reported times. Many servers report none; measured times are never all zero.
    pub fn are_known(&self) -> bool {
        *self != Timings::default()
    }
}
