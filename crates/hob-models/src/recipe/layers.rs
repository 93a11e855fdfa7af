//! The tensors of a layer by its kind, with their dimensions, row length first.
//! Follows the loaders in llama.cpp b11434; checked against published numbers of parameters.

use crate::gguf::keys::Keys;
use crate::gguf::{Gguf, GgufError, LAYERS_MAX, LENGTH_MAX, VOCABULARY_MAX};

const COUNT_MAX: u32 = 1 << 14;

/// One matrix, or one for each expert.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Matrix {
    pub(super) name: String,
    pub(super) dims: Vec<u64>,
}

fn matrix(name: String, row: u64, rows: u64) -> Matrix {
    Matrix { name, dims: vec![row, rows] }
}

/// Dimensions that all layers share.
struct Widths {
    embedding: u64,
    heads: Vec<u64>,
    kv_heads: Vec<u64>,
    key: u64,
    value: u64,
    feed_forward: Vec<u64>,
    experts: u64,
    expert_feed_forward: u64,
    shared_feed_forward: u64,
    dense_layers: u64,
    /// The query has twice the length, for a gate.
    has_query_gate: bool,
    /// Per layer: whether it slides and has heads of another length. Otherwise all `false`.
    slides: Vec<bool>,
    sliding_key: u64,
    /// Full layers use their keys as values.
    full_values_are_keys: bool,
    /// Experts are added to the dense feed-forward, and do not replace it.
    adds_to_dense: bool,
    /// Length of each layer's own token embedding; 0 without one.
    layer_input: u64,
}

/// All matrices of a model.
///
/// # Errors
/// A necessary number is missing or impossible.
pub(super) fn tensors(gguf: &Gguf, is_tied: bool) -> Result<Vec<Matrix>, GgufError> {
    let keys = Keys { gguf, architecture: gguf.architecture()? };
    let layers = keys.required("block_count", LAYERS_MAX)?;
    let vocabulary = u64::from(keys.required("vocab_size", VOCABULARY_MAX)?);
    let widths = Widths::read(&keys, layers as usize)?;
    let mut tensors = vec![matrix("token_embd.weight".to_owned(), widths.embedding, vocabulary)];
    if !is_tied {
        tensors.push(matrix("output.weight".to_owned(), widths.embedding, vocabulary));
    }
    if widths.layer_input > 0 {
        let all = widths.layer_input * u64::from(layers);
        tensors.push(matrix("per_layer_token_embd.weight".to_owned(), all, vocabulary));
        tensors.push(matrix("per_layer_model_proj.weight".to_owned(), widths.embedding, all));
    }
    let recurrent = gguf.recurrent_layers()?;
    for (layer, is_recurrent) in recurrent.into_iter().enumerate() {
        let name = |tensor: &str| format!("blk.{layer}.{tensor}.weight");
        match is_recurrent {
            true => tensors.extend(recurrence(&keys, &widths, name)?),
            false => tensors.extend(attention(&keys, &widths, layer, name)?),
        }
        tensors.extend(feed_forward(&widths, layer, name));
        if widths.layer_input > 0 {
            tensors.push(matrix(name("inp_gate"), widths.embedding, widths.layer_input));
            tensors.push(matrix(name("proj"), widths.layer_input, widths.embedding));
        }
    }
    Ok(tensors)
}

impl Widths {
    fn read(keys: &Keys<'_>, layers: usize) -> Result<Widths, GgufError> {
        let each = |name| -> Result<Option<Vec<u64>>, GgufError> {
            let numbers = keys.per_layer(name, layers, LENGTH_MAX)?;
            Ok(numbers.map(|numbers| numbers.into_iter().map(u64::from).collect()))
        };
        let number =
            |name| Ok::<u64, GgufError>(keys.optional(name, LENGTH_MAX)?.unwrap_or(0).into());
        let embedding = u64::from(keys.required("embedding_length", LENGTH_MAX)?);
        let heads = each("attention.head_count")?.unwrap_or_else(|| vec![0; layers]);
        let widest = heads.iter().copied().max().unwrap_or(0);
        let head_length = embedding.checked_div(widest).unwrap_or(0);
        let length = |written: u64| if written == 0 { head_length } else { written };
        let feed_forward = each("feed_forward_length")?.unwrap_or_else(|| vec![0; layers]);
        let expert_feed_forward = match number("expert_feed_forward_length")? {
            0 => feed_forward.iter().copied().max().unwrap_or(0),
            said => said,
        };
        const PATTERN: &str = "attention.sliding_window_pattern";
        let sliding_key = number("attention.key_length_swa")?;
        let slides = match sliding_key > 0 && keys.has_list(PATTERN) {
            true => keys.per_layer(PATTERN, layers, 1)?.unwrap_or_default(),
            false => vec![0; layers],
        };
        let is_gemma4 = keys.architecture == "gemma4";
        let shared = number("expert_shared_feed_forward_length")?;
        let shared_count = number("expert_shared_count")?;
        Ok(Widths {
            kv_heads: each("attention.head_count_kv")?.unwrap_or_else(|| heads.clone()),
            key: length(number("attention.key_length")?),
            value: length(number("attention.value_length")?),
            experts: keys.optional("expert_count", COUNT_MAX)?.unwrap_or(0).into(),
            shared_feed_forward: shared.max(shared_count.saturating_mul(expert_feed_forward)),
            dense_layers: number("leading_dense_block_count")?,
            has_query_gate: matches!(keys.architecture, "qwen3next" | "qwen35" | "qwen35moe"),
            slides: slides.into_iter().map(|flag| flag == 1).collect(),
            sliding_key,
            full_values_are_keys: is_gemma4 && number("attention.shared_kv_layers")? == 0,
            adds_to_dense: is_gemma4,
            layer_input: number("embedding_length_per_layer_input")?,
            embedding,
            heads,
            feed_forward,
            expert_feed_forward,
        })
    }
}

fn attention(
    keys: &Keys<'_>,
    widths: &Widths,
    layer: usize,
    name: impl Fn(&str) -> String,
) -> Result<Vec<Matrix>, GgufError> {
    let Widths { embedding, sliding_key, .. } = *widths;
    let slides = widths.slides.get(layer).is_some_and(|slides| *slides);
    let (key, value) = if slides { (sliding_key, sliding_key) } else { (widths.key, widths.value) };
    let (heads, kv_heads) = (widths.heads[layer], widths.kv_heads[layer]);
    if keys.optional("attention.kv_lora_rank", LENGTH_MAX)?.is_some_and(|rank| rank > 0) {
        return compressed(keys, embedding, heads, name);
    }
    let gate = if widths.has_query_gate { 2 } else { 1 };
    let mut tensors = vec![
        matrix(name("attn_q"), embedding, gate * heads * key),
        matrix(name("attn_k"), embedding, kv_heads * key),
        matrix(name("attn_output"), heads * value, embedding),
    ];
    if slides || !widths.full_values_are_keys {
        tensors.push(matrix(name("attn_v"), embedding, kv_heads * value));
    }
    Ok(tensors)
}

/// Multi-head latent attention.
fn compressed(
    keys: &Keys<'_>,
    embedding: u64,
    heads: u64,
    name: impl Fn(&str) -> String,
) -> Result<Vec<Matrix>, GgufError> {
    let number = |name| Ok::<u64, GgufError>(keys.required(name, LENGTH_MAX)?.into());
    let rank = number("attention.kv_lora_rank")?;
    let rope = number("rope.dimension_count")?;
    let key = number("attention.key_length_mla")?;
    let value = number("attention.value_length_mla")?;
    let mut tensors = match keys.optional("attention.q_lora_rank", LENGTH_MAX)?.unwrap_or(0) {
        0 => vec![matrix(name("attn_q"), embedding, heads * key)],
        rank => vec![
            matrix(name("attn_q_a"), embedding, rank.into()),
            matrix(name("attn_q_b"), rank.into(), heads * key),
        ],
    };
    tensors.extend([
        matrix(name("attn_kv_a_mqa"), embedding, rank + rope),
        matrix(name("attn_kv_b"), rank, heads * (key.saturating_sub(rope) + value)),
        matrix(name("attn_output"), heads * value, embedding),
    ]);
    Ok(tensors)
}

/// Short convolution, gated delta net, or Mamba.
fn recurrence(
    keys: &Keys<'_>,
    widths: &Widths,
    name: impl Fn(&str) -> String,
) -> Result<Vec<Matrix>, GgufError> {
    let embedding = widths.embedding;
    let number = |name| Ok::<u64, GgufError>(keys.optional(name, LENGTH_MAX)?.unwrap_or(0).into());
    let cells = number("shortconv.l_cache")?;
    if cells > 0 {
        return Ok(vec![
            matrix(name("shortconv.in_proj"), embedding, 3 * embedding),
            matrix(name("shortconv.conv"), cells, embedding),
            matrix(name("shortconv.out_proj"), embedding, embedding),
        ]);
    }
    let inner = u64::from(keys.required("ssm.inner_size", LENGTH_MAX)?);
    let state = u64::from(keys.required("ssm.state_size", LENGTH_MAX)?);
    let (groups, steps) = (number("ssm.group_count")?, number("ssm.time_step_rank")?);
    let kernel = number("ssm.conv_kernel")?;
    let mixed = inner + 2 * groups * state;
    if widths.has_query_gate {
        return Ok(vec![
            matrix(name("attn_qkv"), embedding, mixed),
            matrix(name("attn_gate"), embedding, inner),
            matrix(name("ssm_beta"), embedding, steps),
            matrix(name("ssm_alpha"), embedding, steps),
            matrix(name("ssm_conv1d"), kernel, mixed),
            matrix(name("ssm_out"), inner, embedding),
        ]);
    }
    Ok(vec![
        matrix(name("ssm_in"), embedding, inner + mixed + steps),
        matrix(name("ssm_conv1d"), kernel, mixed),
        matrix(name("ssm_out"), inner, embedding),
    ])
}

fn feed_forward(widths: &Widths, layer: usize, name: impl Fn(&str) -> String) -> Vec<Matrix> {
    let Widths { embedding, experts, expert_feed_forward, shared_feed_forward, .. } = *widths;
    let gated = |suffix: &str, length: u64| {
        let tensor = |part: &str| name(&format!("ffn_{part}{suffix}"));
        [
            matrix(tensor("gate"), embedding, length),
            matrix(tensor("up"), embedding, length),
            matrix(tensor("down"), length, embedding),
        ]
    };
    let dense = || match widths.feed_forward[layer] {
        0 => Vec::new(),
        length => gated("", length).into(),
    };
    if experts == 0 || (layer as u64) < widths.dense_layers {
        return dense();
    }
    let mut tensors: Vec<Matrix> = gated("_exps", expert_feed_forward).into();
    tensors.iter_mut().for_each(|tensor| tensor.dims.push(experts));
    if widths.adds_to_dense {
        tensors.extend(dense());
    }
    tensors.push(matrix(name("ffn_gate_inp"), embedding, experts));
    if shared_feed_forward > 0 {
        tensors.extend(gated("_shexp", shared_feed_forward));
    }
    tensors
}
