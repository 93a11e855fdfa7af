//! Continues an answer that breaks off: hob requests the rest of the text from the same target, and
//! the client's stream has no gap. An answer that cannot be continued ends with the error of the break.

use std::collections::VecDeque;
use std::sync::Arc;
use std::time::Duration;

use futures::{StreamExt, stream};
use hob_core::routing::{AnswerSoFar, PiecesSoFar, Seam, SeamDecision, is_break};
use hob_core::{Chat, ChatEvent, ChatRequest, ChatStream, Fault, ModelError};
use tokio::time::{Instant, sleep};

use super::attempt::{AnswerStart, Ask, Attempt};
use super::{Candidate, Route};

/// Continuations of one answer.
const CONTINUED_MAX: u32 = 2;
/// Pause before the rest is requested, because the cause of the break may last a moment.
const PAUSE: Duration = Duration::from_millis(100);

pub(super) struct Continuation {
    route: Arc<Route<Chat>>,
    candidate: Arc<Candidate<Chat>>,
    /// The request with this candidate's parameters.
    request: ChatRequest,
    ends: Instant,
    asked: Instant,
    events: ChatStream,
    so_far: AnswerSoFar,
    /// Set once the answer is being continued.
    rest: Option<Rest>,
    times: u32,
    ready: VecDeque<ChatEvent>,
    is_over: bool,
}

/// What is known about the answer before its last part.
struct Rest {
    /// `None`: it is clear that this is a continuation.
    seam: Option<Seam>,
    pieces: PiecesSoFar,
    broke: ModelError,
}

impl Continuation {
    pub(super) fn new(
        route: Arc<Route<Chat>>,
        request: ChatRequest,
        started: AnswerStart<Chat>,
        ends: Instant,
    ) -> Continuation {
        Continuation {
            route,
            candidate: Arc::clone(&started.candidate),
            so_far: AnswerSoFar::new(&request),
            request,
            ends,
            asked: Instant::now(),
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
        let Some(seam) = self.rest.as_mut().and_then(|rest| rest.seam.as_mut()) else {
            self.push(event);
            return Ok(());
        };
        let (joint, after) = match event {
            ChatEvent::Text(text) => (seam.push(&text), None),
            // A continuation does not think again.
            ChatEvent::Reasoning(_) => (SeamDecision::StartedOver, None),
            other => (seam.end(), Some(other)),
        };
        match joint {
            SeamDecision::Open => Ok(()),
            SeamDecision::StartedOver => Err(self.started_over()),
            SeamDecision::Rest(text) => {
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
            // Only hob has counted the part before the break.
            self.request.trace.note(|data| data.counted_here = true);
        }
        self.ready.push_back(event);
    }

    fn joined(&mut self) {
        self.request.trace.note(|data| data.repaired.push("continued"));
        if let Some(rest) = &mut self.rest {
            rest.seam = None;
        }
    }

    fn started_over(&mut self) -> ModelError {
        let detail = "asked to continue its answer, it started over".to_owned();
        let target = &self.candidate.target.name;
        let error = ModelError::upstream(target, Fault::Nonsense { detail });
        self.request.trace.broke(target, &error, self.asked.elapsed());
        self.drop_connection();
        self.rest.take().map_or(error, |rest| rest.broke)
    }

    /// Requests the rest of the answer from the target.
    ///
    /// # Errors
    /// The error of the break, if the rest cannot be requested or does not arrive.
    async fn continue_after(&mut self, broke: ModelError) -> Result<(), ModelError> {
        let trace = self.request.trace.clone();
        let Some(request) = self.rest_request(&broke) else { return Err(broke) };
        let (route, candidate) = (Arc::clone(&self.route), Arc::clone(&self.candidate));
        let target = &candidate.target.name;
        self.drop_connection();
        trace.broke(target, &broke, self.asked.elapsed());
        self.times += 1;
        sleep(PAUSE).await;
        self.asked = Instant::now();
        let same = |_: &Candidate<Chat>| request.clone();
        let ask = Ask::new(&trace, self.ends, &same);
        match route.attempt(&Attempt::alone(&candidate), &ask).await {
            Ok(started) => self.events = started.into_started().events,
            Err(error) => {
                trace.broke(target, &error, self.asked.elapsed());
                return Err(broke);
            }
        }
        let seam = Some(Seam::new(self.so_far.text()));
        self.rest = Some(Rest { seam, pieces: self.so_far.pieces(), broke });
        Ok(())
    }

    /// The request for the rest, if time, attempts and the target allow one.
    fn rest_request(&self, broke: &ModelError) -> Option<ChatRequest> {
        let rest = self.so_far.rest_of(&self.request);
        let rest = rest.filter(|rest| self.candidate.model.continues(rest))?;
        let trace = self.request.trace.snapshot();
        let attempts = trace.failed.len() + trace.broken.len() + 1;
        let may_ask = is_break(broke)
            && self.times < CONTINUED_MAX
            && attempts < self.route.options.attempts_max as usize
            && Instant::now() + PAUSE < self.ends
            && self.candidate.target.open_for().is_none();
        may_ask.then_some(rest)
    }

    /// Closes the connection, and frees the slot.
    fn drop_connection(&mut self) {
        self.events = stream::empty().boxed();
    }
}
