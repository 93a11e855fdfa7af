//! The account of one answer: what was asked of whom, when it began and how it ended. Metrics, ledger
//! and admission are told from here; what is counted besides (sound, tokens) is for those who hold one.

use std::sync::Arc;
use std::time::{Duration, SystemTime};

use hob_core::trace::{Attempt, Way};
use hob_core::{ModelState, Permit, Trace};
use tokio::time::Instant;

use crate::asking::Held;
use crate::failure::ApiError;
use crate::keys::Caller;
use crate::ledger::{Ledger, Outcome, RequestRecord};
use crate::metrics::Metrics;
use crate::now::{Now, Running};
use crate::requests::Received;
use crate::router::App;

/// What came from outside, as far as it is kept.
#[derive(Debug)]
pub(crate) struct Asked {
    pub(crate) received: Received,
    pub(crate) caller: Caller,
    pub(crate) held: Held,
    /// `chat`, `speech`, `transcription` or `embeddings`.
    pub(crate) route: &'static str,
    /// The model's name in the request, if there was one.
    pub(crate) alias: Option<String>,
    pub(crate) is_streamed: bool,
}

impl Asked {
    /// Keeps tokens of the key's day for the answer. Returns how many it may take at most.
    ///
    /// # Errors
    /// None are left.
    pub(crate) fn reserve_tokens(
        &mut self,
        app: &App,
        tokens: u64,
    ) -> Result<Option<u64>, ApiError> {
        self.caller.reserve(app, self.held.turn_mut(), tokens)
    }
}

/// What is known of an answer from its beginning to its end; dropping it writes the ledger's row.
pub(crate) struct Account {
    pub(crate) metrics: Arc<Metrics>,
    /// The row as far as it is known.
    pub(crate) entry: RequestRecord,
    ledger: Option<Arc<Ledger>>,
    now: Arc<Now>,
    /// The same, for whoever looks meanwhile.
    running: Arc<Running>,
    received: Received,
    permit: Option<Permit>,
    /// The key's turn and the body's memory, until the answer ends.
    held: Held,
    first: Option<Duration>,
    /// Who was asked.
    trace: Trace,
    /// The model, as metrics call it: names that come from outside would make endless ones.
    pub(crate) label: String,
}

impl Account {
    /// Of a request to a model in this state.
    pub(crate) fn new(app: &App, asked: Asked, target: &str, state: &ModelState) -> Account {
        let Asked { received, caller, mut held, route, alias, is_streamed } = asked;
        held.begin();
        let now = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH).unwrap_or_default();
        let entry = RequestRecord {
            started_unix_ms: now.saturating_sub(received.at.elapsed()).as_millis() as u64,
            route: route.to_owned(),
            alias: alias.unwrap_or_else(|| target.to_owned()),
            target: target.to_owned(),
            key: caller.key().map(str::to_owned),
            is_streamed,
            is_warm: *state == ModelState::Ready,
            ..RequestRecord::default()
        };
        let trace = Trace::begin(received.hops);
        let running = Arc::new(Running::new(received, route, &entry, trace.clone()));
        app.now.enter(&running);
        Account {
            metrics: Arc::clone(&app.metrics),
            entry,
            // Production is what somebody waited for.
            ledger: app.ledger.clone().filter(|_| !received.is_bench),
            now: Arc::clone(&app.now),
            running,
            received,
            permit: None,
            held,
            first: None,
            trace,
            label: label(app, target),
        }
    }

    /// The way of the request, to travel with it.
    pub(crate) fn trace(&self) -> Trace {
        self.trace.clone()
    }

    pub(crate) fn admitted(&mut self, permit: Permit) {
        self.permit = Some(permit);
    }

    pub(crate) fn id(&self) -> u64 {
        self.received.id
    }

    /// From the request's headers to the first of the answer, once that is in hand.
    pub(crate) fn first(&self) -> Option<Duration> {
        self.first
    }

    /// The model has begun to work for it, and no longer for those before it alone.
    pub(crate) fn started(&mut self) {
        if let Some(permit) = &mut self.permit {
            permit.started();
        }
    }

    /// It waited for the model, and not for the client, until now.
    pub(crate) fn waited(&mut self, time: Duration) {
        if let Some(permit) = &mut self.permit {
            permit.waited(time, Instant::now().into_std());
        }
    }

    /// The first of the answer is in hand. Says after how long, and only the first time.
    pub(crate) fn begun(&mut self) -> Option<Duration> {
        if self.first.is_some() {
            return None;
        }
        // What is read whole was held back until it was complete.
        let held = self.running.held_first();
        let first = held.unwrap_or_else(|| self.received.at.elapsed());
        self.running.begun(first);
        self.first = Some(first);
        self.first
    }

    /// Work done of what was admitted, in admission's measure.
    pub(crate) fn made(&mut self, work: f64) {
        self.running.made(work);
        if let Some(permit) = &mut self.permit {
            permit.made(work);
        }
    }

    pub(crate) fn complete(&mut self) {
        self.entry.outcome = Outcome::Complete;
        if let Some(permit) = self.permit.take() {
            permit.finished();
        }
    }

    /// The answer ended, or never began, with this refusal.
    pub(crate) fn failed(&mut self, refusal: &ApiError) {
        self.entry.outcome = Outcome::Failed;
        self.entry.error = Some(refusal.code_or_type().to_owned());
        // Who was not let in was told when to come back, and stands among the requests.
        if refusal.status().is_server_error() && self.permit.is_some() {
            let (id, model) = (self.id(), self.entry.target.as_str());
            tracing::warn!(id, model, error = refusal.summary().as_str(), "the answer failed");
        }
    }
}

impl Drop for Account {
    fn drop(&mut self) {
        self.held.spend(&self.entry);
        let way = self.trace.now();
        self.metrics.way(&self.label, &way);
        let mut entry = std::mem::take(&mut self.entry);
        note(way.clone(), self.first, &mut entry);
        entry.total_ms = milliseconds(self.received.at.elapsed());
        entry.first_ms = self.first.map(milliseconds);
        log(self.received.id, &entry);
        self.now.leave(&self.running, way, &entry);
        if let Some(ledger) = &self.ledger {
            ledger.write(entry);
        }
    }
}

/// The request's one line in the log: who was asked for and who answered, who failed before and how, the
/// first of the answer and its end. Names and numbers only; names are quoted, for they come from outside.
fn log(id: u64, entry: &RequestRecord) {
    let attempts = entry.attempts.as_deref();
    let (alias, target) = (entry.alias.as_str(), entry.target.as_str());
    let (error, key) = (entry.error.as_deref(), entry.key.as_deref());
    let whole = |ms: f64| ms.round() as u64;
    tracing::info!(
        id,
        alias,
        target,
        attempts,
        key,
        outcome = entry.outcome.name(),
        error,
        prompt_tokens = entry.prompt_tokens,
        cached_tokens = entry.cached_tokens,
        completion_tokens = entry.completion_tokens,
        audio_ms = Some(whole(entry.audio_ms)).filter(|ms| *ms > 0),
        first_ms = entry.first_ms.map(whole),
        total_ms = whole(entry.total_ms),
        "{}",
        entry.route
    );
}

/// The name, if the configuration has it, or else the server that it is a model of.
fn label(app: &App, target: &str) -> String {
    match target.split_once('/') {
        Some((upstream, _)) if !app.registry().has(target) => format!("{upstream}/*"),
        _ => target.to_owned(),
    }
}

/// Who was really asked, and what that took.
fn note(way: Way, first: Option<Duration>, entry: &mut RequestRecord) {
    if !(way.failed.is_empty() && way.broken.is_empty()) {
        entry.attempts = Some(attempts(&way));
    }
    if !way.queued.is_zero() {
        entry.queue_ms = Some(entry.queue_ms.unwrap_or(0.0) + milliseconds(way.queued));
    }
    entry.is_warm = way.is_warm.unwrap_or(entry.is_warm);
    let own = overhead(&Way { queued: Duration::ZERO, ..way.clone() }, first, entry);
    entry.overhead_ms = own.map(milliseconds);
    entry.thought_anyway = way.thought_anyway;
    entry.counted_here = way.counted_here;
    if let Some(target) = way.target {
        entry.target = target;
    }
}

/// `gpu/qwen3=overloaded, ollama/qwen3=cut_off`, and a number of milliseconds behind each.
fn attempts(way: &Way) -> String {
    let each: Vec<String> = way.failed.iter().chain(&way.broken).map(Attempt::summary).collect();
    each.join(", ")
}

/// Of the time to the first content, what was neither the target's nor lost on others.
pub(crate) fn overhead(
    way: &Way,
    first: Option<Duration>,
    entry: &RequestRecord,
) -> Option<Duration> {
    // Of an answer that is read whole, the first content is handed on with the last.
    if !entry.is_streamed {
        return None;
    }
    let waits = entry.queue_ms.unwrap_or(0.0) + entry.load_ms.unwrap_or(0.0);
    let waits = Duration::try_from_secs_f64(waits / 1e3).unwrap_or_default();
    let others = way.target_first? + way.lost() + way.queued + waits;
    first.map(|first| first.saturating_sub(others))
}

fn milliseconds(time: Duration) -> f64 {
    time.as_secs_f64() * 1e3
}
