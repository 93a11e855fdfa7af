//! Bodies of many concurrent requests: memory is limited, slow bodies give way, and limits of a key are checked before
//! the body.

use std::num::NonZeroU32;
use std::sync::Mutex;
use std::thread::{self, ThreadId};

use hob_server::ServerOptions;
use serde_json::json;

use crate::chat_model::{begun, done, scripted, serve_chat, serve_chat_with, serve_staged, text};
use crate::keys::{PHONE, named, post_as, with_keys};
use crate::transcript_model::{self, body, form_headers};

const CHAT: &str = "/v1/chat/completions";
const MIB: usize = 1 << 20;

/// The head of a request. The test may never send the body.
fn head(path: &str, headers: &str, length: usize) -> String {
    format!("POST {path} HTTP/1.1\r\nHost: localhost\r\n{headers}Content-Length: {length}\r\n\r\n")
}

fn upload(length: usize) -> String {
    head("/v1/audio/transcriptions", &form_headers(), length)
}

#[tokio::test]
async fn slow_uploads_do_not_block_transcription() {
    let options = ServerOptions { bodies_bytes_max: MIB, ..ServerOptions::default() };
    let server = transcript_model::serve_with(
        transcript_model::scripted([Ok(vec![transcript_model::done(1.0)])]),
        options,
    )
    .await;
    let mut slow = server.send(upload(MIB)).await;
    slow.send(&body(&[("file", Some("a.wav"), &[0; 100])])[..150]).await;
    let file = vec![0; MIB / 2];
    let whole = body(&[("file", Some("b.wav"), &file)]);
    let answer = server.ask([upload(whole.len()).as_bytes(), &whole].concat()).await;
    assert_eq!(answer.status(), 200, "{answer:?}");
    let refused = slow.answer().await;
    assert_eq!(refused.status(), 408, "{refused:?}");
    assert!(refused.text().contains("slower than 131072 bytes a second"), "{refused:?}");
}

#[tokio::test]
async fn a_key_that_has_no_turn_is_refused_before_its_body_is_read() {
    let mut phone = named("phone", PHONE);
    phone.concurrency = NonZeroU32::new(1);
    let (server, model) = serve_staged(with_keys([phone])).await;
    let stream = r#"{"messages":[{"role":"user","content":"Hi"}],"stream":true}"#;
    let (_sender, _client) = begun(&server, &model, post_as(PHONE, CHAT, stream)).await;
    let mut second =
        server.send(head(CHAT, &format!("Authorization: Bearer {PHONE}\r\n"), 30 * MIB)).await;
    let refused = second.answer().await;
    assert_eq!(refused.error("code"), (429, json!("concurrency_limit_exceeded")));
}

#[tokio::test]
async fn a_body_of_small_objects_is_refused_on_every_route() {
    let server = serve_chat(scripted([])).await;
    let objects = vec!["{}"; 600_000].join(",");
    for (path, field) in [
        (CHAT, "messages"),
        (CHAT, "nothing_known"),
        ("/v1/completions", "prompt"),
        ("/v1/embeddings", "input"),
        ("/v1/audio/speech", "input"),
        ("/api/chat", "messages"),
        ("/api/embed", "input"),
    ] {
        let json = format!(r#"{{"{field}":[{objects}]}}"#);
        let answer = server.ask(crate::client::post(path, json)).await;
        let message = "more than 500000 JSON values and names";
        assert!(answer.status() == 400 && answer.text().contains(message), "{path}: {answer:?}");
    }
}

/// The thread that parsed the latest large body.
static PARSED_BY: Mutex<Option<ThreadId>> = Mutex::new(None);

#[tokio::test]
async fn a_large_body_is_parsed_on_a_thread_that_serves_no_connections() {
    let give_back = || *PARSED_BY.lock().expect("no panic") = Some(thread::current().id());
    let options = ServerOptions { give_back, ..ServerOptions::default() };
    let server = serve_chat_with(scripted([Ok(vec![text("Hello"), done(1)])]), options).await;
    let long = "long ".repeat(MIB / 50);
    let body = format!(r#"{{"messages":[{{"role":"user","content":"{long}"}}]}}"#);
    let answer = server.ask(crate::client::post(CHAT, body)).await;
    let parsed_by = PARSED_BY.lock().expect("no panic").expect("it was parsed");
    // The test's own thread serves all connections.
    assert_ne!(parsed_by, thread::current().id(), "{answer:?}");
}
