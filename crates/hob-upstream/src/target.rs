//! A target of aliases: a model of another server, or a local model.
//! All aliases that lead to a target share its statistics and failures.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use hob_core::routing::{
    BreakerFailure, BreakerState, CircuitBreaker, CoolDown, Probe, RetryDecision, TargetStatus,
    TargetView,
};
use hob_core::{AnyModel, ModelError, ModelState, locked};
use hob_wire::ServedModel;

use crate::slots::Slot;
use crate::upstream_model::UpstreamModel;

/// Shorter prompts do not show how fast a target reads, so they are not measured.
const MEASURED_TOKENS_MIN: u32 = 64;
/// The weight of one new answer in the estimate of the reading speed, from 0 to 1.
const READ_WEIGHT: f64 = 0.3;
/// Prompt tokens per second of a local model before the first measurement: a model of 8 billion parameters
/// on a processor of 15 W. Home Assistant's tools and entities are 5,621 tokens.
const LOCAL_READS_PER_S_ASSUMED: f64 = 25.0;
/// The longest reading time that is expected, so that a wrong estimate cannot make a request wait longer.
const READ_MAX: Duration = Duration::from_secs(200);

#[derive(Debug)]
pub(crate) struct Target {
    pub(crate) name: String,
    pub(crate) source: Source,
    breaker: Mutex<CircuitBreaker>,
    last_failure: Mutex<Option<(String, Instant)>>,
    thinks_anyway: AtomicBool,
    /// Prompt tokens per second, measured.
    reads_per_s: Mutex<Option<f64>>,
}

#[derive(Debug)]
pub(crate) enum Source {
    Upstream(Arc<UpstreamModel>),
    Local(Arc<dyn AnyModel>),
}

impl Target {
    pub(crate) fn new(name: &str, source: Source) -> Target {
        Target {
            name: name.to_owned(),
            source,
            breaker: Mutex::default(),
            last_failure: Mutex::default(),
            thinks_anyway: AtomicBool::new(false),
            reads_per_s: Mutex::default(),
        }
    }

    /// Records how long the target took to read this many prompt tokens: the time until its first content or its vectors.
    pub(crate) fn record_prompt_read(&self, tokens: u32, took: Duration) {
        let rate = f64::from(tokens) / took.as_secs_f64().max(1e-3);
        let mut known = locked(&self.reads_per_s);
        if tokens >= MEASURED_TOKENS_MIN {
            *known = Some(known.map_or(rate, |known| known + READ_WEIGHT * (rate - known)));
        }
    }

    /// The expected time to read so many tokens. `None`: no answer of this server was measured. A local model always has an
    /// estimate, because its supervisor notices when it hangs.
    pub(crate) fn reading_time(&self, tokens: f64) -> Option<Duration> {
        let known = *locked(&self.reads_per_s);
        let assumed = matches!(self.source, Source::Local(_)).then_some(LOCAL_READS_PER_S_ASSUMED);
        let rate = known.or(assumed)?;
        Duration::try_from_secs_f64(tokens / rate).ok().map(|time| time.min(READ_MAX))
    }

    pub(crate) fn state(&self) -> ModelState {
        match &self.source {
            Source::Upstream(model) => model.upstream.state_of(&model.model),
            Source::Local(model) => model.state(),
        }
    }

    /// Takes one retry from the budget of the target's server, if one is left. A local model has no such budget.
    pub(crate) fn take_retry(&self) -> bool {
        match &self.source {
            Source::Upstream(model) => locked(&model.upstream.budget).try_take(Instant::now()),
            Source::Local(_) => true,
        }
    }

    /// The entry of the model in the server's list.
    pub(crate) fn served(&self) -> Option<ServedModel> {
        match &self.source {
            Source::Upstream(model) => model.upstream.with_listed(&model.model, ServedModel::clone),
            Source::Local(_) => None,
        }
    }

    /// Context length of the model in tokens, if it is known.
    pub(crate) fn context_tokens(&self) -> Option<u32> {
        let known = match &self.source {
            Source::Upstream(model) => {
                model.upstream.with_listed(&model.model, |said| said.context_tokens).flatten()
            }
            Source::Local(model) => model.context_tokens(),
        };
        known.filter(|tokens| *tokens > 0)
    }

    /// Requests in flight, divided by the number that the target can work on.
    pub(crate) fn load(&self) -> f64 {
        match &self.source {
            Source::Upstream(model) => model.upstream.slots.load(),
            Source::Local(model) => model.in_flight() as f64 / model.in_flight_max().max(1) as f64,
        }
    }

    fn in_flight(&self) -> usize {
        match &self.source {
            Source::Upstream(model) => model.upstream.slots.in_flight(),
            Source::Local(model) => model.in_flight(),
        }
    }

    /// Waits for a slot of the target's server. A local model has admission instead.
    pub(crate) async fn slot(&self) -> Result<Option<Slot>, ModelError> {
        match &self.source {
            Source::Upstream(model) => model.upstream.slots.take().await.map(Some),
            Source::Local(_) => Ok(None),
        }
    }

    /// Whether the target may be asked now. Takes the probe if the circuit is half open.
    pub(crate) fn acquire(&self) -> BreakerState {
        locked(&self.breaker).acquire(Instant::now())
    }

    /// Closes the circuit, because the first content of an answer came.
    pub(crate) fn content_started(&self) {
        locked(&self.breaker).close();
    }

    pub(crate) fn failed_recently(&self) -> bool {
        locked(&self.breaker).failed_recently(Instant::now())
    }

    /// Records an answer that came to its end.
    pub(crate) fn succeeded(&self) {
        locked(&self.breaker).record_success(Instant::now());
    }

    /// Records a failure, and opens the circuit if that follows from it. `first` is the alias' first cool-down.
    pub(crate) fn failed(&self, error: &ModelError, probe: Option<Probe>, first: Duration) {
        let cool_down = RetryDecision::after(error).cool_down;
        let jitter = fastrand::f64().mul_add(2.0, -1.0);
        let failure = BreakerFailure { cool_down, probe, first_cool_down: first, jitter };
        locked(&self.breaker).record_failure(Instant::now(), &failure);
        if cool_down == CoolDown::No {
            return;
        }
        let mut last = locked(&self.last_failure);
        *last = Some((error.summary(), Instant::now()));
    }

    /// Ends the attempt's probe without a result: the client left, which says nothing about the target.
    pub(crate) fn abandoned(&self, probe: Option<Probe>) {
        if let Some(probe) = probe {
            locked(&self.breaker).abandon_probe(probe);
        }
    }

    /// Records that the target thought although thinking was switched off, and logs it the first time.
    pub(crate) fn thought_anyway(&self) {
        if !self.thinks_anyway.swap(true, Ordering::Relaxed) {
            let target = self.name.as_str();
            tracing::warn!(target, "the target thinks although thinking was switched off");
        }
    }

    /// The target as people see it. A target with a closed circuit is `Standby` here, because only its alias knows
    /// whether it is the active one.
    pub(crate) fn view(&self) -> TargetView {
        let now = Instant::now();
        let status = match locked(&self.breaker).state(now) {
            BreakerState::Closed => TargetStatus::Standby,
            BreakerState::HalfOpen(_) => TargetStatus::HalfOpen,
            BreakerState::OpenUntil(until) => {
                TargetStatus::Open { left: until.saturating_duration_since(now) }
            }
        };
        let last = locked(&self.last_failure);
        let last_failure = last.as_ref().map(|(words, at)| (words.clone(), now - *at));
        TargetView {
            name: self.name.clone(),
            status,
            state: self.state(),
            context_tokens: self.context_tokens(),
            in_flight: self.in_flight(),
            last_failure,
            thinks_anyway: self.thinks_anyway.load(Ordering::Relaxed),
        }
    }

    /// The time until the target may be asked. `None`: it may be asked now.
    pub(crate) fn open_for(&self) -> Option<Duration> {
        let now = Instant::now();
        match locked(&self.breaker).state(now) {
            BreakerState::OpenUntil(until) => Some(until.saturating_duration_since(now)),
            BreakerState::Closed | BreakerState::HalfOpen(_) => None,
        }
    }
}
