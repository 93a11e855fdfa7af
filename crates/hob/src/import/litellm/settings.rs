//! What LiteLLM's file says for all models; each alias takes it where it says nothing itself.
//! `router_settings` wins over `litellm_settings`, as it does there.

use crate::import::draft::{Pick, Seconds};
use crate::import::reading::Place;

pub(super) struct Settings {
    pub(super) strategy: Strategy,
    pub(super) first_token: Option<Seconds>,
    pub(super) total: Option<Seconds>,
    pub(super) retries: Option<u32>,
    pub(super) cooldown: Option<Seconds>,
}

/// How LiteLLM chooses among the deployments of one name.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Strategy {
    /// By chance, or by weights where there are some.
    Shuffle,
    Other(Pick),
}

impl Settings {
    pub(super) fn read(root: &Place<'_>) -> Settings {
        Settings {
            strategy: setting(root, "routing_strategy")
                .map_or(Strategy::Shuffle, |place| strategy(&place)),
            first_token: setting(root, "stream_timeout").and_then(|place| place.seconds()),
            total: total(root),
            retries: setting(root, "num_retries").and_then(|place| place.count()),
            cooldown: setting(root, "cooldown_time").and_then(|place| place.seconds()),
        }
    }
}

/// The two words for the same clock: the router's, and the library's.
fn total(root: &Place<'_>) -> Option<Seconds> {
    let routers = setting(root, "timeout").and_then(|place| place.seconds());
    match (routers, setting(root, "request_timeout")) {
        (Some(_), Some(librarys)) => librarys.drop("router_settings.timeout wins over it"),
        (None, Some(librarys)) => return librarys.seconds(),
        (_, None) => {}
    }
    routers
}

/// A value that both sections may hold.
pub(super) fn setting<'a>(root: &Place<'a>, key: &str) -> Option<Place<'a>> {
    let routers = root.get("router_settings").and_then(|section| section.get(key));
    let librarys = root.get("litellm_settings").and_then(|section| section.get(key));
    if let (Some(_), Some(librarys)) = (&routers, &librarys) {
        librarys.drop(&format!("router_settings.{key} wins over it"));
    }
    routers.or(librarys)
}

fn strategy(place: &Place<'_>) -> Strategy {
    match place.text().as_deref() {
        None | Some("simple-shuffle") => Strategy::Shuffle,
        Some("least-busy") => Strategy::Other(Pick::LeastWait),
        Some("latency-based-routing") => {
            place.change("pick = \"least-wait\": hob looks at what waits, not at past latencies");
            Strategy::Other(Pick::LeastWait)
        }
        Some(_) => {
            place.drop("hob chooses in order, by warmth, by wait or by weight");
            Strategy::Other(Pick::Order)
        }
    }
}
