//! The servers that a source names, as `[upstream.NAME]` sections: each server once, under a readable name.
//! Secrets are not copied. A note names the environment variable to set instead.

use hob_upstream::{UpstreamKind, names_version};
use url::Url;

use super::source::Notes;
use crate::config::{KindName, Named, TimeText, UpstreamSection};

/// A secret as a source writes it. Not `Debug`: it may be the secret itself.
#[derive(Clone, PartialEq, Eq)]
pub(super) enum WrittenKey {
    /// The name of the environment variable that holds it.
    Variable(String),
    /// A value such as `none`, for a server that needs no key.
    Placeholder,
    Literal,
}

const PLACEHOLDERS: [&str; 11] = [
    "",
    "none",
    "null",
    "empty",
    "dummy",
    "fake",
    "no-key",
    "not-needed",
    "anything",
    "placeholder",
    "ollama",
];

impl WrittenKey {
    /// Reads `os.environ/NAME` as LiteLLM writes it, and `${env.NAME}` as llama-swap does.
    pub(super) fn parse(text: &str) -> WrittenKey {
        let word = text.trim().to_ascii_lowercase().replace(['_', ' '], "-");
        match variable_in(text.trim()) {
            Some(name) => WrittenKey::Variable(name.to_owned()),
            None if PLACEHOLDERS.contains(&word.as_str()) => WrittenKey::Placeholder,
            None => WrittenKey::Literal,
        }
    }

    /// The key as a section called `owner` writes it, with a note if it is not the source's own.
    pub(super) fn config_value(
        &self,
        owner: &str,
        path: &str,
        notes: &mut Notes,
    ) -> Option<String> {
        match self {
            WrittenKey::Variable(name) => Some(format!("env:{name}")),
            WrittenKey::Placeholder => {
                notes.dropped(path, "it is a placeholder, and hob sends no key unless one is set");
                None
            }
            WrittenKey::Literal => {
                let variable = variable_for(owner);
                notes.changed(
                    path,
                    format!(
                        "hob does not copy keys: set the environment variable {variable} to it"
                    ),
                );
                Some(format!("env:{variable}"))
            }
        }
    }
}

/// A server as one model of the source describes it.
#[derive(Clone, PartialEq)]
pub(super) struct Server {
    pub(super) kind: UpstreamKind,
    /// `None` where hob knows the address.
    pub(super) url: Option<String>,
    pub(super) connect: Option<TimeText>,
    pub(super) first_token: Option<TimeText>,
    /// The key as it is written, to tell servers with different keys apart.
    pub(super) key: Option<String>,
}

#[derive(Default)]
pub(super) struct Servers {
    known: Vec<(String, Server)>,
    pub(super) sections: Named<UpstreamSection>,
    /// Names of aliases. `UPSTREAM/MODEL` must be none of them, or the alias would lead to itself.
    aliases: Vec<String>,
    /// Names of client keys: their variables must differ from those of servers.
    clients: Vec<String>,
}

impl Servers {
    pub(super) fn new(aliases: Vec<String>, clients: Vec<String>) -> Servers {
        Servers { aliases, clients, ..Servers::default() }
    }

    /// Returns the name of the server's section; `preferred` if that is free. `key_path` says where the key
    /// stands in the source.
    pub(super) fn name_of(
        &mut self,
        preferred: &str,
        server: Server,
        key_path: &str,
        notes: &mut Notes,
    ) -> String {
        let key = server.key.as_deref().map(WrittenKey::parse);
        if let Some((name, _)) = self.known.iter().find(|(_, known)| *known == server) {
            let name = name.clone();
            key.and_then(|key| key.config_value(&name, key_path, notes));
            return name;
        }
        let name = self.free_name(preferred);
        let section = UpstreamSection {
            kind: Some(KindName(server.kind)),
            url: server.url.clone(),
            key: key.and_then(|key| key.config_value(&name, key_path, notes)),
            connect_timeout: server.connect,
            first_token_timeout: server.first_token,
            ..UpstreamSection::default()
        };
        self.sections.insert(name.clone(), section);
        self.known.push((name.clone(), server));
        name
    }

    fn free_name(&self, preferred: &str) -> String {
        let preferred = slug(preferred);
        let is_alias = |name: &str| {
            self.aliases
                .iter()
                .any(|alias| alias.split_once('/').is_some_and(|(first, _)| first == name))
        };
        let preferred =
            if is_alias(&preferred) { format!("{preferred}-server") } else { preferred };
        // Names that give the same variable count as the same.
        let is_free = |name: &String| {
            let mut taken = self.sections.keys().chain(&self.clients);
            !is_alias(name) && taken.all(|taken| variable_for(taken) != variable_for(name))
        };
        let numbered = (2..).map(|number| format!("{preferred}-{number}"));
        [preferred.clone()].into_iter().chain(numbered).find(is_free).unwrap_or(preferred)
    }
}

/// The environment variable for a key that the source holds itself.
pub(super) fn variable_for(name: &str) -> String {
    let letter = |c: char| if c.is_ascii_alphanumeric() { c.to_ascii_uppercase() } else { '_' };
    format!("HOB_KEY_{}", name.chars().map(letter).collect::<String>())
}

/// How much of the path a source expects in an address.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Base {
    /// LiteLLM: with `/v1`.
    WithV1,
    /// llama-swap: without it, as hob.
    WithoutV1,
}

/// The address as hob.toml writes it, or `None` if it is not an HTTP address.
pub(super) fn address(text: &str, base: Base, path: &str, notes: &mut Notes) -> Option<String> {
    if let Some(variable) = variable_in(text.trim()) {
        notes.changed(
            path,
            "hob reads no address from the environment: replace the .invalid address",
        );
        return Some(format!(
            "http://{}.invalid",
            slug(&variable.to_lowercase().replace('_', "-"))
        ));
    }
    let mut url = Url::parse(text.trim()).ok()?;
    if !matches!(url.scheme(), "http" | "https") {
        return None;
    }
    if !url.username().is_empty() || url.password().is_some() {
        notes.changed(path, "the user name and password in the address are not copied");
        url.set_username("").ok()?;
        url.set_password(None).ok()?;
    }
    if url.query().is_some() || url.fragment().is_some() {
        notes.changed(path, "the part after ? or # is not copied, because it may hold a key");
        url.set_query(None);
        url.set_fragment(None);
    }
    let address = url.as_str().trim_end_matches('/');
    match (base, address.strip_suffix("/v1")) {
        // An address with another version needs its `/v1`.
        (Base::WithV1, Some(without)) if !names_version(without) => {
            return Some(without.to_owned());
        }
        (Base::WithV1, None) if url.path().len() > 1 && !names_version(url.path()) => {
            notes.changed(path, "the address does not end in /v1: check that ADDRESS/v1/… exists");
        }
        _ => {}
    }
    Some(address.to_owned())
}

fn variable_in(text: &str) -> Option<&str> {
    let braced = || text.strip_prefix("${env.")?.strip_suffix('}');
    let name = text.strip_prefix("os.environ/").or_else(braced)?;
    (!name.contains(['$', '{', '}'])).then_some(name)
}

/// A short name for an address: `groq` for `https://api.groq.com/openai`.
pub(super) fn host_name(address: &str) -> String {
    let url = Url::parse(address).ok();
    let host = url.as_ref().and_then(Url::host);
    match host {
        Some(url::Host::Domain("localhost")) => "local".to_owned(),
        Some(url::Host::Domain(domain)) => {
            let label = domain.split('.').find(|label| !matches!(*label, "api" | "www"));
            slug(label.unwrap_or(domain))
        }
        Some(url::Host::Ipv4(address)) if address.is_loopback() => "local".to_owned(),
        Some(url::Host::Ipv6(address)) if address.is_loopback() => "local".to_owned(),
        Some(host) => slug(&host.to_string().replace('.', "-")),
        None => "server".to_owned(),
    }
}

/// A name without slashes or spaces.
pub(super) fn slug(text: &str) -> String {
    let letter = |c: char| if c.is_ascii_alphanumeric() || "-_.".contains(c) { c } else { '-' };
    let slug: String = text.chars().map(letter).collect();
    let slug = slug.trim_matches('-');
    if slug.is_empty() { "server".to_owned() } else { slug.to_owned() }
}
