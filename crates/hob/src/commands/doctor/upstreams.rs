//! Checks the other servers: whether they answer, list the models of aliases, and obey thinking switches.
//! A running hob knows their latest answers, so it is asked if there is one.

use hob_core::routing::{Reachable, UpstreamView};
use hob_core::{UpstreamResolver, nearest};

use super::Check;
use crate::app::App;
use crate::printer::count_text;
use crate::remote::Remote;
use crate::wire_up;

pub(super) async fn checks(app: &App<'_>) -> Vec<Check> {
    if app.written.config.upstream.is_empty() && app.written.config.alias.is_empty() {
        return Vec::new();
    }
    let gateway = match wire_up::looked_up(app).await {
        Ok(gateway) => gateway,
        Err(failure) => return vec![Check::failed("upstreams", failure)],
    };
    let views = gateway.upstreams();
    let mut checks: Vec<Check> = views.iter().map(reached).collect();
    for alias in app.written.config.alias.keys() {
        let route = UpstreamResolver::route(&gateway, alias);
        let targets = route.iter().flat_map(|route| &route.targets);
        checks.extend(targets.filter_map(|target| missing(alias, &target.name, &views)));
    }
    checks.extend(thinkers(app).await);
    checks
}

fn reached(upstream: &UpstreamView) -> Check {
    let UpstreamView { name, kind, url, models, .. } = upstream;
    match &upstream.reachable {
        Reachable::Yes { took, .. } => {
            let took = took.unwrap_or_default().as_millis();
            let models = count_text(models.len(), "model");
            Check::ok(name, format!("{kind} at {url}, {models}, listed in {took} ms"))
        }
        Reachable::Unlisted { reason, .. } => {
            let to_do = "hob still uses it; check its key and kind in hob.toml";
            let found =
                format!("{kind} at {url} answers, but its list of models is unreadable: {reason}");
            Check::warn(name, found, to_do)
        }
        Reachable::No { reason, .. } => {
            let to_do = "check that it runs, and that the url in hob.toml is right";
            Check::warn(name, format!("{kind} at {url} {reason}"), to_do)
        }
        Reachable::NotAsked => {
            Check::warn(name, format!("{kind} at {url} was not checked"), "run again")
        }
    }
}

/// An alias leads to a model that its server does not list.
fn missing(alias: &str, target: &str, upstreams: &[UpstreamView]) -> Option<Check> {
    let (server, model) = target.split_once('/')?;
    let upstream = upstreams.iter().find(|upstream| upstream.name == server)?;
    let is_listed = |listed: &String| {
        listed == model || listed.strip_suffix(":latest").is_some_and(|bare| bare == model)
    };
    // A server that lists nothing may have anything.
    if upstream.models.is_empty() || upstream.models.iter().any(is_listed) {
        return None;
    }
    let near = nearest(model, upstream.models.iter().map(String::as_str), 3);
    let to_do = match &near[..] {
        [] => format!("`hob upstreams --models` lists the models of {server}"),
        near => format!("did you mean {}?", near.join(", ")),
    };
    Some(Check::warn(format!("alias {alias}"), format!("{server} does not list '{model}'"), to_do))
}

/// Targets that thought although that was switched off.
async fn thinkers(app: &App<'_>) -> Vec<Check> {
    let Ok(key) = app.settings.server.api_key.read() else { return Vec::new() };
    let remote = Remote::here(app.settings.server.listen.0, key);
    let Ok(list) = remote.upstreams().await else { return Vec::new() };
    let targets = list.upstreams.into_iter().flat_map(|upstream| upstream.troubled);
    let thinkers = targets.filter(|target| target.thinks_anyway);
    let check = |name: String| {
        let found = "it thinks although thinking is switched off";
        let to_do = "its server or its model does not know the switch; the kind in hob.toml \
                     decides how hob switches thinking";
        Check::warn(name, found, to_do)
    };
    thinkers.map(|target| check(target.name)).collect()
}
