//! What is the same for every kind of request: whose time limits count, that no wait is without a limit, and
//! that the in-flight view counts each kind in its own unit. Time is tokio's, paused.

use std::sync::Arc;
use std::time::Duration;

use futures::future::BoxFuture;
use futures::stream::{self, BoxStream};
use futures::{FutureExt, StreamExt};
use hob_core::scripted::{SpeechOf, TranscriptOf};
use hob_core::{
    Admission, Chat, ChatCard, ChatEvent, ChatModel, ChatRequest, ChatStream, EmbedRequest,
    Embeddings, ModelError, RegisteredModel, Registry, Speech, SpeechStream, Timeouts,
    Transcription,
};
use hob_server::ServerOptions;
use serde_json::{Value, json};
use tokio::time::sleep;

use crate::chat_model::card;
use crate::client::{post, until};
use crate::model::sound;
use crate::server::Server;
use crate::transcript_model::{FILE, StagedTranscript, done, form, form_with};

const SPEAK: &str = r#"{"model":"slow","voice":"any","input":"Hi","response_format":"pcm"}"#;
const ASK: &str = r#"{"model":"slow","messages":[{"role":"user","content":"Hi"}]}"#;

/// How long a model is silent before it starts, and before its first event. As a model, it chats.
#[derive(Clone)]
struct Slow {
    before_start: Duration,
    before_event: Duration,
    card: ChatCard,
}

impl Slow {
    async fn start<E: Send + 'static>(
        &self,
        events: Vec<Result<E, ModelError>>,
    ) -> BoxStream<'static, Result<E, ModelError>> {
        sleep(self.before_start).await;
        let pause = sleep(self.before_event).map(|()| stream::iter(events));
        stream::once(pause).flatten().boxed()
    }
}

impl ChatModel for Slow {
    fn card(&self) -> &ChatCard {
        &self.card
    }

    fn chat(&self, _request: ChatRequest) -> BoxFuture<'_, Result<ChatStream, ModelError>> {
        let events = vec![Ok(ChatEvent::Text("Hi".to_owned())), crate::chat_model::done(1)];
        async { Ok(self.start(events).await) }.boxed()
    }

    fn embed(&self, _request: EmbedRequest) -> BoxFuture<'_, Result<Embeddings, ModelError>> {
        async {
            sleep(self.before_start).await;
            Ok(Embeddings { vectors: vec![vec![1.0]], prompt_tokens: 1 })
        }
        .boxed()
    }
}

/// A server that has it under the name `slow`, for every kind, and waits 1 s for any model.
async fn serve(before_start: u64, before_event: u64, timeouts: Timeouts) -> Server {
    let seconds = Duration::from_secs;
    let (before_start, before_event) = (seconds(before_start), seconds(before_event));
    let slow = Slow { before_start, before_event, card: card() };
    let silent = slow.clone();
    let speech = SpeechOf::new(Vec::new(), move |_| {
        let (silent, events) = (silent.clone(), vec![sound(0.5, 100)]);
        async move { Ok(SpeechStream::new(24_000, silent.start(events).await)) }
    });
    let silent = slow.clone();
    let transcript = TranscriptOf::new(move |_| {
        let silent = silent.clone();
        async move { Ok(silent.start(vec![done(1.0)]).await) }
    });
    let mut registry = Registry::default();
    let chat = RegisteredModel::<Chat>::new("slow", Arc::new(slow), Admission::new(4, 0.0));
    registry.add(RegisteredModel { timeouts, ..chat });
    let speech = RegisteredModel::<Speech>::new("slow", Arc::new(speech), Admission::new(4, 0.0));
    registry.add(RegisteredModel { timeouts, ..speech });
    let (transcript, admission) = (Arc::new(transcript), Admission::new(4, 0.0));
    let transcript = RegisteredModel::<Transcription>::new("slow", transcript, admission);
    registry.add(RegisteredModel { timeouts, ..transcript });
    let options = ServerOptions {
        sound_time_max: seconds(1),
        token_time_max: seconds(1),
        ..ServerOptions::default()
    };
    Server::start_registry(registry, options).await
}

/// The status of each kind's answer.
async fn statuses(server: &Server) -> [u16; 4] {
    [
        server.ask(post("/v1/chat/completions", ASK)).await.status(),
        server.ask(post("/v1/embeddings", r#"{"model":"slow","input":"Hi"}"#)).await.status(),
        server.post_speech(SPEAK).await.status(),
        server.ask(form_with(&[("model", "slow")])).await.status(),
    ]
}

#[tokio::test(start_paused = true)]
async fn every_wait_for_a_model_has_a_limit() {
    let server = serve(5, 0, Timeouts::ByServer).await;
    assert_eq!(statuses(&server).await, [504; 4], "it does not start");
    let server = serve(0, 5, Timeouts::ByServer).await;
    assert_eq!(statuses(&server).await, [504, 200, 504, 504], "it starts, and sends nothing");
}

#[tokio::test(start_paused = true)]
async fn an_alias_has_its_own_limits_for_every_kind() {
    for (before_start, before_event) in [(5, 0), (0, 5)] {
        let server = serve(before_start, before_event, Timeouts::ByModel).await;
        assert_eq!(statuses(&server).await, [200; 4], "{before_start} {before_event}");
    }
}

/// What is in flight, or has ended, as soon as there is an entry in this list.
async fn first_in(server: &Server, list: &str) -> Value {
    until(async || {
        let seen = server.get("/api/hob/now").await.json();
        seen[list][0].is_object().then_some(seen)
    })
    .await
}

#[tokio::test]
async fn a_transcription_is_counted_in_sound_and_found_among_its_own_models() {
    let (transcript, voice) = StagedTranscript::new();
    let server = crate::transcript_model::serve(transcript).await;
    let mut client = server.send(form(&[FILE])).await;
    let seen = first_in(&server, "requests").await;
    let one = &seen["requests"][0];
    assert_eq!((&one["route"], &one["audio_ms"]), (&json!("transcription"), &json!(0)));
    assert_eq!(one["tokens"], Value::Null);
    assert_eq!(seen["queue"]["targets"][0]["in_flight_max"], 1, "the limit of its model");
    voice.send(done(1.5)).await.expect("a reader");
    client.answer().await;
    let ended = first_in(&server, "recent").await;
    assert_eq!(ended["recent"][0]["audio_ms"], 1500);
}
