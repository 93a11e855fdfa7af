//! The engine with its settings, and the model with its weights.
//! Names are stored as reported; `sha256` identifies a file.

use std::collections::BTreeMap;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// The backend of an engine that computes on the processor, whatever cards there are.
pub const CPU_BACKEND: &str = "cpu";

/// The engine that answered.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct RecordedEngine {
    pub name: Option<String>,
    pub version: Option<String>,
    /// `cpu`, `cuda`, `vulkan`, `metal`, or another name
    pub backend: Option<String>,
    /// Start command of the server, without keys
    pub argv: Vec<String>,
    /// Environment variables that change how it runs; never a key
    pub env: BTreeMap<String, String>,
    pub params: Params,
}

/// Settings of the engine.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Params {
    /// Layers on the card
    pub ngl: Option<i64>,
    pub threads: Option<u32>,
    /// Tokens of a logical batch
    pub batch: Option<u32>,
    /// Tokens of a physical batch
    pub ubatch: Option<u32>,
    pub flash_attn: Option<bool>,
    /// Type of the keys in the cache
    pub kv_k: Option<String>,
    /// Type of the values in the cache
    pub kv_v: Option<String>,
    /// Tokens of the context
    pub ctx: Option<u64>,
    /// Slots
    pub parallel: Option<u32>,
    /// Method of speculative decoding, if used
    pub spec: Option<String>,
    pub mmap: Option<bool>,
}

/// The model and its weights.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct RecordedModel {
    /// Models of one publisher and kind, such as `Qwen3`
    pub family: Option<String>,
    pub name: String,
    /// Year, month, day, as far as they are known: `2026-04`
    pub released: Option<String>,
    /// Parameters in billions
    pub params_b: Option<f64>,
    /// Parameters that one token needs, in billions
    pub active_b: Option<f64>,
    /// Format of the weights, such as `gguf`
    pub format: Option<String>,
    pub quant: Option<String>,
    /// Bits per weight
    pub bpw: Option<f64>,
    /// Size of the weights
    pub bytes: Option<u64>,
    /// SHA-256 of the weights
    pub sha256: Option<String>,
    pub tokenizer_sha256: Option<String>,
    pub template_sha256: Option<String>,
}
