//! A failed attempt, as traces and errors report it.
//! Names and numbers for logs; the message is for the request's own client.

use std::time::Duration;

/// An attempt that failed.
#[derive(Clone, Debug, PartialEq)]
pub struct FailedAttempt {
    pub target: String,
    /// The failure in one word.
    pub kind: &'static str,
    /// For people.
    pub message: String,
    pub took: Duration,
}

impl FailedAttempt {
    /// `gpu/qwen3=overloaded 12 ms`: without the target's own words.
    pub fn summary(&self) -> String {
        format!("{}={} {} ms", self.target, self.kind, self.took.as_millis())
    }
}
