//! Which models answer on other machines.
//! Several agents can ask these at the same time; models of this machine share its processor.

use std::collections::BTreeSet;

use hob_upstream::UpstreamKind;

use crate::config::{ConfigFile, KindName, TargetEntry, UpstreamSection};

/// An alias of an alias, and so on.
const ALIASES_MAX: usize = 16;

/// The models and upstreams that use no processor of this machine.
#[derive(Clone, Debug, Default)]
pub(crate) struct OtherMachines {
    upstreams: BTreeSet<String>,
    /// Aliases, and scripted models of tests.
    names: BTreeSet<String>,
}

impl OtherMachines {
    pub(crate) fn of(config: &ConfigFile) -> OtherMachines {
        let far = config.upstream.iter().filter(|(_, upstream)| !is_here(upstream));
        let mut others = OtherMachines {
            upstreams: far.map(|(name, _)| name.clone()).collect(),
            names: config.dev.scripts.keys().cloned().collect(),
        };
        let aliases = config.alias.keys().filter(|alias| others.answers(first(config, alias)));
        let aliases: Vec<String> = aliases.cloned().collect();
        others.names.extend(aliases);
        others
    }

    /// Whether another machine answers for this name.
    pub(crate) fn answers(&self, model: &str) -> bool {
        let upstream = model.split_once('/').map(|(upstream, _)| upstream);
        self.names.contains(model) || upstream.is_some_and(|name| self.upstreams.contains(name))
    }
}

/// The target that an alias asks first.
fn first<'c>(config: &'c ConfigFile, alias: &'c str) -> &'c str {
    let next = |name: &&'c str| config.alias.get(*name)?.to.first().map(TargetEntry::name);
    std::iter::successors(Some(alias), next).take(ALIASES_MAX).last().unwrap_or(alias)
}

fn is_here(upstream: &UpstreamSection) -> bool {
    let kind = upstream.kind.as_ref().map(|KindName(kind)| *kind);
    let url = upstream.url.as_deref().or(kind.and_then(UpstreamKind::url));
    let host = url.and_then(|url| url::Url::parse(url).ok()?.host().map(|host| host.to_owned()));
    match host {
        Some(url::Host::Domain(name)) => name == "localhost",
        Some(url::Host::Ipv4(address)) => address.is_loopback(),
        Some(url::Host::Ipv6(address)) => address.is_loopback(),
        None => true,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn clouds_and_other_hosts_are_other_machines() {
        let text = r#"
            upstream.cloud = { kind = "openai", key = "env:KEY" }
            upstream.box = { url = "http://192.168.1.5:8000" }
            upstream.ollama = { kind = "ollama" }
            upstream.near = { url = "http://[::1]:8000/v1" }
            alias.reliable.to = ["cloud/gpt", "qwen3:4b"]
            alias.again.to = [{ target = "reliable" }]
            alias.local.to = ["qwen3:4b", "cloud/gpt"]
            dev.scripts.script = "a.jsonl"
        "#;
        let others = OtherMachines::of(&toml::from_str(text).expect("a configuration"));
        for name in ["cloud/gpt", "box/m", "reliable", "again", "script"] {
            assert!(others.answers(name), "{name}");
        }
        for name in ["ollama/qwen3:4b", "near/m", "local", "qwen3:4b", "other/m"] {
            assert!(!others.answers(name), "{name}");
        }
    }
}
