//! Ollama's own API: bodies become what a model can take, answers become lines of JSON.
//! What it can ask and hob cannot do is named; what would change the kind of answer is refused.

mod context;
mod embed;
mod images;
mod lines;
mod lists;
mod messages;
mod options;
mod request;
mod tag;
mod time;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::WireError;
use crate::error::json;
use crate::fields::Fields;
use crate::request_value::Name;

pub use embed::{
    OllamaEmbed, ollama_embedding, ollama_embeddings, parse_ollama_embed, parse_ollama_embeddings,
};
pub(crate) use embed::{OllamaEmbedFields, OllamaEmbedding, OllamaEmbeddings};
pub(crate) use lines::OllamaLine;
pub use lines::{OllamaAnswer, OllamaShape, ollama_loaded, ollama_unloaded};
pub(crate) use lists::{OllamaCard, OllamaPs, OllamaTags, OllamaVersion};
pub use lists::{
    OllamaModel, OllamaResident, ollama_ps, ollama_show, ollama_tags, ollama_version, tagged,
};
pub use request::{
    OllamaAction, OllamaDelivery, OllamaRequest, parse_ollama_chat, parse_ollama_generate,
};
pub(crate) use request::{OllamaChatFields, OllamaFields, OllamaGenerateFields};
pub use tag::is_tag_of;
pub(crate) use time::rfc3339;

/// What `/api/show` and `/api/pull` are asked; the rest of their fields has no effect.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct OllamaNamed {
    pub model: String,
    pub delivery: OllamaDelivery,
}

/// The fields of `POST /api/show` and `POST /api/pull`.
#[derive(Deserialize, JsonSchema)]
pub(crate) struct OllamaNamedFields {
    /// A model, with or without its tag.
    model: Option<Name>,
    /// Another name of `model`, for older clients.
    name: Option<Name>,
    /// `false` sends one JSON object. Default: `true`, lines of JSON.
    stream: Option<bool>,
}

/// # Errors
/// [`WireError`], naming the field and what it takes.
pub fn parse_ollama_named(body: &[u8]) -> Result<OllamaNamed, WireError> {
    let mut fields = Fields::parse(body)?;
    let OllamaNamedFields { model, name, stream } = fields.read()?;
    let model = model_of(model, name).ok_or_else(|| WireError::missing("model"))?;
    Ok(OllamaNamed { model, delivery: OllamaDelivery::of(stream) })
}

/// `{"error": …}`, as an answer and as the last line of one that broke off.
pub fn ollama_error(message: &str) -> String {
    json(&OllamaFailure { error: message })
}

/// An error of Ollama's routes.
#[derive(JsonSchema, Serialize)]
pub(crate) struct OllamaFailure<'a> {
    error: &'a str,
}

/// The answer of `POST /api/pull`.
#[derive(JsonSchema, Serialize)]
pub(crate) struct OllamaStatus {
    /// `success`.
    status: &'static str,
}

/// `/api/pull` of a model that is here.
pub fn ollama_success() -> String {
    json(&OllamaStatus { status: "success" })
}

/// Older clients call it `name`.
fn model_of(model: Option<Name>, name: Option<Name>) -> Option<String> {
    model.or(name).map(|name| name.0).filter(|name| !name.is_empty())
}
