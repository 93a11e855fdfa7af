//! Targets asked in turn, or the next beside a silent one, within the attempts of one request.
//! What follows a failure is decided in `hob_core::routing`; here it is done.

use std::time::Duration;

use futures::StreamExt;
use futures::future::BoxFuture;
use futures::stream::FuturesUnordered;
use hob_core::routing::{Admits, Again, Consequence, Next};
use hob_core::{Fault, ModelError, Trace};
use tokio::time::{Instant, sleep, sleep_until};

use super::alias::Alias;
use super::leg::Leg;
use super::tried::Tried;
use crate::target::{Source, Target};

/// What is asked of one target after the other.
pub(super) trait Question<M: ?Sized>: Sync {
    /// An answer that has really begun.
    type Begun: Send;

    fn trace(&self) -> &Trace;

    /// When the request's whole time is over.
    fn ends(&self) -> Instant;

    fn ask<'a>(&'a self, leg: &'a Leg<M>) -> BoxFuture<'a, Result<Self::Begun, ModelError>>;
}

impl<M: Send + Sync + ?Sized> Alias<M> {
    /// Asks one after the other.
    pub(super) async fn in_turn<Q: Question<M>>(
        &self,
        legs: &[&Leg<M>],
        question: &Q,
    ) -> Result<Q::Begun, ModelError> {
        let tried = Tried::default();
        for (place, leg) in legs.iter().enumerate() {
            let is_last = place + 1 == legs.len();
            match self.turn(leg, question, is_last, &tried).await {
                Ok(begun) => return Ok(begun),
                Err(Next::None) => break,
                Err(Next::Any | Next::LargerContext) => {}
            }
        }
        Err(self.unanswered(question.trace(), tried.told()))
    }

    /// One target's turn, if it is worth asking. An error says whether another has one.
    async fn turn<Q: Question<M>>(
        &self,
        leg: &Leg<M>,
        question: &Q,
        is_last: bool,
        tried: &Tried,
    ) -> Result<Q::Begun, Next> {
        let is_spent =
            !tried.has_left(self.options.attempts_max) || Instant::now() >= question.ends();
        if is_spent
            || !tried.takes(leg)
            || matches!(leg.target.admits(), Admits::RestsUntil(_))
            || !tried.begin(self.options.attempts_max)
        {
            return Err(Next::Any);
        }
        let error = match self.patiently(leg, question, is_last, tried).await {
            Ok(begun) => return Ok(begun),
            Err(error) => error,
        };
        let next = Consequence::of(&error).next;
        if next == Next::LargerContext {
            let context = available(&error).or_else(|| leg.context_tokens());
            tried.needs_more_than(context.unwrap_or(0));
        }
        tried.failed(error);
        Err(next)
    }

    /// Asks one target, and once more where that may help.
    async fn patiently<Q: Question<M>>(
        &self,
        leg: &Leg<M>,
        question: &Q,
        is_last: bool,
        tried: &Tried,
    ) -> Result<Q::Begun, ModelError> {
        let mut has_repeated = false;
        loop {
            let error = match attempt(leg, question).await {
                Ok(begun) => return Ok(begun),
                Err(error) => error,
            };
            let Consequence { again, .. } = Consequence::of(&error);
            let is_learnt = matches!(again, Again::Without { .. });
            let wait = match again {
                Again::No => return Err(error),
                Again::Once { after } => after,
                Again::IfLast { after } if is_last => after,
                Again::IfLast { .. } => return Err(error),
                Again::Without { field } => {
                    let Source::Upstream(served) = &leg.target.source else { return Err(error) };
                    served.leave_out(&field);
                    Duration::ZERO
                }
            };
            // Who learnt what the server does not take asks something else, and not the same again.
            let may_repeat = !has_repeated
                && Instant::now() + wait < question.ends()
                && (is_learnt || leg.target.may_retry())
                && tried.begin(self.options.attempts_max);
            if !may_repeat {
                return Err(error);
            }
            has_repeated = true;
            let wait = wait.mul_f64(1.0 + 0.2 * fastrand::f64());
            sleep(wait).await;
            question.trace().note(|way| way.paused += wait);
        }
    }

    /// Asks the first, and the next too when it has been silent for a while: whoever really answers first
    /// is heard, and the other is let go.
    pub(super) async fn hedged<Q: Question<M>>(
        &self,
        legs: &[&Leg<M>],
        question: &Q,
        after: Duration,
    ) -> Result<Q::Begun, ModelError> {
        let tried = &Tried::default();
        let mut waiting = legs.iter();
        let mut asked = FuturesUnordered::new();
        let ask = |leg: &Leg<M>, is_last: bool| {
            let leg = leg.clone();
            async move { self.turn(&leg, question, is_last, tried).await }
        };
        asked.extend(waiting.next().map(|leg| ask(leg, waiting.len() == 0)));
        let mut hedge_at = Instant::now() + after;
        loop {
            let answered = tokio::select! {
                answered = asked.next() => answered,
                () = sleep_until(hedge_at), if waiting.len() > 0 => {
                    asked.extend(waiting.next().map(|leg| ask(leg, waiting.len() == 0)));
                    hedge_at += after;
                    continue;
                }
            };
            match answered {
                Some(Ok(begun)) => return Ok(begun),
                Some(Err(Next::Any | Next::LargerContext)) => {
                    asked.extend(waiting.next().map(|leg| ask(leg, waiting.len() == 0)));
                }
                // The request itself is at fault, or nobody is left.
                Some(Err(Next::None)) | None => {
                    return Err(self.unanswered(question.trace(), tried.told()));
                }
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
