//! Chat while the model sends nothing: comments, time limits, and clients that disconnect.

use std::sync::Arc;
use std::time::Duration;

use hob_core::{ChatEvent, ModelState};
use hob_server::ServerOptions;
use serde_json::json;

use crate::chat_model::{StagedChat, begun, done, serve_chat_with, serve_staged, talkative, text};
use crate::chatting::{HI, STREAM, chat, datas, parsed};
use crate::client::{no_hang, post, send_all};

#[tokio::test]
async fn a_silent_stream_says_that_it_lives() {
    let (server, model) = serve_staged(talkative()).await;
    let (sender, mut client) = begun(&server, &model, chat(STREAM)).await;
    client.chunk().await.expect("a chunk");
    for _ in 0..3 {
        assert_eq!(client.chunk().await.expect("a chunk").as_deref(), Some(&b": hob\n\n"[..]));
    }
    sender.send(done(1)).await.expect("a reader");
    let rest = String::from_utf8(client.chunks().await).expect("text");
    assert!(rest.ends_with("data: [DONE]\n\n"), "{rest}");
}

/// Completions have no place for tool calls, so a client gets nothing while the model writes one.
#[tokio::test]
async fn a_stream_of_events_that_the_client_does_not_get_says_that_it_lives() {
    let keep_alive_every = Duration::from_millis(100);
    let options = ServerOptions { keep_alive_every, ..ServerOptions::default() };
    let (server, model) = serve_staged(options).await;
    let request = post("/v1/completions", r#"{"model":"smol","prompt":"Once","stream":true}"#);
    let (sender, mut client) = begun(&server, &model, request).await;
    client.chunk().await.expect("a chunk");
    let call = async {
        for _ in 0..50 {
            tokio::time::sleep(keep_alive_every / 5).await;
            let piece = "1".to_owned();
            let event = Ok(ChatEvent::ToolArguments { index: 0, piece });
            sender.send(event).await.expect("a reader");
        }
    };
    tokio::select! {
        chunk = client.chunk() => {
            assert_eq!(chunk.expect("a chunk").as_deref(), Some(&b": hob\n\n"[..]));
        }
        () = call => unreachable!("the client got nothing for a second"),
    }
}

#[tokio::test]
async fn a_model_that_makes_no_token_is_not_waited_for_forever() {
    let options = ServerOptions {
        // Longer than this test takes for the first token of the last answer.
        token_time_max: Duration::from_secs(1),
        keep_alive_every: Duration::from_millis(300),
        ..ServerOptions::default()
    };
    let (server, model) = serve_staged(options).await;
    let expected = json!({
        "message": "the model produced no token for 1 s",
        "type": "server_error",
        "param": null,
        "code": "timeout",
    });
    // No answer is staged, so the model does not even accept the request.
    let answer = server.ask(chat(STREAM)).await;
    assert_eq!((answer.status(), &answer.json()["error"]), (504, &expected));
    let sender = model.stage();
    let answer = server.ask(chat(STREAM)).await;
    assert_eq!((answer.status(), &answer.json()["error"]), (504, &expected));
    no_hang(sender.closed()).await;
    // Comments between tokens do not restart the time limit.
    let (sender, mut client) = begun(&server, &model, chat(STREAM)).await;
    let mut body = String::new();
    while !body.contains("error") {
        let chunk = client.chunk().await.expect("a chunk").expect("no end yet");
        body += str::from_utf8(&chunk).expect("text");
        assert!(body.len() < 2000, "it goes on for ever: {body}");
    }
    assert_eq!(parsed(datas(&body).last().expect("an event")), json!({ "error": expected }));
    assert_eq!(client.chunk().await.expect("a clean end"), None, "and no [DONE]");
    no_hang(sender.closed()).await;
}

#[tokio::test]
async fn an_answer_may_take_longer_than_its_longest_silence() {
    let options = ServerOptions {
        token_time_max: Duration::from_secs(3),
        keep_alive_every: Duration::from_millis(270),
        ..ServerOptions::default()
    };
    let (server, model) = serve_staged(options).await;
    let (sender, mut client) = begun(&server, &model, chat(STREAM)).await;
    // Three silences of four comments each are 3.2 s.
    for _ in 0..3 {
        let mut silence = 0;
        while silence < 4 {
            let chunk = client.chunk().await.expect("a chunk").expect("no end");
            silence += usize::from(chunk == b": hob\n\n");
        }
        sender.send(text("lo")).await.expect("a reader");
    }
    sender.send(done(4)).await.expect("a reader");
    let rest = String::from_utf8(client.chunks().await).expect("text");
    assert!(rest.ends_with("data: [DONE]\n\n"), "{rest}");
}

#[tokio::test]
async fn a_client_that_left_is_not_answered() {
    let (server, model) = serve_staged(ServerOptions::default()).await;
    // Before the first token, during a stream, and while a whole answer is collected.
    let sender = model.stage();
    let client = server.send(chat(STREAM)).await;
    model.asked(1).await;
    client.leave(&sender).await;

    let (sender, client) = begun(&server, &model, chat(STREAM)).await;
    client.leave(&sender).await;

    let sender = model.stage();
    let client = server.send(chat(HI)).await;
    sender.send(text("Hel")).await.expect("a reader");
    client.leave(&sender).await;

    server.until_in_flight(0).await;
    assert_eq!(server.backlog(), 0.0);
    let line = r#"hob_chat_answers_total{model="smol",outcome="abandoned"} 3"#;
    server.get("/metrics").await.has_lines(&[line]);
}

#[tokio::test]
async fn a_stream_that_waits_for_its_first_word_begins_before_its_status_is_known() {
    let options = ServerOptions { early_headers_after: Duration::from_millis(30), ..talkative() };
    let (server, model) = serve_staged(options).await;
    let sender = model.stage();
    let mut client = server.send(chat(STREAM)).await;
    let head = client.head().await;
    assert_eq!((head.status, head.header("x-hob-target")), (200, None), "no answer yet");
    assert_eq!(client.chunk().await.expect("a chunk").as_deref(), Some(&b": hob\n\n"[..]));
    send_all(&sender, [text("Hi"), done(1)]).await;
    let rest = String::from_utf8(client.chunks().await).expect("text");
    assert!(rest.contains("\"Hi\"") && rest.ends_with("data: [DONE]\n\n"), "{rest}");
}

#[tokio::test]
async fn early_headers_name_the_model_of_a_request_that_names_none() {
    let options = ServerOptions { early_headers_after: Duration::from_millis(30), ..talkative() };
    let (server, model) = serve_staged(options).await;
    let _sender = model.stage();
    let request = r#"{"messages":[{"role":"user","content":"Hi"}],"stream":true}"#;
    let mut client = server.send(chat(request)).await;
    assert_eq!(client.head().await.header("x-hob-alias"), Some("smol"));
}

#[tokio::test]
async fn a_client_that_asks_for_it_gets_loading_progress() {
    let loading = ModelState::Loading { ready_in: Duration::from_secs(7) };
    let model = Arc::new(StagedChat::new().with_state(loading));
    let server = serve_chat_with(Arc::clone(&model), talkative()).await;
    let sender = model.stage();
    let mut client = server.client().await;
    let asks = STREAM.replacen('{', r#"{"loading_status":true,"#, 1);
    client.send(chat(&asks)).await;
    assert_eq!(client.head().await.status, 200);
    let said = client.chunk().await.expect("a chunk").expect("no end");
    let said = String::from_utf8(said).expect("text");
    let delta = &parsed(datas(&said).last().expect("an event"))["choices"][0]["delta"];
    assert_eq!(delta["reasoning_content"], "smol is being loaded, about 7 s left.\n");
    send_all(&sender, [text("Hi"), done(1)]).await;
    let rest = String::from_utf8(client.chunks().await).expect("text");
    assert!(rest.contains("\"Hi\"") && rest.ends_with("data: [DONE]\n\n"), "{rest}");
}
