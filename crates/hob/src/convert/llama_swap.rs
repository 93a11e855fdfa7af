//! llama-swap's `config.yaml`. Its llama-server models become models that hob runs itself, its peers
//! upstreams, and its other names, filters and selectors aliases.

mod command;
mod macros;

use std::collections::BTreeMap;
use std::num::NonZeroU16;
use std::time::Duration;

use hob_core::KeepAlive;
use hob_core::routing::Strategy;
use hob_upstream::UpstreamKind;
use serde::Deserialize;
use serde_json::{Map, Value};

use super::parameters::{Table, entry, take_effort, time, to_toml};
use super::servers::{Base, Server, Servers, WrittenKey, address, slug};
use super::source::{Notes, Number, Reasons, read, under};
use crate::config::{
    AliasSection, ChatSection, ConfigFile, DetailedTarget, KeepAliveText, KeySection, LoadAt,
    StrategyName, TargetEntry,
};
pub(super) use macros::EXPANDED_BYTES_MAX;

const OPENROUTER: &str = "https://openrouter.ai/api";

pub(super) const REASONS: Reasons = &[
    (
        &["groups", "matrix", "routing", "scheduler"],
        "hob keeps as many models loaded as the memory holds, and unloads the least recently used",
    ),
    (
        &["healthCheckTimeout", "checkEndpoint", "cmdStop", "unloadTimeout", "startPort"],
        "hob starts, watches and stops its models itself",
    ),
    (&["env"], "set it where hob is started"),
    (&["logLevel", "logTimeFormat", "logToStdout", "logRequests"], "use --log or HOB_LOG"),
    (
        &["metricsMaxInMemory", "captureBuffer"],
        "hob keeps a request log without texts, and serves /metrics",
    ),
    (&["name", "description", "metadata"], "hob reads a model's description from its file"),
    (&["unlisted", "includeAliasesInList"], "hob lists every alias"),
];

#[derive(Default, Deserialize)]
struct File {
    models: Option<Map<String, Value>>,
    peers: Option<Map<String, Value>>,
    selectors: Option<Map<String, Value>>,
    hooks: Option<Hooks>,
    #[serde(rename = "apiKeys")]
    api_keys: Option<Vec<String>>,
    #[serde(rename = "globalTTL")]
    global_ttl: Option<Number>,
    /// Expanded already.
    #[serde(rename = "macros")]
    _macros: Option<Value>,
}

#[derive(Deserialize)]
struct Hooks {
    on_startup: Option<OnStartup>,
}

#[derive(Deserialize)]
struct OnStartup {
    preload: Option<Vec<String>>,
}

#[derive(Deserialize)]
struct Model {
    cmd: Option<String>,
    ttl: Option<Number>,
    #[serde(rename = "concurrencyLimit")]
    concurrency_limit: Option<Number>,
    aliases: Option<Vec<Value>>,
    filters: Option<Filters>,
    #[serde(rename = "macros")]
    _macros: Option<Value>,
}

/// Changes to requests.
#[derive(Default, Deserialize)]
struct Filters {
    #[serde(rename = "stripParams", alias = "strip_params")]
    strip: Option<String>,
    #[serde(rename = "setParams")]
    set: Option<Table>,
    #[serde(rename = "setParamsByID")]
    set_by_id: Option<BTreeMap<String, Table>>,
}

#[derive(Deserialize)]
struct Peer {
    proxy: String,
    #[serde(rename = "apiKey")]
    api_key: Option<String>,
    models: Option<Vec<String>>,
    filters: Option<Filters>,
    timeouts: Option<Timeouts>,
}

#[derive(Deserialize)]
struct Timeouts {
    connect: Option<Number>,
    #[serde(rename = "responseHeader")]
    response_header: Option<Number>,
}

#[derive(Deserialize)]
struct Selector {
    strategy: Option<String>,
    targets: Option<Vec<String>>,
}

/// # Errors
/// The path of the section whose macros expand to too much.
pub(super) fn convert(root: Value, notes: &mut Notes) -> Result<ConfigFile, String> {
    let file: File = read(macros::expanded(root)?, "", notes).unwrap_or_default();
    let preload = file.hooks.and_then(|hooks| hooks.on_startup?.preload).unwrap_or_default();
    let ttl = file.global_ttl;
    let mut conversion = Conversion { config: ConfigFile::default(), preload, ttl, notes };
    conversion.keys(file.api_keys.unwrap_or_default());
    for (id, value) in file.models.unwrap_or_default() {
        let at = under("models", &id);
        if let Some(model) = read(value, &at, conversion.notes) {
            conversion.model(&id, &at, model);
        }
    }
    conversion.peers(file.peers.unwrap_or_default());
    for (name, value) in file.selectors.unwrap_or_default() {
        let at = under("selectors", &name);
        if let Some(selector) = read(value, &at, conversion.notes) {
            conversion.selector(&name, &at, selector);
        }
    }
    let mut missing = std::mem::take(&mut conversion.preload);
    missing.retain(|name| !conversion.has(name));
    for name in missing {
        let why = "the model was not carried over";
        conversion.notes.dropped(format!("hooks.on_startup.preload: {name}"), why);
    }
    if !conversion.config.model.is_empty() {
        // Clients request these models by name, so hob's default model must not take their memory at the start.
        conversion.config.chat.load = Some(LoadAt::FirstRequest);
    }
    Ok(conversion.config)
}

/// The configuration so far.
struct Conversion<'n> {
    config: ConfigFile,
    /// Models to load at the start.
    preload: Vec<String>,
    /// For models without a `ttl` of their own.
    ttl: Option<Number>,
    notes: &'n mut Notes,
}

impl Conversion<'_> {
    fn keys(&mut self, written: Vec<String>) {
        for (index, key) in written.iter().enumerate() {
            let name = format!("client-{}", index + 1);
            let secret = WrittenKey::parse(key).config_value(
                &name,
                &format!("apiKeys[{index}]"),
                self.notes,
            );
            let section = |secret| KeySection { secret, ..KeySection::default() };
            self.config.keys.extend(secret.map(|secret| (name, section(secret))));
        }
    }

    /// Whether clients can request this name.
    fn has(&self, name: &str) -> bool {
        self.config.model.contains_key(name) || self.config.alias.contains_key(name)
    }

    fn add_alias(&mut self, name: &str, alias: AliasSection, path: String) {
        match self.has(name) {
            true => self.notes.dropped(path, "another model or alias has this name already"),
            false => drop(self.config.alias.insert(name.to_owned(), alias)),
        }
    }

    fn model(&mut self, id: &str, at: &str, model: Model) {
        let server = match command::llama_server(model.cmd.as_deref().unwrap_or_default()) {
            Ok(server) => server,
            Err(why) => {
                return self.notes.dropped(at, format!(
                    "{why}; run its server yourself and add an [upstream.NAME] with its url, and an \
                     [alias.NAME] that leads to NAME/MODEL"
                ));
            }
        };
        let cmd = format!("{at}.cmd");
        server.changed.iter().for_each(|how| self.notes.changed(&cmd, how));
        if !server.unused.is_empty() {
            let flags = server.unused.join(", ");
            self.notes.dropped(&cmd, format!("[model.NAME] has no key for {flags}"));
        }
        let chat = ChatSection {
            keep_alive: model.ttl.filter(|ttl| ttl.0 >= 0.0).or(self.ttl).map(keep_alive),
            load: self.preload.iter().any(|name| name == id).then_some(LoadAt::Start),
            requests_max: model
                .concurrency_limit
                .and_then(|Number(limit)| NonZeroU16::new(limit as u16)),
            ..server.section
        };
        let mut filters = model.filters.unwrap_or_default();
        let by_id = filters.set_by_id.take().unwrap_or_default();
        let path = format!("{at}.filters");
        let target = |name: &str, set: Table, conversion: &mut Self| {
            let (mut set, drop) = (set, filters.drop());
            let effort = take_effort(&mut set).or(server.effort);
            let set = to_toml(&set, &format!("{path}.setParams"), conversion.notes);
            let target = name.to_owned();
            let default = server.defaults.clone();
            let detailed =
                DetailedTarget { target, set, drop, default, ..DetailedTarget::default() };
            AliasSection {
                to: vec![entry(detailed)],
                reasoning_effort: effort,
                ..AliasSection::default()
            }
        };
        let own_set = filters.set.clone().unwrap_or_default();
        let plain =
            AliasSection { to: vec![TargetEntry::Name(id.to_owned())], ..AliasSection::default() };
        // A model has no parameters of its own and no slash in its name: such an id becomes an alias.
        let is_plain = !id.contains('/') && target(id, own_set.clone(), self) == plain;
        let name = if is_plain { id.to_owned() } else { self.free_model_name(&server.file) };
        self.config.model.insert(name.clone(), chat);
        if !is_plain {
            let alias = target(&name, own_set.clone(), self);
            self.add_alias(id, alias, at.to_owned());
        }
        for (index, alias) in model.aliases.unwrap_or_default().iter().enumerate() {
            let path = format!("{at}.aliases[{index}]");
            if let Some(alias) = alias.as_str().or_else(|| alias.get("id")?.as_str()) {
                self.add_alias(alias, plain.clone(), path);
            }
        }
        for (alias, set) in by_id {
            let mut merged = own_set.clone();
            merged.extend(set);
            let section = target(&name, merged, self);
            self.add_alias(&alias, section, under(&format!("{path}.setParamsByID"), &alias));
        }
    }

    fn free_model_name(&self, file: &str) -> String {
        let numbered = (2..).map(|number| format!("{}-{number}", slug(file)));
        let mut names = [slug(file)].into_iter().chain(numbered);
        names.find(|name| !self.has(name)).unwrap_or_default()
    }

    fn peers(&mut self, peers: Map<String, Value>) {
        let aliases = self.config.alias.keys().chain(self.config.model.keys()).cloned().collect();
        let clients = self.config.keys.keys().cloned().collect();
        let mut servers = Servers::new(aliases, clients);
        for (id, value) in peers {
            let at = under("peers", &id);
            if let Some(peer) = read(value, &at, self.notes) {
                self.peer(&id, &at, peer, &mut servers);
            }
        }
        self.config.upstream = servers.sections;
    }

    fn peer(&mut self, id: &str, at: &str, peer: Peer, servers: &mut Servers) {
        let proxy = format!("{at}.proxy");
        let Some(url) = address(&peer.proxy, Base::WithoutV1, &proxy, self.notes) else {
            return self
                .notes
                .dropped(at, "proxy is not an address that begins with http:// or https://");
        };
        let is_openrouter = url == OPENROUTER;
        if !is_openrouter {
            let how = "kind = \"openai\": hob does not send top_k and min_p to it; write the kind that it is \
                       (llama-server, vllm, hob, …)";
            self.notes.changed(proxy, how);
        }
        let mut clock = |seconds: Option<Number>, key: &str| {
            seconds.and_then(|seconds| time(seconds, &format!("{at}.timeouts.{key}"), self.notes))
        };
        let timeouts = peer.timeouts.as_ref();
        let server = Server {
            kind: if is_openrouter { UpstreamKind::OpenRouter } else { UpstreamKind::OpenAi },
            url: (!is_openrouter).then_some(url),
            connect: clock(timeouts.and_then(|times| times.connect), "connect"),
            first_token: clock(timeouts.and_then(|times| times.response_header), "responseHeader"),
            key: peer.api_key,
        };
        let upstream = servers.name_of(id, server, &format!("{at}.apiKey"), self.notes);
        let filters = peer.filters.unwrap_or_default();
        let mut set = filters.set.clone().unwrap_or_default();
        let effort = take_effort(&mut set);
        let set = to_toml(&set, &format!("{at}.filters.setParams"), self.notes);
        for (index, model) in peer.models.unwrap_or_default().iter().enumerate() {
            let target = format!("{upstream}/{model}");
            let detailed = DetailedTarget {
                target,
                set: set.clone(),
                drop: filters.drop(),
                ..DetailedTarget::default()
            };
            let alias = AliasSection {
                to: vec![entry(detailed)],
                reasoning_effort: effort,
                ..AliasSection::default()
            };
            match self.has(model) {
                true => self.notes.changed(
                    format!("{at}.models[{index}]"),
                    format!("another server has a model of this name: request {upstream}/{model}"),
                ),
                false => drop(self.config.alias.insert(model.clone(), alias)),
            }
        }
    }

    fn selector(&mut self, name: &str, at: &str, selector: Selector) {
        let word = selector.strategy.unwrap_or_default();
        let mut to: Vec<String> = Vec::new();
        for target in selector.targets.unwrap_or_default() {
            // llama-swap writes PEER/MODEL too.
            let bare =
                target.split_once('/').filter(|(peer, _)| self.config.upstream.contains_key(*peer));
            match bare.map(|(_, model)| model).filter(|model| self.has(model)) {
                Some(model) => to.push(model.to_owned()),
                None if bare.is_some() || self.has(&target) => to.push(target),
                None => self
                    .notes
                    .dropped(format!("{at}.targets: {target}"), "the model was not carried over"),
            }
        }
        if word == "pin" {
            to.truncate(1);
        }
        if to.is_empty() {
            return self.notes.dropped(at, "none of its targets was carried over");
        }
        let strategy = match word.as_str() {
            "warm" => Some(Strategy::Warm),
            "spillover" => Some(Strategy::LeastWait),
            "pin" | "" => None,
            _ => {
                let why = "hob picks in order, loaded models first, by wait, or by weight";
                self.notes.dropped(format!("{at}.strategy"), why);
                None
            }
        };
        let to = to.into_iter().map(TargetEntry::Name).collect();
        let alias =
            AliasSection { to, strategy: strategy.map(StrategyName), ..AliasSection::default() };
        self.add_alias(name, alias, at.to_owned());
    }
}

impl Filters {
    fn drop(&self) -> Option<Vec<String>> {
        let names = self.strip.as_deref()?.split(',').map(str::trim);
        let names: Vec<String> =
            names.filter(|name| !matches!(*name, "" | "model")).map(str::to_owned).collect();
        (!names.is_empty()).then_some(names)
    }
}

/// Seconds; 0 is for ever.
fn keep_alive(Number(seconds): Number) -> KeepAliveText {
    KeepAliveText(match seconds {
        0.0 => KeepAlive::Forever,
        seconds => KeepAlive::For(Duration::from_secs(seconds.ceil() as u64)),
    })
}
