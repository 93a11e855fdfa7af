//! `[upstream.NAME]`, `[alias.NAME]`, `[keys.NAME]` and `[defaults]` of hob.toml.
//! The user chooses their names. hob checks the references between names after it has read all of them.

use std::num::{NonZeroU16, NonZeroU32, NonZeroU64};

use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde::de::{MapAccess, Visitor, value::MapAccessDeserializer};
use serde::{Deserialize, Deserializer, Serialize};

use super::chat::KeepAliveText;
use super::time::TimeText;
use super::words::{EffortName, KindName, StrategyName};

#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub(crate) struct UpstreamSection {
    /// The server's kind. `auto` detects it with one request.
    pub(crate) kind: Option<KindName>,
    /// The server's address, with or without `/v1`. hob adds no `/v1` to an address with another version, such as
    /// `/v1beta/openai`. Cloud services and Ollama have a default.
    pub(crate) url: Option<String>,
    /// The API key: `env:NAME` for an environment variable, `file:PATH` for the first line of a file.
    pub(crate) key: Option<String>,
    /// Time limit for connecting, TLS included. Default: `1s` in the local network, `5s` elsewhere.
    pub(crate) connect_timeout: Option<TimeText>,
    /// Time limit for the first token. Default: `45s` in the local network, `60s` elsewhere; more for a
    /// long prompt. `load_timeout` is added for a model that the server has to load, if no other target is left.
    pub(crate) first_token_timeout: Option<TimeText>,
    /// Time limit between two tokens. Default: `30s`.
    pub(crate) idle_timeout: Option<TimeText>,
    /// Maximum requests that the server works on at the same time. Default: no limit.
    pub(crate) slots: Option<NonZeroU16>,
    /// Maximum requests that wait for a slot. Further ones get `503` with `Retry-After`. Default: 8.
    pub(crate) queue_size: Option<u16>,
    /// List the server's models as `NAME/MODEL` in `/v1/models`.
    pub(crate) list_models: Option<bool>,
    /// Context length in tokens, for Ollama only. It is the same for every request, because Ollama
    /// reloads a model when the length changes.
    pub(crate) num_ctx: Option<NonZeroU32>,
}

#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub(crate) struct AliasSection {
    /// The targets, first to last: `UPSTREAM/MODEL`, a local model, another alias, or a table with
    /// `target` and options. Targets of another alias keep their parameters and time limits. This alias's own
    /// `strategy`, `fallback_until`, `hedge_after_ms`, `on_stream_error`, `while_loading` and `retries` apply.
    #[schemars(schema_with = "targets_schema")]
    pub(crate) to: Vec<TargetEntry>,
    /// How the next target is chosen: in `order`, `warm` (loaded models first), `least-wait` (the
    /// shortest queue), or `weighted` (at random, by `weight`). Default: `order`.
    pub(crate) strategy: Option<StrategyName>,
    /// How much the model thinks. It replaces the request's own value: `none`, `minimal`, `low`, `medium`,
    /// `high`, `xhigh` or `max`.
    pub(crate) reasoning_effort: Option<EffortName>,
    /// Parameters that replace the request's own: `{ temperature = 0.2 }`.
    #[schemars(schema_with = "parameters_schema")]
    pub(crate) set: Option<toml::Table>,
    /// Parameters for requests that do not set them: `{ max_tokens = 2000 }`. With a limit of 0, an answer may go on until
    /// the context is full.
    #[schemars(schema_with = "parameters_schema")]
    pub(crate) default: Option<toml::Table>,
    /// Names of parameters to remove from requests.
    pub(crate) drop: Option<Vec<String>>,
    /// Until when hob may fall back to another target: the `first_token`, thinking included, or the
    /// first `content` after the thinking. Then the client receives the answer. Default: `first_token`.
    pub(crate) fallback_until: Option<FallbackUntilName>,
    /// What hob does when a stream breaks off after the client received a part of it. `error` ends it with
    /// an error event. `continue` asks the same target for the rest, at most twice in an answer. It works for
    /// streamed plain text of llama-server, vLLM, SGLang, tabbyAPI, Ollama, OpenRouter and Anthropic's models
    /// before 4.6, and not while the target's circuit is open. Default: `error`.
    pub(crate) on_stream_error: Option<OnStreamErrorName>,
    /// The behaviour while a local model loads: use the `next` target, or `wait` if no loaded
    /// target answers. hob always waits for a load that should take at most 30 s. Default: `next`.
    pub(crate) while_loading: Option<WhileLoadingName>,
    /// How long a request waits when the circuits of all targets are open. Default: `2s`.
    pub(crate) queue_timeout: Option<TimeText>,
    /// Maximum attempts after the first, on all targets together. hob tries a target a second time only if enough
    /// attempts remain for the targets that it has not tried. Default: 3, or the number of entries in `to` after the
    /// first if that is larger.
    pub(crate) retries: Option<u16>,
    /// How long a target's circuit stays open after three failures in a row. The time doubles with each further failure,
    /// up to two minutes. A time of more than two minutes stays the same. Default: `5s`.
    pub(crate) cooldown: Option<TimeText>,
    /// How long a model stays loaded after its last request, for requests that do not set it.
    pub(crate) keep_alive: Option<KeepAliveText>,
    /// Milliseconds of silence after which hob also sends the request to the next target. It uses the
    /// faster answer.
    pub(crate) hedge_after_ms: Option<NonZeroU32>,
    /// As in `[upstream.NAME]`, which it replaces for this alias.
    pub(crate) first_token_timeout: Option<TimeText>,
    /// As in `[upstream.NAME]`, which it replaces for this alias.
    pub(crate) idle_timeout: Option<TimeText>,
    /// Time limit for a whole request, all attempts included. Default: `10m`.
    pub(crate) total_timeout: Option<TimeText>,
}

/// A target of an alias: a name, or a name with options.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[serde(untagged)]
pub(crate) enum TargetEntry {
    Name(String),
    Detailed(Box<DetailedTarget>),
}

impl TargetEntry {
    pub(crate) fn name(&self) -> &str {
        match self {
            TargetEntry::Name(name) => name,
            TargetEntry::Detailed(target) => &target.target,
        }
    }
}

#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct DetailedTarget {
    /// The target's name.
    pub(crate) target: String,
    /// Context length in tokens, if the server reports a wrong one.
    #[serde(default)]
    pub(crate) context: Option<NonZeroU32>,
    /// Which of `tools`, `images`, `json_schema` and `embeddings` the target supports. Default: all.
    #[serde(default)]
    pub(crate) capabilities: Option<Vec<String>>,
    /// The weight for `strategy = "weighted"`. An alias as a target shares its weight among its targets.
    #[serde(default)]
    pub(crate) weight: Option<f64>,
    /// As in `[alias.NAME]`; wins over it.
    #[serde(default)]
    #[schemars(schema_with = "parameters_schema")]
    pub(crate) set: Option<toml::Table>,
    /// As in `[alias.NAME]`; wins over it.
    #[serde(default)]
    #[schemars(schema_with = "parameters_schema")]
    pub(crate) default: Option<toml::Table>,
    /// As in `[alias.NAME]`; both lists apply.
    #[serde(default)]
    pub(crate) drop: Option<Vec<String>>,
}

#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub(crate) struct KeySection {
    /// The key that clients send: `env:NAME` for a variable, `file:PATH` for the first line of a file, or
    /// `sha256:` and the key's checksum in hexadecimal.
    pub(crate) secret: String,
    /// The models and aliases that this key may use, by any of their names. Default: all.
    pub(crate) aliases: Option<Vec<String>>,
    /// Maximum requests per minute.
    pub(crate) requests_per_minute: Option<NonZeroU32>,
    /// Maximum concurrent requests.
    pub(crate) concurrency: Option<NonZeroU32>,
    /// Maximum tokens of prompts and answers per day (UTC). Speech counts characters. Without the ledger, a restart
    /// of hob forgets what was used.
    pub(crate) tokens_per_day: Option<NonZeroU64>,
}

#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub(crate) struct DefaultsSection {
    /// As in `[upstream.NAME]`, for all upstreams.
    pub(crate) connect_timeout: Option<TimeText>,
    /// As in `[upstream.NAME]`, for all upstreams and for local models behind an alias.
    pub(crate) first_token_timeout: Option<TimeText>,
    /// As in `[upstream.NAME]`, for all upstreams and for local models behind an alias.
    pub(crate) idle_timeout: Option<TimeText>,
    /// As in `[alias.NAME]`, for all aliases.
    pub(crate) total_timeout: Option<TimeText>,
    /// Time limit for loading a model while a request waits. Default: `5m`.
    pub(crate) load_timeout: Option<TimeText>,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub(crate) enum FallbackUntilName {
    #[default]
    FirstToken,
    Content,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub(crate) enum OnStreamErrorName {
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
        let special = DetailedTarget::deserialize(MapAccessDeserializer::new(map))?;
        Ok(TargetEntry::Detailed(Box::new(special)))
    }
}

fn targets_schema(generator: &mut SchemaGenerator) -> Schema {
    let special = generator.subschema_for::<DetailedTarget>();
    json_schema!({ "type": "array", "items": { "anyOf": [{ "type": "string" }, special] } })
}

fn parameters_schema(_generator: &mut SchemaGenerator) -> Schema {
    json_schema!({ "type": ["object", "null"] })
}
