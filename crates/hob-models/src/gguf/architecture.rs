//! Architectures of llama.cpp b11434, and facts about them that headers leave out.
//! Parts of models, such as the vision tower `clip`, are not listed.

use hob_core::nearest;

use super::GgufError;
use super::error::printable_name;

/// Finds an architecture.
///
/// # Errors
/// [`GgufError::UnknownArchitecture`] with the nearest names.
pub(super) fn known(name: &str) -> Result<&'static str, GgufError> {
    let found = NAMES.lines().find(|known| *known == name);
    found.ok_or_else(|| GgufError::UnknownArchitecture {
        name: printable_name(name),
        near: nearest(name, NAMES.lines(), 3),
    })
}

/// Whether no layer keeps keys and values.
pub(super) fn is_recurrent(name: &str) -> bool {
    ["mamba", "mamba2", "rwkv6", "rwkv6qwen2", "rwkv7", "arwkv7"].contains(&name)
}

/// One of this many layers has attention, if no key lists the recurrent layers.
pub(super) fn attention_interval(name: &str) -> Option<u64> {
    match name {
        "qwen3next" | "qwen35" | "qwen35moe" | "qwen4exp" => Some(4),
        "minimax-01" => Some(8),
        _ => None,
    }
}

/// How many layers have keys and values of their own. Later layers use those of earlier ones.
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

/// One name in each line, sorted.
const NAMES: &str = include_str!("architectures.txt");
