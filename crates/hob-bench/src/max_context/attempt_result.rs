//! What one attempt with a context showed: whether it worked, with which memory, and how fast.
//! The search decides by it what is tried next.

use crate::record::AttemptResult;

/// Memory that the server used, and memory that was free.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ServerMemory {
    pub taken_bytes: u64,
    pub left_bytes: u64,
}

/// The result of one attempt.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct AttemptResultAt {
    pub ctx: u64,
    pub result: AttemptResult,
    /// The longest context that the server says it can have.
    pub ctx_max: Option<u64>,
    pub memory: Option<ServerMemory>,
    pub decode_tok_s: Option<f64>,
}

#[cfg(test)]
impl AttemptResultAt {
    /// A result of which nothing else is known.
    pub fn new(ctx: u64, result: AttemptResult) -> AttemptResultAt {
        AttemptResultAt { ctx, result, ctx_max: None, memory: None, decode_tok_s: None }
    }
}
