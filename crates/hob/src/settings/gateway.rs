//! The settings of other servers, aliases and keys. Only commands that use them call this, because a missing
//! environment variable of a key must not stop `hob say`.

use std::path::{Path, PathBuf};
use std::time::Duration;

use hob_core::KeepAlive;
use hob_core::chat::Effort;
use hob_upstream::{
    AliasOptions, AttemptTimeouts, FallbackUntil, GatewayOptions, OnInterruption, TargetOptions,
    UpstreamOptions, WhileLoading,
};
use hob_wire::Parameters;

use super::{Environment, KEY_BYTES_MAX, Secret};
use crate::bounded_file::read_text;
use crate::config::{
    AliasSection, DefaultsSection, DetailedTarget, FallbackUntilName, LoadedConfig,
    OnStreamErrorName, TargetEntry, TimeText, UpstreamSection, WhileLoadingName, quoted,
};
use crate::failure::{CliResult, Failure};

const QUEUE_DEFAULT: usize = 8;

/// # Errors
/// An invalid name, value or key, with its position in the file.
pub(crate) fn gateway(
    written: &LoadedConfig,
    environment: &Environment,
) -> CliResult<GatewayOptions> {
    let resolver = Resolver { written, environment };
    let config = &written.config;
    Ok(GatewayOptions {
        upstreams: config
            .upstream
            .iter()
            .map(|(name, section)| resolver.upstream(name, section))
            .collect::<CliResult<_>>()?,
        aliases: config
            .alias
            .iter()
            .map(|(name, section)| resolver.alias(name, section))
            .collect::<CliResult<_>>()?,
        timeouts: default_timeouts(&config.defaults),
    })
}

struct Resolver<'a> {
    written: &'a LoadedConfig,
    environment: &'a Environment,
}

impl Resolver<'_> {
    fn upstream(&self, name: &str, section: &UpstreamSection) -> CliResult<UpstreamOptions> {
        let place = format!("upstream.{}", quoted(name));
        if name.is_empty() || name.contains('/') {
            return Err(
                self.invalid(&place, "an upstream's name must not be empty or contain a slash")
            );
        }
        let key = section.key.as_deref().map(|source| {
            let secret = secret(source, self.written, self.environment);
            secret.map_err(|reason| self.invalid(&format!("{place}.key"), reason))
        });
        Ok(UpstreamOptions {
            name: name.to_owned(),
            kind: section.kind.unwrap_or_default().0,
            url: section.url.clone().unwrap_or_default(),
            key: key.transpose()?,
            timeouts: upstream_timeouts(section)
                .or(default_timeouts(&self.written.config.defaults)),
            slots: section.slots.map(|slots| slots.get().into()),
            queue_max: section.queue_size.map_or(QUEUE_DEFAULT, usize::from),
            is_listed: section.list_models.unwrap_or(false),
            num_ctx: section.num_ctx.map(std::num::NonZeroU32::get),
        })
    }

    fn alias(&self, name: &str, section: &AliasSection) -> CliResult<AliasOptions> {
        let place = format!("alias.{}", quoted(name));
        let targets = section.to.iter().map(|entry| self.target(&place, entry));
        let default = AliasOptions::plain(name);
        let defaults = default_timeouts(&self.written.config.defaults);
        let own = AttemptTimeouts {
            first_token: time(section.first_token_timeout),
            idle: time(section.idle_timeout),
            total: time(section.total_timeout),
            ..AttemptTimeouts::default()
        };
        let mut in_default = section.default.clone().unwrap_or_default();
        if let Some(time) = section.keep_alive {
            in_default.entry("keep_alive").or_insert_with(|| keep_alive(time.0));
        }
        let parameters = self.parameters(
            &place,
            [section.set.as_ref(), Some(&in_default)],
            section.drop.as_ref(),
            section.reasoning_effort.map(|effort| effort.0),
        )?;
        // Enough attempts for each target once, and at least one retry if there are few targets.
        let each_once = || default.attempts_max.max(section.to.len() as u32);
        Ok(AliasOptions {
            targets: targets.collect::<CliResult<_>>()?,
            strategy: section.strategy.unwrap_or_default().0,
            parameters,
            timeouts: own.or(AttemptTimeouts {
                total: defaults.total,
                load: defaults.load,
                ..AttemptTimeouts::default()
            }),
            fallback_until: match section.fallback_until.unwrap_or_default() {
                FallbackUntilName::FirstToken => FallbackUntil::FirstToken,
                FallbackUntilName::Content => FallbackUntil::FirstContent,
            },
            on_interruption: match section.on_stream_error.unwrap_or_default() {
                OnStreamErrorName::Error => OnInterruption::Error,
                OnStreamErrorName::Continue => OnInterruption::Continue,
            },
            while_loading: match section.while_loading.unwrap_or_default() {
                WhileLoadingName::Next => WhileLoading::Next,
                WhileLoadingName::Wait => WhileLoading::Wait,
            },
            queue_timeout: time(section.queue_timeout).unwrap_or(default.queue_timeout),
            attempts_max: section.retries.map_or_else(each_once, |more| u32::from(more) + 1),
            cool_down: time(section.cooldown).unwrap_or(default.cool_down),
            hedge_after: section.hedge_after_ms.map(|ms| Duration::from_millis(ms.get().into())),
            ..default
        })
    }

    fn target(&self, place: &str, entry: &TargetEntry) -> CliResult<TargetOptions> {
        let detailed = match entry {
            TargetEntry::Name(name) => return Ok(TargetOptions::plain(name)),
            TargetEntry::Detailed(detailed) => detailed,
        };
        let DetailedTarget { target, context, capabilities, weight, set, default, drop } =
            &**detailed;
        let place = format!("{place}.to");
        let weight = weight.unwrap_or(1.0);
        if !(weight.is_finite() && weight >= 0.0) {
            return Err(self.invalid(&place, format!("the weight of '{target}' must be 0 or more")));
        }
        const KNOWN: [&str; 4] = ["tools", "images", "json_schema", "embeddings"];
        let unknown = capabilities.iter().flatten().find(|name| !KNOWN.contains(&name.as_str()));
        if let Some(unknown) = unknown {
            let known = KNOWN.join(", ");
            return Err(
                self.invalid(&place, format!("unknown capability '{unknown}' (expected {known})"))
            );
        }
        Ok(TargetOptions {
            name: target.clone(),
            parameters: self.parameters(
                &place,
                [set.as_ref(), default.as_ref()],
                drop.as_ref(),
                None,
            )?,
            context_tokens: context.map(std::num::NonZeroU32::get),
            capabilities: capabilities.clone(),
            weight,
        })
    }

    fn parameters(
        &self,
        place: &str,
        [set, default]: [Option<&toml::Table>; 2],
        drop: Option<&Vec<String>>,
        effort: Option<Effort>,
    ) -> CliResult<Parameters> {
        let mut set = set.cloned().unwrap_or_default();
        if let Some(effort) = effort {
            set.entry("reasoning_effort").or_insert_with(|| effort.name().into());
        }
        let default = default.cloned().unwrap_or_default();
        let json = |table: &toml::Table| serde_json::to_string(table).unwrap_or_default();
        let drop = drop.cloned().unwrap_or_default();
        Parameters::parse(&json(&set), &json(&default), drop)
            .map_err(|error| self.invalid(place, error))
    }

    fn invalid(&self, key: &str, reason: impl std::fmt::Display) -> Failure {
        Failure::usage(format!("{}: {key}: {reason}", self.written.place(key)))
    }
}

/// `env:NAME` or `file:PATH`.
///
/// # Errors
/// What is wrong with the key, without the key.
pub(crate) fn secret(
    source: &str,
    written: &LoadedConfig,
    environment: &Environment,
) -> Result<Secret, String> {
    let key = if let Some(name) = source.strip_prefix("env:") {
        let known = environment.secrets.get(name).map(|secret| secret.expose().to_owned());
        known.ok_or_else(|| format!("the environment variable {name} is not set"))?
    } else if let Some(path) = source.strip_prefix("file:") {
        let path = written.resolve(Path::new(path), &environment.folders);
        read_text(&path, KEY_BYTES_MAX).map_err(|error| error.to_string())?
    } else {
        return Err("write env:NAME or file:PATH, not the key itself".to_owned());
    };
    let key = key.lines().next().unwrap_or_default().trim().to_owned();
    if key.is_empty() { Err(format!("{source} is empty")) } else { Ok(Secret::new(key)) }
}

/// The files that hold keys of clients and of other servers.
pub(crate) fn secret_files(written: &LoadedConfig, environment: &Environment) -> Vec<PathBuf> {
    let config = &written.config;
    let of_clients = config.keys.values().map(|section| section.secret.as_str());
    let of_upstreams = config.upstream.values().filter_map(|section| section.key.as_deref());
    let files = of_clients.chain(of_upstreams).filter_map(|source| source.strip_prefix("file:"));
    files.map(|path| written.resolve(Path::new(path), &environment.folders)).collect()
}

fn upstream_timeouts(section: &UpstreamSection) -> AttemptTimeouts {
    AttemptTimeouts {
        connect: time(section.connect_timeout),
        first_token: time(section.first_token_timeout),
        idle: time(section.idle_timeout),
        ..AttemptTimeouts::default()
    }
}

fn default_timeouts(section: &DefaultsSection) -> AttemptTimeouts {
    AttemptTimeouts {
        connect: time(section.connect_timeout),
        first_token: time(section.first_token_timeout),
        idle: time(section.idle_timeout),
        total: time(section.total_timeout),
        load: time(section.load_timeout),
    }
}

fn time(written: Option<TimeText>) -> Option<Duration> {
    written.map(|TimeText(time)| time)
}

/// In seconds, as a request contains it. A negative number means for ever.
fn keep_alive(time: KeepAlive) -> toml::Value {
    match time {
        KeepAlive::Forever => toml::Value::Integer(-1),
        KeepAlive::For(time) => toml::Value::Float(time.as_secs_f64()),
    }
}

#[cfg(test)]
mod tests {
    use hob_core::routing::Strategy;
    use hob_upstream::UpstreamKind;

    use super::*;

    fn resolved(text: &str) -> CliResult<GatewayOptions> {
        let config = toml::from_str(text).expect("a good file");
        let path = Some(PathBuf::from("hob.toml"));
        let written = LoadedConfig { config, path, text: text.to_owned(), seen: None };
        let mut environment = Environment::default();
        environment.secrets.insert("ROUTER".to_owned(), Secret::new("sk-1".to_owned()));
        gateway(&written, &environment)
    }

    #[test]
    fn a_configuration_is_resolved() {
        let options = resolved(
            "[defaults]\nidle_timeout = \"9s\"\n\
             [upstream.gpu]\nkind = \"llama-server\"\nurl = \"http://gpu:1\"\nslots = 4\n\
             first_token_timeout = \"20s\"\n\
             [upstream.router]\nkind = \"openrouter\"\nkey = \"env:ROUTER\"\n\
             [alias.fast]\nto = [\"gpu/q\", { target = \"router/x\", context = 16384, weight = 2 }]\n\
             strategy = \"weighted\"\non_stream_error = \"continue\"\nreasoning_effort = \"none\"\nretries = 1\nhedge_after_ms = 400\ntotal_timeout = 60\n",
        )
        .expect("good");
        let [gpu, router] = &options.upstreams[..] else { panic!("two") };
        assert_eq!((gpu.kind, gpu.slots), (UpstreamKind::LlamaServer, Some(4)));
        assert_eq!(gpu.timeouts.first_token, Some(Duration::from_secs(20)));
        assert_eq!(gpu.timeouts.idle, Some(Duration::from_secs(9)));
        assert_eq!(
            options.timeouts.idle,
            Some(Duration::from_secs(9)),
            "local models use [defaults] too"
        );
        assert!(router.key.is_some() && !format!("{router:?}").contains("sk-1"));
        let [fast] = &options.aliases[..] else { panic!("one") };
        assert_eq!((fast.strategy, fast.attempts_max), (Strategy::Weighted, 2));
        assert_eq!(fast.on_interruption, OnInterruption::Continue);
        assert_eq!(fast.hedge_after, Some(Duration::from_millis(400)));
        assert_eq!(fast.timeouts.total, Some(Duration::from_secs(60)));
        assert_eq!(fast.targets[1].context_tokens, Some(16384));
        assert!(!fast.parameters.is_empty());
    }

    #[test]
    fn an_invalid_value_is_rejected_with_its_position() {
        for (text, expected) in [
            ("[upstream.x]\nkey = \"sk-secret\"\n", "hob.toml:2:1: upstream.x.key: write env:NAME"),
            (
                "[upstream.x]\nkey = \"env:NOPE\"\n",
                "hob.toml:2:1: upstream.x.key: the environment variable NOPE",
            ),
            ("[upstream.\"a/b\"]\n", "hob.toml:1:11: upstream.a/b: an upstream's name"),
            (
                "[alias.f]\nto = []\nset = { temperature = 9 }\n",
                "hob.toml:1:8: alias.f: 'temperature'",
            ),
            (
                "[alias.f]\nto = [{ target = \"a\", capabilities = [\"fly\"] }]\n",
                "hob.toml:2:1: alias.f.to: unknown capability 'fly' (expected tools",
            ),
        ] {
            let sentence = resolved(text).expect_err(text).sentence;
            assert!(sentence.starts_with(expected), "{text:?} gave {sentence:?}");
            assert!(!sentence.contains("sk-secret"));
        }
    }
}
