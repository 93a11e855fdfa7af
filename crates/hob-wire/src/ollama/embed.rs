//! `/api/embed`, and the older `/api/embeddings` with one text and one vector.
//! Texts only: Ollama's clients send no token ids.

use std::time::Duration;

use hob_core::chat::EmbedInput;
use hob_core::{EmbedRequest, Embeddings, KeepAlive};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

use crate::WireError;
use crate::error::json;
use crate::fields::Fields;
use crate::keep_alive::{KeepAliveField, keep_alive};
use crate::request_value::{Either, Name, check_count};

/// Texts in one request: as many as OpenAI takes.
const INPUTS_MAX: usize = 2048;

/// A parsed request. Without inputs it only loads the model, and the answer holds no vectors.
#[derive(Clone, Debug, PartialEq)]
pub struct OllamaEmbed {
    /// `None`: the default chat model.
    pub model: Option<String>,
    pub request: EmbedRequest,
    /// Fields without effect, to be named in `x-hob-ignored`.
    pub ignored: Vec<String>,
}

/// The fields of `POST /api/embed` and `POST /api/embeddings`.
#[derive(Deserialize, JsonSchema)]
pub(crate) struct OllamaEmbedFields {
    /// For `/api/embed`: a text, or a list of up to 2,048. Without a text, the request only loads the model.
    input: Option<Either<String, Vec<String>>>,
    /// For `/api/embeddings`: the text.
    prompt: Option<String>,
    /// A chat model, with or without its tag. Default: the default chat model.
    model: Option<Name>,
    /// Another name of `model`, for older clients.
    name: Option<Name>,
    /// Shortens each vector to this many numbers. 0: does not shorten.
    dimensions: Option<i64>,
    /// How long the model stays in memory after the answer: seconds, or a duration such as `5m`. Below zero: for ever.
    #[serde(default, deserialize_with = "keep_alive")]
    #[schemars(with = "Option<KeepAliveField>")]
    keep_alive: Option<KeepAlive>,
    /// Without effect: hob never shortens a text.
    truncate: Option<bool>,
    /// Without effect.
    options: Option<Map<String, Value>>,
}

/// # Errors
/// [`WireError`], naming the field and what it takes.
pub fn parse_ollama_embed(body: &[u8]) -> Result<OllamaEmbed, WireError> {
    parse(body, |sent, ignored| {
        ignored.extend(sent.prompt.take().map(|_| "prompt".to_owned()));
        match sent.input.take() {
            Some(Either::First(text)) if !text.is_empty() => vec![text],
            Some(Either::Second(texts)) => texts,
            Some(Either::First(_)) | None => Vec::new(),
        }
    })
}

/// # Errors
/// [`WireError`], naming the field and what it takes.
pub fn parse_ollama_embeddings(body: &[u8]) -> Result<OllamaEmbed, WireError> {
    parse(body, |sent, ignored| {
        ignored.extend(sent.input.take().map(|_| "input".to_owned()));
        ignored.extend(sent.dimensions.take().map(|_| "dimensions".to_owned()));
        sent.prompt.take().filter(|prompt| !prompt.is_empty()).into_iter().collect()
    })
}

fn parse(
    body: &[u8],
    inputs: fn(&mut OllamaEmbedFields, &mut Vec<String>) -> Vec<String>,
) -> Result<OllamaEmbed, WireError> {
    let mut fields = Fields::parse(body)?;
    let mut sent: OllamaEmbedFields = fields.read()?;
    let mut ignored = Vec::new();
    let inputs = inputs(&mut sent, &mut ignored);
    check_count("input", inputs.len(), ("texts", INPUTS_MAX))?;
    let dimensions = sent.dimensions.map(dimensions).transpose()?.flatten();
    ignored.extend((sent.truncate == Some(true)).then(|| "truncate".to_owned()));
    let options = Fields::of(sent.options.unwrap_or_default()).into_unknown();
    ignored.extend(options.iter().map(|name| format!("options.{name}")));
    ignored.extend(fields.into_unknown());
    let inputs = inputs.into_iter().map(EmbedInput::Text).collect();
    let keep_alive = sent.keep_alive;
    Ok(OllamaEmbed {
        model: super::model_of(sent.model, sent.name),
        request: EmbedRequest { inputs, dimensions, keep_alive, ..EmbedRequest::default() },
        ignored,
    })
}

fn dimensions(sent: i64) -> Result<Option<u32>, WireError> {
    let reason = || format!("must be a number of dimensions, and is {sent}");
    let count = u32::try_from(sent).map_err(|_| WireError::invalid("dimensions", reason()))?;
    Ok(Some(count).filter(|count| *count > 0))
}

/// The answer of `POST /api/embed`. Times are in nanoseconds.
#[derive(JsonSchema, Serialize)]
pub(crate) struct OllamaEmbeddings<'a> {
    model: &'a str,
    embeddings: &'a [Vec<f32>],
    total_duration: u64,
    load_duration: u64,
    prompt_eval_count: u32,
}

/// The answer of `POST /api/embeddings`.
#[derive(JsonSchema, Serialize)]
pub(crate) struct OllamaEmbedding<'a> {
    embedding: &'a [f32],
}

/// The answer of `/api/embed`; `since` is the time since the request came.
pub fn ollama_embeddings(model: &str, embeddings: &Embeddings, since: Duration) -> String {
    json(&OllamaEmbeddings {
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
    json(&OllamaEmbedding { embedding: embeddings.vectors.first().map_or(&[], Vec::as_slice) })
}
