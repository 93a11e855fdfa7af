//! The entries of `model_list`. Entries with one name become one alias; where hob has one setting for the
//! alias and LiteLLM one for each entry, the largest is used, with a note.

use std::num::NonZeroU32;

use hob_core::KeepAlive;
use hob_core::routing::Strategy;
use hob_upstream::UpstreamKind;
use serde::Deserialize;
use serde_json::Value;

use super::{Group, Settings};
use crate::config::{AliasSection, DetailedTarget, KeepAliveText, StrategyName};
use crate::convert::parameters::{Table, effort_of, entry, time, to_toml};
use crate::convert::servers::{Base, Server, Servers, address, host_name};
use crate::convert::source::{Notes, Number, read};

#[derive(Deserialize)]
struct Entry {
    model_name: String,
    litellm_params: Params,
    model_info: Option<ModelInfo>,
}

#[derive(Deserialize)]
struct ModelInfo {
    max_input_tokens: Option<Number>,
}

#[derive(Deserialize)]
struct Params {
    model: String,
    #[serde(alias = "base_url")]
    api_base: Option<String>,
    api_key: Option<String>,
    custom_llm_provider: Option<String>,
    timeout: Option<Number>,
    stream_timeout: Option<Number>,
    #[serde(alias = "max_retries")]
    num_retries: Option<Number>,
    cooldown_time: Option<Number>,
    order: Option<Number>,
    weight: Option<Number>,
    rpm: Option<Number>,
    tpm: Option<Number>,
    reasoning_effort: Option<Value>,
    keep_alive: Option<Value>,
    num_ctx: Option<Number>,
    extra_body: Option<Table>,
    additional_drop_params: Option<Vec<String>>,
    /// Parameters for requests that do not set them, and keys that hob does not know.
    #[serde(flatten)]
    rest: Table,
}

/// Parameters that a deployment gives to requests that do not set them.
const DEFAULTS: [&str; 23] = [
    "temperature",
    "top_p",
    "top_k",
    "min_p",
    "max_tokens",
    "max_completion_tokens",
    "presence_penalty",
    "frequency_penalty",
    "repetition_penalty",
    "repeat_penalty",
    "seed",
    "stop",
    "n",
    "logit_bias",
    "logprobs",
    "top_logprobs",
    "tools",
    "tool_choice",
    "parallel_tool_calls",
    "response_format",
    "chat_template_kwargs",
    "thinking",
    "user",
];

/// Prefixes of `model` whose protocol hob speaks, with the address and the variable of the key.
const PROVIDERS: [(&str, UpstreamKind, Option<&str>, Option<&str>); 9] = [
    ("openai", UpstreamKind::OpenAi, Some("https://api.openai.com"), Some("OPENAI_API_KEY")),
    ("openrouter", UpstreamKind::OpenRouter, None, Some("OPENROUTER_API_KEY")),
    ("anthropic", UpstreamKind::Anthropic, None, Some("ANTHROPIC_API_KEY")),
    ("ollama", UpstreamKind::Ollama, Some("http://127.0.0.1:11434"), None),
    ("ollama_chat", UpstreamKind::Ollama, Some("http://127.0.0.1:11434"), None),
    ("hosted_vllm", UpstreamKind::Vllm, None, None),
    ("vllm", UpstreamKind::Vllm, None, None),
    ("lm_studio", UpstreamKind::OpenAi, Some("http://127.0.0.1:1234"), None),
    ("custom_openai", UpstreamKind::OpenAi, None, None),
];

/// Prefixes with protocols that hob does not speak.
const FOREIGN: [&str; 8] =
    ["azure", "azure_ai", "bedrock", "vertex_ai", "gemini", "sagemaker", "cohere", "huggingface"];

/// One entry and its path.
pub(super) struct Deployment {
    entry: Entry,
    at: String,
}

impl Deployment {
    pub(super) fn read(item: Value, index: usize, notes: &mut Notes) -> Option<Deployment> {
        let at = format!("model_list[{index}]");
        let entry = read(item, &at, notes)?;
        Some(Deployment { entry, at })
    }

    pub(super) fn name(&self) -> &str {
        &self.entry.model_name
    }

    fn path(&self, key: &str) -> String {
        format!("{}.litellm_params.{key}", self.at)
    }

    fn params(&self) -> &Params {
        &self.entry.litellm_params
    }

    /// The target, or `None` with a note where hob cannot reach this model.
    fn target(&self, servers: &mut Servers, notes: &mut Notes) -> Option<DetailedTarget> {
        let (kind, upstream, model) = match self.server(servers, notes) {
            Ok(found) => found,
            Err(why) => {
                notes.dropped(&self.at, why);
                return None;
            }
        };
        if self.name().contains('*') || model.contains('*') {
            let how = format!("hob has no patterns: request {upstream}/MODEL instead");
            notes.changed(format!("{}.model_name", self.at), how);
            return None;
        }
        let params = self.params();
        let set = params.extra_body.as_ref();
        Some(DetailedTarget {
            target: format!("{upstream}/{model}"),
            context: self.context(kind, notes),
            set: set.and_then(|set| to_toml(set, &self.path("extra_body"), notes)),
            default: self.defaults(notes),
            drop: self.drop(notes),
            ..DetailedTarget::default()
        })
    }

    /// The protocol, the upstream's name and the model's name there.
    fn server(
        &self,
        servers: &mut Servers,
        notes: &mut Notes,
    ) -> Result<(UpstreamKind, String, String), String> {
        let params = self.params();
        let (prefix, model) = split(&params.model, params.custom_llm_provider.as_deref());
        if let Some(prefix) = prefix.filter(|prefix| FOREIGN.contains(prefix)) {
            return Err(format!(
                "hob does not speak the protocol of '{prefix}'; if it has an OpenAI-compatible address, \
                 add an [upstream.{prefix}] with it"
            ));
        }
        let written = params.api_base.as_ref().map(|base| {
            address(base, Base::WithV1, &self.path("api_base"), notes)
                .ok_or("api_base is not an address that begins with http:// or https://")
        });
        let written = written.transpose()?;
        let known = PROVIDERS.iter().find(|(name, ..)| Some(*name) == prefix);
        let (kind, url, key) = match known {
            Some((_, kind, url, key)) => (*kind, *url, *key),
            None => (UpstreamKind::OpenAi, None, None),
        };
        // hob knows the address of these two.
        let is_cloud = matches!(kind, UpstreamKind::OpenRouter | UpstreamKind::Anthropic);
        if written.is_none() && url.is_none() && !is_cloud {
            return Err(match prefix {
                Some(prefix) => format!("hob has no address for '{prefix}': set its api_base"),
                None => "neither a provider prefix nor an api_base says which server has the model"
                    .to_owned(),
            });
        }
        let preferred = match (prefix, &written) {
            (None | Some("openai" | "custom_openai"), Some(url)) => host_name(url),
            (Some(prefix), _) if kind == UpstreamKind::OpenAi => prefix.replace('_', "-"),
            _ => kind.name().to_owned(),
        };
        let usual_key = key.filter(|_| written.is_none()).map(|name| format!("os.environ/{name}"));
        let server = Server {
            kind,
            url: written.or(url.map(str::to_owned)),
            connect: None,
            first_token: None,
            key: params.api_key.clone().or(usual_key),
        };
        let name = servers.name_of(&preferred, server, &self.path("api_key"), notes);
        Ok((kind, name, model.to_owned()))
    }

    fn context(&self, kind: UpstreamKind, notes: &mut Notes) -> Option<NonZeroU32> {
        let info = self.entry.model_info.as_ref().and_then(|info| info.max_input_tokens);
        let num_ctx = self.params().num_ctx;
        if kind != UpstreamKind::Ollama && num_ctx.is_some() {
            notes.unknown_key(&format!("{}.litellm_params", self.at), "num_ctx");
        }
        let Number(tokens) = num_ctx.filter(|_| kind == UpstreamKind::Ollama).or(info)?;
        NonZeroU32::new(tokens as u32)
    }

    fn defaults(&self, notes: &mut Notes) -> Option<toml::Table> {
        let at = format!("{}.litellm_params", self.at);
        let (mut defaults, others): (Table, Table) = self
            .params()
            .rest
            .clone()
            .into_iter()
            .partition(|(name, _)| DEFAULTS.contains(&name.as_str()));
        others.keys().for_each(|name| notes.unknown_key(&at, name));
        defaults.retain(|_, value| !value.is_null());
        to_toml(&defaults, &at, notes)
    }

    fn drop(&self, notes: &mut Notes) -> Option<Vec<String>> {
        let names = self.params().additional_drop_params.as_ref()?;
        let is_path = |name: &&String| name.contains(['.', '[', '*']);
        if names.iter().any(|name| is_path(&name)) {
            let path = self.path("additional_drop_params");
            notes.dropped(path, "hob drops whole parameters, not parts of them");
        }
        let whole: Vec<String> = names.iter().filter(|name| !is_path(name)).cloned().collect();
        (!whole.is_empty()).then_some(whole)
    }

    /// As LiteLLM weighs it: by `weight`, else by its limits.
    fn weight(&self) -> Option<f64> {
        let params = self.params();
        params.weight.or(params.rpm).or(params.tpm).map(|Number(weight)| weight.max(0.0))
    }
}

/// The provider, if the model names one, and the model's name there.
fn split<'a>(model: &'a str, custom: Option<&'a str>) -> (Option<&'a str>, &'a str) {
    if let Some(custom) = custom {
        let rest = model.strip_prefix(custom).and_then(|rest| rest.strip_prefix('/'));
        return (Some(custom), rest.unwrap_or(model));
    }
    let begins = |starts: &[&str]| starts.iter().any(|start| model.starts_with(start));
    match model.split_once('/') {
        Some((prefix, name)) => (Some(prefix), name),
        None if begins(&["gpt-", "chatgpt-", "o1", "o3", "o4", "text-embedding-"]) => {
            (Some("openai"), model)
        }
        None if begins(&["claude-"]) => (Some("anthropic"), model),
        None => (None, model),
    }
}

/// One group for each name, in the order of the file.
pub(super) fn groups(
    deployments: Vec<Deployment>,
    settings: &Settings,
    servers: &mut Servers,
    notes: &mut Notes,
) -> Vec<Group> {
    let strategy = settings.strategy(notes);
    let mut named: Vec<(String, Vec<(Deployment, DetailedTarget)>)> = Vec::new();
    for deployment in deployments {
        let Some(target) = deployment.target(servers, notes) else { continue };
        match named.iter_mut().find(|(name, _)| name == deployment.name()) {
            Some((_, members)) => members.push((deployment, target)),
            None => named.push((deployment.name().to_owned(), vec![(deployment, target)])),
        }
    }
    named
        .into_iter()
        .map(|(name, members)| group(name, members, settings, strategy, notes))
        .collect()
}

fn group(
    name: String,
    mut members: Vec<(Deployment, DetailedTarget)>,
    settings: &Settings,
    strategy: Option<Strategy>,
    notes: &mut Notes,
) -> Group {
    let all = || members.iter().map(|(deployment, _)| deployment);
    let mut largest = |key: &str, general, value: fn(&Params) -> Option<Number>| {
        largest(all(), key, general, value, notes)
    };
    let total = largest("timeout", settings.timeout, |params| params.timeout);
    let first_token =
        largest("stream_timeout", settings.stream_timeout, |params| params.stream_timeout);
    let retries = largest("num_retries", settings.num_retries, |params| params.num_retries);
    let cooldown = largest("cooldown_time", settings.cooldown_time, |params| params.cooldown_time);
    let effort = all().find_map(|one| effort(one, notes));
    let keep_alive = all().find_map(|one| keep_alive(one, notes));
    let order = |one: &Deployment| one.params().order.map_or(f64::MAX, |Number(order)| order);
    let is_ordered = members.iter().any(|(one, _)| one.params().order.is_some());
    members.sort_by(|(one, _), (other, _)| order(one).total_cmp(&order(other)));
    let has_weights = members.iter().any(|(one, _)| one.weight().is_some());
    let is_weighted = members.len() > 1 && !is_ordered && strategy.is_none() && has_weights;
    let mut tail = Vec::new();
    if is_weighted {
        weigh(&mut members, notes);
        let unused = members.extract_if(.., |(_, target)| target.weight == Some(0.0));
        tail = unused.map(|(_, target)| entry(DetailedTarget { weight: None, ..target })).collect();
    } else {
        say_unused_weights(&members, notes);
    }
    if members.len() > 1 && !is_ordered && !has_weights && strategy.is_none() {
        let how = "LiteLLM picks a deployment at random; hob uses them in order, or the one with the shortest \
                   wait with strategy = \"least-wait\"";
        notes.changed(format!("{}.model_name", members[1].0.at), how);
    }
    let strategy = if is_weighted {
        Some(Strategy::Weighted)
    } else {
        strategy.filter(|_| members.len() > 1 && !is_ordered)
    };
    let alias = AliasSection {
        to: members.into_iter().map(|(_, target)| entry(target)).collect(),
        strategy: strategy.filter(|strategy| *strategy != Strategy::Order).map(StrategyName),
        reasoning_effort: effort,
        first_token_timeout: first_token.and_then(|seconds| time(seconds, "stream_timeout", notes)),
        total_timeout: total.and_then(|seconds| time(seconds, "timeout", notes)),
        retries: retries.map(|Number(retries)| retries as u16),
        cooldown: cooldown.and_then(|seconds| time(seconds, "cooldown_time", notes)),
        keep_alive,
        ..AliasSection::default()
    };
    Group { name, alias, tail, has_fallbacks: false }
}

fn weigh(members: &mut [(Deployment, DetailedTarget)], notes: &mut Notes) {
    for (deployment, target) in members {
        target.weight = Some(deployment.weight().unwrap_or(0.0));
        let params = deployment.params();
        let limit = if params.rpm.is_some() { "rpm" } else { "tpm" };
        if params.rpm.or(params.tpm).is_none() {
            continue;
        }
        match params.weight {
            Some(_) => notes.unknown_key(&format!("{}.litellm_params", deployment.at), limit),
            None => notes.changed(
                deployment.path(limit),
                "hob uses it as the target's weight, as LiteLLM does, and not as a limit",
            ),
        }
    }
}

fn say_unused_weights(members: &[(Deployment, DetailedTarget)], notes: &mut Notes) {
    for (deployment, _) in members {
        let params = deployment.params();
        if params.weight.is_some() {
            notes.dropped(
                deployment.path("weight"),
                "the targets of this alias are not picked by weight",
            );
        }
        for (key, limit) in [("rpm", params.rpm), ("tpm", params.tpm)] {
            if limit.is_some() {
                notes.unknown_key(&format!("{}.litellm_params", deployment.at), key);
            }
        }
    }
}

/// The largest value of the deployments, or `general` where one has none.
fn largest<'a>(
    all: impl Iterator<Item = &'a Deployment> + Clone,
    key: &str,
    general: Option<Number>,
    value: fn(&Params) -> Option<Number>,
    notes: &mut Notes,
) -> Option<Number> {
    let values = all.clone().map(|one| value(one.params()).or(general));
    let largest = values.flatten().max_by(|one, other| one.0.total_cmp(&other.0));
    for one in all {
        if value(one.params()).is_some_and(|own| Some(own) != largest) {
            notes.changed(one.path(key), "hob has one value for the alias, and uses the largest");
        }
    }
    largest
}

fn effort(deployment: &Deployment, notes: &mut Notes) -> Option<crate::config::EffortName> {
    let written = deployment.params().reasoning_effort.as_ref()?;
    let effort = effort_of(written);
    if effort.is_none() {
        let why = "expected none, minimal, low, medium, high, xhigh or max";
        notes.dropped(deployment.path("reasoning_effort"), why);
    }
    effort
}

/// Ollama's form: `5m`, seconds, or a negative number for ever.
fn keep_alive(deployment: &Deployment, notes: &mut Notes) -> Option<KeepAliveText> {
    let written = match deployment.params().keep_alive.as_ref()? {
        Value::String(text) => text.clone(),
        other => other.to_string(),
    };
    if written.starts_with('-') {
        return Some(KeepAliveText(KeepAlive::Forever));
    }
    let time = written.parse().ok();
    if time.is_none() {
        notes.dropped(deployment.path("keep_alive"), "expected 30s, 5m, 2h or a number of seconds");
    }
    time
}
