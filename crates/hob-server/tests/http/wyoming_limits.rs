//! Wyoming connections obey the limits of the server: bytes, time, connections and shutdown.
//! Nothing of a text is logged.

use std::time::Duration;

use hob_server::ServerOptions;
use serde_json::json;
use tokio::time::Instant;

use crate::client::{get, no_hang};
use crate::log::Log;
use crate::model::{Mouth, sound};
use crate::wyoming::{Wyoming, WyomingClient};

#[tokio::test]
async fn bytes_that_are_no_events_are_refused_with_the_reason() {
    let wyoming = Wyoming::start().await;
    let long = vec![b'x'; 70_000];
    for (bytes, message) in [
        (&b"GET / HTTP/1.1\r\n\r\n"[..], "the line that begins an event cannot be read"),
        (b"{\"type\":\"ping\",\"data_length\":9999999}\n", "announces 9999999 bytes of data"),
        (b"{\"type\":\"ping\",\"payload_length\":-1}\n", "'payload_length'"),
        (b"{\"type\":\"ping\",\"data_length\":2}\n[]", "the data of an event cannot be read"),
        (b"{\"type\":\"synthesize\"}\n", "'text' is missing"),
        (&long, "longer than 65536 bytes"),
    ] {
        let mut client = wyoming.speaker().await;
        client.send_bytes(bytes).await;
        let (said, _) = client.refused().await;
        assert!(said.contains(message), "{said}");
    }
}

#[tokio::test(start_paused = true)]
async fn an_event_that_never_arrives_whole_is_given_up() {
    let wyoming = Wyoming::start().await;
    for bytes in [&b"{\"type\":\"pi"[..], b"{\"type\":\"ping\",\"data_length\":9}\n{"] {
        let mut client = wyoming.speaker().await;
        client.send_bytes(bytes).await;
        let begun = Instant::now();
        let error = client.read().await.expect("an event").data;
        assert_eq!(error["text"], "the body did not arrive within 30 s");
        assert!(begun.elapsed() >= Duration::from_secs(29));
    }
}

#[tokio::test(start_paused = true)]
async fn large_events_share_the_memory_of_bodies() {
    let options = ServerOptions { bodies_bytes_max: 100 << 10, ..ServerOptions::default() };
    let wyoming = Wyoming::start_with(options).await;
    let mut first = wyoming.speaker().await;
    // Announces most of the memory, and sends nothing of it.
    first.send_bytes(b"{\"type\":\"x\",\"payload_length\":90000}\n").await;
    let mut second = wyoming.speaker().await;
    second.send_bytes(b"{\"type\":\"x\",\"payload_length\":90000}\n").await;
    let error = first.read().await.expect("an event").data;
    let message = error["text"].as_str().expect("a message");
    assert!(message.contains("slower than"), "{message}");
    second.send_bytes(&[0; 90_000]).await;
    second.send("ping", json!({})).await;
    assert_eq!(second.read().await.expect("an event").kind, "pong");
}

/// A client in the middle of a spoken answer, with the model's end of it, and a client that asks for nothing.
async fn busy_and_idle(wyoming: &Wyoming) -> (Mouth, WyomingClient, WyomingClient) {
    let sender = wyoming.server.model.stage();
    let mut busy = wyoming.speaker().await;
    busy.send("synthesize", json!({ "text": "Hi" })).await;
    sender.send(sound(0.1, 1)).await.expect("a listener");
    busy.until("audio-chunk").await;
    let mut idle = wyoming.hearer().await;
    idle.send("ping", json!({})).await;
    idle.expect("pong").await;
    (sender, busy, idle)
}

#[tokio::test]
async fn an_idle_connection_makes_room_for_another() {
    let options = ServerOptions { connections_max: 2, ..ServerOptions::default() };
    let wyoming = Wyoming::start_with(options).await;
    let (sender, mut busy, mut idle) = busy_and_idle(&wyoming).await;
    let mut next = wyoming.server.send(get("/health")).await;
    assert_eq!(next.answer().await.status(), 200);
    assert!(no_hang(idle.read()).await.is_none(), "the idle one was closed");
    drop(sender);
    busy.expect("audio-stop").await;
}

#[tokio::test]
async fn a_stop_closes_idle_connections_and_lets_running_answers_finish() {
    let mut wyoming = Wyoming::start().await;
    let (sender, mut busy, mut idle) = busy_and_idle(&wyoming).await;
    wyoming.server.ask_to_stop();
    assert!(no_hang(idle.read()).await.is_none());
    sender.send(sound(0.1, 1)).await.expect("a listener");
    busy.expect("audio-chunk").await;
    drop(sender);
    busy.expect("audio-stop").await;
    assert!(no_hang(busy.read()).await.is_none());
    wyoming.server.stopped().await;
}

#[tokio::test]
async fn an_answer_that_is_cut_off_says_why() {
    let drain_time_max = Duration::from_millis(50);
    let options = ServerOptions { drain_time_max, ..ServerOptions::default() };
    let mut wyoming = Wyoming::start_with(options).await;
    let sender = wyoming.server.model.stage();
    let mut writing = wyoming.echo().await;
    writing.send("synthesize-start", json!({})).await;
    writing.send("synthesize-chunk", json!({ "text": "Hi" })).await;
    writing.until("audio-chunk").await;
    let mut busy = wyoming.speaker().await;
    busy.send("synthesize", json!({ "text": "Hi" })).await;
    sender.send(sound(0.1, 1)).await.expect("a listener");
    busy.until("audio-chunk").await;
    wyoming.server.ask_to_stop();
    for client in [&mut writing, &mut busy] {
        assert_eq!(client.refused().await.1.as_deref(), Some("server_stopping"));
    }
    wyoming.server.stopped().await;
    no_hang(sender.closed()).await;
}

#[tokio::test]
async fn no_text_is_logged() {
    let log = Log::default();
    let listening = log.listen();
    let wyoming = Wyoming::start().await;
    let mut client = wyoming.echo().await;
    client.send("synthesize", json!({ "text": "xyzzy" })).await;
    client.until("audio-stop").await;
    client.send("synthesize-start", json!({})).await;
    client.send("synthesize-chunk", json!({ "text": "xyzzy" })).await;
    client.send("ping", json!({ "text": "xyzzy" })).await;
    client.send("synthesize-stop", json!({})).await;
    client.until("synthesize-stopped").await;
    client.send("synthesize", json!({ "text": "xyzzy", "voice": "xyzzy" })).await;
    client.refused().await;
    let mut client = wyoming.hearer().await;
    client.send("transcribe", json!({ "language": "none", "transcript_terms": ["xyzzy"] })).await;
    client.send("audio-start", json!({ "rate": 16_000, "width": 2, "channels": 1 })).await;
    client.refused().await;
    drop(listening);
    let log = log.text();
    assert!(log.contains("outcome=\"complete\"") && log.contains("wyoming/transcription"), "{log}");
    assert!(!log.contains("xyzzy"), "{log}");
}
