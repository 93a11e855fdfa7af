//! Models that follow a script, for tests of everything above the engines.
//! They use no clock and no threads, so a test can await everything that they do.

use std::collections::VecDeque;
use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, Ordering};

use futures::FutureExt;
use futures::future::BoxFuture;
use futures::stream::{self, StreamExt};

use crate::chat::{
    ChatCard, ChatEvent, ChatModel, ChatRequest, ChatStream, Completion, EmbedRequest, Embeddings,
    FinishReason, Timings, TokenLogprob, TokenText, Usage,
};
use crate::{
    Gender, KeepAlive, Language, MemoryUse, ModelError, ModelLifecycle, ModelState, SpeechEvent,
    SpeechModel, SpeechRequest, SpeechStream, TranscriptEvent, TranscriptModel, TranscriptRequest,
    TranscriptStream, TranscriptSummary, Voice, locked,
};

/// The result of one call: a refusal, or these items in order.
pub type ScriptedCall<Event> = Result<Vec<Result<Event, ModelError>>, ModelError>;

/// Answers each call with the next script. A call after the last script fails with [`ModelError::EngineFailed`].
#[derive(Debug)]
struct Scripts<Event>(Mutex<VecDeque<ScriptedCall<Event>>>);

impl<Event> Scripts<Event> {
    fn new(scripts: impl IntoIterator<Item = ScriptedCall<Event>>) -> Scripts<Event> {
        Scripts(Mutex::new(scripts.into_iter().collect()))
    }

    fn next(&self) -> ScriptedCall<Event> {
        let next = locked(&self.0).pop_front();
        next.unwrap_or_else(|| {
            Err(ModelError::EngineFailed {
                engine: "scripted",
                detail: "the script has ended".to_owned(),
            })
        })
    }
}

/// A female American voice with this id. The part after `_` is its name, and is not empty.
pub fn american_voice(id: &str) -> Voice {
    let name = id.rsplit('_').next().unwrap_or_default();
    let name = name[..1].to_ascii_uppercase() + &name[1..];
    let (language, gender) = (Language::AmericanEnglish, Gender::Female);
    Voice { id: id.to_owned(), name, language, gender }
}

/// The lifecycle of a model that takes 190.4 MB. It is in memory after it was loaded.
#[derive(Debug, Default)]
pub struct ScriptedLifecycle {
    is_loaded: AtomicBool,
    failure: Option<ModelError>,
}

impl ScriptedLifecycle {
    /// A model that cannot be loaded.
    pub fn failing(error: ModelError) -> ScriptedLifecycle {
        ScriptedLifecycle { failure: Some(error), ..ScriptedLifecycle::default() }
    }
}

impl ModelLifecycle for ScriptedLifecycle {
    fn state(&self) -> ModelState {
        if self.is_loaded.load(Ordering::SeqCst) { ModelState::Ready } else { ModelState::Cold }
    }

    fn load(&self) -> BoxFuture<'_, Result<(), ModelError>> {
        let loaded = self.failure.clone().map_or(Ok(()), Err);
        self.is_loaded.store(loaded.is_ok(), Ordering::SeqCst);
        async { loaded }.boxed()
    }

    fn unload(&self) -> BoxFuture<'_, ()> {
        self.is_loaded.store(false, Ordering::SeqCst);
        async {}.boxed()
    }

    fn keep_alive(&self, _time: KeepAlive) {}

    fn memory_use(&self) -> MemoryUse {
        MemoryUse { resident_bytes: Some(190_400_000), ..MemoryUse::default() }
    }
}

/// A speech model that plays scripts and speaks at 24 kHz.
#[derive(Debug)]
pub struct ScriptedSpeech {
    voices: Vec<Voice>,
    scripts: Scripts<SpeechEvent>,
}

impl ScriptedSpeech {
    pub fn new(scripts: impl IntoIterator<Item = ScriptedCall<SpeechEvent>>) -> ScriptedSpeech {
        ScriptedSpeech { voices: vec![american_voice("af_heart")], scripts: Scripts::new(scripts) }
    }
}

impl SpeechModel for ScriptedSpeech {
    fn voices(&self) -> &[Voice] {
        &self.voices
    }

    fn speak(&self, _request: SpeechRequest) -> BoxFuture<'_, Result<SpeechStream, ModelError>> {
        let script = self.scripts.next();
        async move { script.map(|events| SpeechStream::new(24_000, stream::iter(events))) }.boxed()
    }
}

/// A speech model whose answers a function makes.
#[derive(Debug)]
pub struct SpeechOf<F>(Vec<Voice>, F);

impl<F, Answer> SpeechOf<F>
where
    F: Fn(SpeechRequest) -> Answer + Send + Sync,
    Answer: Future<Output = Result<SpeechStream, ModelError>> + Send + 'static,
{
    pub fn new(voices: Vec<Voice>, answer: F) -> SpeechOf<F> {
        SpeechOf(voices, answer)
    }
}

impl<F, Answer> SpeechModel for SpeechOf<F>
where
    F: Fn(SpeechRequest) -> Answer + Send + Sync,
    Answer: Future<Output = Result<SpeechStream, ModelError>> + Send + 'static,
{
    fn voices(&self) -> &[Voice] {
        &self.0
    }

    fn speak(&self, request: SpeechRequest) -> BoxFuture<'_, Result<SpeechStream, ModelError>> {
        (self.1)(request).boxed()
    }
}

/// A transcription model whose answers a function makes.
#[derive(Debug)]
pub struct TranscriptOf<F>(F);

impl<F, Answer> TranscriptOf<F>
where
    F: Fn(TranscriptRequest) -> Answer + Send + Sync,
    Answer: Future<Output = Result<TranscriptStream, ModelError>> + Send + 'static,
{
    pub fn new(answer: F) -> TranscriptOf<F> {
        TranscriptOf(answer)
    }
}

impl<F, Answer> TranscriptModel for TranscriptOf<F>
where
    F: Fn(TranscriptRequest) -> Answer + Send + Sync,
    Answer: Future<Output = Result<TranscriptStream, ModelError>> + Send + 'static,
{
    fn transcribe(
        &self,
        request: TranscriptRequest,
    ) -> BoxFuture<'_, Result<TranscriptStream, ModelError>> {
        (self.0)(request).boxed()
    }
}

/// A chat model that plays scripts and records its requests.
#[derive(Debug)]
pub struct ScriptedChat {
    card: ChatCard,
    scripts: Scripts<ChatEvent>,
    vectors: Vec<Vec<f32>>,
    asked: Mutex<Vec<ChatRequest>>,
}

impl ScriptedChat {
    pub fn new(scripts: impl IntoIterator<Item = ScriptedCall<ChatEvent>>) -> ScriptedChat {
        let card = ChatCard {
            context_tokens: 8192,
            trained_context_tokens: 8192,
            architecture: "scripted".to_owned(),
            template: Some(String::new()),
            calls_tools: true,
            thinks: true,
            ..ChatCard::default()
        };
        let (scripts, asked) = (Scripts::new(scripts), Mutex::default());
        ScriptedChat { card, scripts, vectors: Vec::new(), asked }
    }

    /// Embeds the first input as the first of `vectors`, and so on. Further inputs get no vector.
    pub fn with_vectors(self, vectors: Vec<Vec<f32>>) -> ScriptedChat {
        ScriptedChat { vectors, ..self }
    }

    pub fn with_card(self, card: ChatCard) -> ScriptedChat {
        ScriptedChat { card, ..self }
    }

    /// The requests so far, in order.
    pub fn requests(&self) -> Vec<ChatRequest> {
        locked(&self.asked).clone()
    }
}

impl ChatModel for ScriptedChat {
    fn card(&self) -> &ChatCard {
        &self.card
    }

    fn chat(&self, request: ChatRequest) -> BoxFuture<'_, Result<ChatStream, ModelError>> {
        locked(&self.asked).push(request);
        let script = self.scripts.next();
        async move { script.map(|events| stream::iter(events).boxed()) }.boxed()
    }

    fn embed(&self, request: EmbedRequest) -> BoxFuture<'_, Result<Embeddings, ModelError>> {
        let vectors: Vec<Vec<f32>> =
            self.vectors.iter().take(request.inputs.len()).cloned().collect();
        let prompt_tokens = request.inputs.len() as u32;
        async move { Ok(Embeddings { vectors, prompt_tokens }) }.boxed()
    }
}

/// A chat model that answers any number of requests with the same text. For tests of clients.
#[derive(Debug)]
pub struct FixedChat(ChatCard);

impl Default for FixedChat {
    /// A model that supports everything that a request may need.
    fn default() -> FixedChat {
        let template = Some(String::new());
        let (calls_tools, thinks, infills) = (true, true, true);
        FixedChat(ChatCard { template, calls_tools, thinks, infills, ..ChatCard::default() })
    }
}

/// The answer to every request.
const FIXED_TEXT: &str = "Hello! How can I help?";
/// The length of an embedding if the request names none.
const FIXED_DIMENSIONS: u32 = 8;

impl ChatModel for FixedChat {
    fn card(&self) -> &ChatCard {
        &self.0
    }

    fn chat(&self, request: ChatRequest) -> BoxFuture<'_, Result<ChatStream, ModelError>> {
        let mut events = vec![Ok(ChatEvent::Text(FIXED_TEXT.to_owned()))];
        if request.logprobs.is_some() {
            let token = TokenText(FIXED_TEXT.as_bytes().to_vec());
            let logprob = TokenLogprob { token, logprob: 0.0, top: Vec::new() };
            events.insert(0, Ok(ChatEvent::Logprobs(vec![logprob])));
        }
        let usage = Usage { prompt_tokens: 1, completion_tokens: 1, ..Usage::default() };
        let (finish, timings) = (FinishReason::Stop, Timings::default());
        events.push(Ok(ChatEvent::Done(Completion { finish, usage, timings })));
        async move { Ok(stream::iter(events).boxed()) }.boxed()
    }

    fn embed(&self, request: EmbedRequest) -> BoxFuture<'_, Result<Embeddings, ModelError>> {
        let dimensions = request.dimensions.unwrap_or(FIXED_DIMENSIONS).clamp(1, 4096) as usize;
        let mut vector = vec![0.0; dimensions];
        vector[0] = 1.0;
        let prompt_tokens = request.inputs.len() as u32;
        let vectors = vec![vector; request.inputs.len()];
        async move { Ok(Embeddings { vectors, prompt_tokens }) }.boxed()
    }
}

/// A transcription model that plays scripts and records its requests.
#[derive(Debug)]
pub struct ScriptedTranscript {
    scripts: Scripts<TranscriptEvent>,
    asked: Mutex<Vec<TranscriptRequest>>,
}

impl ScriptedTranscript {
    pub fn new(
        scripts: impl IntoIterator<Item = ScriptedCall<TranscriptEvent>>,
    ) -> ScriptedTranscript {
        ScriptedTranscript { scripts: Scripts::new(scripts), asked: Mutex::default() }
    }

    /// The requests so far, in order.
    pub fn requests(&self) -> Vec<TranscriptRequest> {
        locked(&self.asked).clone()
    }
}

impl TranscriptModel for ScriptedTranscript {
    fn transcribe(
        &self,
        request: TranscriptRequest,
    ) -> BoxFuture<'_, Result<TranscriptStream, ModelError>> {
        locked(&self.asked).push(request);
        let script = self.scripts.next();
        async move { script.map(|events| stream::iter(events).boxed()) }.boxed()
    }
}

/// A transcription model that returns the same text for every recording. For tests of clients.
#[derive(Clone, Copy, Debug, Default)]
pub struct FixedTranscript;

impl TranscriptModel for FixedTranscript {
    fn transcribe(
        &self,
        _request: TranscriptRequest,
    ) -> BoxFuture<'_, Result<TranscriptStream, ModelError>> {
        let text = TranscriptEvent::Delta(FIXED_TEXT.to_owned());
        let done = TranscriptEvent::Done(TranscriptSummary {
            duration_s: 1.0,
            ..TranscriptSummary::default()
        });
        async move { Ok(stream::iter([Ok(text), Ok(done)]).boxed()) }.boxed()
    }
}

#[cfg(test)]
mod tests {
    use futures::executor::block_on;

    use super::*;
    use crate::SpeechText;
    use crate::chat::EmbedInput;

    fn speech_request() -> SpeechRequest {
        SpeechRequest::new(SpeechText::Whole("hello".to_owned()), "af_heart")
    }

    #[test]
    fn speech_plays_its_scripts_in_order_and_then_fails() {
        let lost = ModelError::WorkerLost { engine: "speech", detail: "killed".to_owned() };
        let sound = SpeechEvent::Audio(vec![0.5]);
        let model = ScriptedSpeech::new([
            Ok(vec![Ok(sound.clone()), Err(lost.clone())]),
            Err(ModelError::EmptyText),
        ]);
        let stream = block_on(model.speak(speech_request())).expect("the first script");
        assert_eq!(block_on(stream.collect::<Vec<_>>()), [Ok(sound), Err(lost)]);
        let refused = block_on(model.speak(speech_request())).expect_err("the second script");
        assert_eq!(refused, ModelError::EmptyText);
        assert!(block_on(model.speak(speech_request())).is_err(), "no third script");
    }

    #[test]
    fn chat_and_transcription_play_their_scripts() {
        let hello = ChatEvent::Text("hello".to_owned());
        let chat = ScriptedChat::new([Ok(vec![Ok(hello.clone())])]).with_vectors(vec![vec![1.0]]);
        let request = ChatRequest { tokens_max: Some(7), ..ChatRequest::default() };
        let events = block_on(chat.chat(request.clone())).expect("a script");
        assert_eq!(block_on(events.collect::<Vec<_>>()), [Ok(hello)]);
        assert_eq!(chat.requests(), [request]);
        let inputs = vec![EmbedInput::Text("hi".to_owned())];
        let embedded = block_on(chat.embed(EmbedRequest { inputs, ..EmbedRequest::default() }));
        assert_eq!(embedded, Ok(Embeddings { vectors: vec![vec![1.0]], prompt_tokens: 1 }));

        let said = TranscriptEvent::Delta("hi".to_owned());
        let model = ScriptedTranscript::new([Ok(vec![Ok(said.clone())])]);
        let request =
            TranscriptRequest { prompt: Some("Ann".to_owned()), ..TranscriptRequest::default() };
        let events = block_on(model.transcribe(request.clone())).expect("a script");
        assert_eq!(block_on(events.collect::<Vec<_>>()), [Ok(said)]);
        assert_eq!(model.requests(), [request]);
    }
}
