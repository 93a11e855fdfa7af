//! The targets of a name and the state of other servers, as hob reports them over HTTP and on the command line.
//! These types are hob's own; no other API has them.

use std::time::Duration;

use hob_core::ModelState;
use hob_core::routing::{Reachable, RouteView, TargetStatus, TargetView, UpstreamView};
use schemars::JsonSchema;
use serde::Serialize;

use crate::error::json;
use crate::lists::state_name;

/// The targets of a name, in the order in which hob would try them.
#[derive(JsonSchema, Serialize)]
pub(crate) struct AliasRoute<'a> {
    alias: &'a str,
    /// How the alias chooses among its targets.
    strategy: &'a str,
    targets: Vec<RouteTarget<'a>>,
}

/// A target and its state.
#[derive(JsonSchema, Serialize)]
struct RouteTarget<'a> {
    name: &'a str,
    /// `active`, `standby`, `open` or `half_open`: the state of the circuit breaker, and whether it answers.
    status: &'static str,
    #[serde(skip_serializing_if = "Option::is_none")]
    open_for_s: Option<f64>,
    state: &'static str,
    #[serde(skip_serializing_if = "Option::is_none")]
    state_reason: Option<&'a str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    context_length: Option<u32>,
    in_flight: usize,
    #[serde(skip_serializing_if = "Option::is_none")]
    last_failure: Option<TargetFailure<'a>>,
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    thinks_anyway: bool,
}

/// The last failure of a target.
#[derive(JsonSchema, Serialize)]
struct TargetFailure<'a> {
    message: &'a str,
    ago_s: f64,
}

/// The answer of `GET /api/hob/upstreams`.
#[derive(JsonSchema, Serialize)]
pub(crate) struct UpstreamList<'a> {
    upstreams: Vec<UpstreamState<'a>>,
}

/// Another server and its state.
#[derive(JsonSchema, Serialize)]
pub(crate) struct UpstreamState<'a> {
    name: &'a str,
    kind: &'a str,
    url: &'a str,
    /// `up`, `down` or `not_asked`.
    state: &'static str,
    #[serde(skip_serializing_if = "Option::is_none")]
    reason: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    asked_ago_s: Option<f64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    took_ms: Option<f64>,
    models: &'a [String],
    in_flight: usize,
    waiting: usize,
    #[serde(skip_serializing_if = "Option::is_none")]
    slots: Option<usize>,
    /// Targets that failed lately.
    troubled: Vec<RouteTarget<'a>>,
}

pub fn route(view: &RouteView) -> String {
    let targets = view.targets.iter().map(target).collect();
    json(&AliasRoute { alias: &view.alias, strategy: view.strategy, targets })
}

pub fn upstreams(views: &[UpstreamView]) -> String {
    json(&UpstreamList { upstreams: views.iter().map(upstream).collect() })
}

fn target(view: &TargetView) -> RouteTarget<'_> {
    let (status, open_for_s) = match &view.status {
        TargetStatus::Active => ("active", None),
        TargetStatus::Standby => ("standby", None),
        TargetStatus::Open { left } => ("open", Some(seconds(*left))),
        TargetStatus::HalfOpen => ("half_open", None),
    };
    let state_reason = match &view.state {
        ModelState::Down { reason } => Some(reason.as_str()),
        ModelState::Cold | ModelState::Loading { .. } | ModelState::Ready => None,
    };
    let last = view.last_failure.as_ref();
    RouteTarget {
        name: &view.name,
        status,
        open_for_s,
        state: state_name(&view.state),
        state_reason,
        context_length: view.context_tokens,
        in_flight: view.in_flight,
        last_failure: last.map(|(message, ago)| TargetFailure { message, ago_s: seconds(*ago) }),
        thinks_anyway: view.thinks_anyway,
    }
}

pub(crate) fn upstream(view: &UpstreamView) -> UpstreamState<'_> {
    let (state, reason, asked_ago_s, took_ms) = match &view.reachable {
        Reachable::NotAsked => ("not_asked", None, None, None),
        Reachable::Yes { ago, took } => {
            ("up", None, Some(seconds(*ago)), took.map(|took| took.as_secs_f64() * 1e3))
        }
        Reachable::Unlisted { reason, ago } => {
            let reason = format!("its list cannot be read: {reason}");
            ("up", Some(reason), Some(seconds(*ago)), None)
        }
        Reachable::No { reason, ago } => ("down", Some(reason.clone()), Some(seconds(*ago)), None),
    };
    UpstreamState {
        name: &view.name,
        kind: view.kind,
        url: &view.url,
        state,
        reason,
        asked_ago_s,
        took_ms,
        models: &view.models,
        in_flight: view.in_flight,
        waiting: view.waiting,
        slots: view.slots,
        troubled: view.troubled.iter().map(target).collect(),
    }
}

/// Rounded to a tenth: more digits help no reader.
fn seconds(time: Duration) -> f64 {
    (time.as_secs_f64() * 10.0).round() / 10.0
}

#[cfg(test)]
mod tests {
    use super::*;

    fn resting() -> TargetView {
        TargetView {
            name: "gpu/qwen3".to_owned(),
            status: TargetStatus::Open { left: Duration::from_millis(4250) },
            state: ModelState::Down { reason: "cannot be reached".to_owned() },
            context_tokens: Some(8192),
            in_flight: 1,
            last_failure: Some(("gpu/qwen3: cut off".to_owned(), Duration::from_secs(3))),
            thinks_anyway: true,
        }
    }

    #[test]
    fn views_are_said_whole() {
        let well = TargetView {
            name: "local".to_owned(),
            status: TargetStatus::Active,
            state: ModelState::Ready,
            context_tokens: None,
            in_flight: 0,
            last_failure: None,
            thinks_anyway: false,
        };
        let view = RouteView {
            alias: "fast".to_owned(),
            strategy: "order",
            targets: vec![resting(), well],
        };
        let server = UpstreamView {
            name: "gpu".to_owned(),
            kind: "llama-server",
            url: "http://gpu:8081".to_owned(),
            reachable: Reachable::No {
                reason: "connection refused".to_owned(),
                ago: Duration::from_secs(2),
            },
            models: vec!["qwen3".to_owned()],
            in_flight: 1,
            waiting: 0,
            slots: Some(4),
            troubled: vec![resting()],
        };
        insta::assert_snapshot!(route(&view) + "\n" + &upstreams(&[server]), @r#"
            {"alias":"fast","strategy":"order","targets":[{"name":"gpu/qwen3","status":"open","open_for_s":4.3,"state":"down","state_reason":"cannot be reached","context_length":8192,"in_flight":1,"last_failure":{"message":"gpu/qwen3: cut off","ago_s":3.0},"thinks_anyway":true},{"name":"local","status":"active","state":"warm","in_flight":0}]}
            {"upstreams":[{"name":"gpu","kind":"llama-server","url":"http://gpu:8081","state":"down","reason":"connection refused","asked_ago_s":2.0,"models":["qwen3"],"in_flight":1,"waiting":0,"slots":4,"troubled":[{"name":"gpu/qwen3","status":"open","open_for_s":4.3,"state":"down","state_reason":"cannot be reached","context_length":8192,"in_flight":1,"last_failure":{"message":"gpu/qwen3: cut off","ago_s":3.0},"thinks_anyway":true}]}]}
            "#);
    }
}
