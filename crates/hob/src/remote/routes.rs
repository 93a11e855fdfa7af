//! Asks a running hob for the targets of a name, and for the state of its upstreams.
//! The types of the answers are in `hob-wire`.

use hob_wire::{AliasRoute, UpstreamList, percent_encoded};

use super::{CONNECT_TIME_MAX, Key, Remote};
use crate::failure::CliResult;

impl Remote {
    pub(crate) async fn route(&self, name: &str) -> CliResult<AliasRoute> {
        let path = format!("/api/hob/routes/{}", percent_encoded(name));
        self.get(&path, CONNECT_TIME_MAX, Key::Sent).await
    }

    pub(crate) async fn upstreams(&self) -> CliResult<UpstreamList> {
        self.get("/api/hob/upstreams", CONNECT_TIME_MAX, Key::Sent).await
    }
}
