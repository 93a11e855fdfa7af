//! An answer under its clocks. Whoever waits for the next piece too long hears of a fault, and what the
//! target did is remembered when the answer ends.

use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, ready};
use std::time::Duration;

use futures::{Stream, StreamExt};
use hob_core::{ChatEvent, ChatStream, Clock, Fault, ModelError, Permit, Trace};
use tokio::time::{Instant, Sleep, sleep_until};

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

pub(super) struct Guarded {
    events: ChatStream,
    target: Arc<Target>,
    times: Times,
    /// Since when the next event is waited for; none: nobody waits.
    waits_since: Option<Instant>,
    timer: Pin<Box<Sleep>>,
    /// From asking to the first content, once it is there.
    first: Option<Duration>,
    /// Thinking is switched off.
    is_thoughtless: bool,
    is_over: bool,
    trace: Trace,
    permit: Option<Permit>,
}

impl Guarded {
    pub(super) fn new(
        events: ChatStream,
        target: Arc<Target>,
        times: Times,
        is_thoughtless: bool,
        trace: Trace,
    ) -> Guarded {
        Guarded {
            events,
            target,
            times,
            waits_since: None,
            timer: Box::pin(sleep_until(times.first_by())),
            first: None,
            is_thoughtless,
            is_over: false,
            trace,
            permit: None,
        }
    }

    pub(super) fn holding(mut self, permit: Option<Permit>) -> Guarded {
        self.permit = permit;
        self
    }

    fn heard(&mut self, event: &ChatEvent) {
        match event {
            ChatEvent::Done(completion) => {
                self.is_over = true;
                self.target.answered();
                if let Some(first) = self.first {
                    let read = completion.usage.prompt_tokens
                        - completion.usage.cached_tokens.min(completion.usage.prompt_tokens);
                    self.target.read(read, first);
                }
                self.permit.take();
                return;
            }
            ChatEvent::Reasoning(_) if self.is_thoughtless => {
                self.is_thoughtless = false;
                self.target.thought_anyway();
                self.trace.note(|way| way.thought_anyway = true);
            }
            _ => {}
        }
        if let Some(permit) = &mut self.permit {
            permit.made(1.0);
        }
        if self.first.is_none() {
            let first = self.times.asked.elapsed();
            self.first = Some(first);
            self.trace.answers(&self.target.name, first);
        }
    }

    fn fails(&mut self, fault: Fault) -> ModelError {
        self.fails_with(ModelError::upstream(&self.target.name, fault))
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
        self.target.failed(&error, self.times.rest);
        error
    }

    /// When the wait that goes on now has been too long, and what that is called.
    fn due(&self) -> (Instant, Fault) {
        let (by, fault) = match (self.first, self.waits_since) {
            (None, _) | (Some(_), None) => (self.times.first_by(), self.times.silent()),
            (Some(_), Some(since)) => {
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

impl Stream for Guarded {
    type Item = Result<ChatEvent, ModelError>;

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
            Poll::Ready(None) => return Poll::Ready(Some(Err(this.fails(Fault::CutOff)))),
            Poll::Pending => {}
        }
        if this.waits_since.is_none() {
            this.waits_since = Some(Instant::now());
            let (due, _) = this.due();
            this.timer.as_mut().reset(due);
        }
        ready!(this.timer.as_mut().poll(cx));
        let (_, fault) = this.due();
        Poll::Ready(Some(Err(this.fails(fault))))
    }
}

impl Drop for Guarded {
    fn drop(&mut self) {
        if !self.is_over {
            self.target.given_up();
        }
    }
}
