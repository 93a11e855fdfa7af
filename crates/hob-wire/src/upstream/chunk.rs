//! One piece of an answer as OpenAI's servers and their many relatives write it; everything optional.
//! What is of an unexpected type is as good as absent: one odd field does not end an answer.

use std::borrow::Cow;

use serde::Deserialize;
use serde::de::{Deserializer, IgnoredAny, SeqAccess, Visitor};
use serde_json::Value;

#[derive(Debug, Default, Deserialize)]
pub(super) struct Chunk<'a> {
    #[serde(borrow, default, deserialize_with = "nullable")]
    pub(super) choices: Vec<Choice<'a>>,
    #[serde(default)]
    pub(super) usage: Option<WireUsage>,
    #[serde(default)]
    pub(super) timings: Option<WireTimings>,
    #[serde(default)]
    pub(super) error: Option<Value>,
    /// vLLM says of a failure that it is an `error`, at the top.
    #[serde(borrow, default)]
    pub(super) object: Option<Cow<'a, str>>,
    #[serde(borrow, default)]
    pub(super) message: Option<Cow<'a, str>>,
}

#[derive(Debug, Default, Deserialize)]
pub(super) struct Choice<'a> {
    #[serde(borrow, default)]
    pub(super) delta: Option<Delta<'a>>,
    /// The whole of it, from a server that does not stream.
    #[serde(borrow, default)]
    pub(super) message: Option<Delta<'a>>,
    /// Of a completion.
    #[serde(borrow, default)]
    pub(super) text: Option<Cow<'a, str>>,
    #[serde(borrow, default)]
    pub(super) finish_reason: Option<Cow<'a, str>>,
    #[serde(default)]
    pub(super) logprobs: Option<Value>,
}

#[derive(Debug, Default, Deserialize)]
pub(super) struct Delta<'a> {
    #[serde(borrow, default, deserialize_with = "text_or_parts")]
    pub(super) content: Option<Cow<'a, str>>,
    #[serde(borrow, default)]
    pub(super) reasoning_content: Option<Cow<'a, str>>,
    #[serde(borrow, default, deserialize_with = "text_or_parts")]
    pub(super) reasoning: Option<Cow<'a, str>>,
    #[serde(borrow, default, deserialize_with = "text_or_parts")]
    pub(super) reasoning_details: Option<Cow<'a, str>>,
    #[serde(borrow, default)]
    pub(super) refusal: Option<Cow<'a, str>>,
    #[serde(borrow, default)]
    pub(super) tool_calls: Option<Vec<WireCall<'a>>>,
    #[serde(borrow, default)]
    pub(super) function_call: Option<WireFunction<'a>>,
}

#[derive(Debug, Default, Deserialize)]
pub(super) struct WireCall<'a> {
    #[serde(default)]
    pub(super) index: Option<u32>,
    #[serde(borrow, default)]
    pub(super) id: Option<Cow<'a, str>>,
    #[serde(borrow, default)]
    pub(super) function: Option<WireFunction<'a>>,
}

#[derive(Debug, Default, Deserialize)]
pub(super) struct WireFunction<'a> {
    #[serde(borrow, default)]
    pub(super) name: Option<Cow<'a, str>>,
    #[serde(borrow, default, deserialize_with = "text_or_object")]
    pub(super) arguments: Option<Cow<'a, str>>,
}

#[derive(Clone, Copy, Debug, Default, Deserialize)]
pub(super) struct WireUsage {
    #[serde(default)]
    pub(super) prompt_tokens: Option<u32>,
    #[serde(default)]
    pub(super) completion_tokens: Option<u32>,
    #[serde(default)]
    pub(super) prompt_tokens_details: Option<PromptDetails>,
    #[serde(default)]
    pub(super) completion_tokens_details: Option<CompletionDetails>,
}

#[derive(Clone, Copy, Debug, Default, Deserialize)]
pub(super) struct PromptDetails {
    #[serde(default)]
    pub(super) cached_tokens: Option<u32>,
}

#[derive(Clone, Copy, Debug, Default, Deserialize)]
pub(super) struct CompletionDetails {
    #[serde(default)]
    pub(super) reasoning_tokens: Option<u32>,
}

/// llama-server's own clock, in milliseconds.
#[derive(Clone, Copy, Debug, Default, Deserialize)]
pub(super) struct WireTimings {
    #[serde(default)]
    pub(super) prompt_ms: Option<f64>,
    #[serde(default)]
    pub(super) predicted_ms: Option<f64>,
    #[serde(default)]
    pub(super) cache_n: Option<u32>,
}

fn nullable<'de, D, T>(deserializer: D) -> Result<Vec<T>, D::Error>
where
    D: Deserializer<'de>,
    T: Deserialize<'de>,
{
    Ok(Option::<Vec<T>>::deserialize(deserializer)?.unwrap_or_default())
}

/// A text; or a list whose elements have texts, which are joined; anything else is nothing.
fn text_or_parts<'de, D: Deserializer<'de>>(d: D) -> Result<Option<Cow<'de, str>>, D::Error> {
    d.deserialize_any(TextOr { objects: Objects::AreParts })
}

/// A text; or an object, as the JSON that it is.
fn text_or_object<'de, D: Deserializer<'de>>(d: D) -> Result<Option<Cow<'de, str>>, D::Error> {
    d.deserialize_any(TextOr { objects: Objects::AreWritten })
}

#[derive(Clone, Copy)]
enum Objects {
    AreParts,
    AreWritten,
}

struct TextOr {
    objects: Objects,
}

impl<'de> Visitor<'de> for TextOr {
    type Value = Option<Cow<'de, str>>;

    fn expecting(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("a text")
    }

    fn visit_borrowed_str<E>(self, text: &'de str) -> Result<Self::Value, E> {
        Ok(Some(Cow::Borrowed(text)))
    }

    fn visit_str<E>(self, text: &str) -> Result<Self::Value, E> {
        Ok(Some(Cow::Owned(text.to_owned())))
    }

    fn visit_unit<E>(self) -> Result<Self::Value, E> {
        Ok(None)
    }

    fn visit_bool<E>(self, _: bool) -> Result<Self::Value, E> {
        Ok(None)
    }

    fn visit_i64<E>(self, _: i64) -> Result<Self::Value, E> {
        Ok(None)
    }

    fn visit_u64<E>(self, _: u64) -> Result<Self::Value, E> {
        Ok(None)
    }

    fn visit_f64<E>(self, _: f64) -> Result<Self::Value, E> {
        Ok(None)
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut parts: A) -> Result<Self::Value, A::Error> {
        let mut joined = String::new();
        while let Some(part) = parts.next_element::<Value>()? {
            let text = part.as_str().or_else(|| part["text"].as_str());
            joined += text.or_else(|| part["summary"].as_str()).unwrap_or_default();
        }
        Ok(Some(Cow::Owned(joined)))
    }

    fn visit_map<A: serde::de::MapAccess<'de>>(self, mut map: A) -> Result<Self::Value, A::Error> {
        match self.objects {
            Objects::AreParts => {
                while map.next_entry::<IgnoredAny, IgnoredAny>()?.is_some() {}
                Ok(None)
            }
            Objects::AreWritten => {
                let object = Value::deserialize(serde::de::value::MapAccessDeserializer::new(map))?;
                Ok(Some(Cow::Owned(object.to_string())))
            }
        }
    }
}
