//! From what is kept to what is told: a request's stage, and how many wait for whom.
//! Stages are found when somebody looks; nothing is written down at each step of a request.

use std::collections::BTreeMap;
use std::time::Duration;

use hob_core::trace::{Attempt, Way};
use hob_core::{ModelState, Registry};
use hob_wire::{EndView, FailedView, Made, QueueView, QueuedView, RequestView, Stage};

use super::{Ended, Running};
use crate::ledger::RequestRecord;

impl Running {
    pub(super) fn view(&self, registry: &Registry) -> RequestView {
        let way = self.trace.now();
        let seen = self.seen(way.clone());
        let stage = match seen.first {
            Some(_) => Stage::Answering,
            None => self.stage(registry, &way),
        };
        RequestView { stage, ..seen }
    }

    fn stage(&self, registry: &Registry, way: &Way) -> Stage {
        let target = way.target.as_deref().unwrap_or(&self.target);
        match state(registry, self.route, target) {
            Some(ModelState::Loading { ready_in }) => Stage::Loading { ready_in },
            _ if way.target.is_some() => Stage::Asking,
            _ => Stage::Waiting,
        }
    }

    /// What is alike for those that run and those that ended.
    fn seen(&self, way: Way) -> RequestView {
        // A model of this hob's own is asked directly, and nobody writes that down. Where somebody
        // failed, there is a gateway in between, and it asks nobody at the moment.
        let is_between = way.target.is_none() && !way.failed.is_empty();
        RequestView {
            id: self.id,
            started_unix_ms: self.started_unix_ms,
            route: self.route,
            alias: self.alias.clone(),
            target: way.target.or_else(|| (!is_between).then(|| self.target.clone())),
            stage: Stage::Ended,
            key: self.key.clone(),
            is_streamed: self.is_streamed,
            is_warm: self.is_warm,
            took: self.at.elapsed(),
            first: self.first(),
            made: self.made_so_far(),
            failed: way.failed.into_iter().chain(way.broken).map(failed).collect(),
            dropped: way.dropped,
            thought_anyway: way.thought_anyway,
            counted_here: way.counted_here,
            end: None,
        }
    }
}

impl Ended {
    pub(super) fn view(&self) -> RequestView {
        let RequestRecord { total_ms, completion_tokens, .. } = self.entry;
        let seen = self.running.seen(self.way.clone());
        RequestView {
            took: Duration::try_from_secs_f64(total_ms / 1e3).unwrap_or_default(),
            made: match seen.made {
                Made::Tokens(_) => Made::Tokens(completion_tokens.into()),
                made @ (Made::Sound(_) | Made::Nothing) => made,
            },
            end: Some(end(&self.entry)),
            ..seen
        }
    }
}

fn end(entry: &RequestRecord) -> EndView {
    EndView {
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

/// Without its message, which is for people, and may repeat what another server said of a prompt.
fn failed(attempt: Attempt) -> FailedView {
    FailedView { target: attempt.target, reason: attempt.kind, took: attempt.took }
}

fn state(registry: &Registry, route: &str, target: &str) -> Option<ModelState> {
    if route == "speech" {
        return registry.speech(target).ok().map(|target| target.model.state());
    }
    registry.chat(target).ok().map(|target| target.model.state())
}

/// How many of these there are, and for whom.
pub(super) fn queue(requests: &[RequestView], registry: &Registry) -> QueueView {
    let mut targets: BTreeMap<&str, QueuedView> = BTreeMap::new();
    for request in requests {
        let name = request.target.as_deref().unwrap_or(&request.alias);
        let queued = targets.entry(name).or_insert_with(|| QueuedView {
            name: name.to_owned(),
            in_flight_max: in_flight_max(registry, name),
            ..QueuedView::default()
        });
        queued.in_flight += 1;
        queued.waiting += usize::from(request.first.is_none());
    }
    let targets: Vec<QueuedView> = targets.into_values().collect();
    let waiting = targets.iter().map(|target| target.waiting).sum();
    QueueView { in_flight: requests.len(), waiting, targets }
}

/// Of models that this hob holds: others have limits of their own.
fn in_flight_max(registry: &Registry, name: &str) -> Option<usize> {
    let mut chat = registry.chat_targets().filter(|target| target.name == name);
    let mut speech = registry.speech_targets().filter(|target| target.name == name);
    let chat = chat.next().map(|target| target.admission.requests_max());
    chat.or_else(|| speech.next().map(|target| target.admission.requests_max()))
}
