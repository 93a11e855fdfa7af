//! What a scripted server really did, by its own clock: the truth that a client is held to.
//! Bounded, because a campaign asks more often than anybody reads.

use std::collections::VecDeque;
use std::sync::{Mutex, PoisonError};

use serde::{Deserialize, Serialize};

/// Requests that are remembered.
const TRUTHS_MAX: usize = 16_384;

/// One request, in microseconds after it was read to its end.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Truth {
    /// What the client called it in `x-request-id`.
    pub id: String,
    pub path: String,
    pub prompt_tokens: u32,
    pub cached_tokens: Option<u32>,
    /// What had to be waited for before the answer was begun.
    pub waited_us: f64,
    pub writes: Vec<Written>,
}

/// What was written at once.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Written {
    /// When the write began.
    pub at_us: f64,
    /// When it should have begun.
    pub due_us: f64,
    /// Tokens in it, of both kinds.
    pub tokens: u32,
    pub bytes: usize,
}

impl Truth {
    /// Of the first token, or the first sound.
    pub fn first_us(&self) -> Option<f64> {
        self.telling().next().map(|write| write.at_us)
    }

    /// Writes that have tokens in them; of sound, all.
    pub fn telling(&self) -> impl Iterator<Item = &Written> {
        let has_tokens = self.writes.iter().any(|write| write.tokens > 0);
        self.writes.iter().filter(move |write| !has_tokens || write.tokens > 0)
    }
}

/// The latest requests, oldest first.
#[derive(Debug, Default)]
pub(super) struct Truths(Mutex<VecDeque<Truth>>);

impl Truths {
    pub(super) fn add(&self, truth: Truth) {
        let mut truths = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if truths.len() == TRUTHS_MAX {
            truths.pop_front();
        }
        truths.push_back(truth);
    }

    pub(super) fn all(&self) -> Vec<Truth> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).iter().cloned().collect()
    }

    pub(super) fn reset(&self) {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).clear();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_first_write_that_tells() {
        let write = |at_us, tokens| Written { at_us, due_us: at_us, tokens, bytes: 1 };
        let truth = |writes: &[Written]| Truth { writes: writes.to_vec(), ..Truth::default() };
        assert_eq!(truth(&[write(1.0, 0), write(2.0, 1)]).first_us(), Some(2.0));
        assert_eq!(truth(&[write(1.0, 0), write(2.0, 0)]).first_us(), Some(1.0));
        assert_eq!(truth(&[]).first_us(), None);
    }

    #[test]
    fn only_the_latest_are_remembered() {
        let truths = Truths::default();
        for id in 0..=TRUTHS_MAX {
            truths.add(Truth { id: id.to_string(), ..Truth::default() });
        }
        let kept = truths.all();
        assert_eq!((kept.len(), kept[0].id.as_str()), (TRUTHS_MAX, "1"));
        truths.reset();
        assert_eq!(truths.all(), []);
    }
}
