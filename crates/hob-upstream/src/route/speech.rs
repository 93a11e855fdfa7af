//! An alias that speaks. Nothing is heard of a target before its first sound; after that nobody else's
//! voice goes on where it broke off.

use std::collections::VecDeque;
use std::sync::Arc;
use std::time::Duration;

use futures::future::BoxFuture;
use futures::{FutureExt, StreamExt, stream};
use hob_core::routing::RouteView;
use hob_core::{
    Direction, ModelError, ModelState, Permit, SpeechEvent, SpeechModel, SpeechRequest,
    SpeechStream, SpeechText, Speed, Trace, Voice,
};
use hob_wire::voice_among;
use tokio::time::Instant;

use super::alias::Alias;
use super::asking::{Question, Turn};
use super::guarded::{AnswerEvent, End, Guarded};
use super::leg::Leg;
use crate::speech::whole_text;
use crate::target::Source;

/// English at the voice's own speed, for estimates of how long an answer will be.
const CHARS_PER_SECOND: f64 = 15.0;
/// Seconds of work for a second of sound, of servers that speak only when they have spoken it all.
const WORK: f64 = 0.5;

/// A name that several targets answer to, which speak.
#[derive(Debug)]
pub(crate) struct SpeechRoute(Alias<dyn SpeechModel>);

impl SpeechRoute {
    pub(crate) fn new(alias: Alias<dyn SpeechModel>) -> SpeechRoute {
        SpeechRoute(alias)
    }

    pub(crate) fn view(&self) -> RouteView {
        self.0.view_of(0)
    }

    async fn answer(&self, request: SpeechRequest) -> Result<SpeechStream, ModelError> {
        let SpeechRoute(alias) = self;
        let SpeechRequest { text, voice, speed, instructions, trace } = request;
        // What was read by one target cannot be read again by the next.
        let text = whole_text(text).await?;
        let ends = Instant::now() + alias.total();
        let legs = alias.ordered(alias.legs.iter().collect(), 0);
        let question = SpeechQuestion { alias, ends, text, voice, speed, instructions, trace };
        alias.ask(legs, &question).await
    }

    /// Text that still arrives is spoken as it does by a model of our own that stands alone: there is
    /// nobody to whom it would have to be said again.
    async fn alone(&self, request: SpeechRequest) -> Result<SpeechStream, ModelError> {
        let [leg] = &self.0.legs[..] else { return self.answer(request).await };
        let Source::Local(_) = leg.target.source else { return self.answer(request).await };
        let (trace, asked) = (request.trace.clone(), Instant::now());
        trace.asking(&leg.target.name, leg.is_warm());
        let spoken = leg.model.speak(request).await;
        spoken.inspect_err(|error| {
            leg.target.failed(error, None, self.0.options.rest);
            trace.failed(&leg.target.name, error, asked.elapsed());
        })
    }
}

/// A text to be spoken, by one target after the other.
struct SpeechQuestion<'a> {
    alias: &'a Alias<dyn SpeechModel>,
    ends: Instant,
    text: String,
    voice: String,
    speed: Speed,
    instructions: Option<String>,
    trace: Trace,
}

impl SpeechQuestion<'_> {
    /// With the target's own name for the voice.
    fn request(&self, leg: &Leg<dyn SpeechModel>) -> SpeechRequest {
        let voice = voice_among(leg.model.voices(), &self.voice).unwrap_or(&self.voice);
        SpeechRequest {
            text: SpeechText::Whole(self.text.clone()),
            voice: voice.to_owned(),
            speed: self.speed,
            instructions: self.instructions.clone(),
            trace: self.trace.clone(),
        }
    }

    async fn attempt(&self, turn: &Turn<'_, dyn SpeechModel>) -> Result<SpeechStream, ModelError> {
        let leg = turn.leg;
        let target = &leg.target;
        let chars = self.text.chars().count() as f64;
        let sound_s = chars / CHARS_PER_SECOND / f64::from(self.speed.rate());
        let permit = target.admit(sound_s);
        let permit = permit
            .inspect_err(|error| target.failed(error, turn.trial, self.alias.options.rest))?;
        let work = Duration::from_secs_f64(sound_s * WORK);
        let mut times = self.alias.times(turn, work, self.ends);
        let ask = || leg.model.speak(self.request(leg));
        let (spoken, slot) = self.alias.open((turn, &self.trace), &mut times, ask).await?;
        let rate_hz = spoken.sample_rate_hz;
        let events = counted(spoken, permit).boxed();
        let trace = self.trace.clone();
        held(rate_hz, Guarded::new(events, Arc::clone(target), times, trace, slot)).await
    }
}

impl Question<dyn SpeechModel> for SpeechQuestion<'_> {
    type Begun = SpeechStream;

    fn trace(&self) -> &Trace {
        &self.trace
    }

    fn ends(&self) -> Instant {
        self.ends
    }

    fn ask<'a>(
        &'a self,
        turn: &'a Turn<'a, dyn SpeechModel>,
    ) -> BoxFuture<'a, Result<SpeechStream, ModelError>> {
        self.attempt(turn).boxed()
    }
}

/// Keeps the place until the end, and pays for it sound by sound.
fn counted(
    spoken: SpeechStream,
    mut permit: Option<Permit>,
) -> impl futures::Stream<Item = Result<SpeechEvent, ModelError>> + Send + 'static {
    let rate_hz = f64::from(spoken.sample_rate_hz);
    spoken.inspect(move |event| {
        if let (Ok(SpeechEvent::Audio(samples)), Some(permit)) = (event, &mut permit) {
            permit.made(samples.len() as f64 / rate_hz);
        }
    })
}

/// Resolves with the first sound, or at the end of what has none.
async fn held(rate_hz: u32, mut rest: Guarded<SpeechEvent>) -> Result<SpeechStream, ModelError> {
    let mut held = VecDeque::new();
    while let Some(event) = rest.next().await {
        let event = event?;
        let is_content = event.is_content();
        held.push_back(event);
        if is_content {
            break;
        }
    }
    Ok(SpeechStream::new(rate_hz, stream::iter(held.into_iter().map(Ok)).chain(rest)))
}

impl AnswerEvent for SpeechEvent {
    const END: End = End::Bare;

    fn is_last(&self) -> bool {
        false
    }

    fn is_content(&self) -> bool {
        matches!(self, SpeechEvent::Audio(samples) if !samples.is_empty())
    }
}

impl SpeechModel for SpeechRoute {
    /// Those of the first target. Another one is asked for the nearest that it has.
    fn voices(&self) -> &[Voice] {
        self.0.legs.first().map_or(&[], |leg| leg.model.voices())
    }

    fn state(&self) -> ModelState {
        self.0.state()
    }

    /// Instructions are worth sending when anybody takes them.
    fn direction(&self) -> Direction {
        let directions = || self.0.legs.iter().map(|leg| leg.model.direction());
        if directions().all(|direction| direction == Direction::Required) {
            Direction::Required
        } else if directions().all(|direction| direction == Direction::Ignored) {
            Direction::Ignored
        } else {
            Direction::Taken
        }
    }

    fn speak(&self, request: SpeechRequest) -> BoxFuture<'_, Result<SpeechStream, ModelError>> {
        match request.text {
            SpeechText::Whole(_) => self.answer(request).boxed(),
            SpeechText::Arriving(_) => self.alone(request).boxed(),
        }
    }
}
