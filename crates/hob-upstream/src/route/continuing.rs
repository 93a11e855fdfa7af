//! An answer that goes on when it breaks off: the same target is asked for the rest of what it said, and
//! the client's stream has no seam. What cannot be gone on with ends in the error of the break.

use std::collections::VecDeque;
use std::sync::Arc;
use std::time::Duration;

use futures::{StreamExt, stream};
use hob_core::routing::{Joint, Said, Seam, Spoken, is_break};
use hob_core::{ChatEvent, ChatModel, ChatRequest, ChatStream, Fault, ModelError};
use tokio::time::{Instant, sleep};

use super::alias::Alias;
use super::asking::Turn;
use super::attempt::{AskedOf, Begun, ChatQuestion};

/// Times that one answer is gone on with.
const CONTINUED_MAX: u32 = 2;
/// Before the target is asked for the rest: what cut the answer may take a moment to be over.
const PAUSE: Duration = Duration::from_millis(100);

pub(super) struct Continuing {
    alias: Arc<Alias<dyn ChatModel>>,
    by: AskedOf,
    ends: Instant,
    asked: Instant,
    events: ChatStream,
    said: Said,
    /// Of an answer that was gone on with.
    rest: Option<Rest>,
    times: u32,
    ready: VecDeque<ChatEvent>,
    is_over: bool,
}

/// What is known of the answer before its last part.
struct Rest {
    /// None: it really goes on.
    seam: Option<Seam>,
    spoken: Spoken,
    broke: ModelError,
}

impl Continuing {
    pub(super) fn new(
        alias: Arc<Alias<dyn ChatModel>>,
        by: AskedOf,
        begun: Begun,
        ends: Instant,
    ) -> Continuing {
        Continuing {
            alias,
            said: Said::nothing(&by.request),
            by,
            ends,
            asked: Instant::now(),
            events: begun.into_stream(),
            rest: None,
            times: 0,
            ready: VecDeque::new(),
            is_over: false,
        }
    }

    pub(super) fn into_stream(self) -> ChatStream {
        let next = async |mut this: Box<Continuing>| Some((this.next().await?, this));
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
            let went_on = match self.events.next().await? {
                Ok(event) => self.heard(event),
                Err(error) => self.go_on(error).await,
            };
            if let Err(error) = went_on {
                self.is_over = true;
                return Some(Err(error));
            }
        }
    }

    /// # Errors
    /// The break's, if what comes is no rest.
    fn heard(&mut self, event: ChatEvent) -> Result<(), ModelError> {
        let Some(seam) = self.rest.as_mut().and_then(|rest| rest.seam.as_mut()) else {
            self.say(event);
            return Ok(());
        };
        let (joint, after) = match event {
            ChatEvent::Text(text) => (seam.push(&text), None),
            // Whoever thinks again is not going on.
            ChatEvent::Reasoning(_) => (Joint::Anew, None),
            other => (seam.end(), Some(other)),
        };
        match joint {
            Joint::Open => Ok(()),
            Joint::Anew => Err(self.begins_anew()),
            Joint::Rest(text) => {
                self.joined();
                if !text.is_empty() {
                    self.say(ChatEvent::Text(text));
                }
                after.into_iter().for_each(|event| self.say(event));
                Ok(())
            }
        }
    }

    fn say(&mut self, mut event: ChatEvent) {
        self.said.heard(&event);
        if let (ChatEvent::Done(completion), Some(rest)) = (&mut event, &self.rest) {
            completion.usage = rest.spoken.and(completion.usage);
            // What was said before the break, nobody but hob has counted.
            self.by.request.trace.note(|way| way.counted_here = true);
        }
        self.ready.push_back(event);
    }

    fn joined(&mut self) {
        self.by.request.trace.note(|way| way.repaired.push("continued"));
        if let Some(rest) = &mut self.rest {
            rest.seam = None;
        }
    }

    fn begins_anew(&mut self) -> ModelError {
        let detail = "asked to go on with its answer, it began anew".to_owned();
        let target = &self.by.leg.target.name;
        let anew = ModelError::upstream(target, Fault::Nonsense { detail });
        self.by.request.trace.broke(target, &anew, self.asked.elapsed());
        self.let_go();
        self.rest.take().map_or(anew, |rest| rest.broke)
    }

    /// The answer broke off: asks for its rest.
    ///
    /// # Errors
    /// It cannot be asked for, or does not come: the break's.
    async fn go_on(&mut self, broke: ModelError) -> Result<(), ModelError> {
        let trace = self.by.request.trace.clone();
        let Some(request) = self.rest_of(&broke) else { return Err(broke) };
        let target = Arc::clone(&self.by.leg.target);
        self.let_go();
        trace.broke(&target.name, &broke, self.asked.elapsed());
        self.times += 1;
        sleep(PAUSE).await;
        self.asked = Instant::now();
        let question = ChatQuestion::new(&self.alias, &request, self.ends);
        match question.attempt(&Turn::alone(&self.by.leg), request.clone()).await {
            Ok(begun) => self.events = begun.into_stream(),
            Err(error) => {
                trace.broke(&target.name, &error, self.asked.elapsed());
                return Err(broke);
            }
        }
        let seam = Some(Seam::new(self.said.text()));
        self.rest = Some(Rest { seam, spoken: self.said.spoken(), broke });
        Ok(())
    }

    /// The request for the rest, if there may be one and there is time, a try and a target for it.
    fn rest_of(&self, broke: &ModelError) -> Option<ChatRequest> {
        let AskedOf { leg, request } = &self.by;
        let rest = self.said.rest_of(request).filter(|rest| leg.model.continues(rest))?;
        let way = request.trace.now();
        let attempts = way.failed.len() + way.broken.len() + 1;
        let may_ask = is_break(broke)
            && self.times < CONTINUED_MAX
            && attempts < self.alias.options.attempts_max as usize
            && Instant::now() + PAUSE < self.ends
            && leg.target.rests_for().is_none();
        may_ask.then_some(rest)
    }

    /// Ends the connection, and gives back the place.
    fn let_go(&mut self) {
        self.events = stream::empty().boxed();
    }
}
