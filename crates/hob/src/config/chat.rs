//! `[chat]`, `[model.NAME]` and `[dev]` as they are written.
//! The values that are words or spans of time are parsed here, so that a wrong one has its line.

use std::num::{NonZeroU16, NonZeroU32};
use std::str::FromStr;
use std::time::Duration;

use hob_core::footprint::UnknownKvType;
use hob_core::{KeepAlive, KvType};
use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde::{Deserialize, Deserializer, Serialize, Serializer};

#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub(crate) struct ChatSection {
    /// The model that answers: a name that `hob models` lists, or the path of a GGUF file, relative
    /// to this file.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) model: Option<String>,
    /// Tokens that a prompt and its answer may hold together, in each of the answers that are
    /// computed at once. Default: as many as the model was trained with, as far as the memory allows: a
    /// context that nobody asked for takes at most half of the system's memory that the model leaves free.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) context_tokens: Option<NonZeroU32>,
    /// How the context is kept in memory: `f16`, or `q8_0` and `q4_0`, which need about a half and
    /// about a quarter of it and cost some quality.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(schema_with = "kv_type_name")]
    pub(crate) kv_type: Option<KvTypeName>,
    /// Threads that the chat engine computes with; 0 lets hob choose for this machine.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) threads: Option<u16>,
    /// How many answers are computed at once, each with memory for a context of its own; further
    /// requests wait for their turn. Default: 4, or 2 or 1 where the memory would otherwise leave each
    /// of them less than 16,384 tokens.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) parallel: Option<NonZeroU16>,
    /// How many tokens are computed in one step at most. A long prompt is read in pieces of this
    /// size, and answers that are running go on between them.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) batch_tokens: Option<NonZeroU32>,
    /// How many layers of the model are put on the graphics card, the output counted as one.
    /// Default: as `hob fit` answers, if hob was built for one.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) gpu_layers: Option<u16>,
    /// Of how many layers the experts stay in the system's memory, of a model that has any. Default:
    /// as `hob fit` answers; none where `gpu_layers` is set.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) cpu_moe_layers: Option<u16>,
    /// How long the model stays in memory after its last request: `30s`, `5m`, `2h`, a number of
    /// seconds, or `forever`. A request may wish for something else.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(schema_with = "text_or_number")]
    pub(crate) keep_alive: Option<KeepAliveText>,
    /// When the model is loaded: at the `start` of `hob serve`, or for the `first_request`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) load: Option<LoadAt>,
    /// Never unload this model to make room for another one. Together with `keep_alive = "forever"` it
    /// then stays for good.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) pinned: Option<bool>,
    /// How many tokens a model may think before its answer must begin, when a request does not say.
    /// Default: as long as it wants.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) thinking_tokens_max: Option<u32>,
    /// How many tokens an answer may have, thinking included, when a request names no limit: for
    /// clients whose background jobs (titles, tags) name none. Default: until the context is full.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) answer_tokens_max: Option<NonZeroU32>,
    /// How many chat requests are let in at once, those that wait for their turn included; the next
    /// is told when to come back.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) requests_max: Option<NonZeroU16>,
}

#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub(crate) struct DevSection {
    /// Model names that hob does not know are answered with a fixed text, as a mock server would,
    /// instead of being refused. For the tests of client libraries; never for real use.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) conformance: Option<bool>,
}

/// How keys and values of the context are kept, by name.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(try_from = "String", into = "&'static str")]
pub(crate) struct KvTypeName(pub(crate) KvType);

impl TryFrom<String> for KvTypeName {
    type Error = UnknownKvType;

    fn try_from(name: String) -> Result<KvTypeName, UnknownKvType> {
        name.parse().map(KvTypeName)
    }
}

impl From<KvTypeName> for &'static str {
    fn from(KvTypeName(kv_type): KvTypeName) -> &'static str {
        kv_type.name()
    }
}

/// When a model is put into memory.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub(crate) enum LoadAt {
    #[default]
    Start,
    FirstRequest,
}

/// A span of time as people write it: `30s`, `5m`, `2h`, seconds, or `forever`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct KeepAliveText(pub(crate) KeepAlive);

#[derive(Debug, PartialEq, Eq, thiserror::Error)]
#[error("'{0}' is not a time; write 30s, 5m, 2h, a number of seconds, or forever")]
pub(crate) struct NotATime(String);

impl FromStr for KeepAliveText {
    type Err = NotATime;

    fn from_str(text: &str) -> Result<KeepAliveText, NotATime> {
        let wish = if text == "forever" { Some(KeepAlive::Forever) } else { span(text) };
        wish.map(KeepAliveText).ok_or_else(|| NotATime(text.to_owned()))
    }
}

fn span(text: &str) -> Option<KeepAlive> {
    let digits_end = text.find(|c: char| !c.is_ascii_digit()).unwrap_or(text.len());
    let (number, unit) = text.split_at(digits_end);
    super::time::span(number.parse().ok()?, unit).map(KeepAlive::For)
}

impl std::fmt::Display for KeepAliveText {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self.0 {
            KeepAlive::Forever => f.write_str("forever"),
            KeepAlive::For(time) => match time.as_secs() {
                seconds if seconds > 0 && seconds.is_multiple_of(3600) => {
                    write!(f, "{}h", seconds / 3600)
                }
                seconds if seconds > 0 && seconds.is_multiple_of(60) => {
                    write!(f, "{}m", seconds / 60)
                }
                seconds => write!(f, "{seconds}s"),
            },
        }
    }
}

impl Serialize for KeepAliveText {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

impl<'de> Deserialize<'de> for KeepAliveText {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<KeepAliveText, D::Error> {
        deserializer.deserialize_any(TimeVisitor)
    }
}

struct TimeVisitor;

impl serde::de::Visitor<'_> for TimeVisitor {
    type Value = KeepAliveText;

    fn expecting(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("a time such as \"5m\", a number of seconds, or \"forever\"")
    }

    fn visit_str<E: serde::de::Error>(self, text: &str) -> Result<KeepAliveText, E> {
        text.parse().map_err(E::custom)
    }

    fn visit_u64<E: serde::de::Error>(self, seconds: u64) -> Result<KeepAliveText, E> {
        Ok(KeepAliveText(KeepAlive::For(Duration::from_secs(seconds))))
    }

    fn visit_i64<E: serde::de::Error>(self, seconds: i64) -> Result<KeepAliveText, E> {
        match u64::try_from(seconds) {
            Ok(seconds) => self.visit_u64(seconds),
            Err(_) => Err(E::invalid_value(serde::de::Unexpected::Signed(seconds), &self)),
        }
    }
}

fn kv_type_name(_generator: &mut SchemaGenerator) -> Schema {
    json_schema!({ "type": ["string", "null"], "enum": KvType::ALL.map(KvType::name) })
}

pub(super) fn text_or_number(_generator: &mut SchemaGenerator) -> Schema {
    json_schema!({ "type": ["string", "integer", "null"] })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_are_read_as_people_write_them() {
        let seconds = |seconds| Some(KeepAlive::For(Duration::from_secs(seconds)));
        let rows = [
            ("30s", seconds(30), "30s"),
            ("90", seconds(90), "90s"),
            ("5m", seconds(300), "5m"),
            ("2h", seconds(7200), "2h"),
            ("120m", seconds(7200), "2h"),
            ("0", seconds(0), "0s"),
            ("forever", Some(KeepAlive::Forever), "forever"),
            ("", None, ""),
            ("-1", None, ""),
            ("5 m", None, ""),
            ("m", None, ""),
            ("1d", None, ""),
            ("99999999999999999999h", None, ""),
            ("18446744073709551615h", None, ""),
        ];
        for (text, expected, written) in rows {
            let read = text.parse::<KeepAliveText>().ok();
            assert_eq!(read.map(|read| read.0), expected, "{text:?}");
            if let Some(read) = read {
                assert_eq!(read.to_string(), written);
                assert_eq!(written.parse(), Ok(read));
            }
        }
    }

    #[test]
    fn a_file_may_say_seconds_as_a_number() {
        let read = |value: &str| toml::from_str::<ChatSection>(&format!("keep_alive = {value}"));
        let minute = Some(KeepAliveText(KeepAlive::For(Duration::from_secs(60))));
        for value in ["60", "\"60\"", "\"1m\""] {
            assert_eq!(read(value).map(|section| section.keep_alive), Ok(minute), "{value}");
        }
        for value in ["-1", "true", "\"soon\""] {
            let message = read(value).expect_err(value).message().to_owned();
            assert!(message.contains("forever"), "{value} gave {message}");
        }
    }
}
