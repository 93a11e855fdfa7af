//! Targets asked in turn, or the next beside a silent one, within the attempts of one request.
//! What follows a failure is decided in `hob_core::routing`; here it is done.

use std::collections::VecDeque;
use std::time::Duration;

use futures::StreamExt;
use futures::future::BoxFuture;
use futures::stream::FuturesUnordered;
use hob_core::routing::{Admits, Again, Consequence, Next, Trial};
use hob_core::{Fault, ModelError, Trace};
use tokio::time::{Instant, sleep, sleep_until};

use super::alias::Alias;
use super::leg::Leg;
use super::opening::may_come;
use super::tried::Tried;
use crate::options::WhileLoading;
use crate::target::{Source, Target};

/// What is asked of one target after the other.
pub(super) trait Question<M: ?Sized>: Sync {
    /// An answer that has really begun.
    type Begun: Send;

    fn trace(&self) -> &Trace;

    /// When the request's whole time is over.
    fn ends(&self) -> Instant;

    fn ask<'a>(&'a self, turn: &'a Turn<'a, M>) -> BoxFuture<'a, Result<Self::Begun, ModelError>>;
}

/// One target's turn.
pub(super) struct Turn<'a, M: ?Sized> {
    pub(super) leg: &'a Leg<M>,
    /// Targets that have not had their turn yet.
    behind: usize,
    /// Whether its model is waited for.
    pub(super) while_loading: WhileLoading,
    /// Of a target that rested.
    pub(super) trial: Option<Trial>,
}

impl<'a, M: ?Sized> Turn<'a, M> {
    /// Nobody else is asked, and nothing is waited for.
    pub(super) fn alone(leg: &'a Leg<M>) -> Turn<'a, M> {
        Turn { leg, behind: 0, while_loading: WhileLoading::Next, trial: None }
    }
}

/// What follows a turn without an answer.
enum Missed {
    /// Another one's turn.
    Next,
    /// The same, and this one's once more when nobody else has answered: its model is being loaded.
    PutOff,
    /// Nobody's: the request is at fault.
    Over,
}

impl<M: Send + Sync + ?Sized> Alias<M> {
    /// Asks one after the other. While a model is being loaded, those that are warm have their turns, and
    /// nobody else's load begins beside it; only then it is waited for, where that is wished for.
    pub(super) async fn in_turn<Q: Question<M>>(
        &self,
        legs: &[&Leg<M>],
        question: &Q,
    ) -> Result<Q::Begun, ModelError> {
        let tried = Tried::default();
        let mut queue: VecDeque<&Leg<M>> = legs.iter().copied().collect();
        let mut put_off = VecDeque::new();
        loop {
            let Some(leg) = queue.pop_front() else {
                if put_off.is_empty() {
                    break;
                }
                queue.append(&mut put_off);
                continue;
            };
            if !put_off.is_empty() && !leg.is_warm() {
                put_off.push_back(leg);
                continue;
            }
            let behind = queue.len() + put_off.len();
            let others_are_warm = queue.iter().any(|leg| leg.is_warm());
            let while_loading =
                if others_are_warm { WhileLoading::Next } else { self.options.while_loading };
            match self
                .turn(Turn { leg, behind, while_loading, trial: None }, question, &tried)
                .await
            {
                Ok(begun) => return Ok(begun),
                Err(Missed::Next) => {}
                Err(Missed::PutOff) => put_off.push_back(leg),
                Err(Missed::Over) => break,
            }
        }
        Err(self.unanswered(question.trace(), tried.told()))
    }

    /// One target's turn, if it is worth asking.
    async fn turn<Q: Question<M>>(
        &self,
        turn: Turn<'_, M>,
        question: &Q,
        tried: &Tried,
    ) -> Result<Q::Begun, Missed> {
        let leg = turn.leg;
        let is_spent =
            !tried.has_left(self.options.attempts_max) || Instant::now() >= question.ends();
        if is_spent || !tried.takes(leg) {
            return Err(Missed::Next);
        }
        let trial = match leg.target.admits() {
            Admits::RestsUntil(_) => return Err(Missed::Next),
            Admits::Trial(trial) => Some(trial),
            Admits::Yes => None,
        };
        tried.begin(self.options.attempts_max);
        let turn = Turn { trial, ..turn };
        let error = match self.patiently(&turn, question, tried).await {
            Ok(begun) => return Ok(begun),
            Err(error) => error,
        };
        let is_put_off = turn.while_loading != self.options.while_loading && may_come(&error);
        let missed = match Consequence::of(&error).next {
            Next::None => Missed::Over,
            Next::LargerContext => {
                let context = available(&error).or_else(|| leg.context_tokens());
                tried.needs_more_than(context.unwrap_or(0));
                Missed::Next
            }
            Next::Any if is_put_off => {
                tried.puts_off(leg);
                Missed::PutOff
            }
            Next::Any => Missed::Next,
        };
        tried.failed(error);
        Err(missed)
    }

    /// Asks one target, and once more where that may help.
    async fn patiently<Q: Question<M>>(
        &self,
        turn: &Turn<'_, M>,
        question: &Q,
        tried: &Tried,
    ) -> Result<Q::Begun, ModelError> {
        let target = &turn.leg.target;
        let mut has_repeated = false;
        loop {
            let error = match attempt(turn, question).await {
                Ok(begun) => return Ok(begun),
                Err(error) => error,
            };
            let Consequence { again, .. } = Consequence::of(&error);
            let is_learnt = matches!(again, Again::Without { .. });
            let wait = match again {
                Again::No => return Err(error),
                Again::Once { after } => after,
                Again::IfLast { after } if turn.behind == 0 => after,
                Again::IfLast { .. } => return Err(error),
                Again::Without { field } => {
                    let Source::Upstream(served) = &target.source else { return Err(error) };
                    served.leave_out(&field);
                    Duration::ZERO
                }
            };
            // Who learnt what the server does not take asks something else, and not the same again. A second
            // try costs nobody else their first.
            let behind = if is_learnt { 0 } else { turn.behind as u32 };
            let may_repeat = !has_repeated
                && Instant::now() + wait < question.ends()
                && tried.has_left(self.options.attempts_max.saturating_sub(behind))
                && (is_learnt || target.may_retry())
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
        let while_loading = self.options.while_loading;
        let begun = Instant::now();
        let ask = |leg: &Leg<M>, behind: usize| {
            let (leg, is_warm, waited) = (leg.clone(), leg.is_warm(), begun.elapsed());
            async move {
                let turn = Turn { leg: &leg, behind, while_loading, trial: None };
                let answered = self.turn(turn, question, tried).await;
                if answered.is_ok() {
                    // Others were asked since. The time before it was asked itself is a pause, but for
                    // what is told of those who failed meanwhile.
                    question.trace().note(|way| {
                        way.is_warm = Some(is_warm);
                        way.paused = waited.saturating_sub(way.failures());
                    });
                }
                answered
            }
        };
        asked.extend(waiting.next().map(|leg| ask(leg, waiting.len())));
        let mut hedge_at = begun + after;
        loop {
            let answered = tokio::select! {
                answered = asked.next() => answered,
                () = sleep_until(hedge_at), if waiting.len() > 0 => {
                    asked.extend(waiting.next().map(|leg| ask(leg, waiting.len())));
                    hedge_at += after;
                    continue;
                }
            };
            match answered {
                Some(Ok(begun)) => return Ok(begun),
                Some(Err(Missed::Next | Missed::PutOff)) => {
                    asked.extend(waiting.next().map(|leg| ask(leg, waiting.len())));
                }
                // The request itself is at fault, or nobody is left.
                Some(Err(Missed::Over)) | None => {
                    return Err(self.unanswered(question.trace(), tried.told()));
                }
            }
        }
    }
}

/// Asks one target, and leaves word of it.
async fn attempt<M: ?Sized, Q: Question<M>>(
    turn: &Turn<'_, M>,
    question: &Q,
) -> Result<Q::Begun, ModelError> {
    let (asked, target) = (Instant::now(), &turn.leg.target);
    question.trace().asking(&target.name, turn.leg.is_warm());
    let trying = Trying { target, trial: turn.trial };
    let begun = question.ask(turn).await;
    trying.over();
    if let Err(error) = &begun {
        question.trace().failed(&target.name, error, asked.elapsed());
    }
    begun
}

/// A target that is being asked. Whoever gives the question up says nothing of the target.
struct Trying<'a> {
    target: &'a Target,
    trial: Option<Trial>,
}

impl Trying<'_> {
    fn over(mut self) {
        self.trial = None;
    }
}

impl Drop for Trying<'_> {
    fn drop(&mut self) {
        self.target.given_up(self.trial);
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
