//! Converts LiteLLM's `config.yaml`. A model name becomes an alias. Its deployments become the targets, the servers of
//! these become upstreams, and its fallbacks become the last targets.

mod deployment;
mod fallbacks;

use hob_core::routing::Strategy;
use serde::Deserialize;
use serde_json::{Map, Value};

use super::servers::{Servers, WrittenKey};
use super::source::{Notes, Number, Reasons, read};
use crate::config::{AliasSection, ConfigFile, KeySection, Named, StrategyName, TargetEntry};
use deployment::Deployment;

/// LiteLLM's name for the key that may use every model.
const MASTER: &str = "master";

pub(super) const REASONS: Reasons = &[
    (
        &["rpm", "tpm"],
        "hob limits client keys, not targets: see requests_per_minute of [keys.NAME]",
    ),
    (
        &["max_parallel_requests", "global_max_parallel_requests", "default_max_parallel_requests"],
        "set slots and queue_size of the [upstream.NAME] instead",
    ),
    (
        &["success_callback", "failure_callback", "callbacks", "alerting"],
        "hob calls no other service: it keeps a request log and serves /metrics",
    ),
    (&["cache", "cache_params"], "hob does not cache answers"),
    (
        &["database_url", "store_model_in_db"],
        "hob keeps models and keys in hob.toml, and its request log in a file of its own",
    ),
    (&["environment_variables"], "set them where hob is started; `env:NAME` reads one"),
    (
        &["drop_params"],
        "hob always does this: it leaves out a parameter that a server refuses, and retries",
    ),
    (&["enable_pre_call_checks"], "hob always skips a target whose context is too small"),
    (
        &["allowed_fails", "disable_cooldowns"],
        "hob stops using a target after 3 failures in a row, or when half of 6 or more fail in 30 s",
    ),
    (&["default_litellm_params"], "write them as `default` of each alias"),
    (
        &["input_cost_per_token", "output_cost_per_token"],
        "write it as [price.NAME], in US dollars per million tokens",
    ),
    (&["max_budget"], "hob limits tokens: see tokens_per_day of [keys.NAME]"),
    (
        &["mode", "supports_vision", "supports_function_calling"],
        "hob asks the server for its abilities",
    ),
    (&["num_ctx"], "only Ollama accepts a context length in a request"),
    (&["hidden"], "hob lists every alias"),
];

#[derive(Default, Deserialize)]
struct File {
    model_list: Option<Vec<Value>>,
    router_settings: Option<Settings>,
    litellm_settings: Option<Settings>,
    general_settings: Option<General>,
}

#[derive(Deserialize)]
struct General {
    master_key: Option<String>,
}

/// What holds for all models. LiteLLM takes most of it from `router_settings` or `litellm_settings`.
#[derive(Default, Deserialize)]
struct Settings {
    routing_strategy: Option<String>,
    timeout: Option<Number>,
    request_timeout: Option<Number>,
    stream_timeout: Option<Number>,
    num_retries: Option<Number>,
    cooldown_time: Option<Number>,
    fallbacks: Option<Fallbacks>,
    default_fallbacks: Option<Vec<String>>,
    context_window_fallbacks: Option<Fallbacks>,
    model_group_alias: Option<Map<String, Value>>,
}

/// One table per entry: a name, and what it falls back to.
type Fallbacks = Vec<std::collections::BTreeMap<String, Vec<String>>>;

/// An alias that is being built.
struct Group {
    name: String,
    alias: AliasSection,
    /// Targets that are used only after all of the alias's own failed.
    tail: Vec<TargetEntry>,
    has_fallbacks: bool,
}

pub(super) fn convert(root: Value, notes: &mut Notes) -> ConfigFile {
    let file: File = read(root, "", notes).unwrap_or_default();
    let settings = Settings::merged(file.router_settings, file.litellm_settings, notes);
    let items = file.model_list.unwrap_or_default().into_iter().enumerate();
    let deployments: Vec<Deployment> =
        items.filter_map(|(index, item)| Deployment::read(item, index, notes)).collect();
    let mut aliases: Vec<String> = deployments
        .iter()
        .map(|one| one.name().to_owned())
        .filter(|name| !name.contains('*'))
        .collect();
    aliases.extend(settings.model_group_alias.iter().flatten().map(|(name, _)| name.clone()));
    let mut servers = Servers::new(aliases, vec![MASTER.to_owned()]);
    let mut groups = deployment::groups(deployments, &settings, &mut servers, notes);
    fallbacks::add(&mut groups, &settings, notes);
    let master = file.general_settings.and_then(|general| general.master_key);
    let secret = master.and_then(|key| {
        WrittenKey::parse(&key).config_value(MASTER, "general_settings.master_key", notes)
    });
    let key = |secret| (MASTER.to_owned(), KeySection { secret, ..KeySection::default() });
    ConfigFile {
        upstream: servers.sections,
        alias: sections(groups),
        keys: secret.into_iter().map(key).collect(),
        ..ConfigFile::default()
    }
}

impl Settings {
    /// The router's value wins, as it does in LiteLLM.
    fn merged(router: Option<Settings>, library: Option<Settings>, notes: &mut Notes) -> Settings {
        let (router, library) = (router.unwrap_or_default(), library.unwrap_or_default());
        macro_rules! merged {
            ($($field:ident),*) => {
                Settings { $($field: {
                    if router.$field.is_some() && library.$field.is_some() {
                        let name = stringify!($field);
                        notes.dropped(
                            format!("litellm_settings.{name}"),
                            format!("router_settings.{name} is used"),
                        );
                    }
                    router.$field.or(library.$field)
                }),* }
            };
        }
        let merged = merged!(
            routing_strategy,
            timeout,
            request_timeout,
            stream_timeout,
            num_retries,
            cooldown_time,
            fallbacks,
            default_fallbacks,
            context_window_fallbacks,
            model_group_alias
        );
        if merged.timeout.is_some() && merged.request_timeout.is_some() {
            notes.dropped("litellm_settings.request_timeout", "the timeout is used");
        }
        Settings { timeout: merged.timeout.or(merged.request_timeout), ..merged }
    }

    /// `None` is LiteLLM's default: at random, by weight where there are weights.
    fn strategy(&self, notes: &mut Notes) -> Option<Strategy> {
        const PATH: &str = "router_settings.routing_strategy";
        match self.routing_strategy.as_deref()? {
            "simple-shuffle" => None,
            "least-busy" => Some(Strategy::LeastWait),
            "latency-based-routing" => {
                notes.changed(
                    PATH,
                    "strategy = \"least-wait\": hob uses queue lengths, not past latencies",
                );
                Some(Strategy::LeastWait)
            }
            _ => {
                notes.dropped(
                    PATH,
                    "hob picks in order, loaded models first, by wait, or by weight",
                );
                Some(Strategy::Order)
            }
        }
    }
}

/// Where targets are not used in order, they get an alias of their own, so that fallbacks are not among
/// those to pick from.
fn sections(groups: Vec<Group>) -> Named<AliasSection> {
    let names: Vec<String> = groups.iter().map(|group| group.name.clone()).collect();
    let mut sections = Named::new();
    for Group { name, mut alias, tail, .. } in groups {
        let is_ordered =
            alias.strategy.is_none_or(|StrategyName(strategy)| strategy == Strategy::Order);
        if !is_ordered && !tail.is_empty() {
            let numbered = (2..).map(|number| format!("{name}-pool-{number}"));
            let mut free = [format!("{name}-pool")].into_iter().chain(numbered);
            let pool = free.find(|pool| !names.contains(pool)).unwrap_or_default();
            let to = std::mem::replace(&mut alias.to, vec![TargetEntry::Name(pool.clone())]);
            let strategy = alias.strategy.take();
            sections.insert(pool, AliasSection { to, strategy, ..AliasSection::default() });
        }
        alias.to.extend(tail);
        sections.insert(name, alias);
    }
    sections
}
