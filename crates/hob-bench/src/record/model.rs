//! What ran: the engine with its settings, and the model with its weights.
//! Names are kept as they were said; `sha256` is what tells two files apart.

use std::collections::BTreeMap;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// The backend of an engine that computes on the processor, whatever cards there are.
pub const CPU_BACKEND: &str = "cpu";

#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct RecordedEngine {
    pub name: Option<String>,
    pub version: Option<String>,
    /// `cpu`, `cuda`, `vulkan`, `metal`, or what it is called
    pub backend: Option<String>,
    /// As the server was started, without keys
    pub argv: Vec<String>,
    /// Of its environment, what changes how it runs; never a key
    pub env: BTreeMap<String, String>,
    pub params: Params,
}

#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Params {
    /// Layers on the card
    pub ngl: Option<i64>,
    pub threads: Option<u32>,
    pub batch: Option<u32>,
    pub ubatch: Option<u32>,
    pub flash_attn: Option<bool>,
    /// Type of the keys in the cache
    pub kv_k: Option<String>,
    /// Type of the values in the cache
    pub kv_v: Option<String>,
    pub ctx: Option<u64>,
    pub parallel: Option<u32>,
    /// How it speculates, if it does
    pub spec: Option<String>,
    pub mmap: Option<bool>,
}

#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct RecordedModel {
    pub family: Option<String>,
    pub name: String,
    /// Year, month, day, as far as they are known: `2026-04`
    pub released: Option<String>,
    /// Thousands of millions of parameters
    pub params_b: Option<f64>,
    /// Of those, what one token needs
    pub active_b: Option<f64>,
    pub format: Option<String>,
    pub quant: Option<String>,
    /// Bits per weight
    pub bpw: Option<f64>,
    pub bytes: Option<u64>,
    pub sha256: Option<String>,
    pub tokenizer_sha256: Option<String>,
    pub template_sha256: Option<String>,
}
