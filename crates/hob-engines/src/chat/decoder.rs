//! The seam to an engine that computes tokens: batches in, logits out, and a cache per slot.
//! The scheduler and the worker know only this, so a toy in tests is as good as llama.cpp.

/// One token of a batch.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct BatchToken {
    pub id: u32,
    /// Position in its sequence, from 0. The cache holds all earlier positions.
    pub position: u32,
    pub slot: usize,
    /// Whether [`Decoder::logits`] will be asked for what comes after it.
    pub wants_logits: bool,
}

/// The engine's own words. What the batch's sequences have in the cache is then unknown.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{0}")]
pub struct DecodeFailed(pub String);

/// An engine that computes sequences side by side.
pub trait Decoder {
    /// Sequences that it holds.
    fn parallel(&self) -> usize;

    /// Tokens that each of them may hold.
    fn context_tokens(&self) -> u32;

    /// Tokens of one batch.
    fn batch_tokens(&self) -> usize;

    /// Computes the batch, whose tokens are sorted by slot and, within one, by position. Returns when
    /// that is done.
    ///
    /// # Errors
    /// [`DecodeFailed`]
    fn decode(&mut self, tokens: &[BatchToken]) -> Result<(), DecodeFailed>;

    /// One logit for each token of the vocabulary, for what follows the `index`-th token of the
    /// last batch.
    fn logits(&self, index: usize) -> &[f32];

    /// Forgets all but a slot's first `tokens`; returns how many are left, which may be none.
    fn truncate(&mut self, slot: usize, tokens: usize) -> usize;

    /// Gives slot `to` the first `tokens` of slot `from` instead of its own; returns how many it
    /// has now, which may be none.
    fn copy(&mut self, from: usize, to: usize, tokens: usize) -> usize;
}
