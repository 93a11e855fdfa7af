//! The dimensions of a language model that decide how much memory it needs.
//! Header readers fill them in; this file knows no file format.

use crate::weights::Weights;

/// Sizes are in elements, unless a name ends in a unit.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ModelShape {
    /// Name of the architecture in the header, such as `llama` or `qwen3`.
    pub architecture: String,
    /// Layers that decode, first to last, without those that only predict further tokens.
    pub layers: Vec<LayerShape>,
    pub embedding_length: u32,
    /// The widest feed-forward of one layer. With experts: of those that a token uses together.
    pub feed_forward_length: u32,
    pub vocab_size: u32,
    /// Context length that the model was trained with, tokens.
    pub trained_context_tokens: u32,
    /// Number of experts; 0 for a dense model.
    pub experts: u32,
    /// Experts that each token uses.
    pub experts_used: u32,
    pub weights: Weights,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct LayerShape {
    /// Query heads; 0 without attention.
    pub heads: u32,
    /// `None` if the layer keeps no keys and values, or uses those of another layer.
    pub kv: Option<KvShape>,
    /// Sliding window, tokens; `None` for full attention.
    pub window_tokens: Option<u32>,
    /// Recurrent state of one sequence, of any length.
    pub state_bytes: u64,
    /// Kind of recurrence, if the layer has one.
    pub recurrence: Option<Recurrence>,
}

/// Kinds of recurrence, by their cost besides reading weights.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Recurrence {
    /// Carries a matrix: gated delta nets, Mamba, RWKV. Many small operations per token.
    Matrix,
    /// Weighs the last few inputs; costs hardly more than any layer.
    ShortConvolution,
}

/// What attention keeps of one token in one layer.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct KvShape {
    pub heads: u32,
    pub key_length: u32,
    /// 0 if values are computed from the keys.
    pub value_length: u32,
}

impl KvShape {
    /// Numbers kept for one token. Saturates: a header may contain any number.
    pub fn elements(self) -> u64 {
        let length = u64::from(self.key_length) + u64::from(self.value_length);
        u64::from(self.heads).saturating_mul(length)
    }
}

impl ModelShape {
    /// Share of the experts that one token uses, 0 to 1.
    pub fn experts_share(&self) -> f64 {
        if self.experts == 0 { 1.0 } else { f64::from(self.experts_used) / f64::from(self.experts) }
    }

    /// Recurrent state of one sequence, of any length.
    pub fn state_bytes(&self) -> u64 {
        self.layers.iter().fold(0, |sum, layer| sum.saturating_add(layer.state_bytes))
    }

    /// What each layer keeps per token, with its window.
    pub(crate) fn kv_layers(&self) -> impl Iterator<Item = (KvShape, Option<u32>)> {
        self.layers.iter().filter_map(|layer| layer.kv.map(|kv| (kv, layer.window_tokens)))
    }
}
