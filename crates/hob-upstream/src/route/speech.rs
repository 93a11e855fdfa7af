//! Aliases of voices. Before the first sound, another target can be asked; after it, no other voice
//! takes over in the middle of a text.

use std::sync::Arc;
use std::time::Duration;

use futures::FutureExt;
use futures::future::BoxFuture;
use hob_core::{
    InstructionSupport, ModelError, ModelState, SoundSeconds, Speech, SpeechEvent, SpeechModel,
    SpeechRequest, SpeechStream, SpeechText, Voice,
};
use hob_wire::own_voice;

use super::attempt::AskContext;
use super::task::{EventRole, RouteTask};
use super::{AliasModel, Candidate, Route};
use crate::speech::{UpstreamSpeech, whole_text};
use crate::target::Target;
use crate::upstream_model::UpstreamModel;

/// Seconds of work for a second of sound, for servers that send nothing before the text is spoken whole.
const WORK: f64 = 0.5;

impl RouteTask for Speech {
    type Card = ();

    type Outline = ();

    fn card(_candidates: &[Arc<Candidate<Speech>>]) {}

    fn upstream_model(model: &Arc<UpstreamModel>) -> Arc<dyn SpeechModel> {
        Arc::new(UpstreamSpeech(Arc::clone(model)))
    }

    fn alias_model(route: Arc<Route<Speech>>) -> Arc<dyn SpeechModel> {
        Arc::new(AliasModel(route))
    }

    fn expected_work(request: &SpeechRequest) -> SoundSeconds {
        let chars = match &request.text {
            SpeechText::Whole(text) => text.chars().count(),
            SpeechText::Arriving(_) => 0,
        };
        SoundSeconds(request.speed.expected_sound_s(chars))
    }

    fn silent_work(request: &SpeechRequest, _target: &Target) -> Duration {
        let SoundSeconds(sound_s) = Speech::expected_work(request);
        Duration::try_from_secs_f64(sound_s * WORK).unwrap_or_default()
    }

    fn outline(_request: &SpeechRequest) {}

    fn role(event: &SpeechEvent) -> EventRole {
        match event {
            SpeechEvent::Audio(samples) if !samples.is_empty() => EventRole::Content,
            SpeechEvent::Audio(_) | SpeechEvent::Words(_) => EventRole::Other,
        }
    }
}

impl Route<Speech> {
    async fn speak(&self, request: SpeechRequest) -> Result<SpeechStream, ModelError> {
        let SpeechRequest { text, voice, speed, instructions, pace, trace } = request;
        // Text that one target has read cannot be read again by the next.
        let text = whole_text(text).await?;
        let request = |candidate: &Candidate<Speech>| SpeechRequest {
            text: SpeechText::Whole(text.clone()),
            voice: own_voice(candidate.model.voices(), &voice),
            speed,
            instructions: instructions.clone(),
            pace,
            trace: trace.clone(),
        };
        let candidates = self.ordered(self.candidates.clone(), 0);
        let ask = AskContext::new(&trace, self.deadline(), &request);
        let started = self.ask(candidates, &ask).await?.into_started();
        Ok(SpeechStream::new(started.head, started.events))
    }

    async fn speak_arriving(&self, request: SpeechRequest) -> Result<SpeechStream, ModelError> {
        let Some(local) = self.only_local() else { return self.speak(request).await };
        let started = self.start_arriving(local, request).await?;
        Ok(SpeechStream::new(started.head, started.events))
    }
}

impl SpeechModel for AliasModel<Speech> {
    /// The voices of the first target. Any other target is asked for the nearest voice that it has.
    fn voices(&self) -> &[Voice] {
        self.0.candidates.first().map_or(&[], |candidate| candidate.model.voices())
    }

    fn state(&self) -> ModelState {
        self.0.state()
    }

    /// Instructions are sent if any target takes them.
    fn instruction_support(&self) -> InstructionSupport {
        let all_have = |support: InstructionSupport| {
            let mut candidates = self.0.candidates.iter();
            candidates.all(|candidate| candidate.model.instruction_support() == support)
        };
        if all_have(InstructionSupport::Required) {
            InstructionSupport::Required
        } else if all_have(InstructionSupport::Ignored) {
            InstructionSupport::Ignored
        } else {
            InstructionSupport::Taken
        }
    }

    fn speak(&self, request: SpeechRequest) -> BoxFuture<'_, Result<SpeechStream, ModelError>> {
        match request.text {
            SpeechText::Whole(_) => self.0.speak(request).boxed(),
            SpeechText::Arriving(_) => self.0.speak_arriving(request).boxed(),
        }
    }
}
