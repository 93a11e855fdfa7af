//! The account of one answer: what was asked of whom, when it began and how it ended. Metrics, ledger
//! and admission are told from here; what is counted besides (sound, tokens) is for those who hold one.

use std::sync::Arc;
use std::time::{Duration, SystemTime};

use hob_core::{ModelState, Permit, Trace};

use crate::failure::Refusal;
use crate::keys::{Caller, Turn};
use crate::ledger::{Entry, Ledger, Outcome};
use crate::metrics::Metrics;
use crate::requests::Received;
use crate::router::App;

/// What came from outside, as far as it is kept.
#[derive(Clone, Debug)]
pub(crate) struct Asked {
    pub(crate) received: Received,
    pub(crate) caller: Caller,
    /// `chat`, `speech`, `transcription` or `embeddings`.
    pub(crate) route: &'static str,
    /// The model's name in the request, if there was one.
    pub(crate) alias: Option<String>,
    pub(crate) is_streamed: bool,
}

/// What is known of an answer from its beginning to its end; dropping it writes the ledger's row.
pub(crate) struct Account {
    pub(crate) metrics: Arc<Metrics>,
    /// The row as far as it is known.
    pub(crate) entry: Entry,
    ledger: Option<Arc<Ledger>>,
    received: Received,
    permit: Option<Permit>,
    /// Of a request that may lead elsewhere.
    trace: Option<Trace>,
    /// Of whoever has a key; their next one may have to wait for its end.
    turn: Option<Turn>,
    /// Time spent waiting for the model, and not for the client.
    waited: Duration,
    first: Option<Duration>,
}

impl Account {
    /// Of a request to a model in this state.
    ///
    /// # Errors
    /// It is not the caller's turn; what no model was asked has no account.
    pub(crate) fn new(
        app: &App,
        asked: Asked,
        target: &str,
        state: &ModelState,
    ) -> Result<Account, Refusal> {
        let Asked { received, caller, route, alias, is_streamed } = asked;
        let turn = caller.take_turn(app)?;
        let now = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH).unwrap_or_default();
        let entry = Entry {
            started_unix_ms: now.saturating_sub(received.at.elapsed()).as_millis() as u64,
            route: route.to_owned(),
            alias: alias.unwrap_or_else(|| target.to_owned()),
            target: target.to_owned(),
            key: caller.key().map(str::to_owned),
            is_streamed,
            is_warm: *state == ModelState::Ready,
            ..Entry::default()
        };
        Ok(Account {
            metrics: Arc::clone(&app.metrics),
            entry,
            ledger: app.ledger.clone(),
            received,
            permit: None,
            trace: None,
            turn,
            waited: Duration::ZERO,
            first: None,
        })
    }

    pub(crate) fn admitted(&mut self, permit: Permit) {
        self.permit = Some(permit);
    }

    /// Whoever answers in the end will be the row's target.
    pub(crate) fn follow(&mut self, trace: &Trace) {
        self.trace = Some(trace.clone());
    }

    /// Writes down who answers, or who failed last.
    fn find_target(&mut self) {
        let Some(way) = self.trace.as_ref().map(Trace::now) else { return };
        let failed = || way.failed.last().map(|attempt| attempt.target.clone());
        if let Some(target) = way.target.clone().or_else(failed) {
            self.entry.target = target;
        }
    }

    pub(crate) fn id(&self) -> u64 {
        self.received.id
    }

    /// Since the request's headers.
    pub(crate) fn ms(&self) -> u64 {
        self.received.at.elapsed().as_millis() as u64
    }

    /// From the request's headers to the first of the answer, once that is in hand.
    pub(crate) fn first(&self) -> Option<Duration> {
        self.first
    }

    pub(crate) fn first_ms(&self) -> Option<u64> {
        self.first.map(|first| first.as_millis() as u64)
    }

    pub(crate) fn waited(&mut self, time: Duration) {
        self.waited += time;
    }

    /// The first of the answer is in hand. Says after how long, and only the first time.
    pub(crate) fn begun(&mut self) -> Option<Duration> {
        if self.first.is_some() {
            return None;
        }
        self.first = Some(self.received.at.elapsed());
        self.find_target();
        self.first
    }

    /// Work done of what was admitted, in admission's measure.
    pub(crate) fn made(&mut self, work: f64) {
        if let Some(permit) = &mut self.permit {
            permit.made(work);
        }
    }

    pub(crate) fn complete(&mut self) {
        self.entry.outcome = Outcome::Complete;
        if let Some(permit) = self.permit.take() {
            permit.finished(self.waited);
        }
    }

    /// The answer ended, or never began, with this refusal.
    pub(crate) fn failed(&mut self, refusal: &Refusal) {
        self.find_target();
        self.entry.outcome = Outcome::Failed;
        self.entry.error = Some(refusal.code_or_type().to_owned());
        // Who was not let in was told when to come back, and stands among the requests.
        if refusal.status().is_server_error() && self.permit.is_some() {
            let (id, model) = (self.id(), &self.entry.target);
            tracing::warn!(id, model, error = %refusal, "the answer failed");
        }
    }
}

impl Drop for Account {
    fn drop(&mut self) {
        if let Some(turn) = &self.turn {
            turn.spend(&self.entry);
        }
        let Some(ledger) = &self.ledger else { return };
        let mut entry = std::mem::take(&mut self.entry);
        entry.total_ms = milliseconds(self.received.at.elapsed());
        entry.first_ms = self.first.map(milliseconds);
        ledger.write(entry);
    }
}

fn milliseconds(time: Duration) -> f64 {
    time.as_secs_f64() * 1e3
}
