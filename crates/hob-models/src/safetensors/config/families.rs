//! GGUF architecture of each `model_type`, as llama.cpp's converter names it,
//! and defaults that configurations of that type leave out.

use hob_core::nearest;
use serde_json::{Map, Value};

use super::ConfigError;
use crate::gguf::error::printable_name;

pub(super) struct Family {
    pub(super) architecture: &'static str,
    /// Values for keys that the configuration leaves out, by GGUF key.
    pub(super) defaults: &'static [(&'static str, u64)],
    /// Whether the embedding also computes the scores where the configuration does not say.
    pub(super) is_tied: bool,
}

const GEMMA3: &[(&str, u64)] = &[
    ("attention.head_count", 8),
    ("attention.head_count_kv", 4),
    ("attention.key_length", 256),
    ("attention.value_length", 256),
    ("context_length", 131_072),
    ("vocab_size", 262_208),
];

/// Architectures of [`Family::is_tied`]: the default of `tie_word_embeddings` in their classes of transformers.
pub(super) const TIED: [&str; 14] = [
    "cohere2",
    "command-r",
    "ernie4_5",
    "ernie4_5-moe",
    "gemma",
    "gemma2",
    "gemma3",
    "gemma3n",
    "gemma4",
    "gpt2",
    "lfm2",
    "lfm2moe",
    "smollm3",
    "starcoder2",
];

/// Uses the first known `model_type`: that of the text model's configuration, or else of the whole one.
pub(super) fn family(
    text: &Map<String, Value>,
    whole: &Map<String, Value>,
) -> Result<Family, ConfigError> {
    let model_type = |map: &Map<String, Value>| Some(map.get("model_type")?.as_str()?.to_owned());
    let types = [model_type(text), model_type(whole)];
    let mut types = types.into_iter().flatten().peekable();
    let first = types.peek().cloned().ok_or(ConfigError::Missing { key: "model_type" })?;
    let found = types.find_map(|name| ARCHITECTURES.iter().find(|(known, _)| *known == name));
    let Some((_, architecture)) = found else {
        let near = nearest(&first, ARCHITECTURES.iter().map(|(known, _)| *known), 3);
        return Err(ConfigError::UnknownType { name: printable_name(&first), near });
    };
    let defaults = if *architecture == "gemma3" { GEMMA3 } else { &[] };
    Ok(Family { architecture, defaults, is_tied: TIED.contains(architecture) })
}

/// Each `model_type` and its GGUF architecture, sorted.
pub(super) const ARCHITECTURES: [(&str, &str); 70] = [
    ("apertus", "apertus"),
    ("arcee", "arcee"),
    ("chatglm", "chatglm"),
    ("cohere", "command-r"),
    ("cohere2", "cohere2"),
    ("deepseek_v2", "deepseek2"),
    ("deepseek_v3", "deepseek2"),
    ("dots1", "dots1"),
    ("ernie4_5", "ernie4_5"),
    ("ernie4_5_moe", "ernie4_5-moe"),
    ("exaone4", "exaone4"),
    ("gemma", "gemma"),
    ("gemma2", "gemma2"),
    ("gemma3", "gemma3"),
    ("gemma3_text", "gemma3"),
    ("gemma3n", "gemma3n"),
    ("gemma3n_text", "gemma3n"),
    ("gemma4", "gemma4"),
    ("gemma4_text", "gemma4"),
    ("glm", "chatglm"),
    ("glm4", "glm4"),
    ("glm4_moe", "glm4moe"),
    ("glm4v_text", "glm4"),
    ("glm4v_moe_text", "glm4moe"),
    ("gpt2", "gpt2"),
    ("gpt_oss", "gpt-oss"),
    ("granite", "granite"),
    ("granitemoe", "granitemoe"),
    ("granitemoehybrid", "granitehybrid"),
    ("hunyuan_v1_dense", "hunyuan-dense"),
    ("hunyuan_v1_moe", "hunyuan-moe"),
    ("internlm2", "internlm2"),
    ("internlm3", "llama"),
    ("kimi_k2", "deepseek2"),
    ("lfm2", "lfm2"),
    ("lfm2_moe", "lfm2moe"),
    ("llama", "llama"),
    ("llama4", "llama4"),
    ("llama4_text", "llama4"),
    ("minimax_m2", "minimax-m2"),
    ("ministral", "llama"),
    ("ministral3", "mistral3"),
    ("mistral", "llama"),
    ("mixtral", "llama"),
    ("nemotron_h", "nemotron_h"),
    ("olmo2", "olmo2"),
    ("olmoe", "olmoe"),
    ("phi3", "phi3"),
    ("phimoe", "phimoe"),
    ("qwen2", "qwen2"),
    ("qwen2_5_vl", "qwen2vl"),
    ("qwen2_5_vl_text", "qwen2vl"),
    ("qwen2_moe", "qwen2moe"),
    ("qwen2_vl", "qwen2vl"),
    ("qwen2_vl_text", "qwen2vl"),
    ("qwen3", "qwen3"),
    ("qwen3_5", "qwen35"),
    ("qwen3_5_moe", "qwen35moe"),
    ("qwen3_5_moe_text", "qwen35moe"),
    ("qwen3_5_text", "qwen35"),
    ("qwen3_moe", "qwen3moe"),
    ("qwen3_next", "qwen3next"),
    ("qwen3_vl", "qwen3vl"),
    ("qwen3_vl_moe", "qwen3vlmoe"),
    ("qwen3_vl_moe_text", "qwen3vlmoe"),
    ("qwen3_vl_text", "qwen3vl"),
    ("seed_oss", "seed_oss"),
    ("smollm3", "smollm3"),
    ("stablelm", "stablelm"),
    ("starcoder2", "starcoder2"),
];
