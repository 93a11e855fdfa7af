//! Ollama's lists: models with tags, one model in full, models in memory, the version.
//! Every name carries a tag, because Ollama's clients expect one; hob accepts it with and without.

use std::time::SystemTime;

use hob_core::{ChatCard, MemoryUse};
use schemars::JsonSchema;
use serde::Serialize;
use serde_json::{Map, Value};

use super::time::{rfc3339, unix_s};
use crate::error::json;

/// The tag of a name that has none.
const TAG: &str = ":latest";

/// `expires_at` of a model that is never unloaded. Ollama has no value for that, and its clients understand a far date.
/// The year 9999 would overflow in time zones east of Greenwich.
const FOR_EVER: &str = "2300-01-01T00:00:00.000000000Z";

/// For a file without a computed digest: `ollama ls` fails on fewer than 12 letters.
const NO_DIGEST: &str = "0000000000000000000000000000000000000000000000000000000000000000";

/// The name of a model or an alias, and the card of the model that it selects.
#[derive(Clone, Copy, Debug)]
pub struct OllamaModel<'a> {
    pub name: &'a str,
    pub card: &'a ChatCard,
}

/// A model in memory.
#[derive(Clone, Debug)]
pub struct OllamaResident<'a> {
    pub model: OllamaModel<'a>,
    pub memory_use: MemoryUse,
}

/// The answer of `GET /api/version`.
#[derive(JsonSchema, Serialize)]
pub(crate) struct OllamaVersion {
    version: &'static str,
}

/// The answer of `GET /api/tags`.
#[derive(JsonSchema, Serialize)]
pub(crate) struct OllamaTags<'a> {
    models: Vec<OllamaTag<'a>>,
}

/// A chat model with its tag.
#[derive(JsonSchema, Serialize)]
struct OllamaTag<'a> {
    name: String,
    model: String,
    modified_at: String,
    /// Bytes of the file.
    size: u64,
    digest: &'a str,
    details: OllamaDetails<'a>,
}

/// The answer of `POST /api/show`.
#[derive(JsonSchema, Serialize)]
pub(crate) struct OllamaCard<'a> {
    parameters: String,
    template: &'a str,
    details: OllamaDetails<'a>,
    model_info: Map<String, Value>,
    capabilities: Vec<&'static str>,
    modified_at: String,
}

/// The answer of `GET /api/ps`.
#[derive(JsonSchema, Serialize)]
pub(crate) struct OllamaPs<'a> {
    models: Vec<OllamaPsModel<'a>>,
}

/// A model in memory.
#[derive(JsonSchema, Serialize)]
struct OllamaPsModel<'a> {
    name: String,
    model: String,
    /// Bytes in memory, with those on graphics cards.
    size: u64,
    digest: &'a str,
    details: OllamaDetails<'a>,
    expires_at: String,
    /// Bytes on graphics cards.
    size_vram: u64,
    context_length: u32,
}

/// What the file says about a model.
#[derive(JsonSchema, Serialize)]
struct OllamaDetails<'a> {
    parent_model: &'static str,
    format: &'static str,
    family: &'a str,
    families: [&'a str; 1],
    parameter_size: String,
    quantization_level: &'a str,
}

/// With `:latest`, unless the name has a tag of its own.
pub fn tagged(name: &str) -> String {
    if name.contains(':') { name.to_owned() } else { format!("{name}{TAG}") }
}

/// The release of Ollama that hob claims to be, because clients refuse older ones by this number. It is the newest release
/// with an API that hob supports in full: the first one with `logprobs`.
const OLLAMA_VERSION: &str = "0.12.11";

/// `GET /api/version`: plain semantic version. hob's own is in `/health`.
pub fn ollama_version() -> String {
    json(&OllamaVersion { version: OLLAMA_VERSION })
}

/// `GET /api/tags`.
pub fn ollama_tags<'a>(models: impl IntoIterator<Item = OllamaModel<'a>>) -> String {
    let tag = |OllamaModel { name, card }: OllamaModel<'a>| OllamaTag {
        name: tagged(name),
        model: tagged(name),
        modified_at: unix_s(card.modified_unix_s),
        size: card.file_bytes,
        digest: card.digest.as_deref().unwrap_or(NO_DIGEST),
        details: details(card),
    };
    json(&OllamaTags { models: models.into_iter().map(tag).collect() })
}

/// `POST /api/show`. The context length is the model's own; the one it is loaded with is `num_ctx`.
pub fn ollama_show(card: &ChatCard) -> String {
    json(&OllamaCard {
        parameters: match card.context_tokens {
            0 => String::new(),
            tokens => format!("num_ctx {tokens}"),
        },
        template: card.template.as_deref().unwrap_or_default(),
        details: details(card),
        model_info: model_info(card),
        capabilities: capabilities(card),
        modified_at: unix_s(card.modified_unix_s),
    })
}

/// `GET /api/ps`.
pub fn ollama_ps<'a>(residents: impl IntoIterator<Item = OllamaResident<'a>>) -> String {
    let resident =
        |OllamaResident { model: OllamaModel { name, card }, memory_use }| OllamaPsModel {
            name: tagged(name),
            model: tagged(name),
            size: size(card, &memory_use),
            digest: card.digest.as_deref().unwrap_or(NO_DIGEST),
            details: details(card),
            expires_at: expires_at(memory_use.expires_at),
            size_vram: memory_use.vram_bytes,
            context_length: card.context_tokens,
        };
    json(&OllamaPs { models: residents.into_iter().map(resident).collect() })
}

/// `ollama ps` shows no processor for a model with more bytes on cards than in all.
fn size(card: &ChatCard, memory_use: &MemoryUse) -> u64 {
    let on_cards = memory_use.vram_bytes;
    memory_use.resident_bytes.map_or(card.file_bytes.max(on_cards), |bytes| bytes + on_cards)
}

fn expires_at(at: Option<SystemTime>) -> String {
    at.map_or_else(|| FOR_EVER.to_owned(), rfc3339)
}

fn details(card: &ChatCard) -> OllamaDetails<'_> {
    OllamaDetails {
        parent_model: "",
        format: "gguf",
        family: &card.architecture,
        families: [&card.architecture],
        parameter_size: parameter_size(card.parameters),
        quantization_level: &card.quantization,
    }
}

/// Without what another server does not tell: clients would take 0 for the length of the context.
fn model_info(card: &ChatCard) -> Map<String, Value> {
    let architecture = &card.architecture;
    let counts = [
        ("general.parameter_count".to_owned(), card.parameters),
        (format!("{architecture}.context_length"), card.trained_context_tokens.into()),
    ];
    let known = counts.into_iter().filter(|(_, count)| *count > 0);
    let known = known.map(|(name, count)| (name, Value::from(count)));
    let named = ("general.architecture".to_owned(), Value::from(architecture.as_str()));
    std::iter::once(named).chain(known).collect()
}

/// hob's chat models embed too, and do not say so here: with `embedding`, `ollama run` and other clients do not chat.
fn capabilities(card: &ChatCard) -> Vec<&'static str> {
    if card.is_embedder {
        return vec!["embedding"];
    }
    let all = [
        ("completion", true),
        ("tools", card.calls_tools && card.template.is_some()),
        ("thinking", card.thinks),
        ("insert", card.infills),
        ("vision", card.sees),
    ];
    all.into_iter().filter_map(|(name, has)| has.then_some(name)).collect()
}

/// As people write it: `134.52M`, `7.6B`, `8B`. Empty if it is unknown.
fn parameter_size(parameters: u64) -> String {
    let count = parameters as f64;
    let (amount, digits, unit) = match parameters {
        0 => return String::new(),
        1_000_000_000.. => (count / 1e9, 1, "B"),
        1_000_000.. => (count / 1e6, 2, "M"),
        _ => (count / 1e3, 0, "K"),
    };
    let digits = if amount.fract() == 0.0 { 0 } else { digits };
    format!("{amount:.digits$}{unit}")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sizes_are_written_as_people_write_them() {
        for (parameters, expected) in [
            (134_515_008, "134.52M"),
            (7_615_616_512, "7.6B"),
            (8_000_000_000, "8B"),
            (350_000_000, "350M"),
            (12_345, "12K"),
            (0, ""),
        ] {
            assert_eq!(parameter_size(parameters), expected);
        }
    }

    #[test]
    fn a_name_has_one_tag() {
        for (name, expected) in [("smol", "smol:latest"), ("qwen3:4b", "qwen3:4b")] {
            assert_eq!(tagged(name), expected);
        }
    }
}
