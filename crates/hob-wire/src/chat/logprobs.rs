//! How likely each token was, as OpenAI's readers know it: text, bytes, and what else was likely.
//! A token need not be whole characters, which is why its bytes are told apart from its text.

use std::borrow::Cow;

use hob_core::chat::{TokenLogprob, TokenText};
use serde::Serialize;

/// What OpenAI says of a token that could not have come: JSON has no infinity.
const IMPOSSIBLE: f32 = -9999.0;

#[derive(Serialize)]
pub(super) struct Logprobs<'a> {
    content: Vec<Chosen<'a>>,
    /// Part of the type, and never anything else here.
    refusal: Option<()>,
}

#[derive(Serialize)]
pub(crate) struct Chosen<'a> {
    #[serde(flatten)]
    token: Token<'a>,
    top_logprobs: Vec<Token<'a>>,
}

#[derive(Serialize)]
struct Token<'a> {
    token: Cow<'a, str>,
    logprob: f32,
    bytes: &'a [u8],
}

/// None when the model gave none.
pub(super) fn logprobs(tokens: &[TokenLogprob]) -> Option<Logprobs<'_>> {
    let content: Vec<_> = tokens.iter().map(chosen).collect();
    (!content.is_empty()).then_some(Logprobs { content, refusal: None })
}

pub(crate) fn lossy(text: &TokenText) -> Cow<'_, str> {
    String::from_utf8_lossy(&text.0)
}

pub(crate) fn clamped(logprob: f32) -> f32 {
    if logprob.is_finite() { logprob } else { IMPOSSIBLE }
}

pub(crate) fn chosen(chosen: &TokenLogprob) -> Chosen<'_> {
    let top_logprobs = chosen.top.iter().map(|(text, logprob)| token(text, *logprob)).collect();
    Chosen { token: token(&chosen.token, chosen.logprob), top_logprobs }
}

fn token(text: &TokenText, logprob: f32) -> Token<'_> {
    Token { token: lossy(text), logprob: clamped(logprob), bytes: &text.0 }
}
