//! Metrics for `/metrics` in Prometheus's format. Each server has its own recorder, so
//! tests and several servers in one process do not count together.

mod table;

use std::collections::BTreeMap;
use std::sync::Mutex;
use std::time::Duration;

use hob_core::chat::Usage;
use hob_core::routing::TargetStatus;
use hob_core::trace::TraceData;
use hob_core::{AnyModel, Kind, ModelState, Registry, locked};
use metrics::{Counter, Histogram, counter, gauge, histogram, with_local_recorder};
use metrics_exporter_prometheus::{Matcher, PrometheusBuilder, PrometheusRecorder};

use crate::ledger::{Ledger, Outcome};
use table::*;
pub use table::{METRICS, MetricType, ServerMetric};

/// From a cached prompt on a fast machine to a long prompt or a cold start on a slow one.
const TTFT_BUCKETS_S: [f64; 13] =
    [0.01, 0.025, 0.05, 0.1, 0.2, 0.3, 0.5, 1.0, 2.0, 5.0, 10.0, 30.0, 60.0];

/// From a warm start on a fast machine to a cold start on a slow one.
const TTFA_BUCKETS_S: [f64; 12] =
    [0.025, 0.05, 0.075, 0.1, 0.15, 0.2, 0.3, 0.5, 1.0, 2.0, 5.0, 10.0];

/// Kinds of tokens of every chat answer.
const TOKEN_KINDS: [&str; 4] = ["prompt", "cached", "completion", "reasoning"];

pub(crate) struct Metrics {
    recorder: PrometheusRecorder,
    /// By route and status. Finding one in the recorder takes several allocations, and a chat needs seven.
    requests: Mutex<BTreeMap<String, BTreeMap<u16, Counter>>>,
    /// By model.
    chats: Mutex<BTreeMap<String, ChatCounters>>,
}

/// The counters of one chat model, from their first use on.
#[derive(Default)]
struct ChatCounters {
    first: Option<Histogram>,
    /// By outcome.
    answers: BTreeMap<&'static str, Counter>,
    /// In the order of [`TOKEN_KINDS`].
    tokens: Option<[Counter; 4]>,
    /// Drafted and accepted.
    guessed: Option<[Counter; 2]>,
}

/// Tokens of an answer that were guessed ahead.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct GuessedTokens {
    /// Guessed tokens that the model checked.
    pub(crate) drafted: u32,
    /// Guessed tokens that were right.
    pub(crate) accepted: u32,
}

impl Metrics {
    pub(crate) fn new() -> Metrics {
        let builder = PrometheusBuilder::new()
            .set_buckets_for_metric(Matcher::Full(TTFA.to_owned()), &TTFA_BUCKETS_S)
            .expect("there are buckets")
            .set_buckets_for_metric(Matcher::Full(TTFT.to_owned()), &TTFT_BUCKETS_S)
            .expect("there are buckets")
            .set_buckets_for_metric(Matcher::Full(TURN_STAGES.to_owned()), &TTFA_BUCKETS_S)
            .expect("there are buckets");
        let recorder = builder.build_recorder();
        with_local_recorder(&recorder, table::describe);
        Metrics { recorder, requests: Mutex::default(), chats: Mutex::default() }
    }

    pub(crate) fn request(&self, route: &str, status: u16) {
        let mut requests = locked(&self.requests);
        if let Some(counter) = requests.get(route).and_then(|of_route| of_route.get(&status)) {
            counter.increment(1);
            return;
        }
        let labels = [("route", route.to_owned()), ("status", status.to_string())];
        let counter = with_local_recorder(&self.recorder, || counter!(REQUESTS, &labels));
        counter.increment(1);
        requests.entry(route.to_owned()).or_default().insert(status, counter);
    }

    /// Records one stage of a turn of a realtime session.
    pub(crate) fn turn_stage(&self, stage: &'static str, time: Duration) {
        with_local_recorder(&self.recorder, || {
            histogram!(TURN_STAGES, "stage" => stage).record(time)
        });
    }

    /// Counts a request with a valid key that was refused, by the key's name.
    pub(crate) fn key_refused(&self, key: &str, reason: &'static str) {
        let labels = [("key", key.to_owned()), ("reason", reason.to_owned())];
        with_local_recorder(&self.recorder, || counter!(KEY_REFUSED, &labels).increment(1));
    }

    /// Records the time to the first bytes of sound.
    pub(crate) fn first_audio(&self, model: &str, ttfa: Duration) {
        let labels = [("model", model.to_owned())];
        with_local_recorder(&self.recorder, || histogram!(TTFA, &labels).record(ttfa));
    }

    pub(crate) fn speech_answer(&self, model: &str, outcome: Outcome, sound_s: f64) {
        let model = ("model", model.to_owned());
        let ended = [model.clone(), ("outcome", outcome.name().to_owned())];
        let sound_ms = (sound_s * 1000.0).round() as u64;
        with_local_recorder(&self.recorder, || {
            counter!(ANSWERS, &ended).increment(1);
            counter!(SOUND, &[model]).increment(sound_ms);
        });
    }

    /// Records the time to the first event of a chat answer.
    pub(crate) fn first_token(&self, model: &str, ttft: Duration) {
        let first = || {
            let labels = [("model", model.to_owned())];
            with_local_recorder(&self.recorder, || histogram!(TTFT, &labels))
        };
        self.of_chat(model, |chat| chat.first.get_or_insert_with(first).record(ttft));
    }

    pub(crate) fn chat_answer(
        &self,
        model: &str,
        outcome: Outcome,
        usage: &Usage,
        guessed: GuessedTokens,
    ) {
        let ended = || {
            let ended = [("model", model.to_owned()), ("outcome", outcome.name().to_owned())];
            with_local_recorder(&self.recorder, || counter!(CHAT_ANSWERS, &ended))
        };
        let all = || TOKEN_KINDS.map(|kind| self.tokens(model, kind));
        let both = || {
            let labels = [("model", model.to_owned())];
            with_local_recorder(&self.recorder, || {
                [counter!(DRAFT_TOKENS, &labels), counter!(ACCEPTED_TOKENS, &labels)]
            })
        };
        let tokens = [
            usage.prompt_tokens,
            usage.cached_tokens,
            usage.completion_tokens,
            usage.reasoning_tokens,
        ];
        self.of_chat(model, |chat| {
            chat.answers.entry(outcome.name()).or_insert_with(ended).increment(1);
            for (counter, tokens) in chat.tokens.get_or_insert_with(all).iter().zip(tokens) {
                counter.increment(tokens.into());
            }
            let [drafted, accepted] = chat.guessed.get_or_insert_with(both);
            drafted.increment(guessed.drafted.into());
            accepted.increment(guessed.accepted.into());
        });
    }

    fn of_chat(&self, model: &str, count: impl FnOnce(&mut ChatCounters)) {
        let mut chats = locked(&self.chats);
        if !chats.contains_key(model) {
            chats.insert(model.to_owned(), ChatCounters::default());
        }
        if let Some(chat) = chats.get_mut(model) {
            count(chat);
        }
    }

    pub(crate) fn transcript(&self, model: &str, outcome: Outcome, heard_s: f64) {
        let model = ("model", model.to_owned());
        let ended = [model.clone(), ("outcome", outcome.name().to_owned())];
        let heard_ms = (heard_s * 1000.0).round() as u64;
        with_local_recorder(&self.recorder, || {
            counter!(TRANSCRIPT_ANSWERS, &ended).increment(1);
            counter!(HEARD, &[model]).increment(heard_ms);
        });
    }

    pub(crate) fn embedded(&self, model: &str, tokens: u32) {
        self.tokens(model, "embedded").increment(tokens.into());
    }

    /// Counts failed attempts, retries and repairs of one request.
    pub(crate) fn fallbacks(&self, alias: &str, trace: &TraceData) {
        if trace.failed.is_empty() && trace.repaired.is_empty() {
            return;
        }
        let is_from_outside = alias.ends_with("/*");
        let name = |target: &str| {
            let model = if is_from_outside { alias } else { target };
            model.to_owned()
        };
        let mut next = trace.failed.iter().skip(1).map(|attempt| attempt.target.as_str());
        with_local_recorder(&self.recorder, || {
            for attempt in &trace.failed {
                let to = next.next().or(trace.target.as_deref());
                let again = to == Some(&*attempt.target);
                let to = to.map_or_else(|| "nobody".to_owned(), name);
                let from = ("from", name(&attempt.target));
                let (alias, reason) =
                    (("alias", alias.to_owned()), ("reason", attempt.kind.to_owned()));
                if again {
                    counter!(RETRIES, &[alias, from, reason]).increment(1);
                } else {
                    counter!(FALLBACKS, &[alias, from, ("to", to), reason]).increment(1);
                }
            }
            for what in &trace.repaired {
                counter!(REPAIRED, "what" => *what).increment(1);
            }
        });
    }

    fn tokens(&self, model: &str, kind: &'static str) -> Counter {
        let labels = [("model", model.to_owned()), ("kind", kind.to_owned())];
        with_local_recorder(&self.recorder, || counter!(CHAT_TOKENS, &labels))
    }

    /// All metrics so far, and the current state of the models. The gauges have a recorder of their own, because a recorder
    /// keeps the last value for ever, also of a model that has left the configuration.
    pub(crate) fn render(&self, registry: &Registry, ledger: Option<&Ledger>) -> String {
        with_local_recorder(&self.recorder, || {
            counter!(LEDGER_LOST).absolute(ledger.map_or(0, Ledger::lost));
        });
        let gauges = PrometheusBuilder::new().build_recorder();
        with_local_recorder(&gauges, || {
            table::describe();
            registry.all().for_each(observe_model);
            observe_circuits(registry);
        });
        self.recorder.handle().render() + &gauges.handle().render()
    }

    /// Moves raw samples into the buckets. Without this they would take more and more memory.
    pub(crate) fn fold(&self) {
        self.recorder.handle().run_upkeep();
    }
}

/// The gauges of one kind: requests in flight, their maximum, and the remaining work.
fn gauges(kind: Kind) -> [&'static str; 3] {
    match kind {
        Kind::Speech => [IN_FLIGHT, IN_FLIGHT_MAX, BACKLOG],
        Kind::Chat => [CHAT_IN_FLIGHT, CHAT_IN_FLIGHT_MAX, CHAT_BACKLOG],
        Kind::Transcription => [TRANSCRIPT_IN_FLIGHT, TRANSCRIPT_IN_FLIGHT_MAX, TRANSCRIPT_BACKLOG],
    }
}

fn observe_model(model: &dyn AnyModel) {
    let labels = [("model", model.name().to_owned())];
    let [in_flight, in_flight_max, backlog] = gauges(model.kind());
    gauge!(in_flight, &labels).set(model.in_flight() as f64);
    gauge!(in_flight_max, &labels).set(model.in_flight_max() as f64);
    gauge!(backlog, &labels).set(model.backlog());
    observe_state(model.name(), &model.state());
}

/// The circuits of the targets that the configuration names.
fn observe_circuits(registry: &Registry) {
    let Some(upstreams) = registry.upstreams() else { return };
    let routes = registry.all().filter_map(|model| upstreams.route(model.name()));
    for target in routes.flat_map(|route| route.targets) {
        let left = match target.status {
            TargetStatus::Open { left } => left,
            TargetStatus::Active | TargetStatus::Standby | TargetStatus::HalfOpen => Duration::ZERO,
        };
        gauge!(COOL_DOWN, "target" => target.name).set(left.as_secs_f64());
    }
}

fn observe_state(model: &str, now: &ModelState) {
    let down = ModelState::Down { reason: String::new() };
    let loading = ModelState::Loading { ready_in: Duration::ZERO };
    for state in [ModelState::Cold, loading, ModelState::Ready, down] {
        let name = hob_wire::state_name(&state);
        let is_now = f64::from(u8::from(name == hob_wire::state_name(now)));
        let labels = [("model", model.to_owned()), ("state", name.to_owned())];
        gauge!(STATE, &labels).set(is_now);
    }
}

#[cfg(test)]
mod tests;
