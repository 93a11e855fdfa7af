//! Tracks one request to a model: it informs admission, the in-flight view, metrics and the request log.
//! Dropping the tracker writes the record, however the request ended, unless the request does not count.

use std::sync::Arc;
use std::time::{Duration, SystemTime};

use axum::http::{HeaderMap, HeaderValue};
use hob_core::trace::{FailedAttempt, TraceData};
use hob_core::{ModelError, ModelState, Permit, RegisteredModel, Task, Work};
use tokio::time::Instant;

use crate::api_error::ApiError;
use crate::context::RequestContext;
use crate::headers::{ALIAS, TARGET, WARM, answer_headers, insert_text, insert_trace};
use crate::in_flight::{Endpoint, InFlightRequest};
use crate::ledger::{Outcome, RequestRecord};
use crate::request_body::RequestGuards;

/// A request before its model is used.
pub(crate) struct RequestStart {
    pub(crate) context: RequestContext,
    pub(crate) guards: RequestGuards,
    pub(crate) endpoint: Endpoint,
    /// The model's name in the request, if it named one.
    pub(crate) name: Option<String>,
    pub(crate) is_streamed: bool,
}

/// Tracks one request, from admission to its end.
pub(crate) struct RequestTracker<T: Task> {
    pub(crate) context: RequestContext,
    /// The record, as far as it is known.
    pub(crate) record: RequestRecord,
    /// The model's name in metrics. Names from clients would create endless metrics.
    pub(crate) label: String,
    in_flight: Arc<InFlightRequest>,
    permit: Option<Permit<T::Work>>,
    /// The key's rate limit and the body's memory, until the answer ends.
    guards: RequestGuards,
    first: Option<Duration>,
}

impl<T: Task> RequestTracker<T> {
    pub(crate) fn new(start: RequestStart, model: &RegisteredModel<T>) -> RequestTracker<T> {
        let RequestStart { context, mut guards, endpoint, name, is_streamed } = start;
        guards.begin();
        let now = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH).unwrap_or_default();
        let record = RequestRecord {
            started_unix_ms: now.saturating_sub(context.received_at.elapsed()).as_millis() as u64,
            route: endpoint.name.to_owned(),
            alias: name.unwrap_or_else(|| model.name.clone()),
            target: model.name.clone(),
            key: context.caller.key().map(str::to_owned),
            is_streamed,
            is_warm: model.state() == ModelState::Ready,
            ..RequestRecord::default()
        };
        let arrival = (context.id, context.received_at);
        let in_flight = Arc::new(InFlightRequest::new(arrival, endpoint, &record, &context.trace));
        context.services.in_flight.enter(&in_flight);
        let label = label(&context, &model.name);
        let (permit, first) = (None, None);
        RequestTracker { context, record, label, in_flight, permit, guards, first }
    }

    /// Admits the request to its model.
    ///
    /// # Errors
    /// The model's queue is full.
    pub(crate) fn admit(
        &mut self,
        model: &RegisteredModel<T>,
        work: T::Work,
    ) -> Result<(), ApiError> {
        let permit = model.admission.admit(work);
        let permit = permit.map_err(|busy| ModelError::Busy { retry_after: busy.retry_after });
        self.permit = Some(permit.map_err(ApiError::from).inspect_err(|error| self.failed(error))?);
        Ok(())
    }

    /// From the request's headers to the first content.
    pub(crate) fn first(&self) -> Option<Duration> {
        self.first
    }

    /// The model has started to work on this request.
    pub(crate) fn started(&mut self) {
        if let Some(permit) = &mut self.permit {
            permit.record_start();
        }
    }

    /// The request waited for the model for `time`, until now.
    pub(crate) fn waited(&mut self, time: Duration) {
        if let Some(permit) = &mut self.permit {
            permit.record_wait(time, Instant::now().into_std());
        }
    }

    /// The first content is here. Returns the time it took, on the first call only.
    pub(crate) fn content_started(&mut self) -> Option<Duration> {
        if self.first.is_some() {
            return None;
        }
        // An answer that is not streamed was held back until it was complete.
        let held = self.in_flight.held_first();
        let first = held.unwrap_or_else(|| self.context.received_at.elapsed());
        self.in_flight.content_started(first);
        self.first = Some(first);
        self.first
    }

    pub(crate) fn produced(&mut self, work: T::Work) {
        self.in_flight.produced(work.amount());
        if let Some(permit) = &mut self.permit {
            permit.record_output(work);
        }
    }

    pub(crate) fn complete(&mut self) {
        self.record.outcome = Outcome::Complete;
        if let Some(permit) = self.permit.take() {
            permit.finished();
        }
    }

    /// The answer failed, before or after it began.
    pub(crate) fn failed(&mut self, error: &ApiError) {
        self.record.outcome = Outcome::Failed;
        self.record.error = Some(error.code_or_type().to_owned());
        // A rejected request got `Retry-After`, and counts as a request, not as a failure.
        if error.status().is_server_error() && self.permit.is_some() {
            let (id, model) = (self.context.id, self.record.target.as_str());
            tracing::warn!(id, model, error = error.summary().as_str(), "the answer failed");
        }
    }

    /// Whether the request counts nowhere. See [`TraceData::is_unneeded`].
    pub(crate) fn is_uncounted(&self) -> bool {
        self.context.trace.read(|trace| trace.is_unneeded)
    }

    /// The answer has ended, although it may still have to wait until it is known whether it counts.
    pub(crate) fn stop_clock(&mut self) {
        self.record.total_ms = milliseconds(self.context.received_at.elapsed());
    }

    /// The part of the time to the first content that hob itself took: without other targets, queues and loads.
    pub(crate) fn overhead(&self, trace: &TraceData) -> Option<Duration> {
        // An answer that is not streamed is sent with its last content.
        if !self.record.is_streamed {
            return None;
        }
        let waits = self.record.queue_ms.unwrap_or(0.0) + self.record.load_ms.unwrap_or(0.0);
        let waits = Duration::try_from_secs_f64(waits / 1e3).unwrap_or_default();
        let others = trace.target_first? + trace.lost_time() + trace.queued + waits;
        self.first.map(|first| first.saturating_sub(others))
    }

    /// The headers of every answer of a model.
    pub(crate) fn headers(&self, content_type: &'static str) -> HeaderMap {
        let mut headers = answer_headers(content_type);
        let record = &self.record;
        self.context.trace.read(|trace| {
            insert_text(&mut headers, ALIAS, &record.alias);
            insert_text(&mut headers, TARGET, trace.target.as_ref().unwrap_or(&record.target));
            let is_warm = if trace.is_warm.unwrap_or(record.is_warm) { "true" } else { "false" };
            headers.insert(WARM, HeaderValue::from_static(is_warm));
            insert_trace(&mut headers, trace);
        });
        headers
    }

    /// Adds what the trace knows to the record.
    fn complete_record(&mut self, trace: &TraceData) {
        self.record.overhead_ms = self.overhead(trace).map(milliseconds);
        let record = &mut self.record;
        if !(trace.failed.is_empty() && trace.broken.is_empty()) {
            let attempts = trace.failed.iter().chain(&trace.broken).map(FailedAttempt::summary);
            record.attempts = Some(attempts.collect::<Vec<_>>().join(", "));
        }
        if !trace.queued.is_zero() {
            let queued = milliseconds(trace.queued);
            record.queue_ms = Some(record.queue_ms.unwrap_or(0.0) + queued);
        }
        record.is_warm = trace.is_warm.unwrap_or(record.is_warm);
        record.thought_anyway = trace.thought_anyway;
        record.counted_here = trace.counted_here;
        if let Some(target) = &trace.target {
            record.target.clone_from(target);
        }
        record.first_ms = self.first.map(milliseconds);
        let is_clock_running = record.total_ms == 0.0;
        if is_clock_running {
            self.stop_clock();
        }
    }
}

impl<T: Task> Drop for RequestTracker<T> {
    fn drop(&mut self) {
        let trace = self.context.trace.snapshot();
        let services = Arc::clone(&self.context.services);
        if self.is_uncounted() {
            self.guards.give_request_back();
            return services.in_flight.forget(&self.in_flight);
        }
        services.metrics.fallbacks(&self.label, &trace);
        self.guards.spend(&self.record);
        self.complete_record(&trace);
        log(self.context.id, trace.agent.as_deref(), &self.record);
        services.in_flight.leave(&self.in_flight, trace, &self.record);
        if let Some(ledger) = self.context.ledger() {
            ledger.write(std::mem::take(&mut self.record));
        }
    }
}

/// The request's line in the log: names and numbers only. Names are quoted, because clients choose them.
fn log(id: u64, agent: Option<&str>, record: &RequestRecord) {
    let attempts = record.attempts.as_deref();
    let (alias, target) = (record.alias.as_str(), record.target.as_str());
    let (error, key) = (record.error.as_deref(), record.key.as_deref());
    let whole = |ms: f64| ms.round() as u64;
    tracing::info!(
        id,
        alias,
        target,
        attempts,
        key,
        agent,
        outcome = record.outcome.name(),
        error,
        prompt_tokens = record.prompt_tokens,
        cached_tokens = record.cached_tokens,
        completion_tokens = record.completion_tokens,
        audio_ms = Some(whole(record.audio_ms)).filter(|ms| *ms > 0),
        first_ms = record.first_ms.map(whole),
        total_ms = whole(record.total_ms),
        "{}",
        record.route
    );
}

/// The name, if the configuration has it; otherwise the server that the model belongs to.
fn label(context: &RequestContext, target: &str) -> String {
    match target.split_once('/') {
        Some((upstream, _)) if !context.registry().has(target) => format!("{upstream}/*"),
        _ => target.to_owned(),
    }
}

fn milliseconds(time: Duration) -> f64 {
    time.as_secs_f64() * 1e3
}
