//! One attempt: a target is asked, and what it says is held back until it is an answer.
//! Until then nobody outside has heard of it, and whatever fails leaves no trace in the next one.

use std::collections::VecDeque;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use futures::future::BoxFuture;
use futures::{FutureExt, StreamExt, stream};
use hob_core::chat::{Effort, FinishReason, Reading};
use hob_core::{ChatEvent, ChatModel, ChatRequest, ChatStream, Fault, ModelError, Permit, Trace};
use tokio::time::Instant;

use super::alias::Alias;
use super::asking::{Question, Turn};
use super::guarded::{AnswerEvent, End, Guarded};
use super::leg::Leg;
use crate::options::{Commit, OnBreak};
use crate::target::{Source, Target};

/// Tokens to expect of an answer whose limit nobody named.
const TOKENS_GUESS: u32 = 256;
/// Bytes that are held back before what came counts as an answer all the same.
const HELD_BYTES_MAX: usize = 64 << 10;
/// Of an answer that is read whole.
const WHOLE_BYTES_MAX: usize = 32 << 20;

/// What was said before the answer was the client's, and the rest.
pub(super) struct Begun {
    held: VecDeque<ChatEvent>,
    rest: Guarded<ChatEvent>,
    /// Whom to ask for the rest, and how it was asked, should the answer break off.
    by: Option<Box<AskedOf>>,
    /// The answer ended normally without any content, and another target may have more to say.
    is_doubtful: bool,
}

/// A target, and the request as it was asked.
pub(super) struct AskedOf {
    pub(super) leg: Leg<dyn ChatModel>,
    pub(super) request: ChatRequest,
}

impl Begun {
    pub(super) fn take_asked(&mut self) -> Option<Box<AskedOf>> {
        self.by.take()
    }

    pub(super) fn into_stream(self) -> ChatStream {
        stream::iter(self.held.into_iter().map(Ok)).chain(self.rest).boxed()
    }
}

/// A chat request, for one target after the other.
pub(super) struct ChatQuestion<'a> {
    alias: &'a Alias<dyn ChatModel>,
    request: &'a ChatRequest,
    ends: Instant,
    /// The first empty answer of another server: the client gets it if no target has more to say.
    empty: Mutex<Option<Empty>>,
}

/// An answer without content that ended normally.
struct Empty {
    begun: Begun,
    target: String,
    /// When it ended, and how long after the target was asked.
    at: Instant,
    took: Duration,
}

impl Question<dyn ChatModel> for ChatQuestion<'_> {
    type Begun = Begun;

    fn trace(&self) -> &Trace {
        &self.request.trace
    }

    fn ends(&self) -> Instant {
        self.ends
    }

    fn ask<'a>(
        &'a self,
        turn: &'a Turn<'a, dyn ChatModel>,
    ) -> BoxFuture<'a, Result<Begun, ModelError>> {
        let mut request = self.request.clone();
        turn.leg.change(&mut request);
        async move {
            let (by, asked) = (self.asked_of(turn.leg, &request), Instant::now());
            let begun = self.attempt(turn, request).await?;
            if begun.is_doubtful {
                return Err(self.puts_aside(begun, &turn.leg.target.name, asked));
            }
            Ok(Begun { by, ..begun })
        }
        .boxed()
    }
}

impl<'a> ChatQuestion<'a> {
    pub(super) fn new(
        alias: &'a Alias<dyn ChatModel>,
        request: &'a ChatRequest,
        ends: Instant,
    ) -> ChatQuestion<'a> {
        ChatQuestion { alias, request, ends, empty: Mutex::default() }
    }

    /// The empty answer that a target gave, for a client that gets no other.
    pub(super) fn take_empty(&self) -> Option<Begun> {
        let kept = self.empty.lock().unwrap_or_else(PoisonError::into_inner).take();
        let Empty { begun, target, at, took } = kept?;
        self.request.trace.note(|way| {
            way.failed.retain(|failed| failed.kind != Fault::Empty.kind());
        });
        self.request.trace.answers(&target, at.into_std(), took);
        Some(begun)
    }

    /// Keeps an empty answer while the next target is asked.
    fn puts_aside(&self, begun: Begun, target: &str, asked: Instant) -> ModelError {
        let mut kept = self.empty.lock().unwrap_or_else(PoisonError::into_inner);
        let at = Instant::now();
        let took = at.duration_since(asked);
        kept.get_or_insert_with(|| Empty { begun, target: target.to_owned(), at, took });
        ModelError::upstream(target, Fault::Empty)
    }

    /// None: nobody will be asked for the rest. An answer that is read whole can be made again.
    fn asked_of(&self, leg: &Leg<dyn ChatModel>, request: &ChatRequest) -> Option<Box<AskedOf>> {
        let goes_on = self.alias.options.on_break == OnBreak::Continue;
        let is_streamed = request.reading == Reading::Streamed;
        let asked_of = || AskedOf { leg: leg.clone(), request: request.clone() };
        (goes_on && is_streamed).then(|| Box::new(asked_of()))
    }

    pub(super) async fn attempt(
        &self,
        turn: &Turn<'_, dyn ChatModel>,
        request: ChatRequest,
    ) -> Result<Begun, ModelError> {
        let leg = turn.leg;
        let target = &leg.target;
        let tokens = f64::from(request.tokens_max.unwrap_or(TOKENS_GUESS));
        let permit = target.admit(tokens);
        let permit = permit
            .inspect_err(|error| target.failed(error, turn.trial, self.alias.options.rest))?;
        // A long prompt takes its time, and is not silence.
        let work = target.reading_time(&request).unwrap_or_default() * 3;
        let mut times = self.alias.times(turn, work, self.ends);
        let ask = || leg.model.chat(request.clone());
        let (events, slot) = self.alias.open((turn, &request.trace), &mut times, ask).await?;
        let notes = Notes {
            target: Arc::clone(target),
            trace: request.trace.clone(),
            is_thoughtless: request.thinking.effort == Some(Effort::None),
            asked: times.asked,
            first: None,
            permit,
        };
        let events = notes.taken_of(events);
        let guarded = Guarded::new(events, Arc::clone(target), times, request.trace.clone(), slot);
        let held = Held {
            commit: self.alias.options.commit,
            reading: request.reading,
            may_be_empty: request.partial.is_some()
                || request.tokens_max.is_some_and(|most| most <= 1)
                || matches!(target.source, Source::Local(_)),
            has_stops: !request.stop.is_empty(),
        };
        held.read(guarded).await
    }
}

/// What is learnt from an answer on its way.
struct Notes {
    target: Arc<Target>,
    trace: Trace,
    /// Thinking is switched off.
    is_thoughtless: bool,
    asked: Instant,
    /// From asking to the first content, once it is there.
    first: Option<Duration>,
    permit: Option<Permit>,
}

impl Notes {
    fn taken_of(mut self, events: ChatStream) -> ChatStream {
        let heard = move |event: &Result<ChatEvent, ModelError>| {
            if let Ok(event) = event {
                self.heard(event);
            }
        };
        events.inspect(heard).boxed()
    }

    fn heard(&mut self, event: &ChatEvent) {
        match event {
            ChatEvent::Done(completion) => {
                if let Some(first) = self.first {
                    let usage = completion.usage;
                    let read = usage.prompt_tokens - usage.cached_tokens.min(usage.prompt_tokens);
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
        self.first.get_or_insert_with(|| self.asked.elapsed());
    }
}

impl AnswerEvent for ChatEvent {
    const END: End = End::Marked;

    fn is_last(&self) -> bool {
        matches!(self, ChatEvent::Done(_))
    }

    fn is_content(&self) -> bool {
        !self.is_last()
    }
}

/// How much of an answer is held back.
struct Held {
    commit: Commit,
    reading: Reading,
    /// Next to nothing was asked for, or the rest of what may have been said to its end; or the model is
    /// hob's own, which ends without content only when it chose to.
    may_be_empty: bool,
    /// The first words may be a stop text.
    has_stops: bool,
}

impl Held {
    async fn read(&self, mut rest: Guarded<ChatEvent>) -> Result<Begun, ModelError> {
        let (mut held, mut bytes, mut has_said) = (VecDeque::new(), 0usize, false);
        while let Some(event) = rest.next().await {
            let event = event?;
            let finish = match &event {
                ChatEvent::Done(completion) => Some(completion.finish),
                _ => None,
            };
            let is_content = finish.is_none() && !matches!(event, ChatEvent::Logprobs(_));
            let is_thought = matches!(event, ChatEvent::Reasoning(_));
            has_said |= is_content;
            bytes += bytes_of(&event);
            held.push_back(event);
            if let Some(finish) = finish {
                let is_doubtful = !has_said && self.doubts(finish, &mut rest)?;
                return Ok(Begun { held, rest, by: None, is_doubtful });
            }
            let is_real = is_content && !(is_thought && self.commit == Commit::Content);
            if self.reading == Reading::Streamed && (is_real || bytes > HELD_BYTES_MAX) {
                return Ok(Begun { held, rest, by: None, is_doubtful: false });
            }
            if bytes > WHOLE_BYTES_MAX {
                let detail = format!("the answer has more than {WHOLE_BYTES_MAX} bytes");
                return Err(rest.nonsense(detail));
            }
        }
        Err(rest.nonsense("the answer ended twice".to_owned()))
    }

    /// Whether another target is worth asking after an answer without content.
    ///
    /// # Errors
    /// The server did not say why the answer ended: it was cut off.
    fn doubts(
        &self,
        finish: FinishReason,
        rest: &mut Guarded<ChatEvent>,
    ) -> Result<bool, ModelError> {
        let is_answer = self.may_be_empty || (self.has_stops && finish == FinishReason::Stop);
        if !is_answer && !rest.ended_normally() {
            return Err(rest.empty());
        }
        rest.answered_empty();
        Ok(!is_answer)
    }
}

fn bytes_of(event: &ChatEvent) -> usize {
    match event {
        ChatEvent::Reasoning(text) | ChatEvent::Text(text) => text.len(),
        ChatEvent::ToolCall { id, name, .. } => id.len() + name.len(),
        ChatEvent::ToolArguments { piece, .. } => piece.len(),
        ChatEvent::Logprobs(tokens) => tokens.len() * 64,
        ChatEvent::Done(_) => 0,
    }
}
