//! The trait of an engine that computes tokens: batches in, logits out, and a cache for each slot.
//! Scheduler and worker use only this trait, so tests can replace llama.cpp by a small engine.

/// One token of a batch.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct BatchToken {
    pub id: u32,
    /// Position in its sequence, from 0. The cache holds all earlier positions.
    pub position: u32,
    pub slot: usize,
    /// Whether [`Decoder::logits`] will be called for the position after it.
    pub wants_logits: bool,
}

/// The engine's error message. Afterwards the cache contents of these sequences are undefined.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{0}")]
pub struct DecodeFailed(pub String);

/// An engine that computes several sequences in one batch.
pub trait Decoder {
    /// Number of slots.
    fn parallel(&self) -> usize;

    /// Maximum tokens of each slot.
    fn context_tokens(&self) -> u32;

    /// Maximum tokens of one batch.
    fn batch_tokens(&self) -> usize;

    /// Computes the batch, whose tokens are sorted by slot and, within one, by position. Blocks until the
    /// batch is computed.
    ///
    /// # Errors
    /// [`DecodeFailed`]
    fn decode(&mut self, tokens: &[BatchToken]) -> Result<(), DecodeFailed>;

    /// Whether all steps fail after one that failed. Another process must then take this one's place.
    fn is_broken(&self) -> bool {
        false
    }

    /// One logit for each token of the vocabulary, for the position after token `index` of the last batch.
    fn logits(&self, index: usize) -> &[f32];

    /// Keeps only the first `tokens` of a slot, and returns how many are left. It may be 0.
    fn truncate(&mut self, slot: usize, tokens: usize) -> usize;

    /// Whether [`Decoder::truncate`] always keeps the given number of tokens.
    fn can_truncate(&self) -> bool;

    /// Replaces slot `to` by the first `tokens` of slot `from`, and returns how many it has now. It may be 0.
    fn copy(&mut self, from: usize, to: usize, tokens: usize) -> usize;
}
