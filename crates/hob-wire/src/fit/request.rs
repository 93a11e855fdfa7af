//! Requests of `/api/fit`: a model and options, as a JSON body or as a query that can be shared.
//! Errors name the field and what it accepts.

use hob_core::KvTypes;
use hob_core::fit::{Engine, FitOptions};
use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::{Map, Value};

use crate::WireError;
use crate::fields::Fields;
use crate::request_value::{Name, count_within};

/// Faster than any decoding.
const TOK_S_MAX: f64 = 1e6;

/// Query values are texts; these become numbers.
const NUMBERS: [&str; 3] = ["context_tokens", "parallel", "tok_s_min"];

/// The fields of `/api/fit`, in its body or in its query.
#[derive(Deserialize, JsonSchema)]
pub(crate) struct FitFields {
    /// A chat model of this hob, or a model that hob knows by its dimensions, by its name or Ollama's tag.
    model: Option<Name>,
    /// Any quant of a known model: `Q8_0`, `Q4_K_M`, `AWQ`, … Default: `Q4_K_M`; for a file, the file's quant.
    quant: Option<Name>,
    /// A name of `/api/fit/machines`. Default: this machine, with its free memory now.
    machine: Option<Name>,
    /// Tokens of context of each conversation, default 8,192. hob lowers a larger number to the trained context, and warns.
    #[serde(default, deserialize_with = "count_within::<_, 1, { 1 << 26 }>")]
    context_tokens: Option<u32>,
    /// Types of the KV cache: `f16`, `q8_0`, `q4_0`, or keys and values apart: `q8_0/q4_0`. Default: the most exact that fits.
    kv: Option<Name>,
    /// Concurrent conversations, 1 to 1,024. Default: 1.
    #[serde(default, deserialize_with = "count_within::<_, 1, 1024>")]
    parallel: Option<u32>,
    /// `hob`, `llama.cpp`, `Ollama`, `vLLM`, `tabbyAPI`, `mlx-lm` or `transformers`. Default: the first that reads the format.
    engine: Option<Name>,
    /// Slowest useful speed, tokens/s. A slower plan gets a warning.
    tok_s_min: Option<f64>,
}

/// A parsed request. Names are not checked yet.
#[derive(Clone, Debug, PartialEq)]
pub struct FitRequest {
    pub model: String,
    /// `None`: the model's default quant.
    pub quant: Option<String>,
    /// `None`: the machine that hob runs on.
    pub machine: Option<String>,
    pub options: FitOptions,
    /// Fields without effect.
    pub ignored: Vec<String>,
}

/// Parses a JSON body.
///
/// # Errors
/// [`WireError`], naming the field and what it accepts.
pub fn parse_fit(body: &[u8]) -> Result<FitRequest, WireError> {
    request(Fields::parse(body)?)
}

/// Parses a query of names and values. Empty values count as absent.
///
/// # Errors
/// See [`parse_fit`].
pub fn parse_fit_query(pairs: &[(String, String)]) -> Result<FitRequest, WireError> {
    let given = pairs.iter().filter(|(_, value)| !value.trim().is_empty());
    let fields: Map<String, Value> =
        given.map(|(name, value)| (name.clone(), meant(name, value))).collect();
    request(Fields::of(fields))
}

fn meant(name: &str, value: &str) -> Value {
    let number = || value.trim().parse().ok().filter(|_| NUMBERS.contains(&name));
    number().map_or_else(|| Value::String(value.to_owned()), Value::Number)
}

fn request(mut fields: Fields) -> Result<FitRequest, WireError> {
    let sent: FitFields = fields.read()?;
    let text = |name: Option<Name>| name.map(|name| name.0);
    let model = text(sent.model).filter(|name| !name.trim().is_empty());
    Ok(FitRequest {
        model: model.ok_or_else(|| WireError::missing("model"))?,
        quant: text(sent.quant),
        machine: text(sent.machine),
        options: FitOptions {
            context_tokens: sent.context_tokens,
            kv: text(sent.kv).map(|types| kv(&types)).transpose()?,
            sequences: sent.parallel.unwrap_or(1),
            engine: text(sent.engine).map(|name| engine(&name)).transpose()?,
            tok_s_min: sent.tok_s_min.map(tok_s_min).transpose()?,
        },
        ignored: fields.into_unknown(),
    })
}

/// `q8_0`, or different types for keys and values: `q8_0/q4_0`.
fn kv(text: &str) -> Result<KvTypes, WireError> {
    let (keys, values) = text.split_once('/').unwrap_or((text, text));
    let parsed = |name: &str| {
        name.trim().parse().map_err(|error| {
            let reason = format!("is a type or two, as q8_0 or q8_0/q4_0: {error}");
            WireError::invalid("kv", reason)
        })
    };
    Ok(KvTypes { keys: parsed(keys)?, values: parsed(values)? })
}

fn engine(name: &str) -> Result<Engine, WireError> {
    let accepted = || Engine::ALL.map(Engine::name);
    Engine::by_name(name).ok_or_else(|| WireError::not_one_of("engine", name, &accepted()))
}

fn tok_s_min(floor: f64) -> Result<f64, WireError> {
    if floor > 0.0 && floor <= TOK_S_MAX {
        return Ok(floor);
    }
    let reason = format!("must be more than 0 and at most {TOK_S_MAX}, and is {floor}");
    Err(WireError::invalid("tok_s_min", reason))
}
