//! Embeddings from the asking side: texts to another server, and its vectors back.
//! Every vector is given length 1 here, so that it does not matter who made it.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use hob_core::chat::EmbedInput;
use hob_core::{EmbedRequest, Embeddings, Fault};
use serde::Deserialize;
use serde::de::{Deserializer, Error, SeqAccess, Visitor};
use serde_json::{Map, Value, json};

use super::UnsupportedField;
use super::fault::{reported, shortened};
use super::lenient::{Count, Maybe, error_in};
use super::request::keep_alive;

/// The body for `embeddings`, below the server's `/v1`. Numbers are asked for as numbers: not every
/// server knows another way.
pub fn openai_embed_request(request: &EmbedRequest, model: &str) -> String {
    let inputs = request.inputs.iter().map(|input| match input {
        EmbedInput::Text(text) => json!(text),
        EmbedInput::Tokens(tokens) => json!(tokens),
    });
    let inputs: Value = inputs.collect();
    let mut body = json!({ "model": model, "input": inputs, "encoding_format": "float" });
    if let Some(dimensions) = request.dimensions {
        body["dimensions"] = json!(dimensions);
    }
    body.to_string()
}

/// The body for `api/embed`, below the server's root; `num_ctx` as in
/// [`super::ollama_request`], because another value would load the model again.
///
/// # Errors
/// [`UnsupportedField`]: Ollama takes texts only.
pub fn ollama_embed_request(
    request: &EmbedRequest,
    model: &str,
    num_ctx: Option<u32>,
) -> Result<String, UnsupportedField> {
    let texts = request.inputs.iter().map(|input| match input {
        EmbedInput::Text(text) => Ok(text.as_str()),
        EmbedInput::Tokens(_) => Err(UnsupportedField { field: "input" }),
    });
    let texts = texts.collect::<Result<Vec<&str>, UnsupportedField>>()?;
    let options = num_ctx.map(|num_ctx| json!({ "num_ctx": num_ctx }));
    let fields = [
        ("model", Some(json!(model))),
        ("input", Some(json!(texts))),
        ("truncate", Some(json!(false))),
        ("dimensions", request.dimensions.map(Value::from)),
        ("keep_alive", request.keep_alive.map(keep_alive)),
        ("options", options),
    ];
    let given = fields.into_iter().filter_map(|(name, value)| Some((name.to_owned(), value?)));
    Ok(Value::Object(given.collect::<Map<_, _>>()).to_string())
}

/// The vectors of an answer of OpenAI's shape, in the order of `asked`.
///
/// # Errors
/// [`Fault::InvalidAnswer`] for anything but one vector of numbers for each input.
pub fn parse_openai_vectors(body: &[u8], asked: &EmbedRequest) -> Result<Embeddings, Fault> {
    let answer: OpenAiAnswer = parse(body)?;
    if let Some(error) = error_in(answer.error.as_ref()) {
        return Err(reported(error));
    }
    let usage = answer.usage.0.unwrap_or_default();
    let prompt_tokens = usage.prompt_tokens.0.or(usage.total_tokens.0).unwrap_or_default();
    let vectors = in_order(answer.data.unwrap_or_default())?;
    settle(vectors, prompt_tokens, asked)
}

/// The vectors of an answer of `api/embed`, in the order of `asked`.
///
/// # Errors
/// [`Fault::InvalidAnswer`] for anything but one vector of numbers for each input.
pub fn parse_ollama_vectors(body: &[u8], asked: &EmbedRequest) -> Result<Embeddings, Fault> {
    let answer: OllamaAnswer = parse(body)?;
    if let Some(error) = error_in(answer.error.as_ref()) {
        return Err(reported(error));
    }
    let vectors = answer.embeddings.unwrap_or_default();
    settle(vectors, answer.prompt_eval_count.0.unwrap_or_default(), asked)
}

#[derive(Default, Deserialize)]
#[serde(default)]
struct OpenAiAnswer {
    data: Option<Vec<Item>>,
    usage: Maybe<Usage>,
    error: Option<Value>,
}

#[derive(Deserialize)]
struct Item {
    #[serde(default)]
    index: Count,
    #[serde(deserialize_with = "vector")]
    embedding: Vec<f32>,
}

#[derive(Default, Deserialize)]
#[serde(default)]
struct Usage {
    prompt_tokens: Count,
    total_tokens: Count,
}

#[derive(Default, Deserialize)]
#[serde(default)]
struct OllamaAnswer {
    embeddings: Option<Vec<Vec<f32>>>,
    prompt_eval_count: Count,
    error: Option<Value>,
}

fn parse<'de, T: Deserialize<'de>>(body: &'de [u8]) -> Result<T, Fault> {
    let parsed = serde_json::from_slice(body);
    parsed.map_err(|error| invalid_answer(shortened(&format!("no vectors: {error}"))))
}

fn invalid_answer(detail: String) -> Fault {
    Fault::InvalidAnswer { detail }
}

/// By their numbers; as they came where a server gives none, or the same to each.
fn in_order(mut items: Vec<Item>) -> Result<Vec<Vec<f32>>, Fault> {
    let are_numbered = items.windows(2).any(|pair| pair[0].index.0 != pair[1].index.0);
    if are_numbered {
        items.sort_by_key(|item| item.index.0);
        let expected = items.iter().zip(0u32..).all(|(item, place)| item.index.0 == Some(place));
        if !expected {
            return Err(invalid_answer("vectors that are not numbered 0, 1, 2 …".to_owned()));
        }
    }
    Ok(items.into_iter().map(|item| item.embedding).collect())
}

fn settle(
    vectors: Vec<Vec<f32>>,
    prompt_tokens: u32,
    asked: &EmbedRequest,
) -> Result<Embeddings, Fault> {
    let (got, wanted) = (vectors.len(), asked.inputs.len());
    if got != wanted {
        return Err(invalid_answer(format!("{got} vectors for {wanted} texts")));
    }
    let unit = |vector| unit(vector, asked.dimensions);
    let vectors = vectors.into_iter().map(unit).collect::<Result<Vec<Vec<f32>>, Fault>>()?;
    Ok(Embeddings { vectors, prompt_tokens })
}

/// A vector of length 1, with no more dimensions than requested: some servers do not shorten vectors.
fn unit(mut vector: Vec<f32>, dimensions: Option<u32>) -> Result<Vec<f32>, Fault> {
    let dimensions = dimensions.and_then(|dimensions| usize::try_from(dimensions).ok());
    vector.truncate(dimensions.unwrap_or(usize::MAX));
    let length = vector.iter().map(|x| f64::from(*x).powi(2)).sum::<f64>().sqrt();
    if !length.is_finite() || length == 0.0 {
        return Err(invalid_answer("a vector that points nowhere".to_owned()));
    }
    for number in &mut vector {
        *number = (f64::from(*number) / length) as f32;
    }
    Ok(vector)
}

/// A list of numbers; or 32-bit floats, lowest byte first, in base64.
fn vector<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Vec<f32>, D::Error> {
    deserializer.deserialize_any(VectorVisitor)
}

struct VectorVisitor;

impl<'de> Visitor<'de> for VectorVisitor {
    type Value = Vec<f32>;

    fn expecting(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("a list of numbers, or 32-bit floats in base64")
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut list: A) -> Result<Vec<f32>, A::Error> {
        let mut numbers = Vec::with_capacity(list.size_hint().unwrap_or_default());
        while let Some(number) = list.next_element()? {
            numbers.push(number);
        }
        Ok(numbers)
    }

    fn visit_str<E: Error>(self, text: &str) -> Result<Vec<f32>, E> {
        let bytes = STANDARD.decode(text).map_err(|_| E::custom("invalid base64"))?;
        let (numbers, rest) = bytes.as_chunks::<4>();
        if !rest.is_empty() {
            return Err(E::custom("bytes that are no 32-bit floats"));
        }
        Ok(numbers.iter().map(|bytes| f32::from_le_bytes(*bytes)).collect())
    }
}
