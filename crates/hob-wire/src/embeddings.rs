//! `POST /v1/embeddings`: texts in, vectors out, as numbers or as bytes in base64.
//! openai-python asks for base64 whenever its caller says nothing.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use hob_core::chat::EmbedInput;
use hob_core::{EmbedRequest, Embeddings};
use serde::{Serialize, Serializer};

use crate::WireError;
use crate::chat::count;
use crate::completions::{TextOrTokens, texts_or_tokens};
use crate::error::json;
use crate::fields::{Fields, TokenLists};
use crate::keep_alive::keep_alive;

const INPUT: &str = "input";

/// OpenAI's.
const INPUTS_MAX: usize = 2048;

/// Longer than any model's vectors.
const DIMENSIONS_MAX: i64 = 1 << 16;

/// What was asked for; nothing of it is checked against a model yet.
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
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum VectorEncoding {
    /// A list of numbers.
    Float,
    /// 32-bit floats, lowest byte first, in base64.
    Base64,
}

/// # Errors
/// [`WireError`], naming the field and what it takes.
pub fn parse_embeddings(body: &[u8]) -> Result<WireEmbeddings, WireError> {
    let (mut fields, tokens) = Fields::parse_with_tokens(body, INPUT, INPUTS_MAX)?;
    let inputs = inputs(&mut fields, tokens)?;
    let dimensions = count(&mut fields, "dimensions", 1..=DIMENSIONS_MAX)?;
    let keep_alive = keep_alive(&mut fields)?;
    let encoding = match fields.choice("encoding_format", &["float", "base64"])? {
        Some("base64") => VectorEncoding::Base64,
        _ => VectorEncoding::Float,
    };
    Ok(WireEmbeddings {
        model: fields.name("model")?,
        request: EmbedRequest { inputs, dimensions, keep_alive, ..EmbedRequest::default() },
        encoding,
        ignored: fields.into_unknown(),
    })
}

/// The answer, in the order of the inputs.
pub fn embeddings(model: &str, made: &Embeddings, encoding: VectorEncoding) -> String {
    let vectors = made.vectors.iter().zip(0..);
    json(&List {
        object: "list",
        data: vectors
            .map(|(vector, index)| Item {
                object: "embedding",
                index,
                embedding: Vector { numbers: vector, encoding },
            })
            .collect(),
        model,
        usage: Usage { prompt_tokens: made.prompt_tokens, total_tokens: made.prompt_tokens },
    })
}

fn inputs(fields: &mut Fields, tokens: Option<TokenLists>) -> Result<Vec<EmbedInput>, WireError> {
    let inputs = texts_or_tokens(fields, INPUT, tokens, INPUTS_MAX)?;
    let is_empty = |input: &TextOrTokens| match input {
        TextOrTokens::Text(text) => text.is_empty(),
        TextOrTokens::Tokens(tokens) => tokens.is_empty(),
    };
    if let Some(index) = inputs.iter().position(is_empty) {
        let empty = WireError::Invalid { field: INPUT, reason: "is empty".to_owned() };
        return Err(empty.within(INPUT, index));
    }
    let input = |input| match input {
        TextOrTokens::Text(text) => EmbedInput::Text(text),
        TextOrTokens::Tokens(tokens) => EmbedInput::Tokens(tokens),
    };
    Ok(inputs.into_iter().map(input).collect())
}

#[derive(Serialize)]
struct List<'a> {
    object: &'static str,
    data: Vec<Item<'a>>,
    model: &'a str,
    usage: Usage,
}

#[derive(Serialize)]
struct Item<'a> {
    object: &'static str,
    index: u32,
    embedding: Vector<'a>,
}

#[derive(Serialize)]
struct Usage {
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
