//! A speech worker as a `SpeechModel`. It refuses invalid requests before they reach the worker.
//! Dropping the answer cancels it.

use std::collections::BTreeMap;
use std::sync::{Arc, PoisonError, RwLock};

use futures::future::BoxFuture;
use futures::{FutureExt, StreamExt, stream};
use hob_core::{
    Language, ModelError, ModelState, SpeechEvent, SpeechModel, SpeechRequest, SpeechStream,
    SpeechText, Voice,
};
use hob_speech::Lexicon;

use super::exchange::Exchange;
use super::protocol::{About, Begin};
use super::voice_lists::{DictionaryFolders, VoiceLists};
use crate::supervisor::{ModelWorker, Supervisor, SupervisorOptions, WorkerCommand};

const ENGINE: &str = "speech";

/// Seconds of silence that answer a text without words.
const SILENCE_S: f32 = 0.25;

#[derive(Clone, Debug)]
pub struct SpeechWorkerOptions {
    pub supervisor: SupervisorOptions,
    /// Characters of one request, whole or arriving.
    pub text_chars_max: usize,
    /// Seconds of sound that a slow reader may leave unread before its stream pauses.
    pub unread_s_max: f32,
    /// Languages that this machine cannot speak now, each with what it needs and how to get it.
    pub missing: BTreeMap<Language, String>,
    /// Asked at each request for a language that needs a dictionary, so that one of `missing` can be spoken as soon as its
    /// dictionary is stored.
    pub dictionaries: Option<Arc<dyn DictionaryFolders>>,
}

impl Default for SpeechWorkerOptions {
    fn default() -> SpeechWorkerOptions {
        SpeechWorkerOptions {
            supervisor: SupervisorOptions::new(ENGINE),
            text_chars_max: 1_000_000,
            unread_s_max: 30.0,
            missing: BTreeMap::new(),
            dictionaries: None,
        }
    }
}

/// A speech model in a worker process.
pub type SpeechWorker = ModelWorker<SpeechClient>;

/// What the requests of a speech model need besides its process.
#[derive(Debug)]
pub struct SpeechClient {
    voices: VoiceLists,
    text_chars_max: usize,
    unread_s_max: f32,
    /// For requests from now on.
    lexicon: RwLock<Lexicon>,
}

impl ModelWorker<SpeechClient> {
    /// Starts the supervisor, but no process. Must be called inside a tokio runtime.
    pub fn start(
        voices: Vec<Voice>,
        command: WorkerCommand,
        options: SpeechWorkerOptions,
    ) -> SpeechWorker {
        let SpeechWorkerOptions { supervisor, text_chars_max, unread_s_max, missing, dictionaries } =
            options;
        let supervisor = Supervisor::start(command, supervisor);
        let client = SpeechClient {
            voices: VoiceLists::new(voices, missing, dictionaries),
            text_chars_max,
            unread_s_max,
            lexicon: RwLock::default(),
        };
        ModelWorker { supervisor, client }
    }

    /// Pronounces the words of later requests by this lexicon.
    pub fn use_lexicon(&self, lexicon: Lexicon) {
        *self.client.lexicon.write().unwrap_or_else(PoisonError::into_inner) = lexicon;
    }

    /// Lists the voices whose dictionary has been stored since the start.
    pub fn look_for_dictionaries(&self) {
        self.client.voices.look();
    }

    fn lexicon(&self) -> BTreeMap<String, String> {
        let lexicon = self.client.lexicon.read().unwrap_or_else(PoisonError::into_inner);
        lexicon.written().clone()
    }

    async fn begin(&self, request: SpeechRequest) -> Result<SpeechStream, ModelError> {
        let (language, dictionary) = self.client.voices.language(&request.voice)?;
        let is_whole = matches!(request.text, SpeechText::Whole(_));
        let is_silent = is_silent(&request.text);
        let text = self.text(request.text)?;
        let (session, stream) = self.supervisor.open()?;
        let about = postcard::from_bytes(&session.model.about).ok();
        let sample_rate_hz = match about {
            Some(About { sample_rate_hz: rate @ 1.. }) => rate,
            Some(_) | None => {
                let detail = "its model has no sample rate".to_owned();
                return Err(ModelError::EngineFailed { engine: ENGINE, detail });
            }
        };
        if is_silent {
            let samples = vec![0.0; (SILENCE_S * sample_rate_hz as f32) as usize];
            let silence = stream::iter([Ok(SpeechEvent::Audio(samples))]);
            return Ok(SpeechStream::new(sample_rate_hz, silence));
        }
        let begin = Begin {
            language,
            speed: request.speed,
            pace: request.pace,
            credit: (self.client.unread_s_max * sample_rate_hz as f32) as u32,
            voice: request.voice,
            lexicon: self.lexicon(),
            dictionary,
        };
        let mut exchange = Exchange::begin(stream, begin, text, self.client.text_chars_max);
        // The writer of a text that still arrives may wait for this stream before it writes.
        if is_whole {
            exchange.started().await?;
        }
        Ok(SpeechStream::new(sample_rate_hz, exchange.events()))
    }

    /// The text as pieces; a whole one is checked at once, an arriving one as it comes.
    fn text(&self, text: SpeechText) -> Result<stream::BoxStream<'static, String>, ModelError> {
        let text = match text {
            SpeechText::Whole(text) => text,
            SpeechText::Arriving(pieces) => return Ok(pieces),
        };
        if text.trim().is_empty() {
            return Err(ModelError::EmptyText);
        }
        let chars = text.chars().count();
        if chars > self.client.text_chars_max {
            return Err(ModelError::TextTooLong { chars, chars_max: self.client.text_chars_max });
        }
        Ok(stream::iter([text]).boxed())
    }
}

/// Whether a complete text has nothing to speak, such as "…" or "🎉". Pages that request an answer sentence by
/// sentence send such texts.
fn is_silent(text: &SpeechText) -> bool {
    matches!(text, SpeechText::Whole(text) if !hob_speech::is_speakable(text))
}

impl SpeechModel for ModelWorker<SpeechClient> {
    fn voices(&self) -> &[Voice] {
        self.client.voices.spoken()
    }

    fn state(&self) -> ModelState {
        self.supervisor.state()
    }

    fn speak(&self, request: SpeechRequest) -> BoxFuture<'_, Result<SpeechStream, ModelError>> {
        self.begin(request).boxed()
    }
}
