//! Tries candidates one after the other, or the next one in parallel with a silent one.
//! `hob_core::routing` decides what follows a failure; this file does it.

use std::collections::VecDeque;
use std::sync::Arc;
use std::time::Duration;

use futures::future::BoxFuture;
use futures::stream::FuturesUnordered;
use futures::{FutureExt, StreamExt};
use hob_core::routing::{BreakerState, FallBack, Probe, Retry, RetryDecision};
use hob_core::{Fault, ModelError};
use tokio::time::{Instant, sleep, sleep_until};

use super::Route;
use super::attempt::{AnswerStart, AskContext, Attempt, is_loading};
use super::attempt_log::AttemptLog;
use super::candidate::Candidate;
use super::task::RouteTask;
use crate::options::WhileLoading;
use crate::target::{Source, Target};

/// Why a candidate gave no answer, and what follows.
enum NoAnswer {
    Next,
    /// Continue with the next. This one is tried again if no other answers, because its model is loading.
    Postponed,
    /// The request is at fault: no other candidate is tried.
    Final,
}

impl<T: RouteTask> Route<T> {
    /// Tries these candidates in order. Boxed: the compiler then checks `Send` once, not once for each kind.
    pub(super) fn ask<'a>(
        &'a self,
        candidates: Vec<Arc<Candidate<T>>>,
        ask: &'a AskContext<'a, T>,
    ) -> BoxFuture<'a, Result<AnswerStart<T>, ModelError>> {
        async move {
            self.wait_for_cool_down(&candidates, ask.deadline).await?;
            let answered = match self.options.hedge_after {
                Some(after) if candidates.len() > 1 => self.hedged(&candidates, ask, after).await,
                _ => self.in_turn(&candidates, ask).await,
            };
            answered.or_else(|error| ask.take_empty_answer().ok_or(error))
        }
        .boxed()
    }

    /// Tries one after the other. While a model is loading, tries warm candidates and starts no other
    /// load. Waits for the load only if none of them answers and waiting is allowed.
    async fn in_turn(
        &self,
        candidates: &[Arc<Candidate<T>>],
        ask: &AskContext<'_, T>,
    ) -> Result<AnswerStart<T>, ModelError> {
        let log = AttemptLog::default();
        let mut queue: VecDeque<_> = candidates.iter().collect();
        let mut postponed = VecDeque::new();
        loop {
            let Some(candidate) = queue.pop_front() else {
                if postponed.is_empty() {
                    break;
                }
                queue.append(&mut postponed);
                continue;
            };
            if !postponed.is_empty() && !candidate.is_warm() {
                postponed.push_back(candidate);
                continue;
            }
            let remaining = queue.len() + postponed.len();
            let others_are_warm = queue.iter().any(|candidate| candidate.is_warm());
            let while_loading =
                if others_are_warm { WhileLoading::Next } else { self.options.while_loading };
            let attempt = Attempt { candidate, remaining, while_loading, probe: None };
            match self.try_candidate(attempt, ask, &log).await {
                Ok(started) => return Ok(started),
                Err(NoAnswer::Next) => {}
                Err(NoAnswer::Postponed) => postponed.push_back(candidate),
                Err(NoAnswer::Final) => break,
            }
        }
        Err(self.all_failed(ask.trace, log.take_error()))
    }

    /// Tries one candidate, unless no attempt or time is left, its circuit is open, its context is too small,
    /// or its target was already asked.
    async fn try_candidate(
        &self,
        attempt: Attempt<'_, T>,
        ask: &AskContext<'_, T>,
        log: &AttemptLog,
    ) -> Result<AnswerStart<T>, NoAnswer> {
        let candidate = attempt.candidate;
        let is_spent = !log.has_left(self.options.attempts_max) || Instant::now() >= ask.deadline;
        if is_spent || !log.claim_target(candidate) {
            return Err(NoAnswer::Next);
        }
        let probe = match candidate.target.acquire() {
            BreakerState::OpenUntil(_) => return Err(NoAnswer::Next),
            BreakerState::HalfOpen(probe) => Some(probe),
            BreakerState::Closed => None,
        };
        log.begin(self.options.attempts_max);
        let attempt = Attempt { probe, ..attempt };
        let error = match self.with_retry(&attempt, ask, log).await {
            Ok(started) => return Ok(started),
            Err(error) => error,
        };
        let is_postponed =
            attempt.while_loading != self.options.while_loading && is_loading(&error);
        let missed = match RetryDecision::after(&error).fall_back {
            FallBack::No => NoAnswer::Final,
            FallBack::LargerContext => {
                let context = available(&error).or_else(|| candidate.context_tokens());
                log.needs_more_than(context.unwrap_or(0));
                NoAnswer::Next
            }
            FallBack::Any if is_postponed => {
                log.postpone(candidate);
                NoAnswer::Postponed
            }
            FallBack::Any => NoAnswer::Next,
        };
        log.failed(error);
        Err(missed)
    }

    /// Tries one candidate, and a second time if that may help.
    async fn with_retry(
        &self,
        attempt: &Attempt<'_, T>,
        ask: &AskContext<'_, T>,
        log: &AttemptLog,
    ) -> Result<AnswerStart<T>, ModelError> {
        let target = &attempt.candidate.target;
        let mut has_repeated = false;
        let mut left_out = Vec::new();
        loop {
            let error = match self.traced(attempt, ask).await {
                Ok(started) => return Ok(started),
                Err(error) => error,
            };
            let retry = RetryDecision::after(&error).retry;
            let is_learnt = matches!(retry, Retry::WithoutField { .. });
            let wait = match retry {
                Retry::No => return Err(error),
                Retry::Once { after } => after,
                Retry::IfLast { after } if attempt.remaining == 0 => after,
                Retry::IfLast { .. } => return Err(error),
                // It may name another field each time.
                Retry::WithoutField { field } if left_out.contains(&field) => return Err(error),
                Retry::WithoutField { field } => {
                    let Source::Upstream(model) = &target.source else { return Err(error) };
                    model.leave_out(&field);
                    left_out.push(field);
                    Duration::ZERO
                }
            };
            // Before the check: the retry begins before the time limit, or not at all.
            let wait = wait.mul_f64(1.0 + 0.2 * fastrand::f64());
            // A request without the unknown field is a different request, the first time. Any other retry must leave each
            // remaining candidate its first attempt.
            let reserved = if is_learnt && !has_repeated { 0 } else { attempt.remaining as u32 };
            let may_repeat = (is_learnt || !has_repeated)
                && Instant::now() + wait < ask.deadline
                && log.has_left(self.options.attempts_max.saturating_sub(reserved))
                && (is_learnt || target.take_retry())
                && log.begin(self.options.attempts_max);
            if !may_repeat {
                return Err(error);
            }
            has_repeated = true;
            sleep(wait).await;
            ask.trace.note(|data| data.paused += wait);
        }
    }

    /// One attempt, recorded in the trace.
    async fn traced(
        &self,
        attempt: &Attempt<'_, T>,
        ask: &AskContext<'_, T>,
    ) -> Result<AnswerStart<T>, ModelError> {
        let (asked, target) = (Instant::now(), &attempt.candidate.target);
        ask.trace.asking(&target.name, attempt.candidate.is_warm());
        let guard = ProbeGuard { target, probe: attempt.probe };
        let started = self.attempt(attempt, ask).await;
        guard.release();
        if let Err(error) = &started {
            ask.trace.failed(&target.name, error, asked.elapsed());
        }
        started
    }

    /// Starts the next candidate after each `after` of silence. The first answer wins; the other attempts are dropped.
    async fn hedged(
        &self,
        candidates: &[Arc<Candidate<T>>],
        ask: &AskContext<'_, T>,
        after: Duration,
    ) -> Result<AnswerStart<T>, ModelError> {
        let log = &AttemptLog::default();
        let mut waiting = candidates.iter();
        let mut asked = FuturesUnordered::new();
        let while_loading = self.options.while_loading;
        let started = Instant::now();
        let start = |candidate: &Arc<Candidate<T>>, remaining: usize| {
            let (candidate, waited) = (Arc::clone(candidate), started.elapsed());
            async move {
                let is_warm = candidate.is_warm();
                let attempt =
                    Attempt { candidate: &candidate, remaining, while_loading, probe: None };
                let answered = self.try_candidate(attempt, ask, log).await;
                if answered.is_ok() {
                    // The wait before this candidate counts as paused time, minus the failed attempts in it.
                    ask.trace.note(|data| {
                        data.is_warm = Some(is_warm);
                        data.paused = waited.saturating_sub(data.failures());
                    });
                }
                answered
            }
        };
        asked.extend(waiting.next().map(|candidate| start(candidate, waiting.len())));
        let mut hedge_at = started + after;
        loop {
            let answered = tokio::select! {
                answered = asked.next() => answered,
                () = sleep_until(hedge_at), if waiting.len() > 0 => {
                    asked.extend(waiting.next().map(|next| start(next, waiting.len())));
                    hedge_at += after;
                    continue;
                }
            };
            match answered {
                Some(Ok(started)) => return Ok(started),
                Some(Err(NoAnswer::Next | NoAnswer::Postponed)) => {
                    asked.extend(waiting.next().map(|next| start(next, waiting.len())));
                    // The new candidate gets its own time of silence.
                    hedge_at = Instant::now() + after;
                }
                // The request itself is at fault, or no candidate is left.
                Some(Err(NoAnswer::Final)) | None => {
                    return Err(self.all_failed(ask.trace, log.take_error()));
                }
            }
        }
    }
}

/// Gives the probe back if the attempt is dropped: a client that gives up says nothing about the target.
struct ProbeGuard<'a> {
    target: &'a Target,
    probe: Option<Probe>,
}

impl ProbeGuard<'_> {
    fn release(mut self) {
        self.probe = None;
    }
}

impl Drop for ProbeGuard<'_> {
    fn drop(&mut self) {
        self.target.abandoned(self.probe);
    }
}

/// The context length that a target reported when it found the prompt too long.
fn available(error: &ModelError) -> Option<u32> {
    match error {
        ModelError::TooLong { available, .. } => Some(*available),
        ModelError::Upstream { fault: Fault::TooLong { available, .. }, .. } => *available,
        _ => None,
    }
}
