//! One event of Anthropic's stream, as far as hob reads it. All events are one shape with most of it
//! missing: telling them apart while parsing would copy each of them first.

use std::borrow::Cow;
use std::fmt;

use serde::Deserialize;
use serde::de::{Deserializer, Visitor};
use serde_json::Value;

#[derive(Debug, Default, Deserialize)]
pub(super) struct Event<'a> {
    #[serde(rename = "type", borrow, default)]
    pub(super) kind: Cow<'a, str>,
    #[serde(borrow, default)]
    pub(super) delta: Option<Delta<'a>>,
    #[serde(borrow, default)]
    pub(super) content_block: Option<Block<'a>>,
    #[serde(default)]
    pub(super) message: Option<Opening>,
    #[serde(default)]
    pub(super) usage: Option<WireUsage>,
    #[serde(default)]
    pub(super) error: Option<Value>,
}

/// More of a block; or, without a type of its own, how the answer ended.
#[derive(Debug, Default, Deserialize)]
pub(super) struct Delta<'a> {
    #[serde(rename = "type", borrow, default)]
    pub(super) kind: Cow<'a, str>,
    #[serde(borrow, default, deserialize_with = "text")]
    pub(super) text: Cow<'a, str>,
    #[serde(borrow, default, deserialize_with = "text")]
    pub(super) thinking: Cow<'a, str>,
    #[serde(borrow, default, deserialize_with = "text")]
    pub(super) partial_json: Cow<'a, str>,
    #[serde(borrow, default, deserialize_with = "text")]
    pub(super) stop_reason: Cow<'a, str>,
}

/// How a block begins.
#[derive(Debug, Default, Deserialize)]
pub(super) struct Block<'a> {
    #[serde(rename = "type", borrow, default)]
    pub(super) kind: Cow<'a, str>,
    #[serde(borrow, default, deserialize_with = "text")]
    pub(super) text: Cow<'a, str>,
    #[serde(borrow, default, deserialize_with = "text")]
    pub(super) thinking: Cow<'a, str>,
    #[serde(borrow, default, deserialize_with = "text")]
    pub(super) id: Cow<'a, str>,
    #[serde(borrow, default, deserialize_with = "text")]
    pub(super) name: Cow<'a, str>,
    /// All of the arguments, from a server that does not say them piece by piece.
    #[serde(default)]
    pub(super) input: Option<Value>,
}

#[derive(Debug, Default, Deserialize)]
pub(super) struct Opening {
    #[serde(default)]
    pub(super) usage: Option<WireUsage>,
}

/// What was counted until now.
#[derive(Clone, Copy, Debug, Default, Deserialize)]
pub(super) struct WireUsage {
    /// Tokens of the prompt that were computed and not cached.
    #[serde(default)]
    pub(super) input_tokens: Option<u32>,
    #[serde(default)]
    pub(super) cache_read_input_tokens: Option<u32>,
    #[serde(default)]
    pub(super) cache_creation_input_tokens: Option<u32>,
    #[serde(default)]
    pub(super) output_tokens: Option<u32>,
    #[serde(default)]
    pub(super) output_tokens_details: Option<OutputDetails>,
}

#[derive(Clone, Copy, Debug, Default, Deserialize)]
pub(super) struct OutputDetails {
    #[serde(default)]
    pub(super) thinking_tokens: Option<u32>,
}

impl WireUsage {
    /// What `later` does not say stays as it was.
    pub(super) fn update(&mut self, later: WireUsage) {
        let update = |now: &mut Option<u32>, later: Option<u32>| *now = later.or(*now);
        update(&mut self.input_tokens, later.input_tokens);
        update(&mut self.cache_read_input_tokens, later.cache_read_input_tokens);
        update(&mut self.cache_creation_input_tokens, later.cache_creation_input_tokens);
        update(&mut self.output_tokens, later.output_tokens);
        self.output_tokens_details = later.output_tokens_details.or(self.output_tokens_details);
    }
}

/// Borrowed where nothing is escaped; null is an empty text.
fn text<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Cow<'de, str>, D::Error> {
    deserializer.deserialize_any(Text)
}

struct Text;

impl<'de> Visitor<'de> for Text {
    type Value = Cow<'de, str>;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a text or null")
    }

    fn visit_borrowed_str<E>(self, text: &'de str) -> Result<Self::Value, E> {
        Ok(Cow::Borrowed(text))
    }

    fn visit_str<E>(self, text: &str) -> Result<Self::Value, E> {
        Ok(Cow::Owned(text.to_owned()))
    }

    fn visit_unit<E>(self) -> Result<Self::Value, E> {
        Ok(Cow::Borrowed(""))
    }
}
