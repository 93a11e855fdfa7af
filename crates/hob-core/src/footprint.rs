//! Memory that a language model needs: weights, KV cache, and the buffers of one step.
//! The arithmetic follows llama.cpp b11434. Free memory is determined elsewhere.

mod compute;
mod kv;

use crate::ModelShape;
use crate::weights::Repack;

pub use kv::{KvType, KvTypes, UnknownKvType, Unsuitable};

/// The engine allocates the KV cache in multiples of this many tokens.
pub(crate) const CACHE_STEP_TOKENS: u32 = 256;
/// Name of the term for repacked copies, which replace mapped pages of the file.
pub(crate) const REPACKED: &str = "repacked weights";
/// Name of the term for what the process takes, and for what engine and driver take on a card.
pub(crate) const OVERHEAD: &str = "process and vocabulary";
/// Program, libraries, threads and allocator. Models with 49,152 and 262,144 tokens left 70 and 214 MB after
/// everything counted was subtracted: about 37 MB, and 700 bytes per token. Unoptimised builds are larger.
pub(crate) const PROCESS_BYTES: u64 = if cfg!(debug_assertions) { 72 << 20 } else { 40 << 20 };
/// Text and score of a token, and its entries in the vocabulary's tables.
const VOCABULARY_BYTES_PER_TOKEN: u64 = 720;
const LOGIT_BYTES: u64 = 4;

/// The engine's context settings.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ContextPlan {
    /// Tokens of all sequences together. Each has an equal part.
    pub context_tokens: u32,
    pub sequences: u32,
    pub windows: Windows,
    pub kv: KvTypes,
    /// Tokens of one step (`n_ubatch`).
    pub step_tokens: u32,
    /// Tokens of one step whose logits are computed (`n_outputs_max`).
    pub outputs_max: u32,
}

/// What sliding-window layers keep.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Windows {
    /// The window and the current step.
    Rolling,
    /// The whole context, so that a conversation can be continued from any point (`swa_full`).
    Whole,
}

/// Memory of a loaded model, term by term.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Footprint {
    /// Mapped from the file.
    pub weights_bytes: u64,
    /// Repacked copies for CPU kernels; an upper bound.
    pub repacked_bytes: u64,
    /// Grows with the context, except in sliding-window layers.
    pub kv_bytes: u64,
    /// State of recurrent layers.
    pub state_bytes: u64,
    /// Buffers of one step. Compared with seven allocations of the engine: 0 to 2 % too large.
    pub compute_bytes: u64,
    /// Process, vocabulary and logits: an estimate, rounded up.
    pub overhead_bytes: u64,
}

impl Footprint {
    /// `repack` decides which weights are kept a second time.
    ///
    /// # Errors
    /// The engine does not accept these KV types for this model.
    pub fn estimate(
        shape: &ModelShape,
        plan: &ContextPlan,
        repack: Repack,
    ) -> Result<Footprint, Unsuitable> {
        plan.kv.check(shape)?;
        Ok(Footprint {
            weights_bytes: shape.weights.bytes(),
            repacked_bytes: shape.weights.repacked_bytes(repack),
            kv_bytes: kv::bytes(shape, plan),
            state_bytes: product(&[shape.state_bytes(), plan.sequences.into()]),
            compute_bytes: compute::bytes(shape, plan),
            overhead_bytes: overhead_bytes(shape.vocab_size, plan.sequences),
        })
    }

    pub fn needed_bytes(&self) -> u64 {
        self.terms().iter().fold(0, |sum, (_, bytes)| sum.saturating_add(*bytes))
    }

    /// Terms with their names for people.
    pub fn terms(&self) -> [(&'static str, u64); 6] {
        [
            ("weights", self.weights_bytes),
            (REPACKED, self.repacked_bytes),
            ("KV cache", self.kv_bytes),
            ("recurrent state", self.state_bytes),
            ("computation", self.compute_bytes),
            (OVERHEAD, self.overhead_bytes),
        ]
    }
}

impl ContextPlan {
    /// One conversation at a time, with a KV cache in F16.
    pub fn single(context_tokens: u32) -> ContextPlan {
        ContextPlan {
            context_tokens,
            sequences: 1,
            windows: Windows::Rolling,
            kv: KvTypes::both(KvType::F16),
            step_tokens: 512,
            outputs_max: 1,
        }
    }

    /// Tokens of one sequence's cache.
    pub(crate) fn cells(&self) -> u32 {
        padded(self.context_tokens / self.sequences.max(1))
    }

    /// Cells of one sequence in a sliding-window layer: the window and the current step.
    fn window_cells(&self, window_tokens: u32) -> u32 {
        match self.windows {
            Windows::Rolling => {
                padded(window_tokens.saturating_add(self.step_tokens).min(self.cells()))
            }
            Windows::Whole => self.cells(),
        }
    }
}

/// Memory of the process that holds the vocabulary and the scores of each sequence.
pub(crate) fn overhead_bytes(vocab_size: u32, sequences: u32) -> u64 {
    let per_token = VOCABULARY_BYTES_PER_TOKEN + LOGIT_BYTES * u64::from(sequences);
    PROCESS_BYTES.saturating_add(product(&[vocab_size.into(), per_token]))
}

/// The largest context that `fits`: at most the context of the plan, in steps of the engine. `None` if not even one step
/// fits.
///
/// # Errors
/// Errors of `fits`.
pub fn longest_context<E>(
    plan: &ContextPlan,
    fits: impl Fn(&ContextPlan) -> Result<bool, E>,
) -> Result<Option<ContextPlan>, E> {
    let step = CACHE_STEP_TOKENS.saturating_mul(plan.sequences.max(1));
    let of_steps = |steps: u32| {
        let context_tokens = steps.saturating_mul(step).min(plan.context_tokens);
        ContextPlan { context_tokens, ..*plan }
    };
    let beyond = plan.context_tokens.div_ceil(step) + 1;
    let largest = find_largest(beyond, |steps| fits(&of_steps(steps)))?;
    Ok((largest > 0).then(|| of_steps(largest)))
}

/// Finds the largest number below `beyond` for which `fits` holds, by bisection: a formula would not do, because buffers do
/// not grow evenly. 0 if `fits` holds for no number.
pub(crate) fn find_largest<E>(
    mut beyond: u32,
    fits: impl Fn(u32) -> Result<bool, E>,
) -> Result<u32, E> {
    let mut largest = 0;
    while beyond - largest > 1 {
        let middle = largest + (beyond - largest) / 2;
        if fits(middle)? { largest = middle } else { beyond = middle }
    }
    Ok(largest)
}

fn padded(tokens: u32) -> u32 {
    tokens.max(1).checked_next_multiple_of(CACHE_STEP_TOKENS).unwrap_or(u32::MAX)
}

/// Saturates: a header may contain any number.
fn product(factors: &[u64]) -> u64 {
    factors.iter().fold(1, |product, factor| product.saturating_mul(*factor))
}

#[cfg(test)]
mod tests;
