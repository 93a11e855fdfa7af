//! Spoken conversations over a real WebSocket, with scripted models and a detector that hears loudness.
//! What follows what is `hob-voice`'s, and tested there; here it is sockets, keys, slots and the end of everything.

mod endless;
mod hard_cases;
mod killed;
mod parrot;
mod whole_turns;

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use futures::future::{BoxFuture, ready};
use futures::stream::{self, StreamExt};
use futures::{FutureExt, SinkExt};
use hob_core::chat::{ChatCard, Role};
use hob_core::scripted::{ScriptedChat, TranscriptOf};
use hob_core::{
    Admission, Chat, ChatEvent, MemoryUse, ModelError, ModelLifecycle, ModelState, RegisteredModel,
    Registry, Sound, Speech, SpeechEvent, SpeechModel, SpeechRequest, SpeechStream, SpeechText,
    TranscriptModel, TranscriptRequest, Transcription, TurnModel, TurnTaking, Voice, VoiceDetector,
};
use hob_server::ServerOptions;
use serde_json::{Value, json};
use tokio::net::TcpStream;
use tokio::sync::{Notify, mpsc};
use tokio_tungstenite::tungstenite::client::IntoClientRequest as _;
use tokio_tungstenite::tungstenite::{Error, Message};
use tokio_tungstenite::{MaybeTlsStream, WebSocketStream, connect_async};

use crate::chat_model;
use crate::client::{no_hang, post_with, until};
use crate::keys::named;
use crate::lifecycle::{Loaded, StagedLifecycle};
use crate::server::Server;
use crate::transcript_model::{delta, done};
use crate::upstream_names::Gpu;

const SAID: &str = "Switch on the light.";
const ANSWER: &str = "The light is on now.";
/// The name of the voice, and an alias.
const VOICE_NAMES: [&str; 2] = ["kokoro", "gpu/to-kokoro"];

/// Hears loudness.
struct Loudness;

impl VoiceDetector for Loudness {
    fn probability(&mut self, frame: &[f32]) -> f32 {
        let loudest = frame.iter().fold(0.0f32, |loudest, sample| loudest.max(sample.abs()));
        f32::from(u8::from(loudest > 0.1))
    }

    fn reset(&mut self) {}
}

/// No model judges turns. With a signal, it loads until that comes.
#[derive(Default)]
struct Turns(Option<Notify>);

impl TurnTaking for Turns {
    fn voice_detector(&self) -> BoxFuture<'_, Result<Box<dyn VoiceDetector>, ModelError>> {
        async { Ok(Box::new(Loudness) as Box<dyn VoiceDetector>) }.boxed()
    }

    fn turn_model(&self) -> BoxFuture<'_, Result<Arc<dyn TurnModel>, ModelError>> {
        async {
            if let Some(signal) = &self.0 {
                signal.notified().await;
            }
            Err(ModelError::NotBuilt { engine: "turn detection" })
        }
        .boxed()
    }
}

/// The models whose worker dies in the middle of their next answer.
#[derive(Default)]
struct Deaths {
    transcript: AtomicBool,
    speech: AtomicBool,
    chat: AtomicBool,
}

fn lost(engine: &'static str) -> ModelError {
    ModelError::WorkerLost { engine, detail: "killed by signal 9".to_owned() }
}

/// Writes the same text when the sound has ended, or how long the sound was.
fn session_transcript(is_counting: bool, deaths: Arc<Deaths>) -> impl TranscriptModel {
    TranscriptOf::new(move |request: TranscriptRequest| {
        let Sound::Live(live) = request.sound else { unreachable!("a session's sound is live") };
        let dies = deaths.transcript.swap(false, Ordering::Relaxed);
        let heard = async move {
            let mut samples = 0;
            let mut sound = live.take().expect("the first reader");
            while let Some(piece) = sound.next().await {
                samples += piece.len();
            }
            let duration_s = samples as f64 / f64::from(Sound::RATE_HZ);
            let said = match is_counting {
                true => format!("{:.0} tenths of a second.", duration_s * 10.0),
                false => SAID.to_owned(),
            };
            let end = if dies { Err(lost("transcription")) } else { done(duration_s) };
            stream::iter([delta(&said), end])
        };
        ready(Ok(heard.into_stream().flatten().boxed()))
    })
}

/// Makes a quarter of a second of sound for each piece of text.
struct SessionSpeech {
    voices: Vec<Voice>,
    /// While it is not ready, the model refuses.
    lifecycle: Arc<StagedLifecycle>,
    deaths: Arc<Deaths>,
}

impl SpeechModel for SessionSpeech {
    fn voices(&self) -> &[Voice] {
        &self.voices
    }

    fn state(&self) -> ModelState {
        self.lifecycle.state()
    }

    fn speak(&self, request: SpeechRequest) -> BoxFuture<'_, Result<SpeechStream, ModelError>> {
        async move {
            if let ModelState::Loading { .. } | ModelState::Cold = self.state() {
                return Err(ModelError::Loading { retry_after: Duration::from_secs(1) });
            }
            let SpeechText::Arriving(text) = request.text else { unreachable!("the text arrives") };
            let spoken = text.filter(|piece| std::future::ready(!piece.is_empty()));
            let dies = self.deaths.speech.swap(false, Ordering::Relaxed);
            let sound = spoken.map(move |_| match dies {
                true => Err(lost("speech")),
                false => Ok(SpeechEvent::Audio(vec![0.25; 6_000])),
            });
            Ok(SpeechStream::new(24_000, sound))
        }
        .boxed()
    }
}

fn answers(count: usize) -> Vec<Result<Vec<chat_model::Event>, ModelError>> {
    let one = || Ok(vec![Ok(ChatEvent::Text(ANSWER.to_owned())), chat_model::done(7)]);
    (0..count).map(|_| one()).collect()
}

struct Stage {
    server: Server,
    chat: Arc<ScriptedChat>,
    /// A model that acts by itself.
    team: Arc<ScriptedChat>,
    /// A model of this hob.
    own: Arc<ScriptedChat>,
    staged: Arc<chat_model::StagedChat>,
    voice: Arc<StagedLifecycle>,
    voice_loads: mpsc::Sender<Loaded>,
    endless: endless::EndlessSpeech,
    deaths: Arc<Deaths>,
}

async fn stage_with(options: ServerOptions) -> Stage {
    let chat = Arc::new(ScriptedChat::new(answers(20)));
    let mut registry = Registry::default();
    registry.add(RegisteredModel::<Chat>::new("smol", chat.clone(), Admission::new(8, 0.1)));
    let card = ChatCard { is_team: true, ..ChatCard::default() };
    let team = Arc::new(ScriptedChat::new(answers(20)).with_card(card));
    registry.add(RegisteredModel::<Chat>::new("team", team.clone(), Admission::new(8, 0.1)));
    registry.add_alias("house", "smol");
    let own = Arc::new(ScriptedChat::new(answers(20)));
    let (loaded, _) = StagedLifecycle::new();
    loaded.occupy(ModelState::Ready, MemoryUse::default());
    let model = RegisteredModel::<Chat>::new("own", own.clone(), Admission::new(8, 0.1));
    registry.add(RegisteredModel { lifecycle: Some(loaded), ..model });
    registry.set_upstreams(Arc::new(Gpu));
    let admission = Admission::new(8, 0.1);
    registry.add(RegisteredModel::<Chat>::new("gpu/to-own", own.clone(), admission));
    let deaths = Arc::new(Deaths::default());
    let parrot = Arc::new(parrot::Parrot::new(Arc::clone(&deaths)));
    registry.add(RegisteredModel::<Chat>::new("parrot", parrot, Admission::new(8, 0.1)));
    let greets = || {
        let said = "Good morning, Ann. How are you?";
        Ok(vec![Ok(ChatEvent::Text(said.to_owned())), chat_model::done(7)])
    };
    let greeter = Arc::new(ScriptedChat::new((0..5).map(|_| greets())));
    registry.add(RegisteredModel::<Chat>::new("greeter", greeter, Admission::new(8, 0.1)));
    let staged = Arc::new(chat_model::StagedChat::new());
    registry.add(RegisteredModel::<Chat>::new("staged", staged.clone(), Admission::new(8, 0.1)));
    let (lifecycle, voice_loads) = StagedLifecycle::new();
    lifecycle.occupy(ModelState::Ready, MemoryUse::default());
    let speech = Arc::new(SessionSpeech {
        voices: hob_wire::openai_voices(),
        lifecycle: Arc::clone(&lifecycle),
        deaths: Arc::clone(&deaths),
    });
    let voice = |name| RegisteredModel::<Speech>::new(name, speech.clone(), Admission::new(8, 0.5));
    registry.add(RegisteredModel { lifecycle: Some(lifecycle.clone()), ..voice("kokoro") });
    registry.add(voice("gpu/to-kokoro"));
    let endless = endless::EndlessSpeech::default();
    let model = Arc::new(endless.model());
    registry.add(RegisteredModel::<Speech>::new("endless", model, Admission::new(8, 0.5)));
    for (name, is_counting) in [("whisper", false), ("counter", true)] {
        let transcript = Arc::new(session_transcript(is_counting, Arc::clone(&deaths)));
        let admission = Admission::new(8, 0.5);
        registry.add(RegisteredModel::<Transcription>::new(name, transcript, admission));
    }
    let options = ServerOptions {
        default_speech: Some("kokoro".to_owned()),
        default_transcript: Some("whisper".to_owned()),
        default_chat: Some("smol".to_owned()),
        ..options
    };
    let server = Server::start_registry(registry, options).await;
    Stage { server, chat, team, own, staged, voice: lifecycle, voice_loads, endless, deaths }
}

/// A server with a session that has begun.
async fn session(options: ServerOptions) -> (Stage, Talker) {
    let stage = stage_with(options).await;
    let talker = stage.begin("gpt-realtime", &[]).await;
    (stage, talker)
}

fn options() -> ServerOptions {
    ServerOptions { turn_taking: Some(Arc::new(Turns::default())), ..ServerOptions::default() }
}

struct Talker {
    socket: WebSocketStream<MaybeTlsStream<TcpStream>>,
    protocol: Option<String>,
}

impl Stage {
    async fn try_open(&self, path: &str, headers: &[(&str, &str)]) -> Result<Talker, Error> {
        let url = format!("ws://{}{path}", self.server.address);
        let mut request = url.into_client_request().expect("a request");
        for (name, value) in headers {
            let name: axum::http::HeaderName = name.parse().expect("a name");
            request.headers_mut().insert(name, value.parse().expect("a value"));
        }
        let (socket, answer) = no_hang(connect_async(request)).await?;
        let protocol = answer.headers().get("sec-websocket-protocol");
        let protocol = protocol.map(|name| name.to_str().expect("text").to_owned());
        Ok(Talker { socket, protocol })
    }

    async fn open(&self) -> Talker {
        self.try_open("/v1/realtime?model=gpt-realtime", &[]).await.expect("a session")
    }

    /// A session with this model that has begun.
    async fn begin(&self, model: &str, headers: &[(&str, &str)]) -> Talker {
        let path = format!("/v1/realtime?model={model}");
        let opened = Box::pin(self.try_open(&path, headers)).await;
        let mut talker = opened.expect("a session");
        talker.until("session.created").await;
        talker
    }

    /// The status and the header `retry-after` of a refusal.
    async fn refused(&self, headers: &[(&str, &str)]) -> (u16, Option<String>) {
        match self.try_open("/v1/realtime", headers).await.map(drop) {
            Err(Error::Http(answer)) => {
                let retry = answer.headers().get("retry-after");
                let retry = retry.map(|value| value.to_str().expect("text").to_owned());
                (answer.status().as_u16(), retry)
            }
            other => unreachable!("{other:?}"),
        }
    }
}

impl Talker {
    async fn send(&mut self, event: Value) {
        let sent = self.socket.send(Message::text(event.to_string()));
        no_hang(sent).await.expect("an open socket");
    }

    async fn next(&mut self) -> Value {
        loop {
            match no_hang(self.socket.next()).await.expect("an event").expect("no error") {
                Message::Text(text) => return serde_json::from_str(&text).expect("JSON"),
                Message::Ping(_) | Message::Pong(_) => {}
                other => unreachable!("{other:?}"),
            }
        }
    }

    /// Events to the first of this type, which is the last of them.
    async fn until(&mut self, last: &str) -> Vec<Value> {
        let mut events = Vec::new();
        loop {
            let event = self.next().await;
            let is_last = event["type"] == last;
            events.push(event);
            if is_last {
                return events;
            }
        }
    }

    /// The code with which the server closes.
    async fn close_code(&mut self) -> u16 {
        loop {
            match no_hang(self.socket.next()).await.expect("a message").expect("no error") {
                Message::Close(frame) => return frame.expect("a reason").code.into(),
                _ => continue,
            }
        }
    }

    /// Sound at 24 kHz, in pieces whose bytes are odd.
    async fn say(&mut self, level: i16, seconds: f64) {
        let samples = (24_000.0 * seconds) as usize;
        let wave = (0..samples).map(|n| if n % 40 < 20 { level } else { -level });
        let bytes: Vec<u8> = wave.flat_map(i16::to_le_bytes).collect();
        for piece in bytes.chunks(4_801) {
            let audio = STANDARD.encode(piece);
            self.send(json!({"type": "input_audio_buffer.append", "audio": audio})).await;
        }
    }

    /// Says something for so long, and nothing for a second.
    async fn speak(&mut self, seconds: f64) {
        self.say(12_000, seconds).await;
        self.say(0, 1.0).await;
    }

    /// The same, with the events to the end of the answer.
    async fn ask(&mut self, seconds: f64) -> Vec<Value> {
        self.speak(seconds).await;
        self.until("response.done").await
    }

    /// The same with a written question.
    async fn ask_in_writing(&mut self, text: &str) -> Vec<Value> {
        self.write(text).await;
        self.send(json!({"type": "response.create"})).await;
        self.until("response.done").await
    }

    async fn write(&mut self, text: &str) {
        let content = json!([{"type": "input_text", "text": text}]);
        let item = json!({"type": "message", "role": "user", "content": content});
        self.send(json!({"type": "conversation.item.create", "item": item})).await;
    }
}

fn types(events: &[Value]) -> Vec<&str> {
    let mut types: Vec<&str> = events.iter().filter_map(|event| event["type"].as_str()).collect();
    types.dedup();
    types
}

/// The status of the answer that these events end with, and the code of its error.
fn status(events: &[Value]) -> (&str, &str) {
    let response = &events.last().expect("the last event")["response"];
    let code = response["status_details"]["error"]["code"].as_str();
    (response["status"].as_str().expect("a status"), code.unwrap_or_default())
}

fn joined(events: &[Value], of: &str) -> String {
    let of_type = events.iter().filter(|event| event["type"] == of);
    of_type.filter_map(|event| event["delta"].as_str()).collect()
}

#[tokio::test]
async fn a_spoken_turn_is_transcribed_answered_and_spoken() {
    let stage = stage_with(options()).await;
    let mut talker = stage.open().await;
    let created = talker.next().await;
    assert_eq!(created["type"], "session.created");
    assert_eq!(created["session"]["audio"]["input"]["turn_detection"]["interrupt_response"], true);
    talker
        .send(json!({"type": "session.update", "session": {
            "include": ["hob.turn_stages"],
            "audio": {"input": {"transcription": {"model": "whisper-1"}}, "output": {"voice": "ash"}},
        }}))
        .await;
    assert_eq!(talker.next().await["type"], "session.updated");
    let events = talker.ask(1.0).await;
    let types = types(&events);
    let at = |name: &str| {
        types.iter().position(|other| *other == name).unwrap_or_else(|| panic!("{name}: {types:?}"))
    };
    for pair in [
        "input_audio_buffer.speech_started",
        "input_audio_buffer.speech_stopped",
        "input_audio_buffer.committed",
        "conversation.item.added",
        "response.created",
        "response.output_item.added",
        "response.content_part.added",
        "response.output_audio.delta",
        "response.output_audio.done",
        "response.output_audio_transcript.done",
        "response.content_part.done",
        "response.output_item.done",
        "response.done",
    ]
    .windows(2)
    {
        assert!(at(pair[0]) < at(pair[1]), "{pair:?} {types:?}");
    }
    let measured = events.iter().find(|event| event["type"] == "hob.turn_stages");
    let measured = measured.expect("the times of the turn");
    assert_eq!(measured["response_id"], events.last().expect("the last")["response"]["id"]);
    let stages = measured["stages_ms"].as_object().expect("an object");
    let whole: f64 = stages.values().filter_map(Value::as_f64).sum();
    assert!(stages.len() == 6 && whole > 0.0, "{measured}");
    let said = events.iter().find(|event| event["transcript"] == SAID);
    assert!(said.is_some_and(|event| event["usage"]["type"] == "duration"), "{types:?}");
    assert_eq!(joined(&events, "response.output_audio_transcript.delta").trim(), ANSWER);
    let sound: usize = events
        .iter()
        .filter(|event| event["type"] == "response.output_audio.delta")
        .map(|event| {
            STANDARD.decode(event["delta"].as_str().expect("base64")).expect("base64").len()
        })
        .sum();
    assert!(sound >= 12_000 && sound.is_multiple_of(2), "{sound}");
    assert_eq!(status(&events).0, "completed", "{events:?}");
    let asked = stage.chat.requests();
    let hob_core::chat::Prompt::Chat(conversation) = &asked.last().expect("a request").prompt
    else {
        panic!("a conversation");
    };
    let last = conversation.messages.last().expect("a message");
    assert_eq!((last.role, last.text.as_str()), (Role::User, SAID));
}

#[tokio::test]
async fn a_written_turn_can_be_answered_as_text_alone() {
    let (_stage, mut talker) = session(options()).await;
    talker.write("Hello").await;
    talker.until("conversation.item.done").await;
    let response = json!({"output_modalities": ["text"]});
    talker.send(json!({"type": "response.create", "response": response})).await;
    let events = talker.until("response.done").await;
    assert_eq!(joined(&events, "response.output_text.delta"), ANSWER);
    assert!(!types(&events).contains(&"response.output_audio.delta"));
}

#[tokio::test]
async fn a_beta_client_reads_its_own_names() {
    let stage = stage_with(options()).await;
    let beta = [("openai-beta", "realtime=v1")];
    let mut talker = stage.try_open("/v1/realtime", &beta).await.expect("a session");
    let created = talker.next().await;
    assert_eq!(created["session"]["input_audio_format"], "pcm16");
    let events = talker.ask_in_writing("Hello").await;
    let types = types(&events);
    for name in
        ["conversation.item.created", "response.audio.delta", "response.audio_transcript.done"]
    {
        assert!(types.contains(&name), "{name}: {types:?}");
    }
    assert!(
        !types.iter().any(|name| name.contains("output_audio")
            || name.ends_with("item.added") && name.starts_with("conversation")),
        "{types:?}"
    );
}

#[tokio::test]
async fn a_bad_event_gets_an_error_and_the_socket_stays_open() {
    let (_stage, mut talker) = session(options()).await;
    let semantic = json!({"audio": {"input": {"turn_detection": {"type": "semantic_vad"}}}});
    for (event, param) in [
        (json!({"type": "session.dance", "event_id": "mine"}), "type"),
        (
            json!({"type": "response.create", "event_id": "mine", "response": {"audio": 7}}),
            "response.audio",
        ),
        (
            json!({"type": "conversation.item.delete", "item_id": "nothing", "event_id": "mine"}),
            "item_id",
        ),
    ] {
        talker.send(event).await;
        let error = talker.next().await;
        assert_eq!(
            (error["type"].as_str(), error["error"]["event_id"].as_str()),
            (Some("error"), Some("mine"))
        );
        assert_eq!(error["error"]["param"], param, "{error}");
    }
    talker.send(json!({"type": "session.update", "session": semantic})).await;
    assert_eq!(talker.next().await["type"], "error", "no model judges turns");
    talker.send(json!({"type": "response.cancel"})).await;
    let event = talker.next().await;
    assert_eq!(event["error"]["code"], "response_cancel_not_active");
    assert_eq!(event["error"]["message"], "Cancellation failed: no active response found");
    no_hang(talker.socket.send(Message::binary(vec![1, 2]))).await.expect("an open socket");
    assert_eq!(talker.next().await["error"]["code"], "invalid_message");
    talker.send(json!({"type": "session.update", "session": {}})).await;
    assert_eq!(talker.next().await["type"], "session.updated");
}

#[tokio::test]
async fn an_event_that_is_too_long_closes_the_session_with_its_code() {
    let (_stage, mut talker) = session(options()).await;
    let sent = talker.socket.send(Message::text("x".repeat(22 << 20)));
    // The server may close before it has read everything.
    let _closed = no_hang(sent).await;
    assert_eq!(talker.close_code().await, 1009);
}

#[tokio::test]
async fn a_key_opens_sessions_in_a_header_in_a_subprotocol_and_as_a_secret() {
    let stage =
        stage_with(ServerOptions { keys: vec![named("laptop", "secret")], ..options() }).await;
    assert_eq!(stage.refused(&[]).await.0, 401);
    assert_eq!(stage.refused(&[("authorization", "Bearer wrong")]).await.0, 401);
    let wrong = [("sec-websocket-protocol", "realtime, openai-insecure-api-key.wrong")];
    assert_eq!(stage.refused(&wrong).await.0, 401);

    let bearer = [("authorization", "Bearer secret")];
    stage.begin("gpt-realtime", &bearer).await;

    let protocols = [("sec-websocket-protocol", "realtime, openai-insecure-api-key.secret")];
    let mut talker = stage.try_open("/v1/realtime", &protocols).await.expect("a session");
    assert_eq!(talker.protocol.as_deref(), Some("realtime"));
    talker.until("session.created").await;

    let body = json!({"expires_after": {"anchor": "created_at", "seconds": 10}, "session": {"type": "realtime", "instructions": "Hi"}});
    let request = post_with(
        "/v1/realtime/client_secrets",
        "authorization: Bearer secret\r\n",
        body.to_string(),
    );
    let answer = stage.server.ask(request).await;
    assert_eq!(answer.status(), 200);
    let secret: Value = answer.json();
    let bearer = format!("Bearer {}", secret["value"].as_str().expect("a value"));
    let mut talker =
        stage.try_open("/v1/realtime", &[("authorization", &bearer)]).await.expect("a session");
    assert_eq!(talker.next().await["session"]["instructions"], "Hi");
}

#[tokio::test]
async fn sessions_beyond_capacity_are_refused_before_the_upgrade() {
    let (stage, mut talker) = session(ServerOptions { sessions_max: 1, ..options() }).await;
    let (refusal, retry_after) = stage.refused(&[]).await;
    assert_eq!(refusal, 503);
    let retry_after: u64 = retry_after.expect("a time").parse().expect("seconds");
    assert!((1..=60).contains(&retry_after), "{retry_after}");
    talker.socket.close(None).await.expect("an open socket");
    while let Some(Ok(_)) = no_hang(talker.socket.next()).await {}
    // The place is free when the server has ended the session, which a closed socket does not prove.
    let opened = until(async || stage.try_open("/v1/realtime", &[]).await.ok());
    Box::pin(opened).await.until("session.created").await;
}

#[tokio::test]
async fn a_model_that_does_not_load_is_an_error_and_a_close() {
    let stage = stage_with(ServerOptions::default()).await;
    let mut talker = stage.open().await;
    let error = talker.next().await;
    assert_eq!(error["error"]["code"], "model_load_error", "{error}");
    assert_eq!(talker.close_code().await, 1011);
}

#[tokio::test]
async fn an_unknown_model_is_refused_before_the_upgrade() {
    let stage = stage_with(options()).await;
    match stage.try_open("/v1/realtime?model=nobody", &[]).await.map(drop) {
        Err(Error::Http(answer)) => assert_eq!(answer.status().as_u16(), 404),
        other => panic!("{other:?}"),
    }
}

#[tokio::test]
async fn a_server_that_stops_says_so() {
    let (mut stage, mut talker) = session(options()).await;
    stage.server.ask_to_stop();
    assert_eq!(talker.close_code().await, 1001);
    drop(talker);
    stage.server.stopped().await;
}

#[tokio::test]
async fn a_client_that_leaves_in_mid_turn_leaves_nothing_in_flight() {
    let (stage, mut talker) = session(options()).await;
    talker.say(12_000, 1.0).await;
    talker.until("input_audio_buffer.speech_started").await;
    until(async || (stage.server.in_flight() > 0).then_some(())).await;
    drop(talker);
    stage.server.until_in_flight(0).await;
}
