//! The models of other servers, each described in the server's own fields. hob guesses nothing: a field that
//! a server leaves out is `None`, so that callers can tell "no" from "not known".

mod ollama;
mod openai;
mod single_model;

use serde_json::Value;

pub use ollama::{ollama_show_request, parse_ollama_ps, parse_ollama_show, parse_ollama_tags};
pub use openai::{parse_anthropic_models, parse_openai_models};
pub use single_model::{parse_llama_props, parse_tabby_model};

/// Models of one server; the largest known lists have some hundreds.
const MODELS_MAX: usize = 10_000;

/// A model, as far as its server describes it.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ServedModel {
    /// The server's own name of it; empty where the answer is about one model and does not name it.
    pub id: String,
    /// Tokens that one request may hold, its answer included.
    pub context_tokens: Option<u32>,
    /// It is in memory.
    pub is_loaded: Option<bool>,
    pub thinks: Option<bool>,
    pub calls_tools: Option<bool>,
    /// It takes pictures.
    pub sees: Option<bool>,
    /// It is a transcription model of another hob, and holds no conversation.
    pub hears: bool,
    /// It is a team of another hob, or another model that Open WebUI may use as a pipeline.
    pub is_team: bool,
}

/// Why an answer is not a list of models.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum ListError {
    #[error("is not JSON: {detail}")]
    NotJson { detail: String },
    #[error("has no {wanted}")]
    Missing { wanted: &'static str },
    #[error("lists {count} models, and the limit is {count_max}")]
    TooMany { count: usize, count_max: usize },
}

fn json(body: &[u8]) -> Result<Value, ListError> {
    let parsed = serde_json::from_slice(body);
    parsed.map_err(|error| ListError::NotJson { detail: error.to_string() })
}

/// What `read` makes of each element that it knows something about.
fn models(
    list: &Value,
    wanted: &'static str,
    read: impl Fn(&Value) -> Option<ServedModel>,
) -> Result<Vec<ServedModel>, ListError> {
    let list = list.as_array().ok_or(ListError::Missing { wanted })?;
    if list.len() > MODELS_MAX {
        return Err(ListError::TooMany { count: list.len(), count_max: MODELS_MAX });
    }
    Ok(list.iter().filter_map(read).collect())
}

/// The first of these fields that holds a name.
fn name(model: &Value, fields: &[&str]) -> Option<String> {
    let mut names = fields.iter().filter_map(|field| model[field].as_str());
    names.find(|name| !name.is_empty()).map(str::to_owned)
}

/// A number of tokens. Zero is what some servers say for "not known".
fn tokens(value: &Value) -> Option<u32> {
    let whole = value.as_u64().or_else(|| {
        let number = value.as_f64().filter(|number| *number >= 0.0)?;
        Some(number as u64)
    });
    whole.and_then(|tokens| u32::try_from(tokens).ok()).filter(|tokens| *tokens > 0)
}

/// Whether a list of words has one of `any`; none where there is no list.
fn has_word(list: &Value, any: &[&str]) -> Option<bool> {
    let words = list.as_array()?;
    Some(words.iter().filter_map(Value::as_str).any(|word| any.contains(&word)))
}

/// Only a "yes" says something: a list that leaves the word out may not know it.
fn says(list: &Value, any: &[&str]) -> Option<bool> {
    has_word(list, any).filter(|has| *has)
}
