//! A request in flight: its initial data, and a few atomics that change.
//! The current target is in its trace.

use std::sync::OnceLock;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

use hob_core::{Kind, Trace, WorkUnit};
use hob_wire::Produced;

use crate::ledger::RequestRecord;

/// The kind of request, as the API and the request log name it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Endpoint {
    pub(crate) name: &'static str,
    /// The kind of model that it needs.
    pub(crate) kind: Kind,
    /// The unit of its answer; `None` for an answer that arrives in one piece.
    pub(crate) unit: Option<WorkUnit>,
}

impl Endpoint {
    pub(crate) const CHAT: Endpoint = Endpoint::new(Kind::Chat, WorkUnit::Tokens);
    pub(crate) const SPEECH: Endpoint = Endpoint::new(Kind::Speech, WorkUnit::SoundSeconds);
    pub(crate) const TRANSCRIPTION: Endpoint =
        Endpoint::new(Kind::Transcription, WorkUnit::SoundSeconds);
    pub(crate) const EMBEDDINGS: Endpoint =
        Endpoint { name: "embeddings", kind: Kind::Chat, unit: None };

    const fn new(kind: Kind, unit: WorkUnit) -> Endpoint {
        Endpoint { name: kind.name(), kind, unit: Some(unit) }
    }
}

#[derive(Debug)]
pub(crate) struct InFlightRequest {
    pub(crate) id: u64,
    pub(super) received_at: Instant,
    pub(super) started_unix_ms: u64,
    pub(super) endpoint: Endpoint,
    pub(super) alias: String,
    /// The model behind the requested name. The target that really answers is in the trace.
    pub(super) target: String,
    pub(super) key: Option<String>,
    pub(super) is_streamed: bool,
    pub(super) is_warm: bool,
    pub(super) trace: Trace,
    first: OnceLock<Duration>,
    /// Thousandths of a token, or of a second of sound.
    produced: AtomicU64,
}

impl InFlightRequest {
    /// `record` holds what is known so far.
    pub(crate) fn new(
        (id, received_at): (u64, Instant),
        endpoint: Endpoint,
        record: &RequestRecord,
        trace: &Trace,
    ) -> InFlightRequest {
        InFlightRequest {
            id,
            received_at,
            started_unix_ms: record.started_unix_ms,
            endpoint,
            alias: record.alias.clone(),
            target: record.target.clone(),
            key: record.key.clone(),
            is_streamed: record.is_streamed,
            is_warm: record.is_warm,
            trace: trace.clone(),
            first: OnceLock::new(),
            produced: AtomicU64::new(0),
        }
    }

    /// Records that the first content came after this time.
    pub(crate) fn content_started(&self, after: Duration) {
        self.first.get_or_init(|| after);
    }

    /// Adds tokens, or seconds of sound.
    pub(crate) fn produced(&self, work: f64) {
        self.produced.fetch_add((work * 1e3).round() as u64, Ordering::Relaxed);
    }

    pub(super) fn first(&self) -> Option<Duration> {
        self.first.get().copied().or_else(|| self.held_first())
    }

    /// The time to the first content of a chat answer that is not streamed, which is held back until it is
    /// complete.
    pub(crate) fn held_first(&self) -> Option<Duration> {
        let is_held = !self.is_streamed && self.endpoint == Endpoint::CHAT;
        let at = self.trace.first_at().filter(|_| is_held)?;
        Some(at.saturating_duration_since(self.received_at))
    }

    pub(super) fn produced_so_far(&self) -> Produced {
        let thousandths = self.produced.load(Ordering::Relaxed);
        match self.endpoint.unit {
            Some(WorkUnit::Tokens) => Produced::Tokens(thousandths / 1000),
            Some(WorkUnit::SoundSeconds) => Produced::Sound(Duration::from_millis(thousandths)),
            None => Produced::Nothing,
        }
    }

    #[cfg(test)]
    pub(super) fn for_test(id: u64, endpoint: Endpoint) -> InFlightRequest {
        let record = RequestRecord::default();
        InFlightRequest::new((id, Instant::now()), endpoint, &record, &Trace::default())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_kind_is_counted_in_its_own_unit() {
        let sound = Produced::Sound(Duration::from_millis(2250));
        for (endpoint, made) in [
            (Endpoint::CHAT, Produced::Tokens(2)),
            (Endpoint::SPEECH, sound),
            (Endpoint::TRANSCRIPTION, sound),
            (Endpoint::EMBEDDINGS, Produced::Nothing),
        ] {
            let request = InFlightRequest::for_test(1, endpoint);
            request.produced(1.0);
            request.produced(1.25);
            assert_eq!(request.produced_so_far(), made, "{}", endpoint.name);
        }
    }
}
