//! Ollama's own API: bodies become what a model can take, answers become lines of JSON.
//! What it can ask and hob cannot do is named; what would change the kind of answer is refused.

mod answer;
mod context;
mod embed;
mod images;
mod lists;
mod messages;
mod options;
mod request;
mod tag;
mod time;

use serde::Serialize;

use crate::WireError;
use crate::error::json;
use crate::fields::Fields;

pub use answer::{OllamaAnswer, OllamaShape, ollama_loaded, ollama_unloaded};
pub use embed::{
    OllamaEmbed, ollama_embedding, ollama_embeddings, parse_ollama_embed, parse_ollama_embeddings,
};
pub use lists::{
    OllamaModel, OllamaResident, ollama_ps, ollama_show, ollama_tags, ollama_version, tagged,
};
pub use request::{
    OllamaDelivery, OllamaRequest, OllamaWish, parse_ollama_chat, parse_ollama_generate,
};
pub use tag::is_tag_of;
pub(crate) use time::rfc3339;

/// What `/api/show` and `/api/pull` are asked; the rest of their fields has no effect.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct OllamaNamed {
    pub model: String,
    pub delivery: OllamaDelivery,
}

/// # Errors
/// [`WireError`], naming the field and what it takes.
pub fn parse_ollama_named(body: &[u8]) -> Result<OllamaNamed, WireError> {
    let mut fields = Fields::parse(body)?;
    let delivery = request::delivery(&mut fields)?;
    let model = model(&mut fields)?.ok_or(WireError::Missing { field: "model" })?;
    Ok(OllamaNamed { model, delivery })
}

/// `{"error": …}`, as an answer and as the last line of one that broke off.
pub fn ollama_error(message: &str) -> String {
    #[derive(Serialize)]
    struct Failed<'a> {
        error: &'a str,
    }
    json(&Failed { error: message })
}

/// `/api/pull` of a model that is here.
pub fn ollama_success() -> String {
    r#"{"status":"success"}"#.to_owned()
}

/// Older clients call it `name`.
fn model(fields: &mut Fields) -> Result<Option<String>, WireError> {
    let model = fields.name("model")?;
    let name = fields.name("name")?;
    Ok(model.or(name).filter(|name| !name.is_empty()))
}
