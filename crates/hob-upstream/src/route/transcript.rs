//! An alias that listens. Nothing is heard of a target before its first text, and where the transcript is
//! wanted whole, nothing before its end: one that breaks off is made again elsewhere.

use std::collections::VecDeque;
use std::sync::Arc;
use std::time::Duration;

use futures::future::BoxFuture;
use futures::{FutureExt, StreamExt, stream};
use hob_core::chat::Reading;
use hob_core::routing::RouteView;
use hob_core::{
    ModelError, ModelState, Trace, TranscriptEvent, TranscriptModel, TranscriptRequest,
    TranscriptStream,
};
use tokio::time::Instant;

use super::alias::Alias;
use super::asking::{Question, Turn};
use super::guarded::{AnswerEvent, End, Guarded};

/// Events of a transcript that is held until it is whole.
const HELD_MAX: usize = 1 << 20;

/// A name that several targets answer to, which listen.
#[derive(Debug)]
pub(crate) struct TranscriptRoute(Alias<dyn TranscriptModel>);

impl TranscriptRoute {
    pub(crate) fn new(alias: Alias<dyn TranscriptModel>) -> TranscriptRoute {
        TranscriptRoute(alias)
    }

    pub(crate) fn view(&self) -> RouteView {
        self.0.view_of(0)
    }

    async fn answer(&self, request: TranscriptRequest) -> Result<TranscriptStream, ModelError> {
        let TranscriptRoute(alias) = self;
        let ends = Instant::now() + alias.total();
        let legs = alias.ordered(alias.legs.iter().collect(), 0);
        alias.ask(legs, &TranscriptQuestion { alias, request: &request, ends }).await
    }
}

/// A recording, for one target after the other.
struct TranscriptQuestion<'a> {
    alias: &'a Alias<dyn TranscriptModel>,
    request: &'a TranscriptRequest,
    ends: Instant,
}

impl TranscriptQuestion<'_> {
    async fn attempt(
        &self,
        turn: &Turn<'_, dyn TranscriptModel>,
    ) -> Result<TranscriptStream, ModelError> {
        let leg = turn.leg;
        let (target, request) = (&leg.target, self.request);
        let sound_s = request.sound.about_s();
        let permit = target.admit(sound_s);
        let permit = permit
            .inspect_err(|error| target.failed(error, turn.trial, self.alias.options.rest))?;
        // A long recording takes its time, and is not silence.
        let work = Duration::try_from_secs_f64(sound_s).unwrap_or_default();
        let mut times = self.alias.times(turn, work, self.ends);
        let ask = || leg.model.transcribe(request.clone());
        let (events, slot) = self.alias.open((turn, &request.trace), &mut times, ask).await?;
        let events = events.inspect(move |_| {
            let _kept_until_the_end = &permit;
        });
        let trace = request.trace.clone();
        let guarded = Guarded::new(events.boxed(), Arc::clone(target), times, trace, slot);
        held(request.reading, guarded).await
    }
}

impl Question<dyn TranscriptModel> for TranscriptQuestion<'_> {
    type Begun = TranscriptStream;

    fn trace(&self) -> &Trace {
        &self.request.trace
    }

    fn ends(&self) -> Instant {
        self.ends
    }

    fn ask<'a>(
        &'a self,
        turn: &'a Turn<'a, dyn TranscriptModel>,
    ) -> BoxFuture<'a, Result<TranscriptStream, ModelError>> {
        self.attempt(turn).boxed()
    }
}

/// Resolves with the first text, or with all of it.
async fn held(
    reading: Reading,
    mut rest: Guarded<TranscriptEvent>,
) -> Result<TranscriptStream, ModelError> {
    let mut held = VecDeque::new();
    while let Some(event) = rest.next().await {
        let event = event?;
        let is_enough = event.is_last() || (reading == Reading::Streamed && event.is_content());
        held.push_back(event);
        if is_enough || held.len() > HELD_MAX {
            break;
        }
    }
    Ok(stream::iter(held.into_iter().map(Ok)).chain(rest).boxed())
}

impl AnswerEvent for TranscriptEvent {
    const END: End = End::Marked;

    fn is_last(&self) -> bool {
        matches!(self, TranscriptEvent::Done(_))
    }

    fn is_content(&self) -> bool {
        match self {
            TranscriptEvent::Delta(text) => !text.is_empty(),
            TranscriptEvent::Segment(_) | TranscriptEvent::Word(_) => true,
            TranscriptEvent::Done(_) => false,
        }
    }
}

impl TranscriptModel for TranscriptRoute {
    fn state(&self) -> ModelState {
        self.0.state()
    }

    fn transcribe(
        &self,
        request: TranscriptRequest,
    ) -> BoxFuture<'_, Result<TranscriptStream, ModelError>> {
        self.answer(request).boxed()
    }
}
