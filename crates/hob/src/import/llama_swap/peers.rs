//! llama-swap's peers: other servers, each with the models that it is known to have.
//! A model of one peer only can be asked for by its bare name; any by `peer/model`.

use super::names::{Filters, Names};
use crate::import::draft::{Alias, Target, UpstreamKind};
use crate::import::parameters::take_effort;
use crate::import::reading::Place;
use crate::import::secret::WrittenKey;
use crate::import::upstreams::{Base, Upstreams, Waits, Wish, address, say_key};

const OPENROUTER: &str = "https://openrouter.ai/api";

/// A model of a peer, and the alias for its bare name.
struct Offer<'a> {
    alias: Alias,
    qualified: String,
    place: Place<'a>,
}

pub(super) fn add(root: &Place<'_>, upstreams: &mut Upstreams, names: &mut Names) {
    let peers = root.get("peers").map(|peers| peers.entries()).unwrap_or_default();
    let offers: Vec<Offer<'_>> =
        peers.iter().flat_map(|(id, peer)| offers(id, peer, upstreams, names)).collect();
    let mut bare: Vec<String> = offers.iter().map(|offer| offer.alias.name.clone()).collect();
    bare.sort_unstable();
    for Offer { alias, qualified, place } in offers {
        let from = bare.partition_point(|name| *name < alias.name);
        let is_shared = bare.get(from + 1).is_some_and(|next| *next == alias.name);
        if is_shared {
            place.change(&format!("several peers have it; ask for {qualified}"));
        } else if !names.add(alias) {
            place.change(&format!("a name of this file's own wins; ask for {qualified}"));
        }
    }
}

fn offers<'a>(
    id: &str,
    peer: &Place<'a>,
    upstreams: &mut Upstreams,
    names: &mut Names,
) -> Vec<Offer<'a>> {
    let url = peer.get("proxy").and_then(|proxy| address(&proxy, Base::AboveV1));
    let Some(url) = url else {
        peer.drop("its address is none that hob can ask; it begins with http://");
        return Vec::new();
    };
    let upstream = upstream(id, peer, url, upstreams);
    let filters = Filters::read(peer);
    let changed = Target { set: filters.set, drop: filters.drop, ..Target::default() };
    if let (true, Some(place)) = (changed != Target::default(), peer.get("filters")) {
        place.change(&format!(
            "they hold for the aliases of its models; whoever asks for {upstream}/MODEL itself \
             goes without them"
        ));
    }
    let mut tuned = changed.clone();
    let effort = take_effort(&mut tuned.set);
    let models = peer.get("models").map(|models| models.texts()).unwrap_or_default();
    let offer = |(model, place): (String, Place<'a>)| {
        let qualified = format!("{upstream}/{model}");
        let to = |target: &Target| Target { name: qualified.clone(), ..target.clone() };
        names.add_direct(&format!("{id}/{model}"), to(&changed));
        let alias = Alias { effort, ..Alias::plain(&model, vec![to(&tuned)]) };
        Offer { alias, qualified, place }
    };
    models.into_iter().map(offer).collect()
}

/// hob's name of the peer: its own, if it can be one.
fn upstream(id: &str, peer: &Place<'_>, url: String, upstreams: &mut Upstreams) -> String {
    let is_openrouter = url == OPENROUTER;
    let (kind, url) = match is_openrouter {
        true => (UpstreamKind::OpenRouter, None),
        false => (UpstreamKind::OpenAi, Some(url)),
    };
    if let (false, Some(proxy)) = (is_openrouter, peer.get("proxy")) {
        proxy.change(
            "kind = \"openai\", to which hob sends neither top_k nor min_p; if it is another hob, a \
             llama-server, vLLM or the like, write that",
        );
    }
    let place = peer.get("apiKey");
    let key = place.as_ref().and_then(Place::text).map(|text| WrittenKey::llama_swap(&text));
    let sent = key.clone().filter(|key| *key != WrittenKey::Placeholder);
    let name = upstreams.add(id, Wish { kind, url, key: sent }, waits(peer));
    if let (Some(key), Some(place)) = (&key, &place) {
        say_key(key, &name, place);
    }
    name
}

fn waits(peer: &Place<'_>) -> Waits {
    let Some(timeouts) = peer.get("timeouts") else { return Waits::default() };
    let header = timeouts.get("responseHeader");
    let first_token = header.as_ref().and_then(Place::seconds);
    if let (Some(_), Some(place)) = (first_token, &header) {
        place.change("first_token: hob's clock runs until there is an answer to read");
    }
    Waits { connect: timeouts.get("connect").and_then(|place| place.seconds()), first_token }
}
