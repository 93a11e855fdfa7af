//! llama-swap's `config.yaml`: one of its models becomes the one that hob runs itself, its peers become
//! upstreams, and its other names and filters aliases. The other models are servers to be run beside hob.

mod chat;
mod command;
mod macros;
mod names;
mod peers;
mod reasons;
mod selectors;

use super::draft::{ClientKey, Draft, Load};
use super::reading::Place;
use super::secret::WrittenKey;
use super::upstreams::{Upstreams, place_of, say_key};

use chat::Embedded;
pub(super) use macros::expanded;
pub(super) use reasons::REASONS;

/// `root` has its macros expanded; `used` are the paths of those that were.
pub(super) fn carry(root: &Place<'_>, used: &[String]) -> Draft {
    macros::say_used(root, used);
    let keys = client_keys(root);
    let preloaded = preloaded(root);
    let models = root.get("models").map(|models| models.entries()).unwrap_or_default();
    let embedded = chat::choose(&models, &preloaded);
    let load = load(&preloaded, embedded.as_ref());
    let mut names = embedded.as_ref().map(names::of).unwrap_or_default();
    let clients = keys.iter().map(|key| key.name.clone()).collect();
    let mut upstreams = Upstreams::new(clients, names.all());
    peers::add(root, &mut upstreams, &mut names);
    selectors::add(root, &mut names);
    chat::leave_others(&models, embedded.as_ref());
    Draft {
        keys,
        chat: embedded.map(|embedded| embedded.into_chat(root, load)),
        upstreams: upstreams.into_drafts(),
        aliases: names.into_aliases(),
    }
}

fn client_keys(root: &Place<'_>) -> Vec<ClientKey> {
    let written = root.get("apiKeys").map(|place| place.texts()).unwrap_or_default();
    let is_one = written.len() == 1;
    let mut keys = Vec::new();
    for (number, (text, place)) in (1..).zip(written) {
        let name = if is_one { "client".to_owned() } else { format!("client-{number}") };
        let key = WrittenKey::llama_swap(&text);
        say_key(&key, &name, &place);
        keys.extend(place_of(&key, &name).map(|secret| ClientKey { name, secret }));
    }
    keys
}

/// The models to load at the start, and where each is named.
fn preloaded<'a>(root: &Place<'a>) -> Vec<(String, Place<'a>)> {
    let hook = root.get("hooks").and_then(|hooks| hooks.get("on_startup"));
    hook.and_then(|hook| hook.get("preload")).map(|names| names.texts()).unwrap_or_default()
}

/// llama-swap loads for the first request, unless it is told to do so at the start.
fn load(preloaded: &[(String, Place<'_>)], embedded: Option<&Embedded<'_>>) -> Load {
    let mut load = Load::FirstRequest;
    for (id, place) in preloaded {
        if embedded.is_some_and(|embedded| embedded.id == id) {
            load = Load::Start;
        } else {
            place.drop("hob loads the one model that it runs itself");
        }
    }
    load
}
