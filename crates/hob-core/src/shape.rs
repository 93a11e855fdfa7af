//! The shape of a language model: what of its header decides how much memory it takes.
//! Filled by whoever reads headers; nothing here knows a file format.

use crate::weights::Weights;

/// Sizes are in elements, not bytes, unless their names say so.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ModelShape {
    /// As the header says: `llama`, `qwen3`, …
    pub architecture: String,
    /// Those that decode, first to last; layers that only predict further tokens are left out.
    pub layers: Vec<LayerShape>,
    pub embedding_length: u32,
    /// The widest that a token passes through in one layer; of experts, those that are used together.
    pub feed_forward_length: u32,
    pub vocab_size: u32,
    /// Tokens that the model was trained with.
    pub trained_context_tokens: u32,
    /// 0 for models without.
    pub experts: u32,
    /// Of these, how many a token passes through.
    pub experts_used: u32,
    pub weights: Weights,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct LayerShape {
    /// That ask; 0 where there is no attention.
    pub heads: u32,
    /// None where nothing is kept per token, or another layer's is used.
    pub kv: Option<KvShape>,
    /// Only so many tokens back are looked at; none: all.
    pub window_tokens: Option<u32>,
    /// Kept per sequence however long it gets, by recurrent layers.
    pub state_bytes: u64,
    /// What a layer does that does not only look back.
    pub recurrence: Option<Recurrence>,
}

/// By what they cost beside the weights that they read.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Recurrence {
    /// A matrix is carried on: gated delta nets, Mamba, RWKV and their like. Many small operations a token.
    Matrix,
    /// The last few inputs are weighed: hardly more than a layer costs anyway.
    ShortConvolution,
}

/// What attention keeps of one token in one layer.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct KvShape {
    pub heads: u32,
    pub key_length: u32,
    /// 0 where values are computed from the keys.
    pub value_length: u32,
}

impl KvShape {
    /// Numbers of one token.
    pub fn elements(self) -> u64 {
        u64::from(self.heads) * (u64::from(self.key_length) + u64::from(self.value_length))
    }
}

impl ModelShape {
    /// How much of the experts one token passes through, 0 to 1.
    pub fn experts_share(&self) -> f64 {
        if self.experts == 0 { 1.0 } else { f64::from(self.experts_used) / f64::from(self.experts) }
    }

    /// Of one sequence, whatever its length.
    pub fn state_bytes(&self) -> u64 {
        self.layers.iter().fold(0, |sum, layer| sum.saturating_add(layer.state_bytes))
    }

    /// What is kept per token, layer by layer.
    pub(crate) fn kept(&self) -> impl Iterator<Item = (KvShape, Option<u32>)> {
        self.layers.iter().filter_map(|layer| layer.kv.map(|kv| (kv, layer.window_tokens)))
    }
}
