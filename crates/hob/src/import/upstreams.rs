//! The servers that a source names, each once: by protocol, address and key, under a name to read.
//! A source repeats them for each model; hob names them and lets models be many.

use super::draft::{Seconds, Upstream, UpstreamKind};
use super::reading::Place;
use super::secret::{KeyPlace, WrittenKey, not_copied, variable_for};

/// A server as one model of the source wants it.
#[derive(Clone, PartialEq)]
pub(super) struct Wish {
    pub(super) kind: UpstreamKind,
    pub(super) url: Option<String>,
    pub(super) key: Option<WrittenKey>,
}

/// How long hob waits for it, where the source says so for the server.
#[derive(Clone, Copy, Default)]
pub(super) struct Waits {
    pub(super) connect: Option<Seconds>,
    pub(super) first_token: Option<Seconds>,
}

/// All servers so far, in the order in which they were first named.
pub(super) struct Upstreams {
    known: Vec<Known>,
    /// Names of the tables of keys, whose variables would be the same.
    clients: Vec<String>,
    /// Names that clients ask for. `UPSTREAM/…` must be none of them, or it would lead to itself.
    asked_for: Vec<String>,
}

struct Known {
    name: String,
    wish: Wish,
    waits: Waits,
}

impl Upstreams {
    pub(super) fn new(clients: Vec<String>, asked_for: Vec<String>) -> Upstreams {
        Upstreams { known: Vec::new(), clients, asked_for }
    }

    /// The server's name; `preferred` if it is free.
    pub(super) fn named(&mut self, preferred: &str, wish: Wish) -> String {
        if let Some(known) = self.known.iter().find(|known| known.wish == wish) {
            return known.name.clone();
        }
        self.add(preferred, wish, Waits::default())
    }

    /// A server that stands apart even if another is like it.
    pub(super) fn add(&mut self, preferred: &str, wish: Wish, waits: Waits) -> String {
        let name = self.free_name(preferred, wish.url.as_deref());
        self.known.push(Known { name: name.clone(), wish, waits });
        name
    }

    fn free_name(&self, preferred: &str, url: Option<&str>) -> String {
        let preferred = match slug(preferred) {
            name if self.is_asked_for(&name) => format!("{name}-server"),
            name => name,
        };
        let host = url.map(host_name).filter(|host| !preferred.starts_with(host));
        let host = host.map(|host| format!("{preferred}-{host}"));
        let port = url.and_then(|url| Some(format!("{}-{}", host.as_deref()?, port(url)?)));
        let telling = [Some(preferred.clone()), host, port].into_iter().flatten();
        let counted = (2..).map(|number| format!("{preferred}-{number}"));
        telling.chain(counted).find(|name| self.is_free(name)).unwrap_or(preferred)
    }

    /// Names that differ only in what a variable cannot hold count as the same.
    fn is_free(&self, name: &str) -> bool {
        let variable = variable_for(name);
        let mut taken = self.known.iter().map(|known| &known.name).chain(&self.clients);
        !self.is_asked_for(name) && !taken.any(|taken| variable_for(taken) == variable)
    }

    fn is_asked_for(&self, name: &str) -> bool {
        let below =
            |asked: &String| asked.strip_prefix(name).is_some_and(|rest| rest.starts_with('/'));
        self.asked_for.iter().any(below)
    }

    pub(super) fn into_drafts(self) -> Vec<Upstream> {
        self.known.into_iter().map(Known::into_draft).collect()
    }
}

impl Known {
    fn into_draft(self) -> Upstream {
        let key = self.wish.key.and_then(|key| place_of(&key, &self.name));
        let Wish { kind, url, .. } = self.wish;
        let Waits { connect, first_token } = self.waits;
        Upstream { name: self.name, kind, url, key, connect, first_token }
    }
}

/// Where hob will find a key of the table `name`.
pub(super) fn place_of(key: &WrittenKey, name: &str) -> Option<KeyPlace> {
    match key {
        WrittenKey::Variable(variable) => Some(KeyPlace::variable(variable)),
        WrittenKey::Literal(_) => Some(KeyPlace::variable(&variable_for(name))),
        WrittenKey::Placeholder => None,
    }
}

/// Says what becomes of a key that hob.toml does not repeat.
pub(super) fn say_key(key: &WrittenKey, name: &str, place: &Place<'_>) {
    match key {
        WrittenKey::Variable(_) => {}
        WrittenKey::Literal(_) => place.change(&not_copied(&variable_for(name))),
        WrittenKey::Placeholder => place.drop("it is no key, and hob sends none that is not set"),
    }
}

/// What a source adds to an address before it asks there. hob adds `/v1/…`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Base {
    /// LiteLLM's: the address ends in `/v1` itself, or the server needs none.
    BelowV1,
    /// llama-swap's: the address is one to which the whole path is added, as hob does.
    AboveV1,
}

/// An address as hob.toml writes it. None if it is none.
pub(super) fn address(place: &Place<'_>, base: Base) -> Option<String> {
    let text = place.text()?;
    if let Some(variable) = variable_in(text.trim()) {
        let host = slug(&variable.to_lowercase().replace('_', "-"));
        place.change(
            "hob reads no address from the environment; write it where the .invalid one stands",
        );
        return Some(format!("http://{host}.invalid"));
    }
    let (scheme, rest) = text.trim().split_once("://")?;
    if !matches!(scheme, "http" | "https") || rest.is_empty() || rest.contains(char::is_whitespace)
    {
        return None;
    }
    let (rest, query) = rest.split_at(rest.find(['?', '#']).unwrap_or(rest.len()));
    if !query.is_empty() {
        place.change("what follows the ? or # in it is not copied; it may hold a key");
    }
    let (authority, path) = rest.split_at(rest.find('/').unwrap_or(rest.len()));
    let host = match authority.rsplit_once('@') {
        Some((_, host)) => {
            place.change("the name and password in it are not copied; hob takes a key");
            host
        }
        None => authority,
    };
    Some(format!("{scheme}://{host}{}", above_v1(path.trim_end_matches('/'), base, place)))
}

/// All of the text is a variable, in the words of either source.
fn variable_in(text: &str) -> Option<&str> {
    let llama_swaps = || text.strip_prefix("${env.").and_then(|rest| rest.strip_suffix('}'));
    text.strip_prefix("os.environ/").or_else(llama_swaps)
}

fn above_v1<'p>(path: &'p str, base: Base, place: &Place<'_>) -> &'p str {
    match (base, path.strip_suffix("/v1")) {
        (Base::BelowV1, Some(above)) => above,
        (Base::AboveV1, _) => path,
        (Base::BelowV1, None) if path.is_empty() => path,
        (Base::BelowV1, None) => {
            place
                .change("it does not end in /v1, and hob asks URL/v1/…; see whether that is there");
            path
        }
    }
}

/// A short word for where it is: `groq` for `https://api.groq.com/openai`.
pub(super) fn host_name(url: &str) -> String {
    let host = host(url);
    if host.starts_with('[') || host.chars().all(|c| c.is_ascii_digit() || c == '.') {
        let is_loopback = host.starts_with("127.") || host.starts_with("[::1]");
        return if is_loopback { "local".to_owned() } else { slug(&host.replace('.', "-")) };
    }
    if host == "localhost" {
        return "local".to_owned();
    }
    let labels = host.split('.').filter(|label| !matches!(*label, "api" | "www"));
    slug(labels.into_iter().next().unwrap_or("server"))
}

fn host(url: &str) -> &str {
    let rest = url.split_once("://").map_or(url, |(_, rest)| rest);
    let authority = &rest[..rest.find('/').unwrap_or(rest.len())];
    match authority.rsplit_once(':') {
        Some((host, port)) if port.chars().all(|c| c.is_ascii_digit()) => host,
        _ => authority,
    }
}

fn port(url: &str) -> Option<&str> {
    let rest = url.split_once("://").map_or(url, |(_, rest)| rest);
    let authority = &rest[..rest.find('/').unwrap_or(rest.len())];
    let (_, port) = authority.rsplit_once(':')?;
    (!port.is_empty() && port.chars().all(|c| c.is_ascii_digit())).then_some(port)
}

/// A name that needs no slash and no blank: `upstream/model` is cut at the first slash.
fn slug(text: &str) -> String {
    let letter = |c: char| if c.is_ascii_alphanumeric() || "-_.".contains(c) { c } else { '-' };
    let slug: String = text.chars().map(letter).collect();
    let slug = slug.trim_matches('-');
    if slug.is_empty() { "server".to_owned() } else { slug.to_owned() }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::import::node::Node;
    use crate::import::reading::Record;

    #[test]
    fn an_address_loses_what_hob_adds_and_what_is_secret() {
        let rows = [
            ("http://10.0.0.5:8081/v1", Some("http://10.0.0.5:8081"), 0),
            ("https://api.groq.com/openai/v1/", Some("https://api.groq.com/openai"), 0),
            ("http://gpu-box:8000", Some("http://gpu-box:8000"), 0),
            ("http://me:pass@gpu-box/v1", Some("http://gpu-box"), 1),
            ("https://x.example/v1beta/openai", Some("https://x.example/v1beta/openai"), 1),
            ("https://x.example/v1?key=k", Some("https://x.example"), 1),
            ("os.environ/VLLM_BASE", Some("http://vllm-base.invalid"), 1),
            ("gpu-box:8000", None, 0),
            ("tailcat://token", None, 0),
            ("http://", None, 0),
            ("http://a b", None, 0),
        ];
        for (text, expected, notes) in rows {
            let (node, record) = (Node::Text(text.to_owned()), Record::default());
            let address = address(&Place::root(&node, &record), Base::BelowV1);
            assert_eq!(address.as_deref(), expected, "{text}");
            assert_eq!(record.notes(&node, &[]).len(), notes, "{text}");
        }
    }

    #[test]
    fn names_are_short_and_never_meant_twice() {
        let rows = [
            ("https://api.groq.com/openai", "groq"),
            ("http://127.0.0.1:8000", "local"),
            ("http://[::1]:8000", "local"),
            ("http://10.0.0.5:8000", "10-0-0-5"),
            ("http://gpu-box.lan", "gpu-box"),
        ];
        for (url, name) in rows {
            assert_eq!(host_name(url), name);
        }
        let mut upstreams =
            Upstreams::new(vec!["master".to_owned()], vec!["openai/gpt-4o".to_owned()]);
        let mut name = |preferred: &str, url: Option<&str>| {
            let kind = UpstreamKind::OpenAi;
            upstreams.named(preferred, Wish { kind, url: url.map(str::to_owned), key: None })
        };
        assert_eq!(name("vllm", Some("http://a:1")), "vllm");
        assert_eq!(name("vllm", Some("http://a:1")), "vllm");
        assert_eq!(name("vllm", Some("http://b:1")), "vllm-b");
        assert_eq!(name("vllm", Some("http://b:2")), "vllm-b-2");
        assert_eq!(name("openai", Some("https://api.openai.com")), "openai-server");
        assert_eq!(name("openai", None), "openai-server-2");
        assert_eq!(name("anthropic", Some("http://b")), "anthropic");
        assert_eq!(name("master", Some("http://c")), "master-c");
    }
}
