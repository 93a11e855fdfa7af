//! `[realtime]` of hob.toml.
//! A session itself may change everything else: see `session.update` in the API.

use std::num::NonZeroU16;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// Two cores answer about two people in time. More wait for each other, but are not refused at once.
const DEFAULT_SESSIONS_MAX: NonZeroU16 = NonZeroU16::new(4).expect("not zero");

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub(crate) struct RealtimeSection {
    /// Maximum concurrent spoken conversations. Further ones get `503` with `Retry-After`.
    pub(crate) sessions_max: NonZeroU16,
    /// Listen also while an answer is played, so that a person can interrupt it. Turn it off for clients whose
    /// microphone hears their own loudspeaker: hob would answer itself.
    pub(crate) listen_while_speaking: bool,
    /// Write what people and hob say to disk, in `conversations` in the folder of models: sound and events, at most
    /// 8 GiB. hob deletes nothing of it. hob informs each client.
    pub(crate) record: bool,
}

impl Default for RealtimeSection {
    fn default() -> RealtimeSection {
        let sessions_max = DEFAULT_SESSIONS_MAX;
        RealtimeSection { sessions_max, listen_while_speaking: true, record: false }
    }
}
