//! Views of requests: the stage of each, and how many wait for each model.
//! A stage is computed when it is viewed; requests do not record each step.

use std::collections::BTreeMap;
use std::time::Duration;

use hob_core::routing::RouteView;
use hob_core::trace::{FailedAttempt, TraceData};
use hob_core::{AnyModel, ModelState, Registry};
use hob_wire::{FailedView, Produced, QueueFigures, RequestEnd, RequestView, Stage, TargetQueue};

use super::{EndedRequest, InFlightRequest};
use crate::ledger::RequestRecord;

impl InFlightRequest {
    pub(crate) fn view(&self, registry: &Registry) -> RequestView {
        let trace = self.trace.snapshot();
        let seen = self.seen(trace.clone());
        let stage = match seen.first {
            Some(_) => Stage::Answering,
            None => self.stage(registry, &trace),
        };
        RequestView { stage, ..seen }
    }

    fn stage(&self, registry: &Registry, trace: &TraceData) -> Stage {
        let target = trace.target.as_deref().unwrap_or(&self.target);
        let model = registry.find_any(self.endpoint.kind, target);
        match model.map(|model| model.state()) {
            Some(ModelState::Loading { ready_in }) => Stage::Loading { ready_in },
            _ if trace.target.is_some() => Stage::Asking,
            _ => Stage::Waiting,
        }
    }

    /// The fields that running and ended requests have in common.
    fn seen(&self, trace: TraceData) -> RequestView {
        // A local model is asked directly, without a target in the trace. After a failed attempt there is
        // no target between two attempts.
        let is_between = trace.target.is_none() && !trace.failed.is_empty();
        RequestView {
            id: self.id,
            started_unix_ms: self.started_unix_ms,
            route: self.endpoint.name,
            alias: self.alias.clone(),
            target: trace.target.or_else(|| (!is_between).then(|| self.target.clone())),
            stage: Stage::Ended,
            key: self.key.clone(),
            is_streamed: self.is_streamed,
            is_warm: self.is_warm,
            took: self.received_at.elapsed(),
            first: self.first(),
            made: self.produced_so_far(),
            failed: trace.failed.into_iter().chain(trace.broken).map(failed).collect(),
            dropped: trace.dropped,
            thought_anyway: trace.thought_anyway,
            counted_here: trace.counted_here,
            end: None,
        }
    }
}

impl EndedRequest {
    pub(crate) fn id(&self) -> u64 {
        self.request.id
    }

    pub(crate) fn view(&self) -> RequestView {
        let RequestRecord { total_ms, completion_tokens, .. } = self.record;
        let seen = self.request.seen(self.trace.clone());
        RequestView {
            took: Duration::try_from_secs_f64(total_ms / 1e3).unwrap_or_default(),
            made: match seen.made {
                Produced::Tokens(_) => Produced::Tokens(completion_tokens.into()),
                made @ (Produced::Sound(_) | Produced::Nothing) => made,
            },
            end: Some(end(&self.record)),
            ..seen
        }
    }
}

fn end(entry: &RequestRecord) -> RequestEnd {
    RequestEnd {
        outcome: entry.outcome.name(),
        error: entry.error.clone(),
        queue_ms: entry.queue_ms,
        load_ms: entry.load_ms,
        overhead_ms: entry.overhead_ms,
        tokens_per_s: entry.tokens_per_s(),
        prompt_tokens: entry.prompt_tokens,
        cached_tokens: entry.cached_tokens,
        reasoning_tokens: entry.reasoning_tokens,
    }
}

/// Leaves out the message, which may repeat words of another server about a prompt.
fn failed(attempt: FailedAttempt) -> FailedView {
    FailedView { target: attempt.target, reason: attempt.kind, took: attempt.took }
}

/// How many requests each model has.
pub(crate) fn queue(requests: &[RequestView], registry: &Registry) -> QueueFigures {
    let mut targets: BTreeMap<&str, TargetQueue> = BTreeMap::new();
    for request in requests {
        let name = request.target.as_deref().unwrap_or(&request.alias);
        let queued = targets.entry(name).or_insert_with(|| TargetQueue {
            name: name.to_owned(),
            in_flight_max: in_flight_max(registry, name),
            ..TargetQueue::default()
        });
        queued.in_flight += 1;
        queued.waiting += usize::from(request.first.is_none());
    }
    let targets: Vec<TargetQueue> = targets.into_values().collect();
    let waiting = targets.iter().map(|target| target.waiting).sum();
    QueueFigures { in_flight: requests.len(), waiting, targets }
}

/// For local models only; other servers have their own limits, and an alias has those of the target that it will choose.
fn in_flight_max(registry: &Registry, name: &str) -> Option<usize> {
    // No alias has its own name among its targets.
    let is_alias = |view: RouteView| view.targets.iter().all(|target| target.name != name);
    if registry.upstreams().and_then(|upstreams| upstreams.route(name)).is_some_and(is_alias) {
        return None;
    }
    registry.all().find(|model| model.name() == name).map(AnyModel::in_flight_max)
}
