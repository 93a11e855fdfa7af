//! What a gateway shows of itself: who would answer a name, and how the servers behind it are.
//! Seen by whoever serves requests, without knowing what is behind it.

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

/// An alias and its targets, in the order in which they would be asked.
#[derive(Clone, Debug, PartialEq)]
pub struct RouteView {
    pub alias: String,
    pub pick: &'static str,
    pub targets: Vec<TargetView>,
}

/// One target, as it stands.
#[derive(Clone, Debug, PartialEq)]
pub struct TargetView {
    pub name: String,
    pub status: TargetStatus,
    pub state: ModelState,
    pub context_tokens: Option<u32>,
    pub in_flight: usize,
    /// Its last failure without the server's words, and how long ago that was.
    pub last_failure: Option<(String, Duration)>,
    /// It thought although that was switched off.
    pub thinks_anyway: bool,
}

/// Whether it would be asked.
#[derive(Clone, Debug, PartialEq)]
pub enum TargetStatus {
    /// The first that may be asked.
    Active,
    /// Tried after the targets before it.
    Standby,
    /// Failed: not asked until `left` is over.
    Open { left: Duration },
    /// Failed: the next request tries it first.
    HalfOpen,
}

/// Another server, as it stands.
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
    /// Its targets that were asked, and are not well.
    pub troubled: Vec<TargetView>,
}

/// What the last look at a server's list, or a request since, said.
#[derive(Clone, Debug, PartialEq)]
pub enum Reachable {
    NotAsked,
    /// `took` is how long the last list took.
    Yes {
        ago: Duration,
        took: Option<Duration>,
    },
    /// It answers, and its list cannot be read.
    Unlisted {
        reason: String,
        ago: Duration,
    },
    No {
        reason: String,
        ago: Duration,
    },
}
