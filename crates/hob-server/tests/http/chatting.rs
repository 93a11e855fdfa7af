//! Chat answers: the order of events, the headers, and how answers end.
//! `hob-wire` has their JSON and tests it byte for byte.

use std::sync::Arc;
use std::time::Duration;

use hob_core::ModelState;
use hob_server::ServerOptions;
use serde_json::{Value, json};

use crate::chat_model::{StagedChat, chat_lost, done, scripted, serve_chat, serve_staged, text};
use crate::client::{no_hang, post};

pub(crate) const HI: &str = r#"{"model":"smol","messages":[{"role":"user","content":"Hi"}]}"#;

pub(crate) const STREAM: &str =
    r#"{"model":"smol","messages":[{"role":"user","content":"Hi"}],"stream":true}"#;

pub(crate) fn chat(json: &str) -> Vec<u8> {
    post("/v1/chat/completions", json)
}

/// The request with additional fields.
fn hi_with(fields: &str) -> Vec<u8> {
    chat(&HI.replacen('{', &format!("{{{fields},"), 1))
}

/// The data of each event.
pub(crate) fn datas(body: &str) -> Vec<&str> {
    let events = body.split_terminator("\n\n").filter(|event| !event.starts_with(':'));
    events.map(|event| event.strip_prefix("data: ").expect("data")).collect()
}

pub(crate) fn parsed(data: &str) -> Value {
    serde_json::from_str(data).expect("JSON")
}

#[tokio::test]
async fn an_answer_says_what_was_said_and_where_it_came_from() {
    let server = serve_chat(scripted([Ok(vec![text("Hel"), text("lo"), done(2)])])).await;
    let answer = server.ask(hi_with(r#""user":"me","store":true"#)).await;
    let json = answer.json();
    assert_eq!(json["choices"][0]["message"]["content"], "Hello");
    assert_eq!((&json["model"], &json["object"]), (&json!("smol"), &json!("chat.completion")));
    assert_eq!(json["usage"]["total_tokens"], 14);
    assert!(json["id"].as_str().is_some_and(|id| id.starts_with("chatcmpl-") && id.len() > 20));
    assert!(json["created"].as_u64().is_some_and(|created| created > 1_700_000_000));
    for (name, expected) in [
        ("x-hob-target", "smol"),
        ("x-hob-warm", "true"),
        ("x-hob-queue-ms", "7"),
        ("x-hob-ignored", "store,user"),
        ("cache-control", "no-cache"),
    ] {
        assert_eq!(answer.header(name), Some(expected), "{name}");
    }
    assert!(answer.header("x-hob-ttft-ms").is_some_and(|ms| ms.parse::<u64>().is_ok()));
    assert!(answer.header("content-length").is_some());
    assert_eq!(server.in_flight(), 0);
}

#[tokio::test]
async fn a_stream_comes_as_it_is_made() {
    let model = Arc::new(StagedChat::new().with_state(ModelState::Cold));
    let server = serve_chat(Arc::clone(&model)).await;
    let sender = model.stage();
    let mut client = server.send(chat(STREAM)).await;
    sender.send(text("Hel")).await.expect("a reader");
    let head = client.head().await;
    assert_eq!(head.status, 200);
    assert_eq!(head.header("content-type"), Some("text/event-stream; charset=utf-8"));
    assert_eq!(head.header("x-accel-buffering"), Some("no"));
    assert_eq!(
        (head.header("x-hob-target"), head.header("x-hob-warm")),
        (Some("smol"), Some("false"))
    );
    assert!(head.header("x-hob-ttft-ms").is_some());
    assert_eq!(server.backlog(), 255.0, "of 256 that were guessed, one is made");
    let mut next = async || {
        let chunk = client.chunk().await.expect("a chunk").expect("no end");
        String::from_utf8(chunk).expect("text")
    };
    let first = next().await;
    let first: Vec<Value> = datas(&first).into_iter().map(parsed).collect();
    assert_eq!(first[0]["choices"][0]["delta"], json!({"role": "assistant", "content": ""}));
    assert_eq!(first[1]["choices"][0]["delta"], json!({"content": "Hel"}));
    sender.send(text("lo")).await.expect("a reader");
    let second = parsed(datas(&next().await)[0]);
    assert_eq!(second["choices"][0]["delta"], json!({"content": "lo"}));
    assert_eq!(second["id"], first[0]["id"]);
    sender.send(done(2)).await.expect("a reader");
    let end = next().await;
    let last = parsed(datas(&end)[0]);
    assert_eq!(last["choices"][0]["finish_reason"], "stop");
    assert_eq!(last["timings"]["cache_n"], 4);
    assert!(end.ends_with("data: [DONE]\n\n"), "what is there leaves together");
    assert_eq!(client.chunk().await.expect("a clean end"), None);
    no_hang(sender.closed()).await;
}

#[tokio::test]
async fn usage_comes_last_and_only_when_it_is_wanted() {
    for (options, expected) in [("", 0), (r#""stream_options":{"include_usage":true},"#, 1)] {
        let server = serve_chat(scripted([Ok(vec![text("Hello"), done(1)])])).await;
        let body = STREAM.replacen('{', &format!("{{{options}"), 1);
        let answer = server.ask(chat(&body)).await;
        let datas = datas(answer.text());
        assert_eq!(datas.last(), Some(&"[DONE]"));
        let chunks = datas[..datas.len() - 1].iter().map(|data| parsed(data));
        let usages: Vec<Value> = chunks.filter(|chunk| chunk["usage"].is_object()).collect();
        assert_eq!(usages.len(), expected, "{options}");
        assert!(usages.iter().all(|usage| usage["choices"] == json!([])));
    }
}

#[tokio::test]
async fn a_failure_after_the_start_is_an_event_and_no_done() {
    let message = "the chat worker ended unexpectedly: killed by signal 9";
    let lost =
        json!({"message": message, "type": "server_error", "param": null, "code": "worker_lost"});
    let message = "the chat engine failed: the answer ended before it was complete";
    let ended = json!({"message": message, "type": "server_error", "param": null, "code": null});
    for (events, expected) in
        [(vec![text("Hel"), Err(chat_lost())], lost), (vec![text("Hel")], ended)]
    {
        let server = serve_chat(scripted([Ok(events)])).await;
        let answer = server.ask(chat(STREAM)).await;
        assert_eq!(answer.status(), 200);
        let datas = datas(answer.text());
        assert_eq!(parsed(datas.last().expect("an event")), json!({ "error": expected }));
        assert!(!answer.text().contains("[DONE]"));
        assert_eq!(server.in_flight(), 0);
    }
}

#[tokio::test]
async fn an_answer_that_is_collected_is_refused_whenever_it_fails() {
    let server = serve_chat(scripted([Ok(vec![text("Hel"), Err(chat_lost())])])).await;
    let answer = server.ask(chat(HI)).await;
    assert_eq!(answer.error("code"), (503, json!("worker_lost")));
    assert_eq!(server.in_flight(), 0);
}

#[tokio::test]
async fn an_answer_that_is_collected_has_a_limit() {
    let long = "x".repeat(17 << 20);
    let server = serve_chat(scripted([Ok(vec![text(&long), text(&long), done(2)])])).await;
    let answer = server.ask(chat(HI)).await;
    let message = "the answer has more than 33554432 bytes, which is the limit of one that is not \
                   streamed; set 'stream', or ask for fewer tokens";
    let error = answer.json()["error"].clone();
    assert_eq!((answer.status(), &error["message"]), (400, &json!(message)));
    assert_eq!(error["param"], "stream");
}

#[tokio::test]
async fn other_choices_begin_when_the_prompt_is_computed() {
    let (server, model) = serve_staged(ServerOptions::default()).await;
    let senders = [model.stage(), model.stage(), model.stage()];
    let mut client = server.send(hi_with(r#""n":3,"seed":-1,"stream":true"#)).await;
    assert_eq!(model.asked(1).await.len(), 1, "the others wait");
    senders[0].send(text("a")).await.expect("a reader");
    let seeds: Vec<_> = model.asked(3).await.iter().map(|asked| asked.sampling.seed).collect();
    assert_eq!(seeds, [Some(u64::MAX), Some(0), Some(1)]);
    assert_eq!(server.in_flight(), 1, "one request, one place");
    for (sender, piece) in senders[1..].iter().zip(["b", "c"]) {
        sender.send(text(piece)).await.expect("a reader");
    }
    for sender in &senders {
        sender.send(done(1)).await.expect("a reader");
    }
    client.head().await;
    let body = String::from_utf8(client.chunks().await).expect("text");
    let mut texts = [const { String::new() }; 3];
    for data in datas(&body).into_iter().filter(|data| *data != "[DONE]") {
        let choice = &parsed(data)["choices"][0];
        let index = choice["index"].as_u64().expect("an index") as usize;
        texts[index] += choice["delta"]["content"].as_str().unwrap_or_default();
    }
    assert_eq!(texts, ["a", "b", "c"]);
    assert!(body.ends_with("data: [DONE]\n\n"));
}

#[tokio::test]
async fn a_choice_that_is_refused_refuses_all_before_anything_is_sent() {
    let busy = hob_core::ModelError::Busy { retry_after: Duration::from_secs(3) };
    let server = serve_chat(scripted([Ok(vec![text("a"), done(1)]), Err(busy)])).await;
    let answer = server.ask(hi_with(r#""n":2,"stream":true"#)).await;
    assert_eq!((answer.status(), answer.header("retry-after")), (503, Some("3")));
    assert_eq!(server.in_flight(), 0);
}

#[tokio::test]
async fn a_choice_that_fails_fails_the_answer() {
    let scripts = [Ok(vec![text("a"), done(1)]), Ok(vec![Err(chat_lost())])];
    let server = serve_chat(scripted(scripts)).await;
    let answer = server.ask(hi_with(r#""n":2,"stream":true"#)).await;
    let text = answer.text();
    assert!(text.contains(r#""code":"worker_lost""#) && !text.contains("[DONE]"), "{text}");
}
