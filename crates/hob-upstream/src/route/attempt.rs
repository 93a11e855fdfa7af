//! One attempt: a target is asked, and what it says is held back until it is an answer.
//! Until then nobody outside has heard of it, and whatever fails leaves no trace in the next one.

use std::collections::VecDeque;
use std::sync::Arc;
use std::time::Duration;

use futures::future::BoxFuture;
use futures::{FutureExt, StreamExt, stream};
use hob_core::chat::{Effort, Reading};
use hob_core::{ChatEvent, ChatModel, ChatRequest, ChatStream, ModelError, Permit, Trace};
use tokio::time::Instant;

use super::alias::Alias;
use super::asking::{Question, Turn};
use super::guarded::{AnswerEvent, End, Guarded};
use super::leg::Leg;
use crate::options::{Commit, OnBreak};
use crate::target::Target;

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
    pub(super) alias: &'a Alias<dyn ChatModel>,
    pub(super) request: &'a ChatRequest,
    pub(super) ends: Instant,
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
            let by = self.asked_of(turn.leg, &request);
            let begun = self.attempt(turn, request).await?;
            Ok(Begun { by, ..begun })
        }
        .boxed()
    }
}

impl ChatQuestion<'_> {
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
                || request.tokens_max.is_some_and(|most| most <= 1),
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
    /// Next to nothing was asked for, or the rest of what may have been said to its end.
    may_be_empty: bool,
}

impl Held {
    async fn read(&self, mut rest: Guarded<ChatEvent>) -> Result<Begun, ModelError> {
        let (mut held, mut bytes, mut has_said) = (VecDeque::new(), 0usize, false);
        while let Some(event) = rest.next().await {
            let event = event?;
            let is_done = matches!(event, ChatEvent::Done(_));
            let is_content = !is_done && !matches!(event, ChatEvent::Logprobs(_));
            let is_thought = matches!(event, ChatEvent::Reasoning(_));
            has_said |= is_content;
            bytes += bytes_of(&event);
            held.push_back(event);
            if is_done {
                self.check_empty(has_said, &mut rest)?;
                return Ok(Begun { held, rest, by: None });
            }
            let is_real = is_content && !(is_thought && self.commit == Commit::Content);
            if self.reading == Reading::Streamed && (is_real || bytes > HELD_BYTES_MAX) {
                return Ok(Begun { held, rest, by: None });
            }
            if bytes > WHOLE_BYTES_MAX {
                let detail = format!("the answer has more than {WHOLE_BYTES_MAX} bytes");
                return Err(rest.nonsense(detail));
            }
        }
        Err(rest.nonsense("the answer ended twice".to_owned()))
    }

    /// An answer that says nothing is none, mostly.
    fn check_empty(&self, has_said: bool, rest: &mut Guarded<ChatEvent>) -> Result<(), ModelError> {
        if has_said || self.may_be_empty { Ok(()) } else { Err(rest.empty()) }
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
