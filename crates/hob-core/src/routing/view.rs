//! What a gateway reports: which targets would answer a name, and the state of the servers behind it.
//! The server shows these views without knowing how routing works.

use std::time::Duration;

use crate::ModelState;

/// A model of another server.
#[derive(Clone, Debug, PartialEq)]
pub struct ListedModel {
    /// `upstream/model`.
    pub name: String,
    pub state: ModelState,
    pub context_tokens: Option<u32>,
}

/// An alias and its targets, in the order in which they would be tried.
#[derive(Clone, Debug, PartialEq)]
pub struct RouteView {
    pub alias: String,
    pub strategy: &'static str,
    pub targets: Vec<TargetView>,
}

/// The state of one target.
#[derive(Clone, Debug, PartialEq)]
pub struct TargetView {
    pub name: String,
    pub status: TargetStatus,
    pub state: ModelState,
    pub context_tokens: Option<u32>,
    pub in_flight: usize,
    /// The last failure of the target, without the server's words, and how long ago it happened.
    pub last_failure: Option<(String, Duration)>,
    /// The model thought although thinking was switched off.
    pub thinks_anyway: bool,
}

/// Whether the target would be used.
#[derive(Clone, Debug, PartialEq)]
pub enum TargetStatus {
    /// The first target that may be used.
    Active,
    /// Tried after the targets before it.
    Standby,
    /// Failed: not used until `left` is over.
    Open { left: Duration },
    /// Failed: the next request probes it.
    HalfOpen,
}

/// The state of another server.
#[derive(Clone, Debug, PartialEq)]
pub struct UpstreamView {
    pub name: String,
    pub kind: &'static str,
    pub url: String,
    pub reachable: Reachable,
    pub models: Vec<String>,
    pub in_flight: usize,
    pub waiting: usize,
    pub slots: Option<usize>,
    /// Targets of the upstream that were used and have failures.
    pub troubled: Vec<TargetView>,
}

/// The result of the last list request, or of a request since.
#[derive(Clone, Debug, PartialEq)]
pub enum Reachable {
    NotAsked,
    /// `took` is how long the last list took.
    Yes {
        ago: Duration,
        took: Option<Duration>,
    },
    /// The server answers, but its list cannot be read.
    Unlisted {
        reason: String,
        ago: Duration,
    },
    No {
        reason: String,
        ago: Duration,
    },
}
