//! An answer under its clocks. Whoever waits for the next piece too long hears of a fault, and what the
//! target did is remembered when the answer ends.

use std::pin::{Pin, pin};
use std::sync::Arc;
use std::task::{Context, Poll, ready};
use std::time::Duration;

use futures::stream::BoxStream;
use futures::{Stream, StreamExt};
use hob_core::routing::Trial;
use hob_core::{Clock, Fault, ModelError, Trace};
use hob_wire::FINISH_REPAIR;
use tokio::task::coop::unconstrained;
use tokio::time::{Instant, Sleep, sleep_until};

use crate::slots::Slot;
use crate::target::Target;

/// The times that are left to an answer.
#[derive(Clone, Copy, Debug)]
pub(super) struct Times {
    /// When the target was asked.
    pub(super) asked: Instant,
    pub(super) first_token: Duration,
    pub(super) idle: Duration,
    /// Of the whole request.
    pub(super) total: Duration,
    /// Of the target, should it fail.
    pub(super) rest: Duration,
    /// That this attempt has taken.
    pub(super) trial: Option<Trial>,
    pub(super) ends: Instant,
}

impl Times {
    /// The fault of who has not said anything until now.
    pub(super) fn silent(&self) -> Fault {
        if Instant::now() >= self.ends {
            Fault::TimedOut { clock: Clock::Total, after: self.total }
        } else {
            Fault::TimedOut { clock: Clock::FirstToken, after: self.first_token }
        }
    }

    /// Until when something must have been said.
    pub(super) fn first_by(&self) -> Instant {
        (self.asked + self.first_token).min(self.ends)
    }
}

/// How the end of an answer is known.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum End {
    /// By its last event: an answer without it was cut off.
    Marked,
    /// By nothing coming any more.
    Bare,
}

/// What the clocks have to know of an event.
pub(super) trait AnswerEvent: Send + 'static {
    const END: End;

    fn is_last(&self) -> bool;

    /// It says something, or is heard.
    fn is_content(&self) -> bool;
}

pub(super) struct Guarded<E> {
    events: BoxStream<'static, Result<E, ModelError>>,
    target: Arc<Target>,
    times: Times,
    /// Since when the next event is waited for; none: nobody waits.
    waits_since: Option<Instant>,
    timer: Pin<Box<Sleep>>,
    has_begun: bool,
    is_over: bool,
    trace: Trace,
    /// Given back when the answer is over, whoever still holds it.
    slot: Option<Slot>,
}

impl<E: AnswerEvent> Guarded<E> {
    pub(super) fn new(
        events: BoxStream<'static, Result<E, ModelError>>,
        target: Arc<Target>,
        times: Times,
        trace: Trace,
        slot: Option<Slot>,
    ) -> Guarded<E> {
        Guarded {
            events,
            target,
            times,
            waits_since: None,
            timer: Box::pin(sleep_until(times.first_by())),
            has_begun: false,
            is_over: false,
            trace,
            slot,
        }
    }

    fn heard(&mut self, event: &E) {
        if event.is_last() {
            self.ended();
        } else if !self.has_begun && event.is_content() {
            self.has_begun = true;
            self.target.begun();
            self.notes_first();
        }
    }

    /// The first of the answer is there.
    fn notes_first(&self) {
        let now = Instant::now();
        let after = now.duration_since(self.times.asked);
        self.trace.answers(&self.target.name, now.into_std(), after);
    }

    fn ended(&mut self) {
        self.is_over = true;
        self.slot = None;
        // Whoever holds back an answer without content decides what it means.
        if self.has_begun {
            self.target.answered();
        } else {
            self.target.given_up(self.times.trial);
        }
    }

    fn fails(&mut self, fault: Fault) -> ModelError {
        self.fails_with(ModelError::upstream(&self.target.name, fault))
    }

    /// The server said itself why the answer ended.
    pub(super) fn ended_normally(&self) -> bool {
        !self.trace.now().repaired.contains(&FINISH_REPAIR)
    }

    /// The answer ended normally and has no content: the target did its work.
    pub(super) fn answered_empty(&mut self) {
        self.target.answered();
        self.notes_first();
    }

    /// Nothing was said, though the answer came to its end.
    pub(super) fn empty(&mut self) -> ModelError {
        self.fails(Fault::Empty)
    }

    pub(super) fn nonsense(&mut self, detail: String) -> ModelError {
        self.fails(Fault::Nonsense { detail })
    }

    fn fails_with(&mut self, error: ModelError) -> ModelError {
        self.is_over = true;
        self.slot = None;
        self.target.failed(&error, self.times.trial, self.times.rest);
        error
    }

    /// When the wait that goes on now has been too long, and what that is called.
    fn due(&self) -> (Instant, Fault) {
        let (by, fault) = match (self.has_begun, self.waits_since) {
            (false, _) | (true, None) => (self.times.first_by(), self.times.silent()),
            (true, Some(since)) => {
                let after = self.times.idle;
                (since + after, Fault::TimedOut { clock: Clock::Idle, after })
            }
        };
        if self.times.ends <= by {
            let after = self.times.total;
            return (self.times.ends, Fault::TimedOut { clock: Clock::Total, after });
        }
        (by, fault)
    }
}

impl<E: AnswerEvent> Stream for Guarded<E> {
    type Item = Result<E, ModelError>;

    fn poll_next(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Option<Self::Item>> {
        let this = &mut *self;
        if this.is_over {
            return Poll::Ready(None);
        }
        match this.events.poll_next_unpin(cx) {
            Poll::Ready(Some(Ok(event))) => {
                this.waits_since = None;
                this.heard(&event);
                return Poll::Ready(Some(Ok(event)));
            }
            Poll::Ready(Some(Err(error))) => {
                return Poll::Ready(Some(Err(this.fails_with(error))));
            }
            Poll::Ready(None) if E::END == End::Bare => {
                this.ended();
                return Poll::Ready(None);
            }
            Poll::Ready(None) => return Poll::Ready(Some(Err(this.fails(Fault::CutOff)))),
            Poll::Pending => {}
        }
        if this.waits_since.is_none() {
            this.waits_since = Some(Instant::now());
            let (due, _) = this.due();
            this.timer.as_mut().reset(due);
        }
        // Who sends without end and says nothing uses up what a task may do in one turn; the clock is asked
        // all the same.
        ready!(pin!(unconstrained(this.timer.as_mut())).poll(cx));
        let (_, fault) = this.due();
        Poll::Ready(Some(Err(this.fails(fault))))
    }
}

impl<E> Drop for Guarded<E> {
    fn drop(&mut self) {
        if !self.is_over {
            self.target.given_up(self.times.trial);
        }
    }
}
