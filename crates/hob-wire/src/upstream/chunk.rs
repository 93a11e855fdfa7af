//! One piece of an answer as OpenAI's servers and their many relatives write it; everything optional.
//! A field of an unexpected type counts as absent.

use std::fmt;

use serde::Deserialize;
use serde::de::{DeserializeSeed, Deserializer, IgnoredAny, MapAccess, Visitor};
use serde_json::Value;
use serde_json::value::RawValue;

use super::lenient::{Amount, Content, Count, First, Maybe, Objects, Text, parts, written};
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
    /// Such as `service_tier`, `citations` or `x_groq`.
    pub(super) unknown: Unknown<'a>,
}

/// Names and values of the fields that hob does not know.
pub(super) type Unknown<'a> = Vec<(Text<'a>, &'a RawValue)>;

#[derive(Debug, Default)]
pub(super) struct Choice<'a> {
    pub(super) delta: Maybe<Delta<'a>>,
    /// The whole of it, from a server that does not stream. Boxed, because a piece of a stream has none.
    pub(super) message: Maybe<Box<Delta<'a>>>,
    /// The text of a completion.
    pub(super) text: Text<'a>,
    pub(super) finish_reason: Text<'a>,
    pub(super) logprobs: Option<Value>,
    /// OpenRouter's, of the server behind it.
    pub(super) error: Option<Value>,
    /// Such as `native_finish_reason` or `stop_reason`.
    pub(super) unknown: Unknown<'a>,
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
        match (delta.first_thought(), &delta.content.text) {
            _ if has_more => None,
            (None, text) if !text.is_empty() => Some((TextRole::Answer, text)),
            (Some(thought), text) if text.is_empty() => Some((TextRole::Thinking, thought)),
            _ => None,
        }
    }
}

#[derive(Debug, Default)]
pub(super) struct Delta<'a> {
    pub(super) content: Content<'a>,
    pub(super) reasoning_content: Text<'a>,
    pub(super) reasoning: Text<'a>,
    pub(super) reasoning_details: Text<'a>,
    pub(super) thinking: Text<'a>,
    pub(super) refusal: Text<'a>,
    pub(super) tool_calls: Objects<WireCall<'a>>,
    pub(super) function_call: Maybe<WireFunction<'a>>,
    /// Such as `annotations`.
    pub(super) unknown: Unknown<'a>,
}

impl<'a> Delta<'a> {
    pub(super) fn thought(&self) -> &str {
        self.first_thought().map_or("", Text::as_str)
    }

    /// Thinking, under the first of its names that has any: servers repeat it under another.
    fn first_thought(&self) -> Option<&Text<'a>> {
        let names = [
            &self.reasoning_content,
            &self.reasoning,
            &self.reasoning_details,
            &self.thinking,
            &self.content.thought,
        ];
        names.into_iter().find(|text| !text.is_empty())
    }
}

/// Reads with [`parts`].
struct Parts;

impl<'de> DeserializeSeed<'de> for Parts {
    type Value = Text<'de>;

    fn deserialize<D: Deserializer<'de>>(self, value: D) -> Result<Text<'de>, D::Error> {
        parts(value)
    }
}

/// Reads the fields of the table, drops those behind `without`, and keeps the others as unknown.
macro_rules! read_objects {
    (@value $values:ident) => { $values.next_value()? };
    (@value $values:ident $seed:ident) => { $values.next_value_seed($seed)? };
    ($($object:ident {
        $($name:literal => $field:ident $(by $seed:ident)?,)+
        without $($dropped:literal)|+
    })+) => {$(
        impl<'de: 'a, 'a> Deserialize<'de> for $object<'a> {
            fn deserialize<D: Deserializer<'de>>(from: D) -> Result<$object<'a>, D::Error> {
                struct Fields;

                impl<'de> Visitor<'de> for Fields {
                    type Value = $object<'de>;

                    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                        f.write_str("an object")
                    }

                    fn visit_map<A: MapAccess<'de>>(
                        self,
                        mut values: A,
                    ) -> Result<$object<'de>, A::Error> {
                        let mut object = $object::default();
                        while let Some(field) = values.next_key::<Text<'de>>()? {
                            match field.as_str() {
                                $($name => object.$field = read_objects!(@value values $($seed)?),)+
                                $($dropped)|+ => {
                                    values.next_value::<IgnoredAny>()?;
                                }
                                _ => object.unknown.push((field, values.next_value()?)),
                            }
                        }
                        Ok(object)
                    }
                }

                from.deserialize_map(Fields)
            }
        }
    )+};
}

read_objects! {
    Chunk {
        "choices" => choices,
        "usage" => usage,
        "timings" => timings,
        "error" => error,
        "object" => object,
        // hob writes its own. A message belongs to a failure, an event to a team of another hob, and the next two,
        // OpenAI's and Mistral's, only hide the length of a piece. llama-server repeats the prompt and all settings in
        // the last.
        without "id" | "created" | "model" | "system_fingerprint" | "message" | "event"
            | "obfuscation" | "p" | "__verbose"
    }
    Choice {
        "delta" => delta,
        "message" => message,
        "text" => text,
        "finish_reason" => finish_reason,
        "logprobs" => logprobs,
        "error" => error,
        // hob writes its own.
        without "index" | "hob"
    }
    Delta {
        "content" => content,
        "reasoning_content" => reasoning_content,
        "reasoning" => reasoning by Parts,
        "reasoning_details" => reasoning_details by Parts,
        "thinking" => thinking,
        "refusal" => refusal,
        "tool_calls" => tool_calls,
        "function_call" => function_call,
        without "role"
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
