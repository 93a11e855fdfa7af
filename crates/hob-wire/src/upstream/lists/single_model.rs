//! Servers that hold one model and speak of it apart from any list.
//! The context reported there is the one that a request really has.

use serde_json::Value;

use super::{ListError, ServedModel, json, name, tokens};

/// llama-server's `GET /props`. The context is one slot's, which is what a request can use.
///
/// # Errors
/// [`ListError`]: nothing about a model.
pub fn parse_llama_props(body: &[u8]) -> Result<ServedModel, ListError> {
    let body = json(body)?;
    let settings = &body["default_generation_settings"];
    if !settings.is_object() {
        return Err(ListError::Missing { wanted: "'default_generation_settings'" });
    }
    // A template without tools does not keep llama-server from calling them.
    let calls_tools = body["chat_template_caps"]["supports_tools"].as_bool();
    Ok(ServedModel {
        id: name(&body, &["model_alias"])
            .or_else(|| file_name(&body["model_path"]))
            .unwrap_or_default(),
        context_tokens: tokens(&settings["n_ctx"]),
        is_loaded: body["is_sleeping"].as_bool().map(|sleeps| !sleeps),
        calls_tools: calls_tools.filter(|does| *does),
        sees: body["modalities"]["vision"].as_bool(),
        ..ServedModel::default()
    })
}

/// tabbyAPI's `GET /v1/model`: what is loaded.
///
/// # Errors
/// [`ListError`]: nothing is loaded.
pub fn parse_tabby_model(body: &[u8]) -> Result<ServedModel, ListError> {
    let body = json(body)?;
    let parameters = &body["parameters"];
    Ok(ServedModel {
        id: name(&body, &["id"]).ok_or(ListError::Missing { wanted: "'id'" })?,
        context_tokens: tokens(&parameters["max_seq_len"]),
        is_loaded: Some(true),
        sees: parameters["use_vision"].as_bool(),
        ..ServedModel::default()
    })
}

/// On whichever system the server runs.
fn file_name(path: &Value) -> Option<String> {
    let name = path.as_str()?.rsplit(['/', '\\']).next()?;
    (!name.is_empty()).then(|| name.to_owned())
}
