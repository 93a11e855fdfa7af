//! The targets of an alias, of any kind, asked in turn until one really answers; nobody outside hears of
//! the others. What follows a failure is decided in `hob_core::routing`; here it is done.

use std::fmt;
use std::time::Duration;

use futures::future::BoxFuture;
use futures::stream::FuturesUnordered;
use futures::{FutureExt, StreamExt};
use hob_core::routing::{
    Admits, Again, Consequence, Next, RouteView, TargetStanding, TargetView, order,
};
use hob_core::{Fault, ModelError, ModelState, Trace};
use tokio::time::{Instant, sleep, sleep_until};

use super::leg::Leg;
use crate::options::AliasOptions;
use crate::target::{Source, Target};

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

/// What is asked of one target after the other.
pub(super) trait Question<M: ?Sized>: Sync {
    /// An answer that has really begun.
    type Begun: Send;

    fn trace(&self) -> &Trace;

    /// When the request's whole time is over.
    fn ends(&self) -> Instant;

    fn ask<'a>(&'a self, leg: &'a Leg<M>) -> BoxFuture<'a, Result<Self::Begun, ModelError>>;
}

/// What came of the attempts so far.
#[derive(Default)]
pub(super) struct Tried {
    attempts: u32,
    pub(super) last: Option<ModelError>,
    /// Only targets that hold more than this are worth asking.
    larger_than: Option<u32>,
}

impl Tried {
    pub(super) fn only(last: Option<ModelError>) -> Tried {
        Tried { last, ..Tried::default() }
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
                _ => self.in_turn(&legs, question, &mut Tried::default()).await,
            }
        }
        .boxed()
    }

    /// Asks one after the other.
    async fn in_turn<Q: Question<M>>(
        &self,
        legs: &[&Leg<M>],
        question: &Q,
        tried: &mut Tried,
    ) -> Result<Q::Begun, ModelError> {
        for (place, leg) in legs.iter().enumerate() {
            let is_last = place + 1 == legs.len();
            if !is_worth(leg, tried) || matches!(leg.target.admits(), Admits::RestsUntil(_)) {
                continue;
            }
            match self.patiently(leg, question, is_last, tried).await {
                Ok(begun) => return Ok(begun),
                Err(Next::None) => break,
                Err(Next::Any) => {}
                Err(Next::LargerContext) => {
                    let said = tried.last.as_ref().and_then(available);
                    let context = said.or_else(|| leg.context_tokens()).unwrap_or(0);
                    tried.larger_than = tried.larger_than.max(Some(context));
                }
            }
            if tried.attempts >= self.options.attempts_max || Instant::now() >= question.ends() {
                break;
            }
        }
        Err(self.unanswered(question.trace(), tried))
    }

    /// Asks one target, and once more where that may help.
    async fn patiently<Q: Question<M>>(
        &self,
        leg: &Leg<M>,
        question: &Q,
        is_last: bool,
        tried: &mut Tried,
    ) -> Result<Q::Begun, Next> {
        let mut has_repeated = false;
        loop {
            tried.attempts += 1;
            let error = match attempt(leg, question).await {
                Ok(begun) => return Ok(begun),
                Err(error) => error,
            };
            let Consequence { again, next, .. } = Consequence::of(&error);
            tried.last = Some(error);
            let is_learnt = matches!(again, Again::Without { .. });
            let wait = match again {
                Again::No => return Err(next),
                Again::Once { after } => after,
                Again::IfLast { after } if is_last => after,
                Again::IfLast { .. } => return Err(next),
                Again::Without { field } => {
                    let Source::Upstream(served) = &leg.target.source else { return Err(next) };
                    served.leave_out(&field);
                    Duration::ZERO
                }
            };
            // Who learnt what the server does not take asks something else, and not the same again.
            let may_repeat = !has_repeated
                && tried.attempts < self.options.attempts_max
                && Instant::now() + wait < question.ends()
                && (is_learnt || leg.target.may_retry());
            if !may_repeat {
                return Err(next);
            }
            has_repeated = true;
            let wait = wait.mul_f64(1.0 + 0.2 * fastrand::f64());
            sleep(wait).await;
            question.trace().note(|way| way.paused += wait);
        }
    }

    /// Asks the first, and the next too when it has been silent for a while: whoever really answers first
    /// is heard, and the other is let go.
    async fn hedged<Q: Question<M>>(
        &self,
        legs: &[&Leg<M>],
        question: &Q,
        after: Duration,
    ) -> Result<Q::Begun, ModelError> {
        let mut waiting = legs.iter();
        let mut asked = FuturesUnordered::new();
        let mut tried = Tried::default();
        let ask = |leg: &Leg<M>| {
            let leg = leg.clone();
            async move {
                let mut tried = Tried::default();
                let answered = self.in_turn(&[&leg], question, &mut tried).await;
                (answered, tried)
            }
        };
        asked.extend(waiting.next().map(|leg| ask(leg)));
        let mut hedge_at = Instant::now() + after;
        loop {
            let answered = tokio::select! {
                answered = asked.next() => answered,
                () = sleep_until(hedge_at), if waiting.len() > 0 => {
                    asked.extend(waiting.next().map(|leg| ask(leg)));
                    hedge_at += after;
                    continue;
                }
            };
            match answered {
                Some((Ok(begun), _)) => return Ok(begun),
                Some((Err(_), of_one)) => {
                    let next = of_one.last.as_ref().map(|error| Consequence::of(error).next);
                    tried.attempts += of_one.attempts;
                    tried.last = of_one.last.or(tried.last);
                    if next == Some(Next::None) {
                        return Err(self.unanswered(question.trace(), &mut tried));
                    }
                    asked.extend(waiting.next().map(|leg| ask(leg)));
                }
                None => return Err(self.unanswered(question.trace(), &mut tried)),
            }
        }
    }

    /// All have failed. What was the request's own fault is handed on as it is.
    pub(super) fn unanswered(&self, trace: &Trace, tried: &mut Tried) -> ModelError {
        let alias = self.options.name.clone();
        let Some(last) = tried.last.take() else {
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

/// Asks one target, and leaves word of it.
async fn attempt<M: ?Sized, Q: Question<M>>(
    leg: &Leg<M>,
    question: &Q,
) -> Result<Q::Begun, ModelError> {
    let asked = Instant::now();
    question.trace().asking(&leg.target.name);
    let trying = Trying(Some(&leg.target));
    let begun = question.ask(leg).await;
    trying.over();
    if let Err(error) = &begun {
        question.trace().failed(&leg.target.name, error, asked.elapsed());
    }
    begun
}

/// A target that is being asked. Whoever gives the question up says nothing of the target.
struct Trying<'a>(Option<&'a Target>);

impl Trying<'_> {
    fn over(mut self) {
        self.0 = None;
    }
}

impl Drop for Trying<'_> {
    fn drop(&mut self) {
        if let Some(target) = self.0 {
            target.given_up();
        }
    }
}

/// Tokens that whoever found the prompt too long says to hold.
fn available(error: &ModelError) -> Option<u32> {
    match error {
        ModelError::TooLong { available, .. } => Some(*available),
        ModelError::Upstream { fault: Fault::TooLong { available, .. }, .. } => *available,
        _ => None,
    }
}

fn is_worth<M: ?Sized>(leg: &Leg<M>, tried: &Tried) -> bool {
    match (tried.larger_than, leg.context_tokens()) {
        (Some(least), Some(context)) => context > least,
        (Some(_), None) | (None, _) => true,
    }
}

/// As people look at them: the first that may be asked is the one that answers. One whose server did not
/// answer when it was last looked at is asked first all the same, and is not expected to.
fn views<M: ?Sized>(legs: &[&Leg<M>]) -> Vec<TargetView> {
    let mut has_answer = false;
    let view = |leg: &&Leg<M>| {
        let mut view = leg.target.view();
        view.context_tokens = leg.context_tokens();
        let may_answer =
            matches!(view.standing, TargetStanding::StandsBy | TargetStanding::OnTrial);
        if may_answer && !has_answer {
            let is_down = matches!(view.state, ModelState::Down { .. });
            has_answer = !is_down;
            view.standing = if is_down { TargetStanding::OnTrial } else { TargetStanding::Answers };
        }
        view
    };
    legs.iter().map(view).collect()
}
