//! Counts the tokens that penalties need.
//! `sampler.rs` chooses the next token.

use std::collections::{HashMap, VecDeque};

/// Number of recent tokens that the repeat penalty counts.
const RECENT_MAX: usize = 64;

/// The tokens of a conversation that penalties count.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct History {
    /// The last tokens of prompt and answer.
    recent: VecDeque<u32>,
    /// How often the answer contains each token.
    counts: HashMap<u32, u32>,
}

impl History {
    /// The history before the answer begins.
    pub fn after_prompt(prompt: &[u32]) -> History {
        let recent = prompt[prompt.len().saturating_sub(RECENT_MAX)..].iter().copied().collect();
        History { recent, counts: HashMap::new() }
    }

    /// Adds a token of the answer.
    pub fn push(&mut self, token: u32) {
        if self.recent.len() == RECENT_MAX {
            self.recent.pop_front();
        }
        self.recent.push_back(token);
        *self.counts.entry(token).or_insert(0) += 1;
    }

    /// The recent tokens, each once.
    pub(super) fn for_each_recent(&self, mut visit: impl FnMut(u32)) {
        for (at, &token) in self.recent.iter().enumerate() {
            if !self.recent.iter().take(at).any(|&earlier| earlier == token) {
                visit(token);
            }
        }
    }

    pub(super) fn counts(&self) -> impl Iterator<Item = (u32, u32)> {
        self.counts.iter().map(|(&token, &times)| (token, times))
    }
}
