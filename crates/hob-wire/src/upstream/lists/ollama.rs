//! Ollama's three ways to speak of models: what it has, what is in memory, and one in full.
//! Each has fields that the others lack, so a full description needs all three.

use serde_json::Value;

use super::{ListError, ServedModel, has_word, json, models, name, tokens};

/// `GET /api/tags`: what is there. How much of its context it is loaded with, only
/// [`parse_ollama_ps`] knows.
///
/// # Errors
/// [`ListError`]: no such list, or an absurdly long one.
pub fn parse_ollama_tags(body: &[u8]) -> Result<Vec<ServedModel>, ListError> {
    let body = json(body)?;
    models(&body["models"], "'models'", |model| {
        let id = name(model, &["name", "model"])?;
        Some(able(ServedModel { id, ..ServedModel::default() }, &model["capabilities"]))
    })
}

/// `GET /api/ps`: what is in memory, and with how much context.
///
/// # Errors
/// [`ListError`]: no such list, or an absurdly long one.
pub fn parse_ollama_ps(body: &[u8]) -> Result<Vec<ServedModel>, ListError> {
    let body = json(body)?;
    models(&body["models"], "'models'", |model| {
        Some(ServedModel {
            id: name(model, &["name", "model"])?,
            context_tokens: tokens(&model["context_length"]),
            is_loaded: Some(true),
            ..ServedModel::default()
        })
    })
}

/// `POST /api/show` of one model, whose name stands in the question only. The context is the
/// `num_ctx` that its file asks for; else what it was trained with, which is the most that it can be
/// loaded with and more than Ollama takes by itself.
///
/// # Errors
/// [`ListError`]: nothing about a model.
pub fn parse_ollama_show(body: &[u8]) -> Result<ServedModel, ListError> {
    let body = json(body)?;
    let info = &body["model_info"];
    if !info.is_object() && !body["details"].is_object() {
        return Err(ListError::Missing { wanted: "'model_info'" });
    }
    let asked = body["parameters"].as_str().and_then(num_ctx);
    let model =
        ServedModel { context_tokens: asked.or_else(|| trained(info)), ..Default::default() };
    let model = able(model, &body["capabilities"]);
    // Newer versions list what `think` may be; where that is false only, it is no use to ask.
    let values = body["thinking"]["values"].as_array();
    let switch = values.map(|values| values.iter().any(|value| *value != false));
    Ok(ServedModel { thinks: switch.or(model.thinks), ..model })
}

/// Ollama lists all that it knows of a model, since it lists anything.
fn able(model: ServedModel, capabilities: &Value) -> ServedModel {
    ServedModel {
        thinks: has_word(capabilities, &["thinking"]),
        calls_tools: has_word(capabilities, &["tools"]),
        sees: has_word(capabilities, &["vision"]),
        ..model
    }
}

/// One setting to a line; the last one counts.
fn num_ctx(parameters: &str) -> Option<u32> {
    let settings = parameters.lines().rev().filter_map(|line| {
        let mut words = line.split_whitespace();
        (words.next() == Some("num_ctx")).then(|| words.next())?
    });
    settings.filter_map(|tokens| tokens.parse().ok()).find(|tokens| *tokens > 0)
}

/// `llama.context_length`, `qwen3.context_length`, …
fn trained(info: &Value) -> Option<u32> {
    let architecture = info["general.architecture"].as_str();
    let named = architecture.map(|name| tokens(&info[format!("{name}.context_length")]));
    let mut any = info.as_object().into_iter().flatten();
    named.flatten().or_else(|| {
        any.find_map(|(key, value)| key.ends_with(".context_length").then(|| tokens(value))?)
    })
}
