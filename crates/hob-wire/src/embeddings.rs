//! `POST /v1/embeddings`: texts in, vectors out, as numbers or as bytes in base64.
//! openai-python requests base64 unless its caller chooses a format.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use hob_core::chat::EmbedInput;
use hob_core::{EmbedRequest, Embeddings, KeepAlive};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize, Serializer};

use crate::WireError;
use crate::completions::{TextOrTokens, TextsField, TextsSchema, texts_or_tokens};
use crate::error::json;
use crate::fields::{Fields, TokenLists};
use crate::keep_alive::{KeepAliveField, keep_alive};
use crate::request_value::{Either, Name, count_within};

const INPUT: &str = "input";

/// OpenAI's.
const INPUTS_MAX: usize = 2048;

/// Longer than any model's vectors.
const DIMENSIONS_MAX: u32 = 1 << 16;

/// A parsed request. Its names are not yet checked against a model.
#[derive(Clone, Debug, PartialEq)]
pub struct WireEmbeddings {
    /// `None`: the default chat model.
    pub model: Option<String>,
    pub request: EmbedRequest,
    pub encoding: VectorEncoding,
    /// Parameters without effect, to be named in `x-hob-ignored`.
    pub ignored: Vec<String>,
}

/// How a vector is written.
#[derive(Clone, Copy, Debug, Deserialize, JsonSchema, PartialEq, Eq)]
#[serde(rename_all = "snake_case")]
#[schemars(inline)]
pub enum VectorEncoding {
    /// A list of numbers.
    Float,
    /// 32-bit floats, lowest byte first, in base64.
    Base64,
}

/// The fields of `POST /v1/embeddings`.
#[derive(Deserialize, JsonSchema)]
pub(crate) struct EmbeddingFields {
    /// A text, or token ids of the model's vocabulary; one of them, or a list of up to 2,048.
    #[schemars(with = "TextsSchema", required)]
    input: Option<TextsField>,
    /// An alias, a chat model of `/v1/models`, or `UPSTREAM/MODEL`. Default: the default chat model.
    model: Option<Name>,
    /// Shortens each vector to this many numbers.
    #[serde(default, deserialize_with = "count_within::<_, 1, DIMENSIONS_MAX>")]
    dimensions: Option<u32>,
    /// `base64` writes a vector as 32-bit floats, lowest byte first. Default: `float`.
    encoding_format: Option<VectorEncoding>,
    /// How long the model stays in memory after the answer: seconds, or a duration such as `5m`. Below zero: for ever.
    #[serde(default, deserialize_with = "keep_alive")]
    #[schemars(with = "Option<KeepAliveField>")]
    keep_alive: Option<KeepAlive>,
}

/// # Errors
/// [`WireError`], naming the field and what it takes.
pub fn parse_embeddings(body: &[u8]) -> Result<WireEmbeddings, WireError> {
    let (mut fields, tokens) = Fields::parse_with_tokens(body, INPUT, INPUTS_MAX)?;
    let sent: EmbeddingFields = fields.read()?;
    let inputs = inputs(sent.input, tokens)?;
    let EmbeddingFields { dimensions, keep_alive, .. } = sent;
    Ok(WireEmbeddings {
        model: sent.model.map(|name| name.0),
        request: EmbedRequest { inputs, dimensions, keep_alive, ..EmbedRequest::default() },
        encoding: sent.encoding_format.unwrap_or(VectorEncoding::Float),
        ignored: fields.into_unknown(),
    })
}

/// The answer, in the order of the inputs.
pub fn embeddings(model: &str, made: &Embeddings, encoding: VectorEncoding) -> String {
    let vectors = made.vectors.iter().zip(0..);
    json(&EmbeddingList {
        object: "list",
        data: vectors
            .map(|(vector, index)| EmbeddingItem {
                object: "embedding",
                index,
                embedding: Vector { numbers: vector, encoding },
            })
            .collect(),
        model,
        usage: EmbeddingUsage {
            prompt_tokens: made.prompt_tokens,
            total_tokens: made.prompt_tokens,
        },
    })
}

fn inputs(
    sent: Option<TextsField>,
    tokens: Option<TokenLists>,
) -> Result<Vec<EmbedInput>, WireError> {
    let inputs = texts_or_tokens(INPUT, sent, tokens, INPUTS_MAX)?;
    let is_empty = |input: &TextOrTokens| match input {
        TextOrTokens::Text(text) => text.is_empty(),
        TextOrTokens::Tokens(tokens) => tokens.is_empty(),
    };
    if let Some(index) = inputs.iter().position(is_empty) {
        return Err(WireError::invalid(&format!("{INPUT}[{index}]"), "is empty"));
    }
    let input = |input| match input {
        TextOrTokens::Text(text) => EmbedInput::Text(text),
        TextOrTokens::Tokens(tokens) => EmbedInput::Tokens(tokens),
    };
    Ok(inputs.into_iter().map(input).collect())
}

/// The answer of `POST /v1/embeddings`.
#[derive(JsonSchema, Serialize)]
pub(crate) struct EmbeddingList<'a> {
    object: &'static str,
    data: Vec<EmbeddingItem<'a>>,
    model: &'a str,
    usage: EmbeddingUsage,
}

/// The vector of one input.
#[derive(JsonSchema, Serialize)]
struct EmbeddingItem<'a> {
    object: &'static str,
    index: u32,
    /// Numbers, or 32-bit floats in base64, lowest byte first.
    #[schemars(with = "Either<Vec<f32>, String>")]
    embedding: Vector<'a>,
}

/// Tokens of all inputs.
#[derive(JsonSchema, Serialize)]
struct EmbeddingUsage {
    prompt_tokens: u32,
    total_tokens: u32,
}

struct Vector<'a> {
    numbers: &'a [f32],
    encoding: VectorEncoding,
}

impl Serialize for Vector<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        match self.encoding {
            VectorEncoding::Float => self.numbers.serialize(serializer),
            VectorEncoding::Base64 => {
                let bytes: Vec<u8> =
                    self.numbers.iter().flat_map(|number| number.to_le_bytes()).collect();
                serializer.serialize_str(&STANDARD.encode(bytes))
            }
        }
    }
}
