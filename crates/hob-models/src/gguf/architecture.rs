//! Architectures of llama.cpp b11434, and facts about them that headers leave out.
//! Parts of models, such as the vision tower `clip`, are not listed.

use hob_core::nearest;

use super::GgufError;
use super::error::shown;

const SUGGESTIONS_MAX: usize = 3;

/// Finds an architecture.
///
/// # Errors
/// [`GgufError::UnknownArchitecture`] with the nearest names.
pub(super) fn known(name: &str) -> Result<&'static str, GgufError> {
    let found = NAMES.iter().find(|known| **known == name);
    found.copied().ok_or_else(|| GgufError::UnknownArchitecture {
        name: shown(name),
        near: nearest(name, NAMES, SUGGESTIONS_MAX),
    })
}

/// Whether no layer keeps keys and values.
pub(super) fn is_recurrent(name: &str) -> bool {
    ["mamba", "mamba2", "rwkv6", "rwkv6qwen2", "rwkv7", "arwkv7"].contains(&name)
}

/// Interval of layers with attention, if no key lists the recurrent layers.
pub(super) fn attention_interval(name: &str) -> Option<u64> {
    match name {
        "qwen3next" | "qwen35" | "qwen35moe" | "qwen4exp" => Some(4),
        "minimax-01" => Some(8),
        _ => None,
    }
}

/// From this layer on, layers use the keys and values of earlier ones.
pub(super) fn layers_with_kv(name: &str) -> Option<u64> {
    (name == "gemma3n").then_some(20)
}

/// Sliding windows of an architecture, for headers that do not list them.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Windows {
    /// One of this many layers has full attention; 0: none has.
    pub(super) period: u64,
    /// Position of the full layer in its period.
    pub(super) full: Full,
    /// Window length if the header states none; `None`: then there are no windows.
    pub(super) tokens: Option<u32>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Full {
    First,
    Last,
}

/// `None` if all layers have full attention.
pub(super) fn windows(name: &str, layers: usize) -> Option<Windows> {
    let (period, full, tokens) = match name {
        "gemma2" => (2, Full::Last, Some(4_096)),
        "gpt-oss" => (2, Full::Last, None),
        "afmoe" | "cohere2" | "mellum" | "muse-glimmer" | "olmo2" => (4, Full::Last, None),
        // Only the larger of two models has windows.
        "exaone4" if layers == 64 => (4, Full::Last, Some(4_096)),
        "exaone-moe" => (4, Full::Last, Some(128)),
        "llama4" => (4, Full::Last, Some(8_192)),
        "cohere2moe" | "laguna" | "smallthinker" => (4, Full::First, None),
        "gemma3n" => (5, Full::Last, None),
        "gemma3" | "gemma-embedding" => (6, Full::Last, None),
        "plamo3" => (8, Full::Last, None),
        "modern-bert" => (3, Full::First, None),
        "deepseek4" | "lfm2" => (0, Full::Last, None),
        _ => return None,
    };
    Some(Windows { period, full, tokens })
}

impl Windows {
    pub(super) fn slides(self, layer: u64) -> bool {
        match (self.period, self.full) {
            (0, _) => true,
            (period, Full::First) => !layer.is_multiple_of(period),
            (period, Full::Last) => layer % period < period - 1,
        }
    }
}

/// Sorted.
const NAMES: [&str; 153] = [
    "afmoe",
    "apertus",
    "arcee",
    "arctic",
    "arwkv7",
    "baichuan",
    "bailingmoe",
    "bailingmoe2",
    "bailingmoe3",
    "bert",
    "bitnet",
    "bloom",
    "chameleon",
    "chatglm",
    "clef",
    "codeshell",
    "cogvlm",
    "cohere2",
    "cohere2moe",
    "command-r",
    "dbrx",
    "deci",
    "deepseek",
    "deepseek2",
    "deepseek2-ocr",
    "deepseek32",
    "deepseek4",
    "dflash",
    "dots1",
    "dots3note",
    "dream",
    "eagle3",
    "ernie4_5",
    "ernie4_5-moe",
    "eurobert",
    "exaone",
    "exaone-moe",
    "exaone4",
    "falcon",
    "falcon-h1",
    "gemma",
    "gemma-embedding",
    "gemma2",
    "gemma3",
    "gemma3n",
    "gemma4",
    "gemma4-assistant",
    "glm-dsa",
    "glm4",
    "glm4moe",
    "glm5-next",
    "gpt-oss",
    "gpt2",
    "gptj",
    "gptneox",
    "granite",
    "granite_swa",
    "granitehybrid",
    "granitemoe",
    "graniteswitch",
    "grok",
    "grovemoe",
    "hrm_text",
    "hunyuan-dense",
    "hunyuan-moe",
    "hunyuan_vl",
    "hy_v3",
    "hy_v4",
    "internlm2",
    "jais",
    "jais2",
    "jamba",
    "jina-bert-v2",
    "jina-bert-v3",
    "kimi-k3",
    "kimi-linear",
    "laguna",
    "lfm2",
    "lfm2moe",
    "llada",
    "llada-moe",
    "llama",
    "llama-embed",
    "llama4",
    "maincoder",
    "mamba",
    "mamba2",
    "maple",
    "mellum",
    "mimo2",
    "minicpm",
    "minicpm3",
    "minimax-01",
    "minimax-m2",
    "minimax-m3",
    "mistral3",
    "mistral4",
    "modern-bert",
    "mpt",
    "muse-glimmer",
    "nanbeige",
    "nemotron",
    "nemotron_h",
    "nemotron_h_moe",
    "neo-bert",
    "nomic-bert",
    "nomic-bert-moe",
    "olmo",
    "olmo2",
    "olmoe",
    "openelm",
    "orion",
    "paddleocr",
    "pangu-embedded",
    "phi2",
    "phi3",
    "phimoe",
    "plamo",
    "plamo2",
    "plamo3",
    "plm",
    "pockettts",
    "qwen",
    "qwen2",
    "qwen2moe",
    "qwen2vl",
    "qwen3",
    "qwen35",
    "qwen35moe",
    "qwen3moe",
    "qwen3next",
    "qwen3tts",
    "qwen3vl",
    "qwen3vlmoe",
    "qwen4exp",
    "refact",
    "rnd1",
    "rwkv6",
    "rwkv6qwen2",
    "rwkv7",
    "seed_oss",
    "smallthinker",
    "smollm3",
    "spark2_5",
    "stablelm",
    "starcoder",
    "starcoder2",
    "step35",
    "t5",
    "t5encoder",
    "talkie",
    "wavtokenizer-dec",
    "xverse",
];
