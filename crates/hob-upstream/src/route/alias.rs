//! The targets of an alias, of any kind, of which one really answers; nobody outside hears of the others.
//! In which order they are asked, who rests, and what is told when nobody answered.

use std::fmt;
use std::time::Duration;

use futures::FutureExt;
use futures::future::BoxFuture;
use hob_core::routing::{Consequence, Next, RouteView, TargetStatus, TargetView, order};
use hob_core::{ModelError, ModelState, Trace};
use tokio::time::{Instant, sleep};

use super::asking::Question;
use super::leg::Leg;
use crate::options::AliasOptions;

const TOTAL: Duration = Duration::from_secs(600);

/// A name, and the targets that answer to it.
pub(crate) struct Alias<M: ?Sized> {
    pub(super) options: AliasOptions,
    pub(super) legs: Vec<Leg<M>>,
}

impl<M: ?Sized> fmt::Debug for Alias<M> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Alias").field("name", &self.options.name).field("legs", &self.legs).finish()
    }
}

impl<M: Send + Sync + ?Sized> Alias<M> {
    pub(crate) fn new(options: AliasOptions, legs: Vec<Leg<M>>) -> Alias<M> {
        Alias { options, legs }
    }

    pub(crate) fn name(&self) -> &str {
        &self.options.name
    }

    pub(super) fn total(&self) -> Duration {
        self.options.clocks.total.unwrap_or(TOTAL)
    }

    /// As the best of its targets is.
    pub(super) fn state(&self) -> ModelState {
        let states = || self.legs.iter().map(|leg| leg.target.state());
        let rank = |state: &ModelState| match state {
            ModelState::Ready => 0,
            ModelState::Loading { .. } => 1,
            ModelState::Cold => 2,
            ModelState::Down { .. } => 3,
        };
        let down = || ModelState::Down { reason: "it has no targets".to_owned() };
        states().min_by_key(rank).unwrap_or_else(down)
    }

    /// In the order in which to ask them. `beginning` is a hash of what is asked.
    pub(super) fn ordered<'a>(&self, legs: Vec<&'a Leg<M>>, beginning: u64) -> Vec<&'a Leg<M>> {
        let standings: Vec<_> = legs.iter().map(|leg| leg.standing()).collect();
        let places = order(self.options.pick, &standings, beginning, fastrand::f64());
        places.into_iter().map(|place| legs[place]).collect()
    }

    /// Who would answer now, in the order in which they would be asked.
    pub(super) fn view_of(&self, beginning: u64) -> RouteView {
        let legs = self.ordered(self.legs.iter().collect(), beginning);
        let targets = views(&legs);
        RouteView { alias: self.options.name.clone(), pick: self.options.pick.name(), targets }
    }

    /// Asks these targets, which are in order. Boxed here, where it is known of every kind at once that it
    /// may go to another thread.
    pub(super) fn ask<'a, Q: Question<M>>(
        &'a self,
        legs: Vec<&'a Leg<M>>,
        question: &'a Q,
    ) -> BoxFuture<'a, Result<Q::Begun, ModelError>> {
        async move {
            let legs = self.awake(legs, question.ends()).await?;
            match self.options.hedge_after {
                Some(after) if legs.len() > 1 => self.hedged(&legs, question, after).await,
                _ => self.in_turn(&legs, question).await,
            }
        }
        .boxed()
    }

    /// All have failed. What was the request's own fault is handed on as it is.
    pub(super) fn unanswered(&self, trace: &Trace, told: Option<ModelError>) -> ModelError {
        let alias = self.options.name.clone();
        let Some(last) = told else {
            return ModelError::Resting { alias, retry_after: self.rest().unwrap_or_default() };
        };
        let is_clients = Consequence::of(&last).next == Next::None;
        let is_later = matches!(
            last,
            ModelError::Loading { .. } | ModelError::NoRoom { .. } | ModelError::Busy { .. }
        );
        if is_clients || is_later {
            return last;
        }
        let attempts = trace.now().failed;
        ModelError::Unanswered { alias, attempts, last: Box::new(last), retry_after: self.rest() }
    }

    /// Until the first of the targets may be asked again; none: one may be asked now.
    fn rest(&self) -> Option<Duration> {
        self.legs.iter().map(|leg| leg.target.rests_for()).min().flatten()
    }

    /// The same, when at least one target does not rest, or will not for long.
    pub(super) async fn awake<'a>(
        &self,
        legs: Vec<&'a Leg<M>>,
        ends: Instant,
    ) -> Result<Vec<&'a Leg<M>>, ModelError> {
        let rests = legs.iter().map(|leg| leg.target.rests_for()).min().flatten();
        match rests {
            None => Ok(legs),
            Some(left) if left <= self.options.patience && Instant::now() + left < ends => {
                sleep(left).await;
                Ok(legs)
            }
            Some(retry_after) => {
                Err(ModelError::Resting { alias: self.options.name.clone(), retry_after })
            }
        }
    }
}

/// As people look at them: the first that may be asked and is not known to fail is the one that answers.
/// One whose server cannot be reached, or that rested after failures, is tried before it.
fn views<M: ?Sized>(legs: &[&Leg<M>]) -> Vec<TargetView> {
    let mut has_answer = false;
    let view = |leg: &&Leg<M>| {
        let mut view = leg.target.view();
        view.context_tokens = leg.context_tokens();
        if view.status == TargetStatus::Standby && !has_answer {
            let is_down = matches!(view.state, ModelState::Down { .. });
            has_answer = !is_down;
            view.status = if is_down { TargetStatus::HalfOpen } else { TargetStatus::Active };
        }
        view
    };
    legs.iter().map(view).collect()
}
