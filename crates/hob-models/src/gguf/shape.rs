//! Derives the model's dimensions from its metadata, layer by layer, as llama.cpp b11434 does.
//! A key that only reduces memory may be missing: the estimate is then too high, never too low.

use hob_core::ModelShape;
use hob_core::fit::{Format, Location, Model};
use hob_core::machine::Basis;
use hob_core::shape::{KvShape, LayerShape, Recurrence};
use hob_core::weights::{Quant, Weights};

use super::keys::Keys;
use super::value::Value;
use super::{Gguf, GgufError, architecture};
use crate::weights::{Stored, gguf_task, grouped};

/// The engine's limits; beyond them it ends its process.
pub(crate) const LAYERS_MAX: u32 = 512;
const EXPERTS_MAX: u32 = 1_024;
/// Far above all models, and far below the point where products overflow.
const HEADS_MAX: u32 = 1 << 14;
pub(crate) const LENGTH_MAX: u32 = 1 << 20;
pub(crate) const VOCABULARY_MAX: u32 = 1 << 24;
const CONTEXT_MAX: u32 = 1 << 30;

impl Gguf {
    /// Derives the dimensions.
    ///
    /// # Errors
    /// The engine does not know the architecture, the file is only a part of a model, or a number is missing or
    /// impossible.
    pub fn shape(&self) -> Result<ModelShape, GgufError> {
        self.architecture()?;
        self.check_whole()?;
        self.shape_around(|layers| self.weights(layers))
    }

    /// The shape with weights that the caller makes. `weights` gets the number of layers that decode.
    pub(crate) fn shape_around(
        &self,
        weights: impl FnOnce(u32) -> Weights,
    ) -> Result<ModelShape, GgufError> {
        let architecture = self.architecture()?;
        let keys = Keys { gguf: self, architecture };
        let blocks = keys.required("block_count", LAYERS_MAX)?;
        // Layers that predict further tokens do not decode.
        let further = keys.optional("nextn_predict_layers", blocks - 1)?.unwrap_or(0);
        let embedding_length = keys.required("embedding_length", LENGTH_MAX)?;
        let experts = keys.optional("expert_count", EXPERTS_MAX)?.unwrap_or(0);
        let experts_used = widest(&keys, "expert_used_count", blocks, experts)?;
        let layers = Layers::read(&keys, blocks, embedding_length)?;
        Ok(ModelShape {
            architecture: architecture.to_owned(),
            layers: (0..blocks - further).map(|index| layers.layer(index as usize)).collect(),
            embedding_length,
            feed_forward_length: feed_forward_length(&keys, blocks, experts_used)?,
            vocab_size: self.vocab_size(&keys)?,
            trained_context_tokens: keys.required("context_length", CONTEXT_MAX)?,
            experts,
            experts_used,
            weights: weights(blocks - further),
        })
    }

    /// The model for an assessment.
    ///
    /// # Errors
    /// See [`Gguf::shape`].
    pub fn model(&self, name: &str) -> Result<Model, GgufError> {
        Ok(Model {
            name: name.to_owned(),
            format: Format::Gguf,
            quant: self.quantization().to_owned(),
            shape: self.shape()?,
            basis: Basis::Measured,
            location: Location::default(),
        })
    }

    /// A number below the architecture's name; 0 if absent.
    pub(crate) fn architecture_number(&self, name: &str) -> Result<u64, GgufError> {
        let keys = Keys { gguf: self, architecture: self.architecture()? };
        Ok(keys.optional(name, LENGTH_MAX)?.unwrap_or(0).into())
    }

    /// For each layer, whether it is recurrent.
    pub(crate) fn recurrent_layers(&self) -> Result<Vec<bool>, GgufError> {
        let keys = Keys { gguf: self, architecture: self.architecture()? };
        let count = keys.required("block_count", LAYERS_MAX)? as usize;
        let heads = keys.per_layer("attention.head_count", count, HEADS_MAX)?;
        let heads = heads.unwrap_or_else(|| vec![0; count]);
        let kv_heads = keys.per_layer("attention.head_count_kv", count, HEADS_MAX)?;
        recurrent(&keys, &kv_heads.unwrap_or(heads))
    }

    /// Name of the architecture.
    ///
    /// # Errors
    /// The header does not state it, or the engine does not know it.
    pub fn architecture(&self) -> Result<&'static str, GgufError> {
        const KEY: &str = "general.architecture";
        architecture::known(self.text(KEY).ok_or_else(|| GgufError::missing(KEY))?)
    }

    fn weights(&self, layers: u32) -> Weights {
        let stored = self.tensors().iter().map(|tensor| Stored {
            name: &tensor.name,
            quant: Quant(tensor.kind.name),
            elements: tensor.elements(),
            bytes: tensor.bytes,
            rows: tensor.dims.get(1).copied().unwrap_or(1),
        });
        grouped(stored, |name| gguf_task(name, layers))
    }

    fn check_whole(&self) -> Result<(), GgufError> {
        match self.number("split.count") {
            Some(count) if count > 1 => Err(GgufError::Split { count }),
            _ if self.tensors().is_empty() => Err(GgufError::NoWeights),
            _ => Ok(()),
        }
    }

    fn vocab_size(&self, keys: &Keys<'_>) -> Result<u32, GgufError> {
        const TOKENS: &str = "tokenizer.ggml.tokens";
        if let Some(size) = keys.optional("vocab_size", VOCABULARY_MAX)? {
            return Ok(size);
        }
        match self.value(TOKENS) {
            Some(Value::Texts { elements, .. }) if *elements <= VOCABULARY_MAX.into() => {
                Ok(*elements as u32)
            }
            Some(_) => Err(GgufError::wrong(TOKENS, "must be a list of texts")),
            None => Err(GgufError::missing(TOKENS)),
        }
    }
}

/// The largest value that a layer has for a key; 0 if the key is absent.
fn widest(keys: &Keys<'_>, name: &str, blocks: u32, max: u32) -> Result<u32, GgufError> {
    let lengths = keys.per_layer(name, blocks as usize, max)?;
    Ok(lengths.and_then(|lengths| lengths.into_iter().max()).unwrap_or(0))
}

/// Length of a dense layer, or of the experts that a token uses together.
fn feed_forward_length(keys: &Keys<'_>, blocks: u32, experts_used: u32) -> Result<u32, GgufError> {
    let dense = widest(keys, "feed_forward_length", blocks, LENGTH_MAX)?;
    let expert = widest(keys, "expert_feed_forward_length", blocks, LENGTH_MAX)?;
    let shared = widest(keys, "expert_shared_feed_forward_length", blocks, LENGTH_MAX)?;
    let shared_count = keys.optional("expert_shared_count", EXPERTS_MAX)?.unwrap_or(0);
    let expert = if expert == 0 { dense } else { expert };
    let together = expert.saturating_mul(experts_used.saturating_add(shared_count));
    Ok(dense.max(together.saturating_add(shared)))
}

/// What determines the KV cache of a layer.
struct Layers {
    heads: Vec<u32>,
    kv_heads: Vec<u32>,
    /// Key and value length of a head in layers with full attention.
    full: (u32, u32),
    /// The same in layers with a sliding window.
    windowed: (u32, u32),
    window_tokens: Vec<Option<u32>>,
    recurrent: Vec<bool>,
    recurrent_layers_attend: bool,
    state_bytes: u64,
    recurrence: Recurrence,
    /// This many layers from the first on have a cache of their own.
    with_kv: usize,
}

impl Layers {
    fn read(keys: &Keys<'_>, blocks: u32, embedding_length: u32) -> Result<Layers, GgufError> {
        let count = blocks as usize;
        let heads = keys.per_layer("attention.head_count", count, HEADS_MAX)?;
        let heads = heads.unwrap_or_else(|| vec![0; count]);
        let kv_heads = keys.per_layer("attention.head_count_kv", count, HEADS_MAX)?;
        let kv_heads = kv_heads.unwrap_or_else(|| heads.clone());
        let full = lengths(keys, embedding_length, heads.iter().copied().max().unwrap_or(0))?;
        let recurrent = recurrent(keys, &kv_heads)?;
        let shared = keys.optional("attention.shared_kv_layers", blocks)?.map(|n| blocks - n);
        let from_start = architecture::layers_with_kv(keys.architecture);
        Ok(Layers {
            windowed: windowed_lengths(keys, full)?,
            window_tokens: window_tokens(keys, count, &recurrent)?,
            recurrent_layers_attend: keys.architecture == "falcon-h1",
            state_bytes: state_bytes(keys, embedding_length, &heads, full.0)?,
            recurrence: recurrence(keys)?,
            with_kv: shared.map_or(from_start.map_or(count, |n| n as usize), |n| n as usize),
            heads,
            kv_heads,
            full,
            recurrent,
        })
    }

    fn layer(&self, index: usize) -> LayerShape {
        let recurrent = self.recurrent[index];
        let state_bytes = if recurrent { self.state_bytes } else { 0 };
        let recurrence = recurrent.then_some(self.recurrence);
        if recurrent && !self.recurrent_layers_attend {
            return LayerShape { state_bytes, recurrence, ..LayerShape::default() };
        }
        let window_tokens = self.window_tokens[index];
        let (key_length, value_length) =
            if window_tokens.is_some() { self.windowed } else { self.full };
        let kv = KvShape { heads: self.kv_heads[index], key_length, value_length };
        let keeps = kv.heads > 0 && index < self.with_kv;
        let (heads, kv) = (self.heads[index], keeps.then_some(kv));
        LayerShape { heads, kv, window_tokens, state_bytes, recurrence }
    }
}

/// Key and value length of a head. If both come from one compressed row, only that row is stored.
fn lengths(keys: &Keys<'_>, embedding_length: u32, heads: u32) -> Result<(u32, u32), GgufError> {
    let equal = embedding_length.checked_div(heads).unwrap_or(0);
    let length = |name| keys.optional(name, LENGTH_MAX);
    let key = length("attention.key_length")?.unwrap_or(equal);
    let value = length("attention.value_length")?.unwrap_or(equal);
    let compressed = length("attention.key_length_mla")?.unwrap_or(0) > 0
        && length("attention.value_length_mla")?.unwrap_or(0) > 0;
    Ok((key, if compressed { 0 } else { value }))
}

fn windowed_lengths(keys: &Keys<'_>, full: (u32, u32)) -> Result<(u32, u32), GgufError> {
    let key = keys.optional("attention.key_length_swa", LENGTH_MAX)?;
    let value = keys.optional("attention.value_length_swa", LENGTH_MAX)?;
    Ok((key.unwrap_or(full.0), value.unwrap_or(full.1)))
}

/// The sliding window of each layer; `None` for full attention.
fn window_tokens(
    keys: &Keys<'_>,
    layers: usize,
    recurrent: &[bool],
) -> Result<Vec<Option<u32>>, GgufError> {
    const PATTERN: &str = "attention.sliding_window_pattern";
    let windows = architecture::windows(keys.architecture, layers);
    let said = keys.optional("attention.sliding_window", CONTEXT_MAX)?;
    let usual = windows.and_then(|windows| windows.tokens);
    let Some(tokens) = said.or(usual).filter(|tokens| *tokens > 0) else {
        return Ok(vec![None; layers]);
    };
    let slides: Vec<bool> = if keys.has_list(PATTERN) {
        let flags = keys.per_layer(PATTERN, layers, 1)?.unwrap_or_default();
        flags.into_iter().map(|flag| flag == 1).collect()
    } else {
        let period = keys.optional(PATTERN, LAYERS_MAX)?.map(u64::from);
        let windows = windows.map(|windows| architecture::Windows {
            period: period.unwrap_or(windows.period),
            ..windows
        });
        (0..layers as u64).map(|layer| windows.is_some_and(|all| all.slides(layer))).collect()
    };
    let window = |(slides, recurrent): (bool, &bool)| (slides && !recurrent).then_some(tokens);
    Ok(slides.into_iter().zip(recurrent).map(window).collect())
}

/// For each layer, whether it is recurrent.
fn recurrent(keys: &Keys<'_>, kv_heads: &[u32]) -> Result<Vec<bool>, GgufError> {
    let architecture = keys.architecture;
    if architecture::is_recurrent(architecture) || architecture == "falcon-h1" {
        return Ok(vec![true; kv_heads.len()]);
    }
    if let Some(listed) = keys.per_layer("attention.recurrent_layers", kv_heads.len(), 1)? {
        return Ok(listed.into_iter().map(|flag| flag == 1).collect());
    }
    let Some(usual) = architecture::attention_interval(architecture) else {
        return Ok(kv_heads.iter().map(|heads| *heads == 0).collect());
    };
    let said = keys.optional("full_attention_interval", LAYERS_MAX)?;
    let interval = said.map_or(usual, u64::from);
    Ok((1..=kv_heads.len() as u64).map(|number| !number.is_multiple_of(interval)).collect())
}

fn recurrence(keys: &Keys<'_>) -> Result<Recurrence, GgufError> {
    let is_short = keys.optional("shortconv.l_cache", LENGTH_MAX)?.is_some_and(|cells| cells > 0);
    Ok(if is_short { Recurrence::ShortConvolution } else { Recurrence::Matrix })
}

/// State bytes of one recurrent layer for one sequence: last inputs and memory, in F32.
fn state_bytes(
    keys: &Keys<'_>,
    embedding_length: u32,
    heads: &[u32],
    key_length: u32,
) -> Result<u64, GgufError> {
    const F32_BYTES: u64 = 4;
    let length = |name| Ok(u64::from(keys.optional(name, LENGTH_MAX)?.unwrap_or(0)));
    let (embedding, key_length) = (u64::from(embedding_length), u64::from(key_length));
    let heads = u64::from(heads.iter().copied().max().unwrap_or(0));
    let kernel = length("ssm.conv_kernel")?;
    let (wkv, head) = (length("wkv.head_size")?, length("kda.head_dim")?);
    let short = length("shortconv.l_cache")?;
    let (inputs, memory) = if wkv > 0 {
        // RWKV.
        let shifts = keys.optional("token_shift_count", LAYERS_MAX)?.unwrap_or(2);
        (u64::from(shifts) * embedding, embedding * wkv)
    } else if short > 0 {
        // Short convolutions, as in LFM2.
        (embedding * (short - 1), 0)
    } else if head > 0 {
        // Kimi Delta Attention: a convolution for each of query, key and value.
        let kernel = if kernel == 0 { 4 } else { kernel };
        (3 * (kernel - 1) * heads * head, head.saturating_mul(head * heads))
    } else if keys.architecture == "minimax-01" {
        (0, key_length.saturating_mul(key_length * heads))
    } else {
        // State-space models, such as Mamba.
        let (inner, state) = (length("ssm.inner_size")?, length("ssm.state_size")?);
        let rows = inner + 2 * length("ssm.group_count")? * state;
        (kernel.saturating_sub(1).saturating_mul(rows), state * inner)
    };
    Ok(inputs.saturating_add(memory).saturating_mul(F32_BYTES))
}
