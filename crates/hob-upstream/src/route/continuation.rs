//! Continues an answer that breaks off: hob requests the rest of the text from the same target, and
//! the client's stream has no gap. An answer that cannot be continued ends with the error of the break.

use std::collections::VecDeque;
use std::sync::Arc;
use std::time::Duration;

use futures::{StreamExt, stream};
use hob_core::routing::{AnswerSoFar, PiecesSoFar, RestartCheck, RestartDecision, is_break};
use hob_core::{Chat, ChatEvent, ChatRequest, ChatStream, Fault, ModelError};
use tokio::time::{Instant, sleep};

use super::attempt::{AnswerStart, AskContext, Attempt};
use super::{Candidate, Route};

/// Maximum continuations of one answer.
const CONTINUED_MAX: u32 = 2;
/// Pause before the rest is requested, because the cause of the break may last a moment.
const PAUSE: Duration = Duration::from_millis(100);

pub(super) struct Continuation {
    route: Arc<Route<Chat>>,
    candidate: Arc<Candidate<Chat>>,
    /// The request with this candidate's parameters.
    request: ChatRequest,
    deadline: Instant,
    requested_at: Instant,
    events: ChatStream,
    so_far: AnswerSoFar,
    /// Set once the answer is being continued.
    rest: Option<ContinuationState>,
    times: u32,
    ready: VecDeque<ChatEvent>,
    is_over: bool,
}

/// State of a running continuation.
struct ContinuationState {
    /// `None` once hob knows that the target continues the answer.
    check: Option<RestartCheck>,
    pieces: PiecesSoFar,
    break_error: ModelError,
}

impl Continuation {
    pub(super) fn new(
        route: Arc<Route<Chat>>,
        request: ChatRequest,
        started: AnswerStart<Chat>,
        deadline: Instant,
    ) -> Continuation {
        Continuation {
            route,
            candidate: Arc::clone(&started.candidate),
            so_far: AnswerSoFar::new(&request),
            request,
            deadline,
            requested_at: Instant::now(),
            events: started.into_started().events,
            rest: None,
            times: 0,
            ready: VecDeque::new(),
            is_over: false,
        }
    }

    pub(super) fn into_stream(self) -> ChatStream {
        let next = async |mut this: Box<Continuation>| Some((this.next().await?, this));
        stream::unfold(Box::new(self), next).boxed()
    }

    async fn next(&mut self) -> Option<Result<ChatEvent, ModelError>> {
        loop {
            if let Some(event) = self.ready.pop_front() {
                return Some(Ok(event));
            }
            if self.is_over {
                return None;
            }
            let continued = match self.events.next().await? {
                Ok(event) => self.receive(event),
                Err(error) => self.continue_after(error).await,
            };
            if let Err(error) = continued {
                self.is_over = true;
                return Some(Err(error));
            }
        }
    }

    /// # Errors
    /// The error of the break, if the target started over instead of continuing.
    fn receive(&mut self, event: ChatEvent) -> Result<(), ModelError> {
        let Some(check) = self.rest.as_mut().and_then(|rest| rest.check.as_mut()) else {
            self.push(event);
            return Ok(());
        };
        let (decision, after) = match event {
            ChatEvent::Text(text) => (check.push(&text), None),
            // A continuation has no thinking. Thinking means that the target started over.
            ChatEvent::Reasoning(_) => (RestartDecision::StartedOver, None),
            other => (check.end(), Some(other)),
        };
        match decision {
            RestartDecision::Undecided => Ok(()),
            RestartDecision::StartedOver => Err(self.started_over()),
            RestartDecision::Continues(text) => {
                self.joined();
                if !text.is_empty() {
                    self.push(ChatEvent::Text(text));
                }
                after.into_iter().for_each(|event| self.push(event));
                Ok(())
            }
        }
    }

    fn push(&mut self, mut event: ChatEvent) {
        self.so_far.add(&event);
        if let (ChatEvent::Done(completion), Some(rest)) = (&mut event, &self.rest) {
            completion.usage = rest.pieces.with_rest(completion.usage);
            // The target reports only the tokens of the rest. hob counted the others.
            self.request.trace.note(|data| data.counted_here = true);
        }
        self.ready.push_back(event);
    }

    fn joined(&mut self) {
        self.request.trace.note(|data| data.repaired.push("continued"));
        if let Some(rest) = &mut self.rest {
            rest.check = None;
        }
    }

    fn started_over(&mut self) -> ModelError {
        let detail =
            "the target started a new answer instead of continuing the broken one".to_owned();
        let target = &self.candidate.target.name;
        let error = ModelError::upstream(target, Fault::InvalidAnswer { detail });
        self.request.trace.broke(target, &error, self.requested_at.elapsed());
        self.drop_connection();
        self.rest.take().map_or(error, |rest| rest.break_error)
    }

    /// Requests the rest of the answer from the target.
    ///
    /// # Errors
    /// The error of the break, if the rest cannot be requested or does not arrive.
    async fn continue_after(&mut self, break_error: ModelError) -> Result<(), ModelError> {
        let trace = self.request.trace.clone();
        let Some(request) = self.rest_request(&break_error) else { return Err(break_error) };
        let (route, candidate) = (Arc::clone(&self.route), Arc::clone(&self.candidate));
        let target = &candidate.target.name;
        self.drop_connection();
        trace.broke(target, &break_error, self.requested_at.elapsed());
        self.times += 1;
        sleep(PAUSE).await;
        self.requested_at = Instant::now();
        let request_for = |_: &Candidate<Chat>| request.clone();
        let ask = AskContext::new(&trace, self.deadline, &request_for);
        match route.attempt(&Attempt::alone(&candidate), &ask).await {
            Ok(started) => self.events = started.into_started().events,
            Err(error) => {
                trace.broke(target, &error, self.requested_at.elapsed());
                return Err(break_error);
            }
        }
        let check = Some(RestartCheck::new(self.so_far.text()));
        self.rest = Some(ContinuationState { check, pieces: self.so_far.pieces(), break_error });
        Ok(())
    }

    /// The request for the rest, if time, attempts and the target allow one.
    fn rest_request(&self, break_error: &ModelError) -> Option<ChatRequest> {
        let rest = self.so_far.rest_of(&self.request);
        let rest = rest.filter(|rest| self.candidate.model.continues(rest))?;
        let trace = self.request.trace.snapshot();
        let attempts = trace.failed.len() + trace.broken.len() + 1;
        let may_ask = is_break(break_error)
            && self.times < CONTINUED_MAX
            && attempts < self.route.options.attempts_max as usize
            && Instant::now() + PAUSE < self.deadline
            && self.candidate.target.open_for().is_none();
        may_ask.then_some(rest)
    }

    /// Closes the connection, and frees the slot.
    fn drop_connection(&mut self) {
        self.events = stream::empty().boxed();
    }
}
