//! A speech model of another server: requests raw samples, and passes them on as they come.
//! Retries and fallbacks are the route's task.

mod sound;

use std::sync::{Arc, LazyLock};

use futures::FutureExt;
use futures::StreamExt;
use futures::future::BoxFuture;
use hob_core::{
    InstructionSupport, ModelError, ModelState, SpeechModel, SpeechRequest, SpeechStream,
    SpeechText, Voice,
};
use hob_wire::{openai_voices, upstream_speech_request};

use crate::upstream_model::UpstreamModel;
use sound::spoken;

/// Characters of a text that is collected before it is sent.
const TEXT_CHARS_MAX: usize = 1_000_000;

static OPENAI_VOICES: LazyLock<Vec<Voice>> = LazyLock::new(openai_voices);

/// One speech model of one server.
#[derive(Debug)]
pub(crate) struct UpstreamSpeech(pub(crate) Arc<UpstreamModel>);

impl UpstreamSpeech {
    async fn ask(&self, request: SpeechRequest) -> Result<SpeechStream, ModelError> {
        let UpstreamSpeech(served) = self;
        let SpeechRequest { text, voice, speed, instructions, pace, trace } = request;
        let input = whole_text(text).await?;
        if !served.upstream.kind().await.has_audio() {
            return Err(served.incapable("speech"));
        }
        let hops = trace.hops();
        let (text, without) = (SpeechText::Whole(String::new()), served.fields_left_out());
        let request = SpeechRequest { text, voice, speed, instructions, pace, trace };
        let body = upstream_speech_request(&request, &input, &served.model, &without);
        request.trace.note(|data| data.dropped = without);
        let response = served.upstream.post("audio/speech", body, hops).await;
        let response = response.map_err(|fault| served.failed(fault))?;
        spoken(Arc::clone(served), response).await
    }
}

/// Collects the whole text, because most servers accept no partial text.
pub(crate) async fn whole_text(text: SpeechText) -> Result<String, ModelError> {
    let mut pieces = match text {
        SpeechText::Whole(text) => return Ok(text),
        SpeechText::Arriving(pieces) => pieces,
    };
    let (mut whole, mut chars) = (String::new(), 0);
    while let Some(piece) = pieces.next().await {
        chars += piece.chars().count();
        if chars > TEXT_CHARS_MAX {
            return Err(ModelError::TextTooLong { chars, chars_max: TEXT_CHARS_MAX });
        }
        whole.push_str(&piece);
    }
    if whole.trim().is_empty() {
        return Err(ModelError::EmptyText);
    }
    Ok(whole)
}

impl SpeechModel for UpstreamSpeech {
    /// The list of another hob, once it was fetched; OpenAI's voices for all other servers.
    fn voices(&self) -> &[Voice] {
        self.0.upstream.voices.get().unwrap_or(&OPENAI_VOICES)
    }

    fn state(&self) -> ModelState {
        self.0.upstream.state_of(&self.0.model)
    }

    fn instruction_support(&self) -> InstructionSupport {
        InstructionSupport::Taken
    }

    fn speak(&self, request: SpeechRequest) -> BoxFuture<'_, Result<SpeechStream, ModelError>> {
        self.ask(request).boxed()
    }
}
