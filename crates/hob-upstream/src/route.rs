//! An alias as a model, for every kind of work: it asks its candidates until one really answers.
//! The differences between the kinds are in [`RouteTask`] and in `chat.rs`, `speech.rs` and `transcription.rs`.

mod attempt;
mod attempt_log;
mod candidate;
mod chat;
mod continuation;
mod fallback;
mod speech;
mod task;
mod timed;
mod transcription;

use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use futures::StreamExt;
use hob_core::routing::{FallBack, RetryDecision, RouteView, TargetStatus, TargetView, order};
use hob_core::{ModelError, ModelState, Started, Trace};
use tokio::time::{Instant, sleep};

use crate::options::AliasOptions;
use crate::target::{Source, Target};
use attempt::{Input, observed};
use task::EventRole;

pub(crate) use candidate::Candidate;
pub(crate) use task::RouteTask;

/// The default limit of a whole request.
const TOTAL: Duration = Duration::from_secs(600);

/// A name, and the targets that answer for it.
pub(crate) struct Route<T: RouteTask> {
    options: AliasOptions,
    candidates: Vec<Arc<Candidate<T>>>,
    card: T::Card,
}

/// A route as a model.
pub(crate) struct AliasModel<T: RouteTask>(pub(crate) Arc<Route<T>>);

impl<T: RouteTask> fmt::Debug for Route<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut route = f.debug_struct("Route");
        route.field("name", &self.options.name).field("candidates", &self.candidates);
        route.finish_non_exhaustive()
    }
}

impl<T: RouteTask> Route<T> {
    pub(crate) fn new(options: AliasOptions, candidates: Vec<Candidate<T>>) -> Arc<Route<T>> {
        let candidates: Vec<_> = candidates.into_iter().map(Arc::new).collect();
        let card = T::card(&candidates);
        Arc::new(Route { options, candidates, card })
    }

    /// The only target, if it is a local model. Input that is still arriving goes straight to it: there is no other
    /// target that would have to read it again.
    fn only_local(&self) -> Option<&Candidate<T>> {
        let [candidate] = &self.candidates[..] else { return None };
        matches!(candidate.target.source, Source::Local(_)).then(|| &**candidate)
    }

    /// Starts a request whose input is still arriving. No time limit counts, because the writer or speaker may pause. The
    /// model is asked with an open circuit too: the input cannot wait, and no other target could take it.
    async fn start_arriving(
        &self,
        candidate: &Candidate<T>,
        mut request: T::Request,
    ) -> Result<Started<T>, ModelError> {
        let (trace, asked) = (T::trace_mut(&mut request).clone(), Instant::now());
        trace.asking(&candidate.target.name, candidate.is_warm());
        let failed = |error: &ModelError| {
            candidate.target.failed(error, None, self.options.cool_down);
            trace.failed(&candidate.target.name, error, asked.elapsed());
        };
        let permit = candidate.admit(T::expected_work(&request)).inspect_err(failed)?;
        let started = T::start(&candidate.model, request).await.inspect_err(failed)?;
        let Started { head, events } = started;
        let events = observed::<T>(events, head, permit, Input::Arriving, None);
        let mut outcome = ArrivingOutcome { target: Arc::clone(&candidate.target), is_good: false };
        let cool_down = self.options.cool_down;
        let observe = move |event: &Result<T::Event, ModelError>| match event {
            Ok(event) => {
                outcome.is_good |= matches!(T::role(event), EventRole::Content | EventRole::Last);
            }
            Err(error) => {
                outcome.is_good = false;
                outcome.target.failed(error, None, cool_down);
            }
        };
        Ok(Started { head, events: events.inspect(observe).boxed() })
    }

    pub(crate) fn targets(&self) -> impl Iterator<Item = Arc<Target>> {
        self.candidates.iter().map(|candidate| Arc::clone(&candidate.target))
    }

    fn total(&self) -> Duration {
        self.options.timeouts.total.unwrap_or(TOTAL)
    }

    /// When a request that comes now has to be over.
    fn deadline(&self) -> Instant {
        Instant::now() + self.total()
    }

    /// The state of the best target.
    fn state(&self) -> ModelState {
        let states = || self.candidates.iter().map(|candidate| candidate.target.state());
        let rank = |state: &ModelState| match state {
            ModelState::Ready => 0,
            ModelState::Loading { .. } => 1,
            ModelState::Cold => 2,
            ModelState::Down { .. } => 3,
        };
        let down = || ModelState::Down { reason: "it has no targets".to_owned() };
        states().min_by_key(rank).unwrap_or_else(down)
    }

    /// The candidates in the order in which to ask them. `beginning` is a hash of the conversation's
    /// beginning: the same conversation goes to the same target, which may have it in its cache.
    fn ordered(
        &self,
        candidates: Vec<Arc<Candidate<T>>>,
        beginning: u64,
    ) -> Vec<Arc<Candidate<T>>> {
        if candidates.len() < 2 {
            return candidates;
        }
        let facts: Vec<_> = candidates.iter().map(|candidate| candidate.facts()).collect();
        let places = order(self.options.strategy, &facts, beginning, fastrand::f64());
        places.into_iter().map(|place| Arc::clone(&candidates[place])).collect()
    }

    /// The targets, in the order in which they would be asked now.
    pub(crate) fn view(&self, beginning: u64) -> RouteView {
        let candidates = self.ordered(self.candidates.clone(), beginning);
        let targets = views(&candidates);
        RouteView {
            alias: self.options.name.clone(),
            strategy: self.options.strategy.name(),
            targets,
        }
    }

    /// The error when all candidates failed. The request's own fault is passed on as it is.
    fn all_failed(&self, trace: &Trace, reported: Option<ModelError>) -> ModelError {
        let alias = self.options.name.clone();
        let Some(last) = reported else {
            let retry_after = self.shortest_cool_down().unwrap_or_default();
            return ModelError::Resting { alias, retry_after };
        };
        let is_clients = RetryDecision::after(&last).fall_back == FallBack::No
            || matches!(last, ModelError::InvalidField { .. });
        let is_later = matches!(
            last,
            ModelError::Loading { .. } | ModelError::NoRoom { .. } | ModelError::Busy { .. }
        );
        if is_clients || is_later {
            return last;
        }
        let (attempts, retry_after) = (trace.snapshot().failed, self.shortest_cool_down());
        ModelError::Unanswered { alias, attempts, last: Box::new(last), retry_after }
    }

    /// Until the first target may be asked again. `None`: one may be asked now.
    fn shortest_cool_down(&self) -> Option<Duration> {
        self.candidates.iter().map(|candidate| candidate.target.open_for()).min().flatten()
    }

    /// Waits until one of these targets may be asked, where that is soon.
    ///
    /// # Errors
    /// [`ModelError::Resting`]: all cool down for longer than a request may wait.
    async fn wait_for_cool_down(
        &self,
        candidates: &[Arc<Candidate<T>>],
        deadline: Instant,
    ) -> Result<(), ModelError> {
        let left = candidates.iter().map(|candidate| candidate.target.open_for()).min().flatten();
        match left {
            None => Ok(()),
            Some(left)
                if left <= self.options.queue_timeout && Instant::now() + left < deadline =>
            {
                sleep(left).await;
                Ok(())
            }
            Some(retry_after) => {
                Err(ModelError::Resting { alias: self.options.name.clone(), retry_after })
            }
        }
    }
}

/// Records a good answer to arriving input when its stream is dropped: not every kind has a last event.
struct ArrivingOutcome {
    target: Arc<Target>,
    is_good: bool,
}

impl Drop for ArrivingOutcome {
    fn drop(&mut self) {
        if self.is_good {
            self.target.succeeded();
        }
    }
}

/// For people: the first target that may be asked and is not known to be down is the active one.
/// A target before it that is down, or half open, is tried first.
fn views<T: RouteTask>(candidates: &[Arc<Candidate<T>>]) -> Vec<TargetView> {
    let mut has_active = false;
    let view = |candidate: &Arc<Candidate<T>>| {
        let mut view = candidate.target.view();
        view.context_tokens = candidate.context_tokens();
        if view.status == TargetStatus::Standby && !has_active {
            let is_down = matches!(view.state, ModelState::Down { .. });
            has_active = !is_down;
            view.status = if is_down { TargetStatus::HalfOpen } else { TargetStatus::Active };
        }
        view
    };
    candidates.iter().map(view).collect()
}
