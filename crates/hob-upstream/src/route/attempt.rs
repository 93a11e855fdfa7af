//! One attempt: a target is asked, and what it says is held back until it is an answer.
//! Until then nobody outside has heard of it, and whatever fails leaves no trace in the next one.

use std::collections::VecDeque;
use std::sync::Arc;
use std::time::Duration;

use futures::{StreamExt, stream};
use hob_core::chat::{Effort, Reading};
use hob_core::{ChatEvent, ChatRequest, ChatStream, Clock, Fault, ModelError};
use tokio::time::{Instant, sleep, timeout_at};

use super::guarded::{Guarded, Times};
use super::{Leg, Route};
use crate::options::{Commit, WhileLoading};

/// Bytes that are held back before what came counts as an answer all the same.
const HELD_BYTES_MAX: usize = 64 << 10;
/// Of an answer that is read whole.
const WHOLE_BYTES_MAX: usize = 32 << 20;
/// Between two looks at a model that is being loaded.
const LOADING_LOOK: Duration = Duration::from_millis(100);

/// What was said before the answer was the client's, and the rest.
pub(super) struct Begun {
    held: VecDeque<ChatEvent>,
    rest: Guarded,
}

impl Begun {
    pub(super) fn into_stream(self) -> ChatStream {
        stream::iter(self.held.into_iter().map(Ok)).chain(self.rest).boxed()
    }
}

/// Asks one target, and waits until it really answers.
pub(super) async fn attempt(
    route: &Route,
    leg: &Leg,
    mut request: ChatRequest,
    ends: Instant,
) -> Result<Begun, ModelError> {
    leg.change(&mut request);
    let asked = Instant::now();
    request.trace.asking(&leg.target.name);
    let begun = ask(route, leg, request.clone(), ends).await;
    if let Err(error) = &begun {
        request.trace.failed(&leg.target.name, error, asked.elapsed());
    }
    begun
}

async fn ask(
    route: &Route,
    leg: &Leg,
    request: ChatRequest,
    ends: Instant,
) -> Result<Begun, ModelError> {
    let failed = |error: ModelError| {
        leg.target.failed(&error, route.options.rest);
        error
    };
    let permit = leg.target.admit(&request).map_err(failed)?;
    let (reading, trace, tokens_max) = (request.reading, request.trace.clone(), request.tokens_max);
    let is_thoughtless = request.thinking.effort == Some(Effort::None);
    let mut times = Times { asked: Instant::now(), ends, ..route.times(leg, &request) };
    let events = loop {
        match open(leg, &request, &times).await {
            Err(error) if may_come(&error) && route.waits_for_loading(times.asked) => {
                sleep(LOADING_LOOK).await;
            }
            opened => break opened.map_err(failed)?,
        }
    };
    if route.options.while_loading == WhileLoading::Wait {
        // Loading has a clock of its own.
        times.asked = Instant::now();
    }
    let target = Arc::clone(&leg.target);
    let guarded = Guarded::new(events, target, times, is_thoughtless, trace).holding(permit);
    let held = Held { commit: route.options.commit, reading, tokens_max };
    held.read(guarded).await
}

/// Whether a model that cannot answer now is on its way into memory.
fn may_come(error: &ModelError) -> bool {
    matches!(error, ModelError::Loading { .. } | ModelError::NoRoom { retry_after: Some(_), .. })
}

async fn open(leg: &Leg, request: &ChatRequest, times: &Times) -> Result<ChatStream, ModelError> {
    let target = &leg.target;
    let silent = || ModelError::upstream(&target.name, times.silent());
    timeout_at(times.first_by(), target.model().chat(request.clone()))
        .await
        .map_err(|_| silent())?
}

/// How much of an answer is held back.
struct Held {
    commit: Commit,
    reading: Reading,
    tokens_max: Option<u32>,
}

impl Held {
    async fn read(&self, mut rest: Guarded) -> Result<Begun, ModelError> {
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
                return Ok(Begun { held, rest });
            }
            let is_real = is_content && !(is_thought && self.commit == Commit::Content);
            if self.reading == Reading::Streamed && (is_real || bytes > HELD_BYTES_MAX) {
                return Ok(Begun { held, rest });
            }
            if bytes > WHOLE_BYTES_MAX {
                let detail = format!("the answer has more than {WHOLE_BYTES_MAX} bytes");
                return Err(rest.nonsense(detail));
            }
        }
        Err(rest.nonsense("the answer ended twice".to_owned()))
    }

    /// An answer that says nothing is none, unless next to nothing was asked for.
    fn check_empty(&self, has_said: bool, rest: &mut Guarded) -> Result<(), ModelError> {
        if has_said || self.tokens_max.is_some_and(|tokens| tokens <= 1) {
            return Ok(());
        }
        Err(rest.empty())
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

impl Route {
    fn times(&self, leg: &Leg, request: &ChatRequest) -> Times {
        let clocks = leg.clocks;
        let first_token = clocks.first_token.unwrap_or(Duration::from_secs(60));
        // A long prompt takes its time, and is not silence.
        let reading = leg.target.reading_time(request).unwrap_or_default();
        let first_token = first_token.max(reading * 3);
        let now = Instant::now();
        let total = self.total();
        Times {
            asked: now,
            first_token,
            idle: clocks.idle.unwrap_or(Duration::from_secs(30)),
            total,
            rest: self.options.rest,
            ends: now + total,
        }
    }

    fn waits_for_loading(&self, since: Instant) -> bool {
        let load = self.options.clocks.load.unwrap_or(Duration::from_secs(300));
        self.options.while_loading == WhileLoading::Wait && since.elapsed() < load
    }
}

/// The request's whole time is over.
pub(super) fn out_of_time(alias: &str, total: Duration) -> ModelError {
    ModelError::upstream(alias, Fault::TimedOut { clock: Clock::Total, after: total })
}
