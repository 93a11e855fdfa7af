//! The limit of an answer for a key with a daily budget. Models of this hob know `key_tokens_max` and keep to it.
//! Other servers know `tokens_max` only, and many refuse one that is longer than their longest answer.

use super::ChatRequest;

/// The longest answer of a hosted model is hardly ever shorter. A key with more tokens left sets no limit of its own.
const LIMIT_MAX: u32 = 4096;

impl ChatRequest {
    /// The `tokens_max` for an answer that may have `wanted` tokens, within the limit of the key.
    pub fn limit(&self, wanted: Option<u32>) -> Option<u32> {
        let holds = |left: &u32| wanted.is_some() || *left <= LIMIT_MAX;
        wanted.into_iter().chain(self.key_tokens_max.filter(holds)).min()
    }
}
