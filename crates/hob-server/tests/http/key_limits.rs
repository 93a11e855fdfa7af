//! A key's limits: concurrent answers, requests per minute and tokens per day. They never delay other keys.

use std::num::{NonZeroU32, NonZeroU64};
use std::path::Path;
use std::sync::Arc;

use hob_core::ModelState;
use hob_server::ledger::Outcome;
use hob_server::{KeyOptions, ServerOptions};
use serde_json::json;

use crate::chat_model::{
    Event, StagedChat, begun, chat_lost, done, scripted, serve_chat, serve_chat_with, serve_staged,
    text,
};
use crate::client::{Answer, get, post_with, send_all};
use crate::keys::{HI, LAPTOP, PHONE, check_refused_count, get_as, named, post_as, with_keys};
use crate::ledger::{rows, with_ledger};
use crate::lifecycle::{StagedLifecycle, server_with};
use crate::model::{sound, worker_lost};
use crate::server::Server;

const CHAT: &str = "/v1/chat/completions";
const STREAM: &str = r#"{"messages":[{"role":"user","content":"Hi"}],"stream":true}"#;

fn hello() -> Result<Vec<Event>, hob_core::ModelError> {
    Ok(vec![text("Hello"), done(3)])
}

/// `phone` has limits, `laptop` has none.
fn options(limit: impl FnOnce(&mut KeyOptions)) -> ServerOptions {
    let mut phone = named("phone", PHONE);
    limit(&mut phone);
    with_keys([named("laptop", LAPTOP), phone])
}

/// A temporary rejection: its code, whether to retry, and when.
fn check_limit(answer: &Answer, code: &str, should_retry: &str, message: &str) -> u64 {
    let error = &answer.json()["error"];
    assert_eq!((answer.status(), &error["code"]), (429, &json!(code)), "{answer:?}");
    assert_eq!((&error["type"], &error["param"]), (&json!("rate_limit_error"), &json!(null)));
    assert!(error["message"].as_str().is_some_and(|said| said.contains(message)), "{error}");
    assert_eq!(answer.header("x-should-retry"), Some(should_retry));
    let wait = answer.header("retry-after").expect("a time");
    wait.parse().expect("whole seconds")
}

#[tokio::test]
async fn requests_of_a_minute_are_counted_and_lists_are_not() {
    let options = options(|phone| phone.requests_per_minute = NonZeroU32::new(2));
    let server = serve_chat_with(scripted([hello(), hello(), hello()]), options).await;
    for _ in 0..5 {
        for path in ["/v1/models", "/v1/audio/voices", "/metrics", "/health", "/api/ps"] {
            assert_eq!(server.ask(get_as(PHONE, path)).await.status(), 200, "{path}");
        }
        let unreadable = server.ask(post_as(PHONE, CHAT, "{}")).await;
        assert_eq!(unreadable.status(), 400, "what asks no model is not a request");
    }
    for _ in 0..2 {
        assert_eq!(server.ask(post_as(PHONE, CHAT, HI)).await.status(), 200);
    }
    let said = "this key may send 2 requests per minute; try again in ";
    for body in [HI, STREAM] {
        let answer = server.ask(post_as(PHONE, CHAT, body)).await;
        let wait_s = check_limit(&answer, "rate_limit_exceeded", "true", said);
        assert!((1..=61).contains(&wait_s), "the minute of the first: {wait_s}");
    }
    server.model.stage_all([sound(0.1, 100)]);
    let speech = server.ask(post_as(PHONE, "/v1/audio/speech", r#"{"input":"Hi"}"#)).await;
    check_limit(&speech, "rate_limit_exceeded", "true", said);
    let ollama = server.ask(post_as(PHONE, "/api/chat", HI)).await;
    assert_eq!((ollama.status(), ollama.header("x-should-retry")), (429, Some("true")));
    let vectors = server.ask(post_as(PHONE, "/v1/embeddings", r#"{"input":"Hi"}"#)).await;
    check_limit(&vectors, "rate_limit_exceeded", "true", said);
    assert_eq!(server.model.asked(), []);
    assert_eq!(server.ask(post_as(LAPTOP, CHAT, HI)).await.status(), 200, "another's minute");
    check_refused_count(&server, "rate_limit_exceeded", 5).await;
}

#[tokio::test]
async fn loading_and_unloading_are_requests() {
    let (lifecycle, load_results) = StagedLifecycle::new();
    lifecycle.occupy(ModelState::Ready, Default::default());
    let options = options(|phone| phone.requests_per_minute = NonZeroU32::new(3));
    let server = server_with(scripted([]), Some(lifecycle), options).await;
    for (path, body) in [
        ("/api/hob/load", r#"{"model":"smol"}"#),
        ("/api/generate", r#"{"model":"smol"}"#),
        ("/api/hob/unload", r#"{"model":"smol"}"#),
    ] {
        load_results.try_send(Ok(())).expect("room");
        assert_eq!(server.ask(post_as(PHONE, path, body)).await.status(), 200, "{path}");
    }
    for (path, body) in [
        ("/api/hob/load", r#"{"model":"smol"}"#),
        ("/api/hob/unload", r#"{"model":"smol"}"#),
        ("/api/generate", r#"{"model":"smol","keep_alive":0}"#),
        ("/api/embed", r#"{"model":"smol"}"#),
    ] {
        assert_eq!(server.ask(post_as(PHONE, path, body)).await.status(), 429, "{path}");
    }
}

#[tokio::test]
async fn a_place_is_held_until_the_answer_is_over_or_its_client_has_left() {
    let options = options(|phone| phone.concurrency = NonZeroU32::new(1));
    let (server, model) = serve_staged(options).await;
    let said = "this key may have 1 answer at a time; wait for the end of an answer";
    let refused = async || {
        let answer = server.ask(post_as(PHONE, CHAT, HI)).await;
        assert_eq!(check_limit(&answer, "concurrency_limit_exceeded", "true", said), 1);
    };

    let (sender, client) = begun(&server, &model, post_as(PHONE, CHAT, STREAM)).await;
    refused().await;
    client.leave(&sender).await;

    let (sender, mut client) = begun(&server, &model, post_as(PHONE, "/api/chat", HI)).await;
    refused().await;
    let (others, _other) = begun(&server, &model, post_as(LAPTOP, CHAT, STREAM)).await;
    sender.send(done(1)).await.expect("a reader");
    client.chunks().await;

    let (sender, mut client) = begun(&server, &model, post_as(PHONE, CHAT, STREAM)).await;
    refused().await;
    sender.send(Err(chat_lost())).await.expect("a reader");
    client.chunks().await;

    // An answer that is not streamed counts until it is complete.
    let sender = model.stage();
    let mut client = server.send(post_as(PHONE, CHAT, HI)).await;
    model.asked(5).await;
    refused().await;
    send_all(&sender, [text("Hello"), done(1)]).await;
    assert_eq!(client.answer().await.status(), 200);

    let sender = server.model.stage();
    let mut client = server.send(post_as(PHONE, "/v1/audio/speech", r#"{"input":"Hi"}"#)).await;
    sender.send(sound(0.1, 2400)).await.expect("a listener");
    client.head().await;
    refused().await;
    client.leave(&sender).await;
    server.model.stage_all([sound(0.1, 100)]);
    let speech = server.ask(post_as(PHONE, "/v1/audio/speech", r#"{"input":"Hi"}"#)).await;
    assert_eq!(speech.status(), 200);
    check_refused_count(&server, "concurrency_limit_exceeded", 5).await;
    drop(others);
}

fn budget(tokens: u64) -> impl FnOnce(&mut KeyOptions) {
    move |phone| phone.tokens_per_day = NonZeroU64::new(tokens)
}

/// Rejected until midnight UTC, which may be soon.
fn check_spent(answer: &Answer, tokens: u64) {
    let tokens = hob_core::count_text(tokens, "token");
    let said = format!("this key has used its {tokens} of today; the next day begins at");
    let wait_s = check_limit(answer, "budget_exceeded", "false", &said);
    assert!((1..=120).contains(&wait_s), "{wait_s}");
}

#[tokio::test]
async fn the_days_tokens_are_spent_by_prompts_answers_and_characters() {
    // 12 tokens of the prompt and 3 of the answer.
    let server = serve_chat_with(scripted([hello(), hello()]), options(budget(16))).await;
    for _ in 0..2 {
        assert_eq!(server.ask(post_as(PHONE, CHAT, HI)).await.status(), 200, "one is left");
    }
    for (path, body) in [(CHAT, HI), ("/v1/audio/speech", r#"{"input":"Hi"}"#)] {
        check_spent(&server.ask(post_as(PHONE, path, body)).await, 16);
    }
    assert_eq!(server.ask(get_as(PHONE, "/v1/models/smol")).await.status(), 200);
    check_refused_count(&server, "budget_exceeded", 2).await;

    let server = serve_chat_with(scripted([]), options(budget(6))).await;
    let speak = async || {
        let five = r#"{"input":"Grüße"}"#;
        server.ask(post_as(PHONE, "/v1/audio/speech", five)).await
    };
    server.model.stage_refusal(worker_lost());
    server.model.stage_all([]);
    server.model.stage_all([sound(0.1, 100)]);
    server.model.stage_all([sound(0.1, 100)]);
    for status in [503, 400, 200, 200] {
        assert_eq!(speak().await.status(), status, "what is not heard costs nothing");
    }
    check_spent(&speak().await, 6);
}

#[tokio::test]
async fn tokens_that_came_before_a_client_left_are_spent() {
    let (server, model) = serve_staged(options(budget(1))).await;
    let (sender, client) = begun(&server, &model, post_as(PHONE, CHAT, STREAM)).await;
    let said = "this key may use 1 token per day, and its running answers have reserved the rest";
    let second = server.ask(post_as(PHONE, CHAT, HI)).await;
    assert_eq!(check_limit(&second, "budget_exceeded", "true", said), 1);
    assert!(!sender.is_closed(), "what runs is finished");
    client.leave(&sender).await;
    check_spent(&server.ask(post_as(PHONE, CHAT, HI)).await, 1);
}

#[tokio::test]
async fn answers_at_once_do_not_spend_the_same_tokens() {
    let (server, model) = serve_staged(options(budget(200))).await;
    let limited = STREAM.replace(r#""stream""#, r#""max_tokens":150,"stream""#);
    let (_first, _one) = begun(&server, &model, post_as(PHONE, CHAT, &limited)).await;
    let (_second, _other) = begun(&server, &model, post_as(PHONE, CHAT, &limited)).await;
    let asked = model.asked(2).await;
    // "Hi" counts as one token.
    assert_eq!((asked[0].tokens_max, asked[1].tokens_max), (Some(150), Some(48)));
    // Aliases keep to it.
    assert_eq!((asked[0].key_tokens_max, asked[1].key_tokens_max), (Some(199), Some(48)));
    for _ in 0..10 {
        assert_eq!(server.ask(post_as(PHONE, CHAT, HI)).await.status(), 429);
    }
}

/// Other servers refuse a limit that is longer than their longest answer.
#[tokio::test]
async fn an_answer_without_a_limit_gets_none_while_much_is_left() {
    for (tokens, tokens_max) in [(1_000_000, None), (4098, None), (4097, Some(4096))] {
        let (server, model) = serve_staged(options(budget(tokens))).await;
        let (_sender, _client) = begun(&server, &model, post_as(PHONE, CHAT, STREAM)).await;
        assert_eq!(model.asked(1).await[0].tokens_max, tokens_max, "{tokens}");
    }
}

#[tokio::test]
async fn tools_count_among_the_reserved_tokens_of_a_prompt() {
    let (server, model) = serve_staged(options(budget(200))).await;
    // With the name and the message they are 400 bytes, which count as 100 tokens.
    let description = "x".repeat(396);
    let tool = json!({"type": "function", "function": {"name": "f1", "description": description}});
    let messages = json!([{"role": "user", "content": "Hi"}]);
    let body = json!({"messages": messages, "tools": [tool], "stream": true}).to_string();
    let (_sender, _client) = begun(&server, &model, post_as(PHONE, CHAT, &body)).await;
    assert_eq!(model.asked(1).await[0].tokens_max, Some(100));
}

async fn remembering(folder: &Path) -> Server {
    let options = ServerOptions { ledger: with_ledger(folder).ledger, ..options(budget(15)) };
    let server = serve_chat_with(scripted([hello(), hello()]), options).await;
    server.model.stage_all([sound(0.1, 100)]);
    server
}

#[tokio::test]
async fn to_start_again_gives_no_tokens_back() {
    let folder = tempfile::tempdir().expect("a folder");
    let server = remembering(folder.path()).await;
    assert_eq!(server.ask(post_as(PHONE, CHAT, HI)).await.status(), 200);
    check_spent(&server.ask(post_as(PHONE, CHAT, HI)).await, 15);
    let written = rows(folder.path(), 1).await;
    assert_eq!((written[0].key.as_deref(), written[0].tokens()), (Some("phone"), 15));
    drop(server);

    let server = remembering(folder.path()).await;
    check_spent(&server.ask(post_as(PHONE, CHAT, HI)).await, 15);
    let speech = post_as(LAPTOP, "/v1/audio/speech", r#"{"input":"Hello."}"#);
    assert_eq!(server.ask(speech).await.status(), 200);
    let written = rows(folder.path(), 2).await;
    assert_eq!((written[1].key.as_deref(), written[1].tokens()), (Some("laptop"), 6));
    assert_eq!(written[1].outcome, Outcome::Complete);
    assert_eq!(rows(folder.path(), 2).await.len(), 2, "who is refused by key asked no model");
}

/// Every client can send the user agent of `hob bench`, whose requests the ledger leaves out.
#[tokio::test]
async fn a_client_that_calls_itself_a_benchmark_gets_no_tokens_back_either() {
    let folder = tempfile::tempdir().expect("a folder");
    let server = remembering(folder.path()).await;
    let headers = format!(
        "Content-Type: application/json\r\nAuthorization: Bearer {PHONE}\r\n\
         User-Agent: hob-bench/1\r\n"
    );
    assert_eq!(server.ask(post_with(CHAT, &headers, HI)).await.status(), 200);
    assert_eq!(rows(folder.path(), 1).await[0].tokens(), 15);
    drop(server);

    let server = remembering(folder.path()).await;
    check_spent(&server.ask(post_as(PHONE, CHAT, HI)).await, 15);
}

#[tokio::test]
async fn without_keys_no_request_is_limited() {
    let server = serve_chat(scripted([hello()])).await;
    assert_eq!(server.ask(get("/metrics")).await.status(), 200);
    assert_eq!(server.ask(post_as("hob-any", CHAT, HI)).await.status(), 200);
    let metrics = server.get("/metrics").await;
    assert!(!metrics.text().contains("hob_key_refused_total{"), "{}", metrics.text());
}

#[tokio::test]
async fn abandoned_embeddings_are_charged_as_far_as_they_were_computed() {
    let server = serve_chat_with(Arc::new(StagedChat::new()), options(budget(7))).await;
    let body = r#"{"input":["one","two"]}"#;
    let client = server.send(post_as(PHONE, "/v1/embeddings", body)).await;
    server.until_in_flight(1).await;
    drop(client);
    server.until_in_flight(0).await;
    check_spent(&server.ask(post_as(PHONE, "/v1/embeddings", body)).await, 7);
}
