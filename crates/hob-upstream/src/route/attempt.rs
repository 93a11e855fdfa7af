//! One attempt: sends the request to one candidate, and holds the answer back until its content has begun.
//! Until then the client has received nothing, so hob can still try another candidate.

use std::collections::VecDeque;
use std::sync::{Arc, Mutex};
use std::task::{Context, Poll};
use std::time::Duration;

use futures::stream::BoxStream;
use futures::{StreamExt, stream};
use hob_core::routing::Probe;
use hob_core::{Fault, ModelError, ModelState, Permit, Started, Trace, locked};
use tokio::time::{Instant, sleep, timeout_at};

use super::Route;
use super::candidate::Candidate;
use super::task::{EventRole, Observer, RouteTask};
use super::timed::{Limits, TimedAnswer};
use crate::client::too_large;
use crate::options::{FallbackUntil, WhileLoading};
use crate::slots::Slot;
use crate::target::{Source, Target};

/// Bytes of a streamed answer that are held back at most: about 14,000 tokens.
const HELD_BYTES_MAX: usize = 512 << 10;
/// Maximum bytes of an answer that is not streamed.
const WHOLE_BYTES_MAX: usize = 32 << 20;
/// Interval of checks while a model is loading.
const LOADING_LOOK: Duration = Duration::from_millis(100);

/// A request that is tried on one candidate after the other.
pub(super) struct AskContext<'a, T: RouteTask> {
    pub(super) trace: &'a Trace,
    /// The request with this candidate's parameters.
    pub(super) request: &'a (dyn Fn(&Candidate<T>) -> T::Request + Sync),
    /// When the time limit of the whole request ends.
    pub(super) deadline: Instant,
    /// The first empty answer of another server. The client gets it if no candidate has more to say.
    empty: Mutex<Option<Empty<T>>>,
}

/// One attempt's candidate and settings.
pub(super) struct Attempt<'a, T: RouteTask> {
    pub(super) candidate: &'a Arc<Candidate<T>>,
    /// Candidates that have not been tried yet.
    pub(super) remaining: usize,
    /// Whether to wait while the model is being loaded.
    pub(super) while_loading: WhileLoading,
    /// For a target whose circuit is half open.
    pub(super) probe: Option<Probe>,
}

/// An answer that has begun: the events that were held back, and the rest.
pub(super) struct AnswerStart<T: RouteTask> {
    pub(super) candidate: Arc<Candidate<T>>,
    head: T::Head,
    held: VecDeque<T::Event>,
    rest: TimedAnswer<T>,
}

/// An answer without content that ended normally.
struct Empty<T: RouteTask> {
    started: AnswerStart<T>,
    at: Instant,
    took: Duration,
}

/// What the held events turned out to be.
enum HeldEvents<E> {
    Answer(VecDeque<E>),
    /// An answer without content; another target may have more to say.
    Empty(VecDeque<E>),
}

impl<T: RouteTask> AnswerStart<T> {
    pub(super) fn into_started(self) -> Started<T> {
        let events = stream::iter(self.held.into_iter().map(Ok)).chain(self.rest).boxed();
        Started { head: self.head, events }
    }
}

impl<'a, T: RouteTask> Attempt<'a, T> {
    /// An attempt without fallback that does not wait for loading.
    pub(super) fn alone(candidate: &'a Arc<Candidate<T>>) -> Attempt<'a, T> {
        Attempt { candidate, remaining: 0, while_loading: WhileLoading::Next, probe: None }
    }

    /// The time in which another server may load the model before its first token, if no other target is left. Ollama gives
    /// up the load when the request ends. A limit for the first token that the user has set is not extended.
    fn load_time(&self) -> Duration {
        let Candidate { target, timeouts, .. } = &**self.candidate;
        let Source::Upstream(model) = &target.source else { return Duration::ZERO };
        let is_default = model.upstream.options.timeouts.first_token.is_none()
            && timeouts.first_token == model.upstream.timeouts.first_token;
        let may_load = self.remaining == 0 && is_default && target.state() == ModelState::Cold;
        timeouts.load.filter(|_| may_load).unwrap_or_default()
    }
}

impl<'a, T: RouteTask> AskContext<'a, T> {
    pub(super) fn new(
        trace: &'a Trace,
        deadline: Instant,
        request: &'a (dyn Fn(&Candidate<T>) -> T::Request + Sync),
    ) -> AskContext<'a, T> {
        AskContext { trace, request, deadline, empty: Mutex::default() }
    }

    /// The empty answer of a target, for a client that gets no other.
    pub(super) fn take_empty_answer(&self) -> Option<AnswerStart<T>> {
        let kept = locked(&self.empty).take();
        let Empty { started, at, took } = kept?;
        self.trace.note(|data| data.failed.retain(|failed| failed.kind != Fault::Empty.kind()));
        self.trace.answers(&started.candidate.target.name, at.into_std(), took);
        Some(started)
    }

    /// Keeps an empty answer while the next candidate is asked.
    fn keep_empty_answer(&self, started: AnswerStart<T>, asked: Instant) -> ModelError {
        let error = ModelError::upstream(&started.candidate.target.name, Fault::Empty);
        let mut kept = locked(&self.empty);
        let at = Instant::now();
        kept.get_or_insert_with(|| Empty { started, at, took: at.duration_since(asked) });
        error
    }
}

impl<T: RouteTask> Route<T> {
    /// Tries one candidate. Resolves when its answer has begun.
    pub(super) async fn attempt(
        &self,
        attempt: &Attempt<'_, T>,
        ask: &AskContext<'_, T>,
    ) -> Result<AnswerStart<T>, ModelError> {
        let candidate = attempt.candidate;
        let target = &candidate.target;
        let request = (ask.request)(candidate);
        let outline = T::outline(&request);
        let failed =
            |error: &ModelError| target.failed(error, attempt.probe, self.options.cool_down);
        let permit = candidate.admit(T::expected_work(&request)).inspect_err(failed)?;
        let mut limits = self.limits(attempt, T::silent_work(&request, target), ask.deadline);
        let asked = limits.asked;
        let started = self.start(attempt, ask, request, &mut limits).await;
        let (started, slot) = started.inspect_err(failed)?;
        let Started { head, events } = started;
        let observer = T::observer(&outline, target);
        let events = observed::<T>(events, head, permit, Input::Complete, observer);
        let timed = TimedAnswer::new(events, Arc::clone(target), limits, ask.trace.clone(), slot);
        let (held, rest) = self.hold(outline, candidate, timed).await?;
        let started = |held| AnswerStart { candidate: Arc::clone(candidate), head, held, rest };
        match held {
            HeldEvents::Answer(held) => Ok(started(held)),
            HeldEvents::Empty(held) => Err(ask.keep_empty_answer(started(held), asked)),
        }
    }

    /// The time limits of an attempt that begins now. `work` is time without content that does not count as silence.
    pub(super) fn limits(
        &self,
        attempt: &Attempt<'_, T>,
        work: Duration,
        deadline: Instant,
    ) -> Limits {
        let timeouts = attempt.candidate.timeouts;
        Limits {
            asked: Instant::now(),
            first_token: timeouts.first_token.unwrap_or(Duration::from_secs(60)).max(work)
                + attempt.load_time(),
            idle: timeouts.idle.unwrap_or(Duration::from_secs(30)),
            total: self.total(),
            deadline,
            cool_down: self.options.cool_down,
            probe: attempt.probe,
        }
    }

    /// Waits for a slot and starts the answer to `first`. Also waits for loading, if requested, and then asks again.
    async fn start(
        &self,
        attempt: &Attempt<'_, T>,
        ask: &AskContext<'_, T>,
        first: T::Request,
        limits: &mut Limits,
    ) -> Result<(Started<T>, Option<Slot>), ModelError> {
        let candidate = attempt.candidate;
        let target = &candidate.target;
        let slot = slot_of(target, ask.trace, limits).await?;
        let (began, mut first) = (Instant::now(), Some(first));
        loop {
            let request = first.take().unwrap_or_else(|| (ask.request)(candidate));
            // Each try has its own time for the first content; loading has a limit for all of them.
            limits.asked = Instant::now();
            // Waiting in the queue of a local model does not count either.
            let has_line = candidate.has_line();
            let by = if has_line { limits.deadline } else { limits.first_by() };
            let started = timeout_at(by, T::start(&candidate.model, request));
            match started.await.unwrap_or_else(|_| Err(limits.silence_of(target))) {
                Err(error) if is_loading(&error) && self.waits_for_loading(attempt, began) => {
                    sleep(LOADING_LOOK).await;
                }
                Ok(started) => {
                    if has_line {
                        limits.asked = Instant::now();
                    }
                    return Ok((started, slot));
                }
                Err(error) => return Err(error),
            }
        }
    }

    fn waits_for_loading(&self, attempt: &Attempt<'_, T>, since: Instant) -> bool {
        let load = self.options.timeouts.load.unwrap_or(Duration::from_secs(300));
        attempt.while_loading == WhileLoading::Wait && since.elapsed() < load
    }

    /// Holds events back until the content begins, or until the end if the client reads the answer whole.
    async fn hold(
        &self,
        outline: T::Outline,
        candidate: &Candidate<T>,
        mut rest: TimedAnswer<T>,
    ) -> Result<(HeldEvents<T::Event>, TimedAnswer<T>), ModelError> {
        let is_streamed = T::is_streamed(&outline);
        let (mut held, mut bytes, mut has_content) = (VecDeque::new(), 0usize, false);
        while let Some(event) = rest.next().await {
            let event = event?;
            let role = T::role(&event);
            has_content |= matches!(role, EventRole::Thinking | EventRole::Content);
            bytes += T::bytes(&event);
            if role == EventRole::Last {
                let may_be_empty =
                    has_content || T::may_be_empty(&outline, &candidate.target, &event);
                held.push_back(event);
                if has_content {
                    return Ok((HeldEvents::Answer(held), rest));
                }
                if !may_be_empty && !rest.ended_normally() {
                    return Err(rest.fail(Fault::Empty));
                }
                rest.succeeded_empty();
                let held =
                    if may_be_empty { HeldEvents::Answer(held) } else { HeldEvents::Empty(held) };
                return Ok((held, rest));
            }
            held.push_back(event);
            let is_begun = match role {
                EventRole::Content => true,
                EventRole::Thinking => self.options.fallback_until == FallbackUntil::FirstToken,
                EventRole::Other | EventRole::Last => false,
            };
            if is_streamed && (is_begun || bytes > HELD_BYTES_MAX) {
                return Ok((HeldEvents::Answer(held), rest));
            }
            if bytes > WHOLE_BYTES_MAX {
                let to_do = "set 'stream', or ask for less in one request";
                return Err(rest.fail(too_large(WHOLE_BYTES_MAX, to_do)));
            }
        }
        Ok((HeldEvents::Answer(held), rest))
    }
}

/// Waits for a slot of the target. This wait does not count as silence of the target.
pub(super) async fn slot_of(
    target: &Target,
    trace: &Trace,
    limits: &mut Limits,
) -> Result<Option<Slot>, ModelError> {
    let waits = Instant::now();
    let slot = timeout_at(limits.deadline, target.slot()).await;
    trace.note(|data| data.queued = waits.elapsed());
    limits.asked = Instant::now();
    slot.unwrap_or_else(|_| Err(limits.silence_of(target)))
}

/// Whether a model that cannot answer now is on its way into memory.
pub(super) fn is_loading(error: &ModelError) -> bool {
    matches!(error, ModelError::Loading { .. } | ModelError::NoRoom { retry_after: Some(_), .. })
}

/// The text or sound of a request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Input {
    Complete,
    /// Its length is not known, and a wait may be the client's: the answer tells neither how fast the model is nor
    /// how much work to expect.
    Arriving,
}

/// The events, counted for admission and shown to the kind's observer. The permit ends with the answer.
pub(super) fn observed<T: RouteTask>(
    mut events: BoxStream<'static, Result<T::Event, ModelError>>,
    head: T::Head,
    mut permit: Option<Permit<T::Work>>,
    input: Input,
    mut observer: Option<Observer<T::Event>>,
) -> BoxStream<'static, Result<T::Event, ModelError>> {
    if let Some(permit) = permit.as_mut().filter(|_| T::STARTS_IN_TURN) {
        permit.record_start();
    }
    let is_measured = permit.is_some() && input == Input::Complete;
    let mut waiting_since = is_measured.then(Instant::now);
    let observe = move |cx: &mut Context<'_>| {
        let Poll::Ready(next) = events.poll_next_unpin(cx) else {
            if is_measured {
                waiting_since.get_or_insert_with(Instant::now);
            }
            return Poll::Pending;
        };
        if let (Some(since), Some(permit)) = (waiting_since.take(), &mut permit) {
            permit.record_wait(since.elapsed(), Instant::now().into_std());
        }
        if let Some(Ok(event)) = &next {
            if let Some(permit) = &mut permit {
                permit.record_output(T::work_of(head, event));
            }
            if let Some(observer) = &mut observer {
                observer(event);
            }
        }
        let is_over = match &next {
            Some(Ok(event)) => T::role(event) == EventRole::Last,
            Some(Err(_)) => false,
            None => !T::HAS_LAST,
        };
        if let Some(permit) = permit.take_if(|_| is_over).filter(|_| is_measured) {
            permit.finished();
        }
        Poll::Ready(next)
    };
    stream::poll_fn(observe).boxed()
}
