//! Reads dimensions from a Hugging Face `config.json` and gives them GGUF names.
//! Values in `text_config`, the language model's part, win over those outside.

mod families;
mod layers;

use serde_json::{Map, Value};

use self::families::Family;
use super::config_error::ConfigError;
use super::json_number::number;
use super::quantization::{self, Quantization};
use crate::recipe::Dimensions;

/// The parts of a configuration that decide how much memory a model needs.
#[derive(Clone, Debug, PartialEq)]
pub struct Config {
    pub dimensions: Dimensions,
    /// `None`: the weights are plain numbers of 16 or 32 bits.
    pub quantization: Option<Quantization>,
    /// Whether the embedding also computes the scores.
    pub is_tied: bool,
}

/// A GGUF key, and the configuration keys with the same meaning.
type KeyNames = (&'static str, &'static [&'static str]);

const REQUIRED: [KeyNames; 5] = [
    ("block_count", &["num_hidden_layers", "n_layer", "n_layers", "num_layers"]),
    ("context_length", &["max_position_embeddings", "n_positions", "max_seq_len", "seq_length"]),
    ("embedding_length", &["hidden_size", "n_embd", "d_model"]),
    ("vocab_size", &["vocab_size", "padded_vocab_size"]),
    ("attention.head_count", &["num_attention_heads", "n_head", "n_heads"]),
];

const OPTIONAL: [KeyNames; 10] = [
    ("attention.head_count_kv", &["num_key_value_heads", "multi_query_group_num"]),
    ("attention.key_length", &["head_dim", "attention_head_dim"]),
    ("attention.value_length", &["head_dim", "attention_head_dim"]),
    ("attention.shared_kv_layers", &["num_kv_shared_layers"]),
    ("attention.sliding_window_pattern", &["sliding_window_pattern", "_sliding_window_pattern"]),
    ("leading_dense_block_count", &["first_k_dense_replace", "num_dense_layers"]),
    ("shortconv.l_cache", &["conv_L_cache"]),
    ("full_attention_interval", &["full_attention_interval"]),
    ("embedding_length_per_layer_input", &["hidden_size_per_layer_input"]),
    ("feed_forward_length", &["intermediate_size", "ffn_hidden_size", "n_inner"]),
];

/// Configuration keys with the number of experts.
const EXPERT_COUNT_KEYS: [&str; 4] =
    ["num_experts", "num_local_experts", "n_routed_experts", "moe_num_experts"];

/// Keys of models with experts.
const EXPERT_KEYS: [KeyNames; 4] = [
    (
        "expert_used_count",
        &["num_experts_per_tok", "num_experts_per_token", "experts_per_token", "moe_k"],
    ),
    ("expert_feed_forward_length", &["moe_intermediate_size"]),
    ("expert_shared_feed_forward_length", &["shared_expert_intermediate_size"]),
    ("expert_shared_count", &["n_shared_experts", "num_shared_experts"]),
];

impl Config {
    /// Parses a configuration.
    ///
    /// # Errors
    /// It is not a configuration, or its model or quantization is unknown.
    pub fn parse(json: &[u8]) -> Result<Config, ConfigError> {
        let whole: Map<String, Value> = serde_json::from_slice(json)
            .map_err(|error| ConfigError::NotJson { detail: error.to_string() })?;
        let inner = ["text_config", "llm_config", "language_config"];
        let inner = inner.iter().find_map(|key| whole.get(*key)?.as_object());
        let text = inner.unwrap_or(&whole);
        let family = families::family(text, &whole)?;
        let flag = |map: &Map<String, Value>| map.get("tie_word_embeddings")?.as_bool();
        Ok(Config {
            dimensions: dimensions(text, &family)?,
            quantization: quantization::of(&whole)?,
            is_tied: flag(text).or_else(|| flag(&whole)).unwrap_or(family.is_tied),
        })
    }
}

fn dimensions(text: &Map<String, Value>, family: &Family) -> Result<Dimensions, ConfigError> {
    let value_of = |key: &'static str, names: &[&str]| {
        let default = || family.defaults.iter().find(|(known, _)| *known == key).map(|(_, n)| *n);
        number(text, names).or_else(default)
    };
    let mut dimensions = Dimensions::new(family.architecture);
    for (key, names) in REQUIRED {
        let value = value_of(key, names).ok_or(ConfigError::Missing { key: names[0] })?;
        dimensions = dimensions.with(key, value);
    }
    for (key, names) in OPTIONAL {
        if let Some(value) = value_of(key, names) {
            dimensions = dimensions.with(key, value);
        }
    }
    let experts = number(text, &EXPERT_COUNT_KEYS).filter(|count| *count > 0);
    if let Some(count) = experts {
        dimensions = dimensions.with("expert_count", count);
        for (key, names) in EXPERT_KEYS {
            if let Some(value) = number(text, names) {
                dimensions = dimensions.with(key, value);
            }
        }
    }
    layers::add(dimensions, text)
}

#[cfg(test)]
mod tests;
