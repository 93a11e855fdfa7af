//! A server with both Wyoming ports, a client that shows every event, and models that answer as their input arrives.
//! Its own tests: what needs no model.

use std::net::SocketAddr;
use std::sync::{Arc, Mutex};

use futures::StreamExt;
use futures::future::ready;
use futures::stream::{self, BoxStream};
use hob_core::scripted::{SpeechOf, TranscriptOf};
use hob_core::{
    Admission, Chat, RegisteredModel, Sound, Speech, SpeechEvent, SpeechModel, SpeechRequest,
    SpeechStream, SpeechText, TranscriptEvent, TranscriptModel, TranscriptRequest,
    TranscriptSummary, Transcription, WordTiming,
};
use hob_server::{ServerOptions, WyomingPort, WyomingService};
use serde_json::{Value, json};
use tokio::io::{AsyncBufReadExt, AsyncReadExt, AsyncWriteExt, BufReader};
use tokio::net::{TcpListener, TcpStream};

use crate::chat_model::StagedChat;
use crate::client::no_hang;
use crate::model::StagedSpeech;
use crate::server::{Server, registry_with_voice};
use crate::upstream_names::Gpu;

pub(crate) const RATE_HZ: u32 = 24_000;

/// Speaks each piece of a text that arrives: its words, and a sample for each character. Counts pauses.
fn echo_speech(heard: Arc<Mutex<Vec<String>>>) -> impl SpeechModel {
    let voices = StagedSpeech::new().voices().to_vec();
    SpeechOf::new(voices, move |request: SpeechRequest| {
        let pieces: BoxStream<'static, String> = match request.text {
            SpeechText::Whole(text) => stream::iter([text]).boxed(),
            SpeechText::Arriving(pieces) => pieces,
        };
        let heard = Arc::clone(&heard);
        let events = pieces.flat_map(move |piece| {
            heard.lock().expect("no panic").push(piece.clone());
            let word = WordTiming { span: 0..1, start_s: 0.0, end_s: 0.0, phonemes: Vec::new() };
            let sound = vec![0.5; piece.chars().count()];
            let events = [SpeechEvent::Words(vec![word]), SpeechEvent::Audio(sound)];
            stream::iter(if piece.is_empty() { vec![] } else { events.map(Ok).to_vec() })
        });
        ready(Ok(SpeechStream::new(RATE_HZ, events)))
    })
}

/// What the transcription model was given.
#[derive(Clone, Default)]
pub(crate) struct HeardSound {
    pub(crate) sound: Arc<Mutex<Vec<f32>>>,
    pub(crate) asked: Arc<Mutex<Vec<TranscriptRequest>>>,
}

/// Says how much it hears, piece by piece.
fn echo_transcript(HeardSound { sound, asked }: HeardSound) -> impl TranscriptModel {
    TranscriptOf::new(move |request: TranscriptRequest| {
        asked.lock().expect("no panic").push(request.clone());
        let pieces = match request.sound {
            Sound::Live(live) => live.take(),
            _ => None,
        };
        let (sound, counted) = (Arc::clone(&sound), Arc::clone(&sound));
        let deltas = pieces.expect("live sound, not heard before").map(move |samples| {
            let text = format!(" {}", samples.len());
            sound.lock().expect("no panic").extend(samples);
            Ok(TranscriptEvent::Delta(text))
        });
        let done = stream::once(async move {
            let duration_s = counted.lock().expect("no panic").len() as f64 / 16e3;
            Ok(TranscriptEvent::Done(TranscriptSummary {
                duration_s,
                ..TranscriptSummary::default()
            }))
        });
        ready(Ok(deltas.chain(done).boxed()))
    })
}

pub(crate) struct Wyoming {
    pub(crate) server: Server,
    pub(crate) transcript: HeardSound,
    /// What `echo` was given to speak.
    pub(crate) heard: Arc<Mutex<Vec<String>>>,
    speech: SocketAddr,
    hearing: SocketAddr,
}

async fn port(service: WyomingService, model: Option<&str>) -> (SocketAddr, WyomingPort) {
    let listener = TcpListener::bind("127.0.0.1:0").await.expect("a port");
    let address = listener.local_addr().expect("an address");
    (address, WyomingPort { listener, service, model: model.map(str::to_owned) })
}

impl Wyoming {
    pub(crate) async fn start() -> Wyoming {
        Wyoming::start_with(ServerOptions::default()).await
    }

    /// Speech: `kokoro` (staged, `narrator`) and `echo`. Transcription: `whisper` (`ears`). Both have the models of `gpu`,
    /// of which `gpu/any` is an alias. hob registers such an alias as a chat model.
    pub(crate) async fn start_with(options: ServerOptions) -> Wyoming {
        let (staged, transcript) = (Arc::new(StagedSpeech::new()), HeardSound::default());
        let mut registry = registry_with_voice(&staged);
        registry.add_alias("narrator", "kokoro");
        registry.set_upstreams(Arc::new(Gpu));
        let (any, admission) = (Arc::new(StagedChat::new()), Admission::new(1, 0.5));
        registry.add(RegisteredModel::<Chat>::new("gpu/any", any, admission));
        let heard = Arc::default();
        let (echo, admission) = (echo_speech(Arc::clone(&heard)), Admission::new(2, 0.5));
        registry.add(RegisteredModel::<Speech>::new("echo", Arc::new(echo), admission));
        let whisper = Arc::new(echo_transcript(transcript.clone()));
        let admission = Admission::new(1, 0.5);
        registry.add(RegisteredModel::<Transcription>::new("whisper", whisper, admission));
        registry.add_alias("ears", "whisper");
        let (speech, speech_port) = port(WyomingService::Speech, Some("kokoro")).await;
        let (hearing, hearing_port) = port(WyomingService::Transcription, None).await;
        let ports = vec![speech_port, hearing_port];
        let server = Server::start_ports(registry, options, staged, ports).await;
        Wyoming { server, transcript, heard, speech, hearing }
    }

    /// A client of the port for speech.
    pub(crate) async fn speaker(&self) -> WyomingClient {
        WyomingClient::connect(self.speech).await
    }

    /// A client of the port for speech that uses `echo`.
    pub(crate) async fn echo(&self) -> WyomingClient {
        let mut client = self.speaker().await;
        client.send("select-program", json!({ "name": "echo" })).await;
        client
    }

    /// A client of the port for transcription.
    pub(crate) async fn hearer(&self) -> WyomingClient {
        WyomingClient::connect(self.hearing).await
    }
}

/// An event of the server.
#[derive(Debug)]
pub(crate) struct Event {
    pub(crate) kind: String,
    pub(crate) data: Value,
    pub(crate) payload: Vec<u8>,
}

pub(crate) struct WyomingClient(BufReader<TcpStream>);

impl WyomingClient {
    async fn connect(address: SocketAddr) -> WyomingClient {
        WyomingClient(BufReader::new(TcpStream::connect(address).await.expect("a connection")))
    }

    pub(crate) async fn send(&mut self, kind: &str, data: Value) {
        self.send_with(kind, data, &[]).await;
    }

    pub(crate) async fn send_with(&mut self, kind: &str, data: Value, payload: &[u8]) {
        let line = json!({ "type": kind, "data": data, "payload_length": payload.len() });
        self.send_bytes(format!("{line}\n").as_bytes()).await;
        self.send_bytes(payload).await;
    }

    pub(crate) async fn send_bytes(&mut self, bytes: &[u8]) {
        self.0.write_all(bytes).await.expect("a write");
    }

    /// The next event; `None` when the server has closed the connection. Without a time limit: for tests that control
    /// the clock.
    pub(crate) async fn read(&mut self) -> Option<Event> {
        let mut line = String::new();
        if self.0.read_line(&mut line).await.unwrap_or(0) == 0 {
            return None;
        }
        let line: Value = serde_json::from_str(&line).expect("a line of JSON");
        let mut part = async |length: &str| {
            let mut bytes = vec![0; line[length].as_u64().expect("a length") as usize];
            self.0.read_exact(&mut bytes).await.expect("the whole part");
            bytes
        };
        let (data, payload) = (part("data_length").await, part("payload_length").await);
        let data = serde_json::from_slice(&data).expect("JSON");
        let kind = line["type"].as_str().expect("a type").to_owned();
        Some(Event { kind, data, payload })
    }

    pub(crate) async fn event(&mut self) -> Event {
        no_hang(self.read()).await.expect("an event")
    }

    /// The next event, which has this type.
    pub(crate) async fn expect(&mut self, kind: &str) -> Event {
        let event = self.event().await;
        assert_eq!(event.kind, kind, "{event:?}");
        event
    }

    /// The types of all events up to the first of this type, and the sound in between.
    pub(crate) async fn until(&mut self, last: &str) -> (Vec<String>, Vec<u8>) {
        let (mut kinds, mut sound) = (Vec::new(), Vec::new());
        while kinds.last().is_none_or(|kind| kind != last) {
            let event = self.event().await;
            sound.extend(event.payload);
            kinds.push(event.kind);
        }
        (kinds, sound)
    }

    /// The error, after which the server closes the connection.
    pub(crate) async fn refused(&mut self) -> (String, Option<String>) {
        let error = self.expect("error").await;
        assert!(no_hang(self.read()).await.is_none(), "the connection ends");
        let text = |field: &str| error.data[field].as_str().map(str::to_owned);
        (text("text").expect("a message"), text("code"))
    }
}

#[tokio::test]
async fn describe_lists_the_port_s_own_model_first() {
    let wyoming = Wyoming::start().await;
    let mut client = wyoming.speaker().await;
    client.send("describe", json!({})).await;
    let info = client.expect("info").await.data;
    let names = |list: &Value| -> Vec<String> {
        let entries = list.as_array().expect("a list").iter();
        entries.map(|entry| entry["name"].as_str().expect("a name").to_owned()).collect()
    };
    assert_eq!(names(&info["tts"]), ["kokoro", "narrator", "echo"]);
    let voices = &info["tts"][0]["voices"];
    assert_eq!(names(voices), ["af_heart", "af_nova", "bm_fable", "jf_alpha"]);
    assert_eq!(voices[2]["languages"], json!(["en-GB"]));
    assert_eq!(info["asr"], json!([]));

    let mut client = wyoming.hearer().await;
    client.send("describe", json!({})).await;
    let info = client.expect("info").await.data;
    assert_eq!(names(&info["asr"]), ["whisper", "ears"]);
    assert_eq!(names(&info["asr"][0]["models"]), ["whisper"]);
    assert_eq!(info["tts"], json!([]));
}

#[tokio::test]
async fn pings_are_answered_and_unknown_events_ignored() {
    let wyoming = Wyoming::start().await;
    for mut client in [wyoming.speaker().await, wyoming.hearer().await] {
        client.send_with("satellite-connected", json!({ "a": [1] }), b"\n\n{").await;
        // These belong to no request.
        client.send("synthesize-chunk", json!({ "text": "x" })).await;
        client.send("synthesize-stop", json!({})).await;
        client.send("audio-stop", json!({})).await;
        client.send("ping", json!({ "text": "still there?" })).await;
        assert_eq!(client.expect("pong").await.data, json!({ "text": "still there?" }));
        client.send("ping", json!({})).await;
        assert_eq!(client.expect("pong").await.data, json!({}));
    }
}

#[tokio::test]
async fn each_port_says_what_it_is_for() {
    let wyoming = Wyoming::start().await;
    let layout = json!({ "rate": 16_000, "width": 2, "channels": 1 });
    for (event, data) in [("transcribe", json!({})), ("audio-start", layout)] {
        let mut client = wyoming.speaker().await;
        client.send(event, data).await;
        let (message, _) = client.refused().await;
        assert_eq!(message, format!("'{event}' does not belong here: this port is for speech"));
    }
    for (event, data) in [("synthesize", json!({ "text": "Hi" })), ("synthesize-start", json!({}))]
    {
        let mut client = wyoming.hearer().await;
        client.send(event, data).await;
        let (message, _) = client.refused().await;
        let why = "this port is for transcription";
        assert_eq!(message, format!("'{event}' does not belong here: {why}"));
    }
}
