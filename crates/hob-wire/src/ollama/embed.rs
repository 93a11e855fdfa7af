//! `/api/embed`, and the older `/api/embeddings` with one text and one vector.
//! Texts only: Ollama's clients send no token ids.

use std::fmt;
use std::time::Duration;

use hob_core::chat::EmbedInput;
use hob_core::{EmbedRequest, Embeddings};
use serde::Serialize;
use serde_json::Value;

use super::request::shortened;
use crate::WireError;
use crate::error::json;
use crate::fields::{Fields, wrong_type};
use crate::keep_alive::keep_alive;

/// Texts in one request: as many as OpenAI takes.
const INPUTS_MAX: usize = 2048;

/// What was asked for. Without inputs it is about memory only, and the answer holds no vectors.
#[derive(Clone, PartialEq)]
pub struct OllamaEmbed {
    /// `None`: the default chat model.
    pub model: Option<String>,
    pub request: EmbedRequest,
    /// Fields without effect, to be named in `x-hob-ignored`.
    pub ignored: Vec<String>,
}

impl fmt::Debug for OllamaEmbed {
    /// Says how many texts, never which.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("OllamaEmbed")
            .field("model", &self.model)
            .field("inputs", &self.request.inputs.len())
            .finish_non_exhaustive()
    }
}

/// # Errors
/// [`WireError`], naming the field and what it takes.
pub fn parse_ollama_embed(body: &[u8]) -> Result<OllamaEmbed, WireError> {
    let mut fields = Fields::parse(body)?;
    let inputs = inputs(&mut fields)?;
    let dimensions = dimensions(&mut fields)?;
    finish(fields, inputs, dimensions)
}

/// # Errors
/// [`WireError`], naming the field and what it takes.
pub fn parse_ollama_embeddings(body: &[u8]) -> Result<OllamaEmbed, WireError> {
    let mut fields = Fields::parse(body)?;
    let prompt = fields.text("prompt")?.filter(|prompt| !prompt.is_empty());
    finish(fields, prompt.into_iter().collect(), None)
}

/// The answer of `/api/embed`; `since` is the time since the request came.
pub fn ollama_embeddings(model: &str, embeddings: &Embeddings, since: Duration) -> String {
    #[derive(Serialize)]
    struct Answer<'a> {
        model: &'a str,
        embeddings: &'a [Vec<f32>],
        total_duration: u64,
        load_duration: u64,
        prompt_eval_count: u32,
    }
    json(&Answer {
        model,
        embeddings: &embeddings.vectors,
        total_duration: u64::try_from(since.as_nanos()).unwrap_or(u64::MAX),
        // An embedding's events do not say how long loading took; it is in the total.
        load_duration: 0,
        prompt_eval_count: embeddings.prompt_tokens,
    })
}

/// The answer of `/api/embeddings`.
pub fn ollama_embedding(embeddings: &Embeddings) -> String {
    #[derive(Serialize)]
    struct Answer<'a> {
        embedding: &'a [f32],
    }
    json(&Answer { embedding: embeddings.vectors.first().map_or(&[], Vec::as_slice) })
}

fn inputs(fields: &mut Fields) -> Result<Vec<String>, WireError> {
    const WANTED: &str = "a string or a list of strings";
    let text = |value| match value {
        Value::String(text) => Ok(text),
        other => Err(wrong_type("input", WANTED, &other)),
    };
    let inputs: Vec<String> = match fields.take("input") {
        None => Vec::new(),
        Some(Value::String(text)) if text.is_empty() => Vec::new(),
        Some(Value::Array(values)) => values.into_iter().map(text).collect::<Result<_, _>>()?,
        Some(value) => vec![text(value)?],
    };
    if inputs.len() > INPUTS_MAX {
        let reason = format!("takes {INPUTS_MAX} texts, and has {}", inputs.len());
        return Err(WireError::Invalid { field: "input", reason });
    }
    Ok(inputs)
}

fn dimensions(fields: &mut Fields) -> Result<Option<u32>, WireError> {
    let Some(dimensions) = fields.whole_number("dimensions")? else { return Ok(None) };
    match u32::try_from(dimensions) {
        Ok(0) => Ok(None),
        Ok(dimensions) => Ok(Some(dimensions)),
        Err(_) => Err(WireError::Invalid {
            field: "dimensions",
            reason: format!("must be a number of dimensions, and is {dimensions}"),
        }),
    }
}

fn finish(
    mut fields: Fields,
    inputs: Vec<String>,
    dimensions: Option<u32>,
) -> Result<OllamaEmbed, WireError> {
    let mut ignored = Vec::new();
    let model = super::model(&mut fields)?;
    let keep_alive = keep_alive(&mut fields)?;
    shortened(&mut fields, &mut ignored)?;
    if let Some(options) = fields.object("options")? {
        ignored.extend(options.into_unknown().iter().map(|name| format!("options.{name}")));
    }
    ignored.extend(fields.into_unknown());
    let inputs = inputs.into_iter().map(EmbedInput::Text).collect();
    Ok(OllamaEmbed {
        model,
        request: EmbedRequest { inputs, dimensions, keep_alive, ..EmbedRequest::default() },
        ignored,
    })
}
