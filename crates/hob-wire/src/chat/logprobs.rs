//! How likely each token was, as OpenAI's readers know it: text, bytes, and what else was likely.
//! A token need not be whole characters, so its bytes have a field of their own.

use std::borrow::Cow;

use hob_core::chat::{TokenLogprob, TokenText};
use schemars::JsonSchema;
use serde::Serialize;

/// What OpenAI says of a token that could not have come: JSON has no infinity.
const IMPOSSIBLE: f32 = -9999.0;

/// Log probabilities of an answer's tokens.
#[derive(JsonSchema, Serialize)]
pub(super) struct ChatLogprobs<'a> {
    content: Vec<ChosenToken<'a>>,
    /// Part of the type, and never anything else here.
    refusal: Option<()>,
}

/// A token of the answer, and the likeliest tokens in its place.
#[derive(JsonSchema, Serialize)]
pub(crate) struct ChosenToken<'a> {
    #[serde(flatten)]
    token: LikelyToken<'a>,
    top_logprobs: Vec<LikelyToken<'a>>,
}

/// A token and its log probability.
#[derive(JsonSchema, Serialize)]
struct LikelyToken<'a> {
    token: Cow<'a, str>,
    logprob: f32,
    /// A token need not be whole characters.
    bytes: &'a [u8],
}

/// None when the model gave none.
pub(super) fn logprobs(tokens: &[TokenLogprob]) -> Option<ChatLogprobs<'_>> {
    let content: Vec<_> = tokens.iter().map(chosen).collect();
    (!content.is_empty()).then_some(ChatLogprobs { content, refusal: None })
}

pub(crate) fn lossy(text: &TokenText) -> Cow<'_, str> {
    String::from_utf8_lossy(&text.0)
}

pub(crate) fn clamped(logprob: f32) -> f32 {
    if logprob.is_finite() { logprob } else { IMPOSSIBLE }
}

pub(crate) fn chosen(chosen: &TokenLogprob) -> ChosenToken<'_> {
    let top_logprobs = chosen.top.iter().map(|(text, logprob)| token(text, *logprob)).collect();
    ChosenToken { token: token(&chosen.token, chosen.logprob), top_logprobs }
}

fn token(text: &TokenText, logprob: f32) -> LikelyToken<'_> {
    LikelyToken { token: lossy(text), logprob: clamped(logprob), bytes: &text.0 }
}
