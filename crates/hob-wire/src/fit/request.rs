//! Requests of `/api/fit`: a model and options, as a JSON body or as a query that can be shared.
//! Errors name the field and what it accepts.

use hob_core::KvTypes;
use hob_core::fit::{Engine, FitOptions};
use serde_json::{Map, Value};

use crate::WireError;
use crate::chat::count;
use crate::fields::Fields;

/// Longer than any trained context.
const CONTEXT_TOKENS_MAX: i64 = 1 << 26;
const SEQUENCES_MAX: i64 = 1024;
/// Faster than any decoding.
const TOK_S_MAX: f64 = 1e6;

/// Query values are texts; these become numbers.
const NUMBERS: [&str; 3] = ["context_tokens", "parallel", "tok_s_min"];

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
    request(Fields::of("query", Value::Object(fields))?)
}

fn meant(name: &str, value: &str) -> Value {
    let number = || value.trim().parse().ok().filter(|_| NUMBERS.contains(&name));
    number().map_or_else(|| Value::String(value.to_owned()), Value::Number)
}

fn request(mut fields: Fields) -> Result<FitRequest, WireError> {
    let model = fields.name("model")?.filter(|name| !name.trim().is_empty());
    let sequences = count(&mut fields, "parallel", 1..=SEQUENCES_MAX)?;
    let options = FitOptions {
        context_tokens: count(&mut fields, "context_tokens", 1..=CONTEXT_TOKENS_MAX)?,
        kv: kv(&mut fields)?,
        sequences: sequences.unwrap_or(1),
        engine: engine(&mut fields)?,
        tok_s_min: tok_s_min(&mut fields)?,
    };
    Ok(FitRequest {
        model: model.ok_or(WireError::Missing { field: "model" })?,
        quant: fields.name("quant")?,
        machine: fields.name("machine")?,
        options,
        ignored: fields.into_unknown(),
    })
}

/// `q8_0`, or different types for keys and values: `q8_0/q4_0`.
fn kv(fields: &mut Fields) -> Result<Option<KvTypes>, WireError> {
    const FIELD: &str = "kv";
    let Some(text) = fields.name(FIELD)? else { return Ok(None) };
    let (keys, values) = text.split_once('/').unwrap_or((&text, &text));
    let wrong = |error: &dyn std::fmt::Display| {
        let reason = format!("is a type or two, as q8_0 or q8_0/q4_0: {error}");
        WireError::Invalid { field: FIELD, reason }
    };
    let parsed = |name: &str| name.trim().parse().map_err(|error| wrong(&error));
    Ok(Some(KvTypes { keys: parsed(keys)?, values: parsed(values)? }))
}

fn engine(fields: &mut Fields) -> Result<Option<Engine>, WireError> {
    const FIELD: &str = "engine";
    let Some(got) = fields.name(FIELD)? else { return Ok(None) };
    let accepted = || Engine::ALL.map(Engine::name).to_vec();
    let known = Engine::named(&got);
    known.map(Some).ok_or_else(|| WireError::NotOneOf { field: FIELD, got, accepted: accepted() })
}

fn tok_s_min(fields: &mut Fields) -> Result<Option<f64>, WireError> {
    const FIELD: &str = "tok_s_min";
    let Some(floor) = fields.number(FIELD)? else { return Ok(None) };
    if floor > 0.0 && floor <= TOK_S_MAX {
        return Ok(Some(floor));
    }
    let reason = format!("must be more than 0 and at most {TOK_S_MAX}, and is {floor}");
    Err(WireError::Invalid { field: FIELD, reason })
}
