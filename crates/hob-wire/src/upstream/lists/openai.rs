//! `GET /v1/models`: OpenAI's has names only; its relatives say more, each in other fields.
//! Anthropic's list stands here too: another shape at the same address.

use serde_json::Value;

use super::{ListError, ServedModel, has_word, json, models, name, says, tokens};

/// Fields with the context, the most exact first: the loaded context, the limit of a request, and last the
/// model's maximum. The trained context is not read.
const CONTEXTS: [&str; 9] = [
    // LM Studio.
    "/loaded_context_length",
    "/loaded_instances/0/config/context_length",
    // vLLM and SGLang.
    "/max_model_len",
    // llama-server: of each slot.
    "/meta/n_ctx",
    // hob, OpenRouter, Together.
    "/context_length",
    // Groq, DeepSeek.
    "/context_window",
    // Mistral; LM Studio of what is not loaded.
    "/max_context_length",
    "/max_input_tokens",
    "/top_provider/context_length",
];

/// The models in an answer of OpenAI's shape, or a bare list, or `models` instead of `data`.
///
/// # Errors
/// [`ListError`]: no such list, or an absurdly long one.
pub fn parse_openai_models(body: &[u8]) -> Result<Vec<ServedModel>, ListError> {
    let body = json(body)?;
    let list = [&body["data"], &body["models"]].into_iter().find(|list| list.is_array());
    models(list.unwrap_or(&body), "'data'", model)
}

/// The models in Anthropic's answer. Ask for `?limit=1000`: it sends 20 otherwise.
///
/// # Errors
/// [`ListError`]: no such list, or an absurdly long one.
pub fn parse_anthropic_models(body: &[u8]) -> Result<Vec<ServedModel>, ListError> {
    let body = json(body)?;
    models(&body["data"], "'data'", |model| {
        let supports = |ability: &str| model["capabilities"][ability]["supported"].as_bool();
        Some(ServedModel {
            id: name(model, &["id"])?,
            context_tokens: tokens(&model["max_input_tokens"]),
            thinks: supports("thinking"),
            // There is no field for it, because all of them do.
            calls_tools: Some(true),
            sees: supports("image_input"),
            ..ServedModel::default()
        })
    })
}

/// None for a speech model of another hob: it holds no conversation.
fn model(model: &Value) -> Option<ServedModel> {
    if model["hob"]["kind"] == "speech" {
        return None;
    }
    let id = model.as_str().filter(|id| !id.is_empty()).map(str::to_owned);
    Some(ServedModel {
        id: id.or_else(|| name(model, &["id", "key", "model", "name"]))?,
        context_tokens: CONTEXTS.iter().find_map(|at| tokens(model.pointer(at)?)),
        is_loaded: is_loaded(model),
        thinks: thinks(model),
        calls_tools: calls_tools(model),
        sees: sees(model),
        hears: model["hob"]["kind"] == "transcription",
        is_team: model["pipeline"].is_object(),
    })
}

/// hob and LM Studio say a state, llama-server's router a status with a value.
fn is_loaded(model: &Value) -> Option<bool> {
    let said =
        [&model["hob"]["state"], &model["state"], &model["status"]["value"], &model["status"]];
    let by_word = said.into_iter().find_map(Value::as_str).and_then(|word| match word {
        "warm" | "loaded" => Some(true),
        "cold" | "loading" | "down" | "not-loaded" | "unloaded" | "sleeping" => Some(false),
        _ => None,
    });
    by_word.or_else(|| model["loaded_instances"].as_array().map(|loaded| !loaded.is_empty()))
}

fn thinks(model: &Value) -> Option<bool> {
    let hob = has_word(&model["hob"]["capabilities"], &["thinking"]);
    let parameters = &model["supported_parameters"];
    let openrouter = has_word(parameters, &["reasoning", "include_reasoning"]);
    let described = model["reasoning"].is_object().then_some(true);
    let listed = says(&model["capabilities"], &["thinking", "reasoning"]);
    hob.or(openrouter).or(described).or(listed)
}

fn calls_tools(model: &Value) -> Option<bool> {
    const WORDS: [&str; 3] = ["tools", "tool_use", "function_calling"];
    let hob = has_word(&model["hob"]["capabilities"], &WORDS);
    let openrouter = has_word(&model["supported_parameters"], &WORDS);
    let listed = says(&model["capabilities"], &WORDS);
    // Mistral, and LM Studio since 0.4.
    let switched = ["function_calling", "trained_for_tool_use"];
    let switched = switched.iter().find_map(|word| model["capabilities"][word].as_bool());
    hob.or(openrouter).or(listed).or(switched)
}

fn sees(model: &Value) -> Option<bool> {
    let hob = has_word(&model["hob"]["capabilities"], &["vision"]);
    // OpenRouter and llama-server; DeepSeek has it at the top.
    let inputs = [&model["architecture"]["input_modalities"], &model["input_modalities"]];
    let inputs = inputs.into_iter().find_map(|list| has_word(list, &["image"]));
    let listed = says(&model["capabilities"], &["vision", "multimodal"]);
    let switched = model["capabilities"]["vision"].as_bool();
    // LM Studio.
    let kind = model["type"].as_str().and_then(|kind| match kind {
        "vlm" => Some(true),
        "llm" => Some(false),
        _ => None,
    });
    hob.or(inputs).or(listed).or(switched).or(kind)
}
