//! Ollama's three answers about models: those it has, those in memory, and the details of one.
//! Each has fields that the others lack, so a full description needs all three.

use serde_json::Value;

use super::{ListError, ServedModel, has_word, json, models, name, tokens};

/// Reads `GET /api/tags`: the models that the server has. The context length that a model is loaded with is in
/// [`parse_ollama_ps`] only.
///
/// # Errors
/// [`ListError`]: the body is not such a list, or the list is too long.
pub fn parse_ollama_tags(body: &[u8]) -> Result<Vec<ServedModel>, ListError> {
    let body = json(body)?;
    models(&body["models"], "'models'", |model| {
        let id = name(model, &["name", "model"])?;
        Some(able(ServedModel { id, ..ServedModel::default() }, &model["capabilities"]))
    })
}

/// Reads `GET /api/ps`: the models in memory, with their context length.
///
/// # Errors
/// [`ListError`]: the body is not such a list, or the list is too long.
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

/// Writes `POST /api/show` for this model.
pub fn ollama_show_request(model: &str) -> String {
    serde_json::json!({ "model": model }).to_string()
}

/// Reads the answer of `POST /api/show` about one model. The answer does not repeat the model's name. The context length
/// is the `num_ctx` of the model's file, or else the trained length: the longest possible, and longer than Ollama's
/// own default.
///
/// # Errors
/// [`ListError`]: the body does not describe a model.
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
    // Newer versions list the values that `think` may have. If `false` is the only one, the model cannot think.
    let values = body["thinking"]["values"].as_array();
    let switch = values.map(|values| values.iter().any(|value| *value != false));
    Ok(ServedModel { thinks: switch.or(model.thinks), ..model })
}

/// Versions of Ollama that list capabilities list all of them, so a missing one means no.
fn able(model: ServedModel, capabilities: &Value) -> ServedModel {
    ServedModel {
        thinks: has_word(capabilities, &["thinking"]),
        calls_tools: has_word(capabilities, &["tools"]),
        sees: has_word(capabilities, &["vision"]),
        ..model
    }
}

/// Each line has one setting; the last one with this name counts.
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
