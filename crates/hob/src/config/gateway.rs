//! `[upstream.NAME]`, `[alias.NAME]`, `[keys.NAME]` and `[defaults]` as they are written.
//! Names are the user's own; what they lead to is checked when all of them are known.

use std::collections::BTreeMap;
use std::num::{NonZeroU16, NonZeroU32, NonZeroU64};

use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde::de::{MapAccess, Visitor, value::MapAccessDeserializer};
use serde::{Deserialize, Deserializer, Serialize};

use super::chat::KeepAliveText;
use super::time::TimeText;
use super::words::{EffortName, KindName, PickName};

/// Tables by name.
pub(crate) type Named<T> = BTreeMap<String, T>;

#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub(crate) struct UpstreamSection {
    /// What the server is; `auto` asks it, once.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(schema_with = "super::words::kind_schema")]
    pub(crate) kind: Option<KindName>,
    /// Where it is, with or without `/v1`. Clouds and Ollama have a usual place.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) url: Option<String>,
    /// Its key: `env:NAME` for a variable, `file:PATH` for the first line of a file.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) key: Option<String>,
    /// For the connection to stand, TLS included. Default: `1s` in the house, `5s` elsewhere.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(schema_with = "super::time::schema")]
    pub(crate) connect: Option<TimeText>,
    /// Until the first real content. Default: `45s` in the house, `60s` elsewhere; a long prompt gets
    /// more.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(schema_with = "super::time::schema")]
    pub(crate) first_token: Option<TimeText>,
    /// Between two pieces of real content. Default: `30s`.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(schema_with = "super::time::schema")]
    pub(crate) idle: Option<TimeText>,
    /// Requests that it works on at once. Default: as many as come.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) slots: Option<NonZeroU16>,
    /// Requests that wait for a slot; the next is told when to come back. Default: 8.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) queue: Option<u16>,
    /// List its models as `NAME/model` in `/v1/models`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) list: Option<bool>,
    /// Of an Ollama: the context length of every request. Always the same, because another one would
    /// load the model anew.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) num_ctx: Option<NonZeroU32>,
}

#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub(crate) struct AliasSection {
    /// Who answers, first to last: `UPSTREAM/MODEL`, a model of this hob, another alias, or a table
    /// with `target` and what is special about it. Of another alias, its targets count with their parameters
    /// and times; `pick`, `commit`, `hedge_after_ms`, `on_break`, `while_loading` and `retries` are this one's.
    #[schemars(schema_with = "targets_schema")]
    pub(crate) to: Vec<TargetEntry>,
    /// How the next target is chosen: `order`, `warm` (those in memory first), `least-wait`, or
    /// `weighted` (by chance). Default: `order`.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(schema_with = "super::words::pick_schema")]
    pub(crate) pick: Option<PickName>,
    /// How much the model thinks, whatever the request says: `none`, `minimal`, `low`, `medium`,
    /// `high`, `xhigh` or `max`.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(schema_with = "super::words::effort_schema")]
    pub(crate) effort: Option<EffortName>,
    /// Parameters of every request, whatever it says: `{ temperature = 0.2 }`.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(schema_with = "parameters_schema")]
    pub(crate) set: Option<toml::Table>,
    /// Parameters for requests that do not say: `{ max_tokens = 2000 }`.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(schema_with = "parameters_schema")]
    pub(crate) default: Option<toml::Table>,
    /// Parameters that are left out, by name.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) drop: Option<Vec<String>>,
    /// From when on an answer is the client's: with the `first` piece, or with the first `content`
    /// that is no thinking. Default: `first`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) commit: Option<CommitName>,
    /// What becomes of an answer that breaks off when it is the client's: an `error`, or the same target is
    /// asked to `continue` where it can, which llama-server, vLLM, SGLang, tabbyAPI, Ollama, OpenRouter
    /// and Anthropic's models before 4.6 do. Only for plain text that is streamed; at most twice in an answer,
    /// and not while the target rests: a break counts as its failure. Default: `error`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) on_break: Option<OnBreakName>,
    /// What becomes of a request while its model is being loaded: the `next` target, or it is to `wait` if no
    /// target that is in memory answers. A load that is expected to take at most 30 s is waited for in any
    /// case. Default: `next`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) while_loading: Option<WhileLoadingName>,
    /// How long a request waits for a target that rests after failures, if all do. Default: `2s`.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(schema_with = "super::time::schema")]
    pub(crate) patience: Option<TimeText>,
    /// Attempts of one request after the first, on whichever target; second tries are made only where all
    /// others still have their turn. Default: 3, or as many as there are further targets.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) retries: Option<u16>,
    /// How long a target rests after three failures in a row, the first time; then twice as long, and so
    /// on. Default: `5s`.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(schema_with = "super::time::schema")]
    pub(crate) cooldown: Option<TimeText>,
    /// How long a model stays in memory after its last request, for requests that do not say.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(schema_with = "super::chat::text_or_number")]
    pub(crate) keep_alive: Option<KeepAliveText>,
    /// Ask the next target too when the first has said nothing for so many milliseconds.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) hedge_after_ms: Option<NonZeroU32>,
    /// As in `[upstream.NAME]`, for this alias.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(schema_with = "super::time::schema")]
    pub(crate) first_token: Option<TimeText>,
    /// As in `[upstream.NAME]`, for this alias.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(schema_with = "super::time::schema")]
    pub(crate) idle: Option<TimeText>,
    /// For a whole request, all its attempts included. Default: `10m`.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(schema_with = "super::time::schema")]
    pub(crate) total: Option<TimeText>,
}

/// Who answers for an alias: a name, or a name and what is special about it.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[serde(untagged)]
pub(crate) enum TargetEntry {
    Name(String),
    Special(Box<SpecialTarget>),
}

#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct SpecialTarget {
    /// Its name.
    pub(crate) target: String,
    /// Tokens that it holds, where you know better than it says.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) context: Option<NonZeroU32>,
    /// What it can do, of `tools`, `images`, `json_schema` and `embeddings`. Default: all.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) capabilities: Option<Vec<String>>,
    /// For `pick = "weighted"`. Of an alias, its targets weigh so much together.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) weight: Option<f64>,
    /// As in `[alias.NAME]`, and stronger.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(schema_with = "parameters_schema")]
    pub(crate) set: Option<toml::Table>,
    /// As in `[alias.NAME]`, and stronger.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(schema_with = "parameters_schema")]
    pub(crate) default: Option<toml::Table>,
    /// As in `[alias.NAME]`, besides.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) drop: Option<Vec<String>>,
}

#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub(crate) struct KeySection {
    /// The key that clients send: `env:NAME` for a variable, `file:PATH` for the first line of a file, or
    /// `sha256:` and its checksum in hexadecimal, so that the key itself is nowhere.
    pub(crate) secret: String,
    /// The models and aliases that it may use. Default: all.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) aliases: Option<Vec<String>>,
    /// Requests in a minute.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) requests_per_minute: Option<NonZeroU32>,
    /// Requests at once.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) concurrency: Option<NonZeroU32>,
    /// Tokens of prompts and answers in a day, by UTC. Speech counts its characters.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) tokens_per_day: Option<NonZeroU64>,
}

#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub(crate) struct DefaultsSection {
    /// As in `[upstream.NAME]`, for all of them.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(schema_with = "super::time::schema")]
    pub(crate) connect: Option<TimeText>,
    /// As in `[upstream.NAME]`, for all of them, and for models of this hob behind an alias.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(schema_with = "super::time::schema")]
    pub(crate) first_token: Option<TimeText>,
    /// As in `[upstream.NAME]`, for all of them, and for models of this hob behind an alias.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(schema_with = "super::time::schema")]
    pub(crate) idle: Option<TimeText>,
    /// As in `[alias.NAME]`, for all of them.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(schema_with = "super::time::schema")]
    pub(crate) total: Option<TimeText>,
    /// For a model of this hob to be loaded, where a request waits for that. Default: `5m`.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(schema_with = "super::time::schema")]
    pub(crate) load: Option<TimeText>,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub(crate) enum CommitName {
    #[default]
    First,
    Content,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub(crate) enum OnBreakName {
    #[default]
    Error,
    Continue,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub(crate) enum WhileLoadingName {
    #[default]
    Next,
    Wait,
}

impl<'de> Deserialize<'de> for TargetEntry {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<TargetEntry, D::Error> {
        deserializer.deserialize_any(EntryVisitor)
    }
}

struct EntryVisitor;

impl<'de> Visitor<'de> for EntryVisitor {
    type Value = TargetEntry;

    fn expecting(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("a name such as \"gpu/qwen3-8b\", or { target = \"gpu/qwen3-8b\", … }")
    }

    fn visit_str<E: serde::de::Error>(self, name: &str) -> Result<TargetEntry, E> {
        Ok(TargetEntry::Name(name.to_owned()))
    }

    fn visit_map<A: MapAccess<'de>>(self, map: A) -> Result<TargetEntry, A::Error> {
        let special = SpecialTarget::deserialize(MapAccessDeserializer::new(map))?;
        Ok(TargetEntry::Special(Box::new(special)))
    }
}

fn targets_schema(generator: &mut SchemaGenerator) -> Schema {
    let special = generator.subschema_for::<SpecialTarget>();
    json_schema!({ "type": "array", "items": { "anyOf": [{ "type": "string" }, special] } })
}

fn parameters_schema(_generator: &mut SchemaGenerator) -> Schema {
    json_schema!({ "type": ["object", "null"] })
}
