//! One piece of an answer as OpenAI's servers and their many relatives write it; everything optional.
//! A field of an unexpected type counts as absent.

use std::fmt;

use serde::Deserialize;
use serde::de::{Deserializer, IgnoredAny, MapAccess, Visitor};
use serde_json::Value;
use serde_json::value::RawValue;

use super::lenient::{Amount, Count, First, Maybe, Objects, Text, parts, written};
use super::text_frame::TextRole;

#[derive(Debug, Default)]
pub(super) struct Chunk<'a> {
    /// hob requests one answer, and ignores others.
    pub(super) choices: First<Choice<'a>>,
    pub(super) usage: Maybe<WireUsage>,
    pub(super) timings: Maybe<WireTimings>,
    pub(super) error: Option<Value>,
    /// Older vLLM reports a failure with `error` here, and the message in a field next to it.
    pub(super) object: Text<'a>,
    /// Names and values of the fields that hob does not know, such as `service_tier`, `citations` or `x_groq`.
    pub(super) unknown: Vec<(Text<'a>, &'a RawValue)>,
}

impl<'de: 'a, 'a> Deserialize<'de> for Chunk<'a> {
    fn deserialize<D: Deserializer<'de>>(piece: D) -> Result<Chunk<'a>, D::Error> {
        piece.deserialize_map(ChunkVisitor)
    }
}

struct ChunkVisitor;

impl<'de> Visitor<'de> for ChunkVisitor {
    type Value = Chunk<'de>;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("an object")
    }

    fn visit_map<A: MapAccess<'de>>(self, mut fields: A) -> Result<Chunk<'de>, A::Error> {
        let mut chunk = Chunk::default();
        while let Some(name) = fields.next_key::<Text<'de>>()? {
            match name.as_str() {
                "choices" => chunk.choices = fields.next_value()?,
                "usage" => chunk.usage = fields.next_value()?,
                "timings" => chunk.timings = fields.next_value()?,
                "error" => chunk.error = fields.next_value()?,
                "object" => chunk.object = fields.next_value()?,
                // hob writes its own. A message belongs to a failure, an event to a team of another hob, and the last two,
                // OpenAI's and Mistral's, only hide the length of a piece.
                "id" | "created" | "model" | "system_fingerprint" | "message" | "event"
                | "obfuscation" | "p" => {
                    fields.next_value::<IgnoredAny>()?;
                }
                _ => {
                    let value = fields.next_value::<&'de RawValue>()?;
                    chunk.unknown.push((name, value));
                }
            }
        }
        Ok(chunk)
    }
}

#[derive(Debug, Default, Deserialize)]
#[serde(default)]
pub(super) struct Choice<'a> {
    #[serde(borrow)]
    pub(super) delta: Maybe<Delta<'a>>,
    /// The whole of it, from a server that does not stream. Boxed, because a piece of a stream has none.
    #[serde(borrow)]
    pub(super) message: Maybe<Box<Delta<'a>>>,
    /// The text of a completion.
    #[serde(borrow)]
    pub(super) text: Text<'a>,
    #[serde(borrow)]
    pub(super) finish_reason: Text<'a>,
    pub(super) logprobs: Option<Value>,
    /// OpenRouter's, of the server behind it.
    pub(super) error: Option<Value>,
}

impl<'a> Choice<'a> {
    /// What the server said, streamed or whole.
    pub(super) fn said(&self) -> Option<&Delta<'a>> {
        self.delta.0.as_ref().or(self.message.0.as_deref())
    }

    /// Its text or its thinking, if a piece of a stream holds nothing else.
    pub(super) fn only_text(&self) -> Option<(TextRole, &Text<'a>)> {
        let delta = self.delta.0.as_ref()?;
        let has_more = self.logprobs.is_some()
            || self.message.0.is_some()
            || delta.function_call.0.is_some()
            || !delta.tool_calls.0.is_empty()
            || ![&self.text, &self.finish_reason, &delta.refusal].into_iter().all(Text::is_empty);
        match (delta.first_thought(), &delta.content) {
            _ if has_more => None,
            (None, text) if !text.is_empty() => Some((TextRole::Answer, text)),
            (Some(thought), text) if text.is_empty() => Some((TextRole::Thinking, thought)),
            _ => None,
        }
    }
}

#[derive(Debug, Default, Deserialize)]
#[serde(default)]
pub(super) struct Delta<'a> {
    #[serde(borrow, deserialize_with = "parts")]
    pub(super) content: Text<'a>,
    #[serde(borrow)]
    pub(super) reasoning_content: Text<'a>,
    #[serde(borrow, deserialize_with = "parts")]
    pub(super) reasoning: Text<'a>,
    #[serde(borrow, deserialize_with = "parts")]
    pub(super) reasoning_details: Text<'a>,
    #[serde(borrow)]
    pub(super) thinking: Text<'a>,
    #[serde(borrow)]
    pub(super) refusal: Text<'a>,
    #[serde(borrow)]
    pub(super) tool_calls: Objects<WireCall<'a>>,
    #[serde(borrow)]
    pub(super) function_call: Maybe<WireFunction<'a>>,
}

impl<'a> Delta<'a> {
    pub(super) fn thought(&self) -> &str {
        self.first_thought().map_or("", Text::as_str)
    }

    /// Thinking, under the first of its names that has any: servers repeat it under another.
    fn first_thought(&self) -> Option<&Text<'a>> {
        let names =
            [&self.reasoning_content, &self.reasoning, &self.reasoning_details, &self.thinking];
        names.into_iter().find(|text| !text.is_empty())
    }
}

#[derive(Debug, Default, Deserialize)]
#[serde(default)]
pub(super) struct WireCall<'a> {
    pub(super) index: Count,
    #[serde(borrow)]
    pub(super) id: Text<'a>,
    #[serde(borrow)]
    pub(super) function: Maybe<WireFunction<'a>>,
}

#[derive(Debug, Default, Deserialize)]
#[serde(default)]
pub(super) struct WireFunction<'a> {
    #[serde(borrow)]
    pub(super) name: Text<'a>,
    #[serde(borrow, deserialize_with = "written")]
    pub(super) arguments: Text<'a>,
}

#[derive(Clone, Copy, Debug, Default, Deserialize)]
#[serde(default)]
pub(super) struct WireUsage {
    pub(super) prompt_tokens: Count,
    pub(super) completion_tokens: Count,
    prompt_tokens_details: Maybe<PromptDetails>,
    completion_tokens_details: Maybe<CompletionDetails>,
}

impl WireUsage {
    pub(super) fn cached_tokens(&self) -> Option<u32> {
        self.prompt_tokens_details.0.and_then(|details| details.cached_tokens.0)
    }

    pub(super) fn reasoning_tokens(&self) -> Option<u32> {
        self.completion_tokens_details.0.and_then(|details| details.reasoning_tokens.0)
    }
}

#[derive(Clone, Copy, Debug, Default, Deserialize)]
#[serde(default)]
struct PromptDetails {
    cached_tokens: Count,
}

#[derive(Clone, Copy, Debug, Default, Deserialize)]
#[serde(default)]
struct CompletionDetails {
    reasoning_tokens: Count,
}

/// Times measured by llama-server or hob, in milliseconds. Only hob has the first two.
#[derive(Clone, Copy, Debug, Default, Deserialize)]
#[serde(default)]
pub(super) struct WireTimings {
    pub(super) load_ms: Amount,
    pub(super) queue_ms: Amount,
    pub(super) prompt_ms: Amount,
    pub(super) predicted_ms: Amount,
    pub(super) cache_n: Count,
    pub(super) draft_n: Count,
    pub(super) draft_n_accepted: Count,
}
