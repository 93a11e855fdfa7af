//! How the next token is chosen, in OpenAI's words and those that llama.cpp added to them.
//! A limit below zero means "no limit": some clients have no other word. Zero tokens are none.

use std::ops::RangeInclusive;

use hob_core::chat::Sampling;
use serde_json::Value;

use crate::WireError;
use crate::fields::{Fields, wrong_type};

/// Texts that may end an answer, each of so many bytes.
const STOPS_MAX: usize = 16;
const STOP_BYTES_MAX: usize = 256;

/// Tokens whose likelihood is shifted.
const BIASES_MAX: usize = 1024;

const BIAS: RangeInclusive<f64> = -100.0..=100.0;

pub(crate) fn sampling(
    fields: &mut Fields,
    ignored: &mut Vec<String>,
) -> Result<Sampling, WireError> {
    Ok(Sampling {
        temperature: within(fields, "temperature", 0.0..=2.0)?,
        top_p: within(fields, "top_p", 0.0..=1.0)?,
        top_k: top_k(fields)?,
        min_p: within(fields, "min_p", 0.0..=1.0)?,
        repeat_penalty: repeat_penalty(fields)?,
        presence_penalty: within(fields, "presence_penalty", -2.0..=2.0)?,
        frequency_penalty: within(fields, "frequency_penalty", -2.0..=2.0)?,
        seed: fields.whole_number("seed")?.map(i64::cast_unsigned),
        logit_bias: logit_bias(fields, ignored)?,
        ignore_eos: fields.flag("ignore_eos")?,
    })
}

pub(crate) fn tokens_max(
    fields: &mut Fields,
    field: &'static str,
) -> Result<Option<u32>, WireError> {
    let tokens = fields.whole_number(field)?.filter(|tokens| *tokens >= 0);
    Ok(tokens.map(|tokens| u32::try_from(tokens).unwrap_or(u32::MAX)))
}

/// A whole number of the range.
pub(crate) fn count(
    fields: &mut Fields,
    field: &'static str,
    range: RangeInclusive<i64>,
) -> Result<Option<u32>, WireError> {
    match fields.whole_number(field)? {
        Some(number) if !range.contains(&number) => {
            Err(out_of(field, range.start(), range.end(), &number))
        }
        number => Ok(number.and_then(|number| u32::try_from(number).ok())),
    }
}

pub(crate) fn stop(fields: &mut Fields) -> Result<Vec<String>, WireError> {
    const FIELD: &str = "stop";
    let text = |value| match value {
        Value::String(text) => Ok(text),
        other => Err(wrong_type(FIELD, "a string or a list of strings", &other)),
    };
    let stops: Vec<String> = match fields.take(FIELD) {
        None => Vec::new(),
        Some(Value::Array(values)) => values.into_iter().map(text).collect::<Result<_, _>>()?,
        Some(value) => vec![text(value)?],
    };
    let longest = stops.iter().map(String::len).max().unwrap_or(0);
    let reason = if stops.len() > STOPS_MAX {
        format!("has {} texts and the limit is {STOPS_MAX}", stops.len())
    } else if longest > STOP_BYTES_MAX {
        format!("has a text of {longest} bytes and the limit is {STOP_BYTES_MAX}")
    } else {
        return Ok(stops.into_iter().filter(|stop| !stop.is_empty()).collect());
    };
    Err(WireError::Invalid { field: FIELD, reason })
}

fn within(
    fields: &mut Fields,
    field: &'static str,
    range: RangeInclusive<f64>,
) -> Result<Option<f32>, WireError> {
    match fields.number(field)? {
        Some(number) if !range.contains(&number) => {
            Err(out_of(field, range.start(), range.end(), &number))
        }
        number => Ok(number.map(|number| number as f32)),
    }
}

fn out_of<T: std::fmt::Display>(field: &'static str, from: &T, to: &T, got: &T) -> WireError {
    WireError::Invalid { field, reason: format!("must be from {from} to {to}, and is {got}") }
}

/// Below one is all of them.
fn top_k(fields: &mut Fields) -> Result<Option<u32>, WireError> {
    let top_k = fields.whole_number("top_k")?;
    Ok(top_k.map(|top_k| top_k.clamp(0, i64::from(u32::MAX)) as u32))
}

/// Two names are in use; nobody can mean zero.
fn repeat_penalty(fields: &mut Fields) -> Result<Option<f32>, WireError> {
    let ours = within(fields, "repeat_penalty", 0.0..=10.0)?;
    let theirs = within(fields, "repetition_penalty", 0.0..=10.0)?;
    Ok(ours.or(theirs).filter(|penalty| *penalty > 0.0))
}

/// Keys are token ids; what is none has no token to change.
fn logit_bias(
    fields: &mut Fields,
    ignored: &mut Vec<String>,
) -> Result<Vec<(u32, f32)>, WireError> {
    const FIELD: &str = "logit_bias";
    let biases = match fields.take(FIELD) {
        None => return Ok(Vec::new()),
        Some(Value::Object(biases)) => biases,
        Some(other) => return Err(wrong_type(FIELD, "an object of token ids", &other)),
    };
    if biases.len() > BIASES_MAX {
        let reason = format!("has {} tokens and the limit is {BIASES_MAX}", biases.len());
        return Err(WireError::Invalid { field: FIELD, reason });
    }
    let mut known = Vec::new();
    for (key, value) in biases {
        let bias = value.as_f64().ok_or_else(|| wrong_type(FIELD, "numbers", &value))?;
        if !BIAS.contains(&bias) {
            return Err(out_of(FIELD, BIAS.start(), BIAS.end(), &bias));
        }
        match key.parse() {
            Ok(token) => known.push((token, bias as f32)),
            Err(_) => ignored.push(format!("{FIELD}.{key}")),
        }
    }
    Ok(known)
}
