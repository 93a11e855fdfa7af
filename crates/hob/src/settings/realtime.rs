//! The settings of spoken conversations.
//! They hold for all sessions of a server.

use std::num::NonZeroU16;

use crate::config::{LoadedConfig, RealtimeSection};

/// Two cores answer about two people in time. More wait for each other, but are not refused at once.
const DEFAULT_SESSIONS_MAX: NonZeroU16 = NonZeroU16::new(4).expect("not zero");

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct RealtimeSettings {
    pub(crate) sessions_max: NonZeroU16,
    pub(crate) listen_while_speaking: bool,
    pub(crate) is_recorded: bool,
}

impl RealtimeSettings {
    pub(super) fn resolve(written: &LoadedConfig) -> RealtimeSettings {
        let file = &written.config.realtime;
        RealtimeSettings {
            sessions_max: file.sessions_max.unwrap_or(DEFAULT_SESSIONS_MAX),
            listen_while_speaking: file.listen_while_speaking.unwrap_or(true),
            is_recorded: file.record.unwrap_or(false),
        }
    }

    pub(super) fn as_written(self) -> RealtimeSection {
        RealtimeSection {
            sessions_max: Some(self.sessions_max),
            listen_while_speaking: Some(self.listen_while_speaking),
            record: Some(self.is_recorded),
        }
    }
}
