//! Aliases of transcription models. Another target can be asked until the first text has come, or, for a
//! client that wants the transcript whole, until its end.

use std::sync::Arc;
use std::time::Duration;

use futures::FutureExt;
use futures::future::BoxFuture;
use hob_core::chat::Reading;
use hob_core::{
    ModelError, ModelState, Sound, SoundSeconds, TranscriptEvent, TranscriptModel,
    TranscriptRequest, TranscriptStream, Transcription,
};

use super::attempt::AskContext;
use super::task::{EventRole, RouteTask};
use super::{AliasModel, Candidate, Route};
use crate::target::Target;
use crate::transcription::{UpstreamTranscription, whole_sound};
use crate::upstream_model::UpstreamModel;

impl RouteTask for Transcription {
    type Card = ();

    type Outline = Reading;

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

    fn outline(request: &TranscriptRequest) -> Reading {
        request.reading
    }

    fn is_streamed(reading: &Reading) -> bool {
        reading.is_streamed()
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
}

impl Route<Transcription> {
    async fn hear(&self, mut request: TranscriptRequest) -> Result<TranscriptStream, ModelError> {
        if let Sound::Live(live) = &request.sound {
            if let Some(local) = self.only_local() {
                return Ok(self.start_arriving(local, request).await?.events);
            }
            // Sound that one target has heard cannot be heard again by the next.
            request.sound = Sound::Samples(whole_sound(live).await?.into());
        }
        let same = |_: &Candidate<Transcription>| request.clone();
        let ask = AskContext::new(&request.trace, self.deadline(), &same);
        let candidates = self.ordered(self.candidates.clone(), 0);
        Ok(self.ask(candidates, &ask).await?.into_started().events)
    }
}

impl TranscriptModel for AliasModel<Transcription> {
    fn state(&self) -> ModelState {
        self.0.state()
    }

    /// The languages of the first target.
    fn languages(&self) -> &[String] {
        self.0.candidates.first().map_or(&[], |candidate| candidate.model.languages())
    }

    fn transcribe(
        &self,
        request: TranscriptRequest,
    ) -> BoxFuture<'_, Result<TranscriptStream, ModelError>> {
        self.0.hear(request).boxed()
    }
}
