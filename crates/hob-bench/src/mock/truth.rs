//! What the mock server really sent and when, by its own clock. Clients are compared with it.
//! Only the latest requests are kept, because a campaign sends more than a test reads.

use std::collections::VecDeque;
use std::sync::Mutex;

use hob_core::locked;
use serde::{Deserialize, Serialize};

/// Number of requests that are kept.
const TRUTHS_MAX: usize = 16_384;

/// One request. Times are microseconds after the request was read to its end.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Truth {
    /// The client's `x-request-id`.
    pub id: String,
    pub path: String,
    pub prompt_tokens: u32,
    pub cached_tokens: Option<u32>,
    /// Time that the request waited for a slot.
    pub waited_us: f64,
    pub writes: Vec<MockWrite>,
}

/// One write.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct MockWrite {
    /// When the write began.
    pub at_us: f64,
    /// When the write was due.
    pub due_us: f64,
    /// Tokens in it, thinking included.
    pub tokens: u32,
    pub bytes: usize,
}

impl Truth {
    /// When the first token or the first sound was written.
    pub fn first_us(&self) -> Option<f64> {
        self.with_content().next().map(|write| write.at_us)
    }

    /// Writes with tokens in them; for sound, all writes.
    pub fn with_content(&self) -> impl Iterator<Item = &MockWrite> {
        let has_tokens = self.writes.iter().any(|write| write.tokens > 0);
        self.writes.iter().filter(move |write| !has_tokens || write.tokens > 0)
    }
}

/// The latest requests, oldest first.
#[derive(Debug, Default)]
pub(super) struct Truths(Mutex<VecDeque<Truth>>);

impl Truths {
    pub(super) fn add(&self, truth: Truth) {
        let mut truths = locked(&self.0);
        if truths.len() == TRUTHS_MAX {
            truths.pop_front();
        }
        truths.push_back(truth);
    }

    pub(super) fn all(&self) -> Vec<Truth> {
        locked(&self.0).iter().cloned().collect()
    }

    pub(super) fn reset(&self) {
        locked(&self.0).clear();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_first_write_with_tokens_counts() {
        let write = |at_us, tokens| MockWrite { at_us, due_us: at_us, tokens, bytes: 1 };
        let truth = |writes: &[MockWrite]| Truth { writes: writes.to_vec(), ..Truth::default() };
        assert_eq!(truth(&[write(1.0, 0), write(2.0, 1)]).first_us(), Some(2.0));
        assert_eq!(truth(&[write(1.0, 0), write(2.0, 0)]).first_us(), Some(1.0));
        assert_eq!(truth(&[]).first_us(), None);
    }

    #[test]
    fn only_the_latest_requests_are_kept() {
        let truths = Truths::default();
        for id in 0..=TRUTHS_MAX {
            truths.add(Truth { id: id.to_string(), ..Truth::default() });
        }
        let all = truths.all();
        assert_eq!((all.len(), all[0].id.as_str()), (TRUTHS_MAX, "1"));
        truths.reset();
        assert_eq!(truths.all(), []);
    }
}
