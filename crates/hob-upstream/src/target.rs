//! One that may answer: a model of another server, or one of our own. What it did is remembered here,
//! once for all aliases that lead to it.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use hob_core::routing::{
    Admits, Consequence, Failure, Health, Rest, TargetStatus, TargetView, Trial, tokens_of,
};
use hob_core::{ChatRequest, ModelError, ModelState, Permit};

use hob_wire::ServedModel;

use crate::kind::AnyLocal;
use crate::served::Served;
use crate::slots::Slot;

/// Shorter prompts tell nothing of how fast one is read.
const TELLING_TOKENS: u32 = 64;
/// How much one new answer moves what is known.
const READ_WEIGHT: f64 = 0.3;
/// Tokens of a prompt that a model here reads in a second before any answer taught a better figure: as a model of
/// 8 billion parameters on a processor of 15 W. Home Assistant's tools and entities are 5,621 tokens.
const LOCAL_READS_PER_S_MIN: f64 = 25.0;
/// No prompt is waited for longer than this because of a wrong estimate.
const READ_MAX: Duration = Duration::from_secs(200);

#[derive(Debug)]
pub(crate) struct Target {
    pub(crate) name: String,
    pub(crate) source: Source,
    health: Mutex<Health>,
    last_failure: Mutex<Option<(String, Instant)>>,
    thinks_anyway: AtomicBool,
    /// Tokens of a prompt that it reads in a second, learnt from answers.
    reads_per_s: Mutex<Option<f64>>,
}

/// Where a target is; what it is asked as is for those who ask it.
#[derive(Debug)]
pub(crate) enum Source {
    Upstream(Arc<Served>),
    Local(AnyLocal),
}

impl Target {
    pub(crate) fn new(name: String, source: Source) -> Target {
        Target {
            name,
            source,
            health: Mutex::default(),
            last_failure: Mutex::default(),
            thinks_anyway: AtomicBool::new(false),
            reads_per_s: Mutex::default(),
        }
    }

    /// It read so many tokens before it said anything.
    pub(crate) fn read(&self, tokens: u32, took: Duration) {
        let rate = f64::from(tokens) / took.as_secs_f64().max(1e-3);
        let mut known = self.reads_per_s.lock().unwrap_or_else(PoisonError::into_inner);
        if tokens >= TELLING_TOKENS {
            *known = Some(known.map_or(rate, |known| known + READ_WEIGHT * (rate - known)));
        }
    }

    /// How long it reads such a prompt, if that is known; of a model here, at most. Whether that one is alive its
    /// supervisor knows.
    pub(crate) fn reading_time(&self, request: &ChatRequest) -> Option<Duration> {
        let known = *self.reads_per_s.lock().unwrap_or_else(PoisonError::into_inner);
        let slowest = matches!(self.source, Source::Local(_)).then_some(LOCAL_READS_PER_S_MIN);
        let rate = known.or(slowest)?;
        let (least, most) = tokens_of(request);
        let tokens = (least + most) as f64 / 2.0;
        Duration::try_from_secs_f64(tokens / rate).ok().map(|time| time.min(READ_MAX))
    }

    /// A place at a model of our own, for so much work; servers elsewhere have their own.
    pub(crate) fn admit(&self, work: f64) -> Result<Option<Permit>, ModelError> {
        match &self.source {
            Source::Local(local) => {
                let permit = local.admission().admit(work);
                permit.map(Some).map_err(|busy| ModelError::Busy { retry_after: busy.retry_after })
            }
            Source::Upstream(_) => Ok(None),
        }
    }

    pub(crate) fn state(&self) -> ModelState {
        match &self.source {
            Source::Upstream(served) => served.upstream.state_of(&served.model),
            Source::Local(local) => local.state(),
        }
    }

    /// One second try, if its server has any left.
    pub(crate) fn may_retry(&self) -> bool {
        match &self.source {
            Source::Upstream(served) => {
                let budget = &served.upstream.budget;
                budget.lock().unwrap_or_else(PoisonError::into_inner).retry(Instant::now())
            }
            Source::Local(_) => true,
        }
    }

    /// What its server says of it.
    pub(crate) fn said(&self) -> Option<ServedModel> {
        match &self.source {
            Source::Upstream(served) => served.upstream.said_of(&served.model),
            Source::Local(_) => None,
        }
    }

    /// Tokens that it holds, as far as is known.
    pub(crate) fn context_tokens(&self) -> Option<u32> {
        let known = match &self.source {
            Source::Upstream(_) => self.said().and_then(|said| said.context_tokens),
            Source::Local(local) => local.context_tokens(),
        };
        known.filter(|tokens| *tokens > 0)
    }

    pub(crate) fn load(&self) -> f64 {
        match &self.source {
            Source::Upstream(served) => served.upstream.slots.load(),
            Source::Local(local) => {
                let admission = local.admission();
                admission.in_flight() as f64 / admission.requests_max().max(1) as f64
            }
        }
    }

    fn in_flight(&self) -> usize {
        match &self.source {
            Source::Upstream(served) => served.upstream.slots.in_flight(),
            Source::Local(local) => local.admission().in_flight(),
        }
    }

    /// Whether it may be asked; a trial is taken with the answer.
    pub(crate) fn admits(&self) -> Admits {
        self.health().admits(Instant::now())
    }

    /// Its first content is there.
    pub(crate) fn begun(&self) {
        self.health().begun();
    }

    /// A place among those that it answers at once; a model of our own has admission for that.
    pub(crate) async fn place(&self) -> Result<Option<Slot>, ModelError> {
        match &self.source {
            Source::Upstream(served) => served.upstream.slots.take().await.map(Some),
            Source::Local(_) => Ok(None),
        }
    }

    pub(crate) fn failed_lately(&self) -> bool {
        self.health().failed_lately(Instant::now())
    }

    pub(crate) fn answered(&self) {
        self.health().answered(Instant::now());
    }

    /// Remembers the failure, and rests if that follows from it.
    /// `first` is how long it rests the first time.
    pub(crate) fn failed(&self, error: &ModelError, trial: Option<Trial>, first: Duration) {
        let rest = Consequence::of(error).rest;
        let jitter = fastrand::f64().mul_add(2.0, -1.0);
        self.health().failed(Instant::now(), &Failure { rest, trial, first, jitter });
        if rest == Rest::No {
            return;
        }
        let mut last = self.last_failure.lock().unwrap_or_else(PoisonError::into_inner);
        *last = Some((error.summary(), Instant::now()));
    }

    /// The request was given up by who asked: that says nothing of the target.
    pub(crate) fn given_up(&self, trial: Option<Trial>) {
        if let Some(trial) = trial {
            self.health().given_up(trial);
        }
    }

    pub(crate) fn thought_anyway(&self) {
        if !self.thinks_anyway.swap(true, Ordering::Relaxed) {
            let target = self.name.as_str();
            tracing::warn!(target, "thinking was switched off, and came all the same");
        }
    }

    pub(crate) fn view(&self) -> TargetView {
        let now = Instant::now();
        let status = match self.health().looks(now) {
            Admits::Yes => TargetStatus::Standby,
            Admits::Trial(_) => TargetStatus::HalfOpen,
            Admits::RestsUntil(until) => {
                TargetStatus::Open { left: until.saturating_duration_since(now) }
            }
        };
        let last = self.last_failure.lock().unwrap_or_else(PoisonError::into_inner);
        let last_failure = last.as_ref().map(|(said, at)| (said.clone(), now - *at));
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

    /// When it may be asked again; none: now.
    pub(crate) fn rests_for(&self) -> Option<Duration> {
        match self.health().looks(Instant::now()) {
            Admits::RestsUntil(until) => Some(until.saturating_duration_since(Instant::now())),
            Admits::Yes | Admits::Trial(_) => None,
        }
    }

    fn health(&self) -> MutexGuard<'_, Health> {
        self.health.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
