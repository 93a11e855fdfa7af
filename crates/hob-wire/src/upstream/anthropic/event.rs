//! One event of Anthropic's stream, as far as hob reads it. All events are one shape with most of it
//! missing: telling them apart while parsing would copy each of them first.

use serde::Deserialize;
use serde_json::Value;

use crate::upstream::lenient::{Count, Maybe, Text};

#[derive(Debug, Default, Deserialize)]
#[serde(default)]
pub(super) struct Event<'a> {
    #[serde(rename = "type", borrow)]
    pub(super) kind: Text<'a>,
    #[serde(borrow)]
    pub(super) delta: Maybe<Delta<'a>>,
    #[serde(borrow)]
    pub(super) content_block: Maybe<Block<'a>>,
    pub(super) message: Maybe<Opening>,
    pub(super) usage: Maybe<WireUsage>,
    pub(super) error: Option<Value>,
}

/// More of a block; or, without a type of its own, how the answer ended.
#[derive(Debug, Default, Deserialize)]
#[serde(default)]
pub(super) struct Delta<'a> {
    #[serde(rename = "type", borrow)]
    pub(super) kind: Text<'a>,
    #[serde(borrow)]
    pub(super) text: Text<'a>,
    #[serde(borrow)]
    pub(super) thinking: Text<'a>,
    #[serde(borrow)]
    pub(super) partial_json: Text<'a>,
    #[serde(borrow)]
    pub(super) stop_reason: Text<'a>,
}

/// How a block begins.
#[derive(Debug, Default, Deserialize)]
#[serde(default)]
pub(super) struct Block<'a> {
    #[serde(rename = "type", borrow)]
    pub(super) kind: Text<'a>,
    #[serde(borrow)]
    pub(super) text: Text<'a>,
    #[serde(borrow)]
    pub(super) thinking: Text<'a>,
    #[serde(borrow)]
    pub(super) id: Text<'a>,
    #[serde(borrow)]
    pub(super) name: Text<'a>,
    /// All of the arguments, from a server that does not say them piece by piece.
    pub(super) input: Option<Value>,
}

#[derive(Debug, Default, Deserialize)]
#[serde(default)]
pub(super) struct Opening {
    pub(super) usage: Maybe<WireUsage>,
}

/// What was counted until now.
#[derive(Clone, Copy, Debug, Default, Deserialize)]
#[serde(default)]
pub(super) struct WireUsage {
    /// Tokens of the prompt that were computed and not cached.
    pub(super) input_tokens: Count,
    pub(super) cache_read_input_tokens: Count,
    pub(super) cache_creation_input_tokens: Count,
    pub(super) output_tokens: Count,
    pub(super) output_tokens_details: Maybe<OutputDetails>,
}

#[derive(Clone, Copy, Debug, Default, Deserialize)]
#[serde(default)]
pub(super) struct OutputDetails {
    pub(super) thinking_tokens: Count,
}

impl WireUsage {
    /// What `later` does not say stays as it was.
    pub(super) fn update(&mut self, later: WireUsage) {
        let update = |now: &mut Count, later: Count| now.0 = later.0.or(now.0);
        update(&mut self.input_tokens, later.input_tokens);
        update(&mut self.cache_read_input_tokens, later.cache_read_input_tokens);
        update(&mut self.cache_creation_input_tokens, later.cache_creation_input_tokens);
        update(&mut self.output_tokens, later.output_tokens);
        let details = &mut self.output_tokens_details.0;
        *details = later.output_tokens_details.0.or(*details);
    }
}
