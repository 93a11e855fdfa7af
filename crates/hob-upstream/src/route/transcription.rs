//! Aliases of transcription models. Another target can be asked until the first text has come, or, for a
//! client that wants the transcript whole, until its end.

use std::sync::Arc;
use std::time::Duration;

use futures::FutureExt;
use futures::future::BoxFuture;
use hob_core::chat::Reading;
use hob_core::{
    ModelError, ModelState, SoundSeconds, TranscriptEvent, TranscriptModel, TranscriptRequest,
    TranscriptStream, Transcription,
};

use super::attempt::Ask;
use super::task::{AnswerEnd, EventRole, RouteTask};
use super::{AliasModel, Candidate, Route};
use crate::target::Target;
use crate::transcription::UpstreamTranscription;
use crate::upstream_model::UpstreamModel;

impl RouteTask for Transcription {
    const END: AnswerEnd = AnswerEnd::Marked;

    type Card = ();

    fn card(_candidates: &[Arc<Candidate<Transcription>>]) {}

    fn upstream_model(model: &Arc<UpstreamModel>) -> Arc<dyn TranscriptModel> {
        Arc::new(UpstreamTranscription(Arc::clone(model)))
    }

    fn alias_model(route: Arc<Route<Transcription>>) -> Arc<dyn TranscriptModel> {
        Arc::new(AliasModel(route))
    }

    fn expected_work(request: &TranscriptRequest) -> SoundSeconds {
        SoundSeconds(request.sound.estimated_s())
    }

    /// The length of the recording.
    fn silent_work(request: &TranscriptRequest, _target: &Target) -> Duration {
        Duration::try_from_secs_f64(request.sound.estimated_s()).unwrap_or_default()
    }

    fn is_streamed(request: &TranscriptRequest) -> bool {
        request.reading == Reading::Streamed
    }

    fn role(event: &TranscriptEvent) -> EventRole {
        match event {
            TranscriptEvent::Delta(text) if text.is_empty() => EventRole::Other,
            TranscriptEvent::Interim(_) => EventRole::Other,
            TranscriptEvent::Delta(_) | TranscriptEvent::Segment(_) | TranscriptEvent::Word(_) => {
                EventRole::Content
            }
            TranscriptEvent::Done(_) => EventRole::Last,
        }
    }

    fn bytes(event: &TranscriptEvent) -> usize {
        match event {
            TranscriptEvent::Delta(text) | TranscriptEvent::Interim(text) => text.len(),
            TranscriptEvent::Segment(segment) => segment.text.len() + segment.tokens.len() * 4 + 64,
            TranscriptEvent::Word(word) => word.word.len() + 16,
            TranscriptEvent::Done(_) => 0,
        }
    }
}

impl TranscriptModel for AliasModel<Transcription> {
    fn state(&self) -> ModelState {
        self.0.state()
    }

    fn transcribe(
        &self,
        request: TranscriptRequest,
    ) -> BoxFuture<'_, Result<TranscriptStream, ModelError>> {
        let route = &self.0;
        async move {
            let same = |_: &Candidate<Transcription>| request.clone();
            let ask = Ask::new(&request.trace, route.ends(), &same);
            let candidates = route.ordered(route.candidates.clone(), 0);
            Ok(route.ask(candidates, &ask).await?.into_started().events)
        }
        .boxed()
    }
}
