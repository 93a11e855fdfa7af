//! How the next token is chosen, in OpenAI's words and those that llama.cpp added to them.
//! Chat, completions, Ollama's `options` and aliases share these fields.

use std::collections::BTreeMap;

use hob_core::chat::Sampling;
use schemars::JsonSchema;
use serde::de::Error;
use serde::{Deserialize, Deserializer};

use crate::WireError;
use crate::request_value::{Either, check_count, number_within, out_of_range};

/// Maximum number of stop texts, and maximum bytes of each.
const STOPS_MAX: usize = 16;
const STOP_BYTES_MAX: usize = 256;

/// Maximum number of tokens in `logit_bias`, and the largest bias in both directions.
const BIASES_MAX: usize = 1024;
const BIAS_MAX: f64 = 100.0;

/// Fields that choose the next token.
#[derive(Debug, Default, Deserialize, JsonSchema)]
pub(crate) struct SamplingFields {
    /// From 0, which always takes the likeliest token, to 2.
    #[serde(default, deserialize_with = "number_within::<_, 0, 2>")]
    #[schemars(range(min = 0, max = 2))]
    temperature: Option<f32>,
    /// Considers the likeliest tokens that together have this probability, 0 to 1.
    #[serde(default, deserialize_with = "number_within::<_, 0, 1>")]
    #[schemars(range(min = 0, max = 1))]
    top_p: Option<f32>,
    /// Considers this many of the likeliest tokens. Below 1: all.
    top_k: Option<i64>,
    /// Skips tokens below this share of the likeliest token's probability, 0 to 1.
    #[serde(default, deserialize_with = "number_within::<_, 0, 1>")]
    #[schemars(range(min = 0, max = 1))]
    min_p: Option<f32>,
    /// Makes repeated tokens less likely, 0 to 10. 1 and 0 change nothing.
    #[serde(default, deserialize_with = "number_within::<_, 0, 10>")]
    #[schemars(range(min = 0, max = 10))]
    repeat_penalty: Option<f32>,
    /// Another name of `repeat_penalty`.
    #[serde(default, deserialize_with = "number_within::<_, 0, 10>")]
    #[schemars(range(min = 0, max = 10))]
    repetition_penalty: Option<f32>,
    /// Makes every token that has occurred less likely, -2 to 2.
    #[serde(default, deserialize_with = "number_within::<_, -2, 2>")]
    #[schemars(range(min = -2, max = 2))]
    presence_penalty: Option<f32>,
    /// Makes a token less likely with each occurrence, -2 to 2.
    #[serde(default, deserialize_with = "number_within::<_, -2, 2>")]
    #[schemars(range(min = -2, max = 2))]
    frequency_penalty: Option<f32>,
    /// The same seed gives the same answer. From -2^63 to 2^64 - 1.
    #[serde(default, deserialize_with = "seed_number")]
    #[schemars(range(min = i64::MIN, max = u64::MAX))]
    seed: Option<i128>,
    /// Token ids and what is added to their likelihood, -100 to 100. At most 1,024 tokens.
    logit_bias: Option<BTreeMap<String, f64>>,
    /// Does not end at the model's end token.
    ignore_eos: Option<bool>,
    /// Up to 16 texts of 256 bytes that end the answer.
    stop: Option<Either<String, Vec<String>>>,
}

impl SamplingFields {
    pub(crate) fn sampling(&mut self, ignored: &mut Vec<String>) -> Result<Sampling, WireError> {
        let penalty = self.repeat_penalty.or(self.repetition_penalty);
        Ok(Sampling {
            temperature: self.temperature,
            top_p: self.top_p,
            top_k: self.top_k.map(|top_k| top_k.clamp(0, i64::from(u32::MAX)) as u32),
            min_p: self.min_p,
            repeat_penalty: penalty.filter(|penalty| *penalty > 0.0),
            presence_penalty: self.presence_penalty,
            frequency_penalty: self.frequency_penalty,
            // A negative number keeps its bits.
            seed: self.seed.map(|seed| seed as u64),
            logit_bias: logit_bias(self.logit_bias.take().unwrap_or_default(), ignored)?,
            ignore_eos: self.ignore_eos,
        })
    }

    /// Ollama's clients write a negative seed for a random one.
    pub(crate) fn has_negative_seed(&self) -> bool {
        self.seed.is_some_and(|seed| seed < 0)
    }

    pub(crate) fn stop(&mut self) -> Result<Vec<String>, WireError> {
        let stops = match self.stop.take() {
            None => Vec::new(),
            Some(Either::First(stop)) => vec![stop],
            Some(Either::Second(stops)) => stops,
        };
        check_count("stop", stops.len(), ("texts", STOPS_MAX))?;
        let longest = stops.iter().map(String::len).max().unwrap_or(0);
        if longest > STOP_BYTES_MAX {
            let reason = format!("has a text of {longest} bytes and the limit is {STOP_BYTES_MAX}");
            return Err(WireError::invalid("stop", reason));
        }
        Ok(stops.into_iter().filter(|stop| !stop.is_empty()).collect())
    }
}

/// A seed has 64 bits, which clients write with a sign or without.
fn seed_number<'de, D: Deserializer<'de>>(value: D) -> Result<Option<i128>, D::Error> {
    let (lowest, highest) = (i128::from(i64::MIN), i128::from(u64::MAX));
    let seed = Option::<i128>::deserialize(value)?;
    if seed.is_some_and(|seed| !(lowest..=highest).contains(&seed)) {
        let reason = format!("must be a whole number from {lowest} to {highest}");
        return Err(D::Error::custom(reason));
    }
    Ok(seed)
}

/// The biases by token id. Adds keys that are not token ids to `ignored`.
fn logit_bias(
    biases: BTreeMap<String, f64>,
    ignored: &mut Vec<String>,
) -> Result<Vec<(u32, f32)>, WireError> {
    const FIELD: &str = "logit_bias";
    check_count(FIELD, biases.len(), ("tokens", BIASES_MAX))?;
    let mut known = Vec::new();
    for (key, bias) in biases {
        if bias.abs() > BIAS_MAX {
            return Err(WireError::within(out_of_range(-BIAS_MAX, BIAS_MAX, bias), FIELD));
        }
        match key.parse() {
            Ok(token) => known.push((token, bias as f32)),
            Err(_) => ignored.push(format!("{FIELD}.{key}")),
        }
    }
    Ok(known)
}
