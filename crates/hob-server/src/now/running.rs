//! One request while it runs: what it was at its beginning, and a few atomics that move.
//! Who is asked is in its trace, which whoever asks writes on anyway.

use std::sync::OnceLock;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

use hob_core::Trace;
use hob_wire::Made;

use crate::ledger::RequestRecord;
use crate::requests::Received;

#[derive(Debug)]
pub(crate) struct Running {
    pub(super) id: u64,
    pub(super) at: Instant,
    pub(super) started_unix_ms: u64,
    /// `chat`, `speech` or `embeddings`.
    pub(super) route: &'static str,
    pub(super) alias: String,
    /// Where the name leads; who is really asked is in the trace.
    pub(super) target: String,
    pub(super) key: Option<String>,
    pub(super) is_streamed: bool,
    pub(super) is_warm: bool,
    pub(super) trace: Trace,
    first: OnceLock<Duration>,
    /// Thousandths of a token, or of a second of sound.
    made: AtomicU64,
}

impl Running {
    /// As far as its row is known.
    pub(crate) fn new(
        received: Received,
        route: &'static str,
        entry: &RequestRecord,
        trace: Trace,
    ) -> Running {
        Running {
            id: received.id,
            at: received.at,
            started_unix_ms: entry.started_unix_ms,
            route,
            alias: entry.alias.clone(),
            target: entry.target.clone(),
            key: entry.key.clone(),
            is_streamed: entry.is_streamed,
            is_warm: entry.is_warm,
            trace,
            first: OnceLock::new(),
            made: AtomicU64::new(0),
        }
    }

    /// The first of the answer came after so long.
    pub(crate) fn begun(&self, after: Duration) {
        self.first.get_or_init(|| after);
    }

    /// So many more tokens, or seconds of sound.
    pub(crate) fn made(&self, work: f64) {
        self.made.fetch_add((work * 1e3).round() as u64, Ordering::Relaxed);
    }

    pub(super) fn first(&self) -> Option<Duration> {
        self.first.get().copied().or_else(|| self.held_first())
    }

    /// Until the first content of a chat answer that is read whole: it is held back until it is complete.
    pub(crate) fn held_first(&self) -> Option<Duration> {
        let at = self.trace.first_at().filter(|_| !self.is_streamed && self.route == "chat")?;
        Some(at.saturating_duration_since(self.at))
    }

    pub(super) fn made_so_far(&self) -> Made {
        let thousandths = self.made.load(Ordering::Relaxed);
        match self.route {
            "speech" => Made::Sound(Duration::from_millis(thousandths)),
            "embeddings" => Made::Nothing,
            _ => Made::Tokens(thousandths / 1000),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_was_made_is_told_in_its_own_measure() {
        for (route, made) in [
            ("chat", Made::Tokens(2)),
            ("speech", Made::Sound(Duration::from_millis(2250))),
            ("embeddings", Made::Nothing),
        ] {
            let received = Received { id: 1, at: Instant::now(), hops: 0, is_bench: false };
            let running =
                Running::new(received, route, &RequestRecord::default(), Trace::default());
            running.made(1.0);
            running.made(1.25);
            assert_eq!(running.made_so_far(), made, "{route}");
        }
    }
}
