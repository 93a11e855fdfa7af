//! The settings of teams as Pipelines of Open WebUI.
//! Without any, the routes are on the main port alone, and take hob's own keys.

use crate::config::{LoadedConfig, PipelinesSection};
use crate::listen::Listen;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct PipelinesSettings {
    pub(crate) listen: Option<Listen>,
    pub(crate) accepts_default_key: bool,
}

impl PipelinesSettings {
    pub(super) fn resolve(written: &LoadedConfig) -> PipelinesSettings {
        let file = &written.config.server.pipelines;
        PipelinesSettings {
            listen: file.listen,
            accepts_default_key: file.accept_default_key.unwrap_or(false),
        }
    }

    pub(super) fn as_written(self) -> PipelinesSection {
        PipelinesSection { listen: self.listen, accept_default_key: Some(self.accepts_default_key) }
    }
}
