//! The targets of a name at a running hob, and the state of the servers behind it.
//! The same types describe a configuration that is checked without a running hob.

use serde::{Deserialize, Serialize};

use super::{CONNECT_TIME_MAX, Key, Remote};
use crate::failure::CliResult;

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub(crate) struct RemoteRoute {
    pub(crate) alias: String,
    pub(crate) strategy: String,
    pub(crate) targets: Vec<RemoteTarget>,
}

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub(crate) struct RemoteTarget {
    pub(crate) name: String,
    pub(crate) status: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) open_for_s: Option<f64>,
    pub(crate) state: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) state_reason: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) context_length: Option<u32>,
    pub(crate) in_flight: u64,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) last_failure: Option<RemoteFailure>,
    #[serde(default)]
    pub(crate) thinks_anyway: bool,
}

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub(crate) struct RemoteFailure {
    pub(crate) message: String,
    pub(crate) ago_s: f64,
}

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub(crate) struct RemoteUpstream {
    pub(crate) name: String,
    pub(crate) kind: String,
    pub(crate) url: String,
    pub(crate) state: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) reason: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) asked_ago_s: Option<f64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) took_ms: Option<f64>,
    pub(crate) models: Vec<String>,
    pub(crate) in_flight: u64,
    pub(crate) waiting: u64,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) slots: Option<u64>,
    pub(crate) troubled: Vec<RemoteTarget>,
}

#[derive(Deserialize)]
pub(crate) struct RemoteUpstreams {
    pub(crate) upstreams: Vec<RemoteUpstream>,
}

impl Remote {
    pub(crate) async fn route(&self, name: &str) -> CliResult<RemoteRoute> {
        let body =
            self.get(&format!("/api/hob/routes/{name}"), CONNECT_TIME_MAX, Key::Sent).await?;
        serde_json::from_str(&body).map_err(|_| self.not_hob())
    }

    pub(crate) async fn upstreams(&self) -> CliResult<Vec<RemoteUpstream>> {
        let body = self.get("/api/hob/upstreams", CONNECT_TIME_MAX, Key::Sent).await?;
        let list: RemoteUpstreams = serde_json::from_str(&body).map_err(|_| self.not_hob())?;
        Ok(list.upstreams)
    }
}
