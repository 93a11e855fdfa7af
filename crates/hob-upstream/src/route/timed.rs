//! An answer under the time limits of its route. Too long a wait for the next event is a fault, and the
//! target's circuit breaker learns how the answer ended.

use std::pin::{Pin, pin};
use std::sync::Arc;
use std::task::{Context, Poll, ready};
use std::time::Duration;

use futures::stream::BoxStream;
use futures::{Stream, StreamExt};
use hob_core::routing::Probe;
use hob_core::{Clock, Fault, ModelError, Trace};
use hob_wire::FINISH_REPAIR;
use tokio::task::coop::unconstrained;
use tokio::time::{Instant, Sleep, sleep_until};

use super::task::{EventRole, RouteTask};
use crate::slots::Slot;
use crate::target::Target;

/// The time limits of one attempt.
#[derive(Clone, Copy, Debug)]
pub(super) struct Limits {
    /// When the target was asked.
    pub(super) asked: Instant,
    /// From `asked` to the first content.
    pub(super) first_token: Duration,
    /// Between two events.
    pub(super) idle: Duration,
    /// For the whole request.
    pub(super) total: Duration,
    /// `total` after the request came.
    pub(super) deadline: Instant,
    /// The target's first cool-down, should it fail.
    pub(super) cool_down: Duration,
    /// The probe that this attempt has taken.
    pub(super) probe: Option<Probe>,
}

impl Limits {
    fn no_content(&self) -> Fault {
        if Instant::now() >= self.deadline {
            Fault::TimedOut { clock: Clock::Total, after: self.total }
        } else {
            Fault::TimedOut { clock: Clock::FirstToken, after: self.first_token }
        }
    }

    /// The error of a target that has sent no content in time.
    pub(super) fn silence_of(&self, target: &Target) -> ModelError {
        ModelError::upstream(&target.name, self.no_content())
    }

    /// When the first content has to be there.
    pub(super) fn first_by(&self) -> Instant {
        (self.asked + self.first_token).min(self.deadline)
    }
}

pub(super) struct TimedAnswer<T: RouteTask> {
    events: BoxStream<'static, Result<T::Event, ModelError>>,
    target: Arc<Target>,
    limits: Limits,
    /// Start of the wait for the next event, while a client waits.
    waits_since: Option<Instant>,
    timer: Pin<Box<Sleep>>,
    has_begun: bool,
    is_over: bool,
    trace: Trace,
    /// Freed at the end of the answer, also while a client still holds this.
    slot: Option<Slot>,
}

impl<T: RouteTask> TimedAnswer<T> {
    pub(super) fn new(
        events: BoxStream<'static, Result<T::Event, ModelError>>,
        target: Arc<Target>,
        limits: Limits,
        trace: Trace,
        slot: Option<Slot>,
    ) -> TimedAnswer<T> {
        TimedAnswer {
            events,
            target,
            limits,
            waits_since: None,
            timer: Box::pin(sleep_until(limits.first_by())),
            has_begun: false,
            is_over: false,
            trace,
            slot,
        }
    }

    fn observe(&mut self, event: &T::Event) {
        match T::role(event) {
            EventRole::Last => self.ended(),
            EventRole::Thinking | EventRole::Content if !self.has_begun => {
                self.has_begun = true;
                self.target.content_started();
                self.note_first();
            }
            EventRole::Thinking | EventRole::Content | EventRole::Other => {}
        }
    }

    fn note_first(&self) {
        let now = Instant::now();
        let after = now.duration_since(self.limits.asked);
        self.trace.answers(&self.target.name, now.into_std(), after);
    }

    fn ended(&mut self) {
        self.is_over = true;
        self.slot = None;
        // Whether an answer without content is a success is decided where it is held back.
        if self.has_begun {
            self.target.succeeded();
        } else {
            self.target.abandoned(self.limits.probe);
        }
    }

    /// The server itself said why the answer ended.
    pub(super) fn ended_normally(&self) -> bool {
        !self.trace.read(|data| data.repaired.contains(&FINISH_REPAIR))
    }

    /// The answer ended normally without content: the target did its work.
    pub(super) fn succeeded_empty(&mut self) {
        self.target.succeeded();
        self.note_first();
    }

    pub(super) fn fail(&mut self, fault: Fault) -> ModelError {
        self.fail_with(ModelError::upstream(&self.target.name, fault))
    }

    fn fail_with(&mut self, error: ModelError) -> ModelError {
        self.is_over = true;
        self.slot = None;
        self.target.failed(&error, self.limits.probe, self.limits.cool_down);
        error
    }

    /// When the current wait becomes too long, and the fault that it then is.
    fn due(&self) -> (Instant, Fault) {
        let (by, fault) = match (self.has_begun, self.waits_since) {
            (false, _) | (true, None) => (self.limits.first_by(), self.limits.no_content()),
            (true, Some(since)) => {
                let after = self.limits.idle;
                (since + after, Fault::TimedOut { clock: Clock::Idle, after })
            }
        };
        if self.limits.deadline <= by {
            let after = self.limits.total;
            return (self.limits.deadline, Fault::TimedOut { clock: Clock::Total, after });
        }
        (by, fault)
    }
}

impl<T: RouteTask> Stream for TimedAnswer<T> {
    type Item = Result<T::Event, ModelError>;

    fn poll_next(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Option<Self::Item>> {
        let this = &mut *self;
        if this.is_over {
            return Poll::Ready(None);
        }
        match this.events.poll_next_unpin(cx) {
            Poll::Ready(Some(Ok(event))) => {
                this.waits_since = None;
                this.observe(&event);
                return Poll::Ready(Some(Ok(event)));
            }
            Poll::Ready(Some(Err(error))) => {
                return Poll::Ready(Some(Err(this.fail_with(error))));
            }
            Poll::Ready(None) if !T::HAS_LAST => {
                this.ended();
                return Poll::Ready(None);
            }
            Poll::Ready(None) => return Poll::Ready(Some(Err(this.fail(Fault::CutOff)))),
            Poll::Pending => {}
        }
        if this.waits_since.is_none() {
            this.waits_since = Some(Instant::now());
            let (due, _) = this.due();
            this.timer.as_mut().reset(due);
        }
        // A server that sends bytes without content for ever uses up the task's budget, and a timer within the budget would
        // never fire.
        ready!(pin!(unconstrained(this.timer.as_mut())).poll(cx));
        let (_, fault) = this.due();
        Poll::Ready(Some(Err(this.fail(fault))))
    }
}

impl<T: RouteTask> Drop for TimedAnswer<T> {
    fn drop(&mut self) {
        if !self.is_over {
            self.target.abandoned(self.limits.probe);
        }
    }
}
