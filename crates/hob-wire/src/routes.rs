//! The targets of a name and the state of other servers, as hob reports them over HTTP and on the command line.
//! These types are hob's own; no other API has them. The command line reads what the server writes.

use std::time::Duration;

use hob_core::ModelState;
use hob_core::routing::{Reachable, RouteView, TargetStatus, TargetView, UpstreamView};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::error::json;
use crate::lists::state_name;

/// The targets of a name, in the order in which hob would try them.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct AliasRoute {
    pub alias: String,
    /// How the alias chooses among its targets.
    pub strategy: String,
    pub targets: Vec<RouteTarget>,
}

/// A target and its state.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct RouteTarget {
    pub name: String,
    /// `active`, `standby`, `open` or `half_open`: the state of the circuit breaker, and whether it answers.
    pub status: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub open_for_s: Option<f64>,
    pub state: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub state_reason: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub context_length: Option<u32>,
    pub in_flight: usize,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub last_failure: Option<TargetFailure>,
    #[serde(default)]
    pub thinks_anyway: bool,
}

/// The last failure of a target.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct TargetFailure {
    pub message: String,
    pub ago_s: f64,
}

/// The answer of `GET /api/hob/upstreams`.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct UpstreamList {
    pub upstreams: Vec<UpstreamState>,
}

/// Another server and its state.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct UpstreamState {
    pub name: String,
    pub kind: String,
    pub url: String,
    /// `up`, `down` or `not_asked`.
    pub state: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub reason: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub asked_ago_s: Option<f64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub took_ms: Option<f64>,
    pub models: Vec<String>,
    pub in_flight: usize,
    pub waiting: usize,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub slots: Option<usize>,
    /// Targets that failed lately.
    pub troubled: Vec<RouteTarget>,
}

impl AliasRoute {
    pub fn of(view: RouteView) -> AliasRoute {
        let targets = view.targets.into_iter().map(RouteTarget::of).collect();
        AliasRoute { alias: view.alias, strategy: view.strategy.to_owned(), targets }
    }

    pub fn to_json(&self) -> String {
        json(self)
    }
}

impl UpstreamList {
    pub fn of(views: Vec<UpstreamView>) -> UpstreamList {
        UpstreamList { upstreams: views.into_iter().map(UpstreamState::of).collect() }
    }

    pub fn to_json(&self) -> String {
        json(self)
    }
}

impl RouteTarget {
    fn of(view: TargetView) -> RouteTarget {
        let state = state_name(&view.state).to_owned();
        let (status, open_for_s) = match view.status {
            TargetStatus::Active => ("active", None),
            TargetStatus::Standby => ("standby", None),
            TargetStatus::Open { left } => ("open", Some(seconds(left))),
            TargetStatus::HalfOpen => ("half_open", None),
        };
        let state_reason = match view.state {
            ModelState::Down { reason } => Some(reason),
            ModelState::Cold | ModelState::Loading { .. } | ModelState::Ready => None,
        };
        let failure = |(message, ago)| TargetFailure { message, ago_s: seconds(ago) };
        RouteTarget {
            name: view.name,
            status: status.to_owned(),
            open_for_s,
            state,
            state_reason,
            context_length: view.context_tokens,
            in_flight: view.in_flight,
            last_failure: view.last_failure.map(failure),
            thinks_anyway: view.thinks_anyway,
        }
    }
}

impl UpstreamState {
    pub(crate) fn of(view: UpstreamView) -> UpstreamState {
        let (state, reason, asked_ago_s, took_ms) = match view.reachable {
            Reachable::NotAsked => ("not_asked", None, None, None),
            Reachable::Yes { ago, took } => {
                ("up", None, Some(seconds(ago)), took.map(|took| took.as_secs_f64() * 1e3))
            }
            Reachable::Unlisted { reason, ago } => {
                let reason = format!("its list cannot be read: {reason}");
                ("up", Some(reason), Some(seconds(ago)), None)
            }
            Reachable::No { reason, ago } => ("down", Some(reason), Some(seconds(ago)), None),
        };
        UpstreamState {
            name: view.name,
            kind: view.kind.to_owned(),
            url: view.url,
            state: state.to_owned(),
            reason,
            asked_ago_s,
            took_ms,
            models: view.models,
            in_flight: view.in_flight,
            waiting: view.waiting,
            slots: view.slots,
            troubled: view.troubled.into_iter().map(RouteTarget::of).collect(),
        }
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
        let said = [AliasRoute::of(view).to_json(), UpstreamList::of(vec![server]).to_json()];
        insta::assert_snapshot!(said.join("\n"), @r#"
            {"alias":"fast","strategy":"order","targets":[{"name":"gpu/qwen3","status":"open","open_for_s":4.3,"state":"down","state_reason":"cannot be reached","context_length":8192,"in_flight":1,"last_failure":{"message":"gpu/qwen3: cut off","ago_s":3.0},"thinks_anyway":true},{"name":"local","status":"active","state":"warm","in_flight":0,"thinks_anyway":false}]}
            {"upstreams":[{"name":"gpu","kind":"llama-server","url":"http://gpu:8081","state":"down","reason":"connection refused","asked_ago_s":2.0,"models":["qwen3"],"in_flight":1,"waiting":0,"slots":4,"troubled":[{"name":"gpu/qwen3","status":"open","open_for_s":4.3,"state":"down","state_reason":"cannot be reached","context_length":8192,"in_flight":1,"last_failure":{"message":"gpu/qwen3: cut off","ago_s":3.0},"thinks_anyway":true}]}]}
            "#);
    }
}
