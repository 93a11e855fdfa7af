//! Every way to reject a chat request: status, envelope, and the fields for a client's retry logic.
//! The server sends nothing before it knows that there is an answer.

use std::sync::Arc;
use std::time::Duration;

use hob_core::budget::{Holder, KeptBy};
use hob_core::fit::Pool;
use hob_core::scripted::ScriptedChat;
use hob_core::{ChatCard, ModelError, Registry, Shortage};
use hob_server::ServerOptions;
use serde_json::Value;

use crate::chat_model::{
    Event, card, chat_lost, done, scripted, serve_chat, serve_chat_with, serve_staged, talkative,
    text,
};
use crate::chatting::chat;
use crate::client::{post, post_with, send_all};
use crate::keys::{HI, with_key};
use crate::refusals::{Row, check_refusal, invalid, invalid_as, unavailable};
use crate::server::Server;

fn no_room(retry_after: Option<Duration>) -> ModelError {
    let (name, kept_by) = ("other".to_owned(), KeptBy::Answering);
    let held = vec![Holder { name, bytes: 4_000_000_000, kept_by }];
    let (needed_bytes, available_bytes) = (9_000_000_000, 6_000_000_000);
    let shortage = Shortage { pool: Pool::Ram, needed_bytes, available_bytes, held };
    ModelError::NoRoom { shortage, retry_after }
}

#[tokio::test]
async fn models_that_refuse_or_fail_before_the_first_token() {
    let rows: [(ModelError, Row); 9] = [
        (
            ModelError::TooLong { needed: 9000, available: 8192 },
            invalid_as("context_length_exceeded", "messages"),
        ),
        (ModelError::NoTemplate, invalid_as("unsupported_parameter", "messages")),
        (
            ModelError::InvalidField {
                field: "grammar",
                reason: "is not a valid grammar".to_owned(),
            },
            invalid(Some("grammar")),
        ),
        (
            ModelError::OutOfMemory {
                needed_bytes: 9_000_000_000,
                available_bytes: 4_000_000_000,
                what_fits: None,
            },
            unavailable("out_of_memory", None),
        ),
        (no_room(None), unavailable("no_room", None)),
        (no_room(Some(Duration::from_secs(7))), unavailable("no_room", Some("7"))),
        (
            ModelError::Busy { retry_after: Duration::from_secs(5) },
            unavailable("queue_full", Some("5")),
        ),
        (
            ModelError::Loading { retry_after: Duration::from_secs(8) },
            unavailable("model_loading", Some("8")),
        ),
        (chat_lost(), unavailable("worker_lost", Some("1"))),
    ];
    for (error, expected) in rows {
        let message = error.to_string();
        let first: Vec<Event> = vec![Err(error.clone())];
        let server = serve_chat(scripted([Err(error), Ok(first)])).await;
        for body in [HI.to_owned(), HI.replacen('{', r#"{"stream":true,"#, 1)] {
            check_refusal(&server.ask(chat(&body)).await, expected, &message);
        }
        assert_eq!(server.in_flight(), 0);
    }
}

#[tokio::test]
async fn the_text_and_the_header_round_a_wait_up() {
    let retry_after = Duration::from_millis(4_200);
    for (error, code, message) in [
        (ModelError::Busy { retry_after }, "queue_full", "the model is busy; try again in 5 s"),
        (
            ModelError::Loading { retry_after },
            "model_loading",
            "the model is still loading; try again in 5 s",
        ),
    ] {
        let server = serve_chat(scripted([Err(error)])).await;
        let expected = unavailable(code, Some("5"));
        check_refusal(&server.ask(chat(HI)).await, expected, message);
    }
}

#[tokio::test]
async fn the_error_for_a_long_prompt_names_the_field_of_the_route() {
    let too_long = ModelError::TooLong { needed: 9000, available: 8192 };
    let message = too_long.to_string();
    // LiteLLM, LangChain and CrewAI look for these words, and then shorten the conversation.
    assert!(message.starts_with("this model's maximum context length is 8192 tokens"), "{message}");
    let server = serve_chat(scripted([Err(too_long)])).await;
    let answer = server.ask(post("/v1/completions", r#"{"prompt":"Hi"}"#)).await;
    let expected = invalid_as("context_length_exceeded", "prompt");
    check_refusal(&answer, expected, &message);
}

#[tokio::test]
async fn an_error_after_the_status_names_the_field_of_the_route_too() {
    let options = ServerOptions { early_headers_after: Duration::from_millis(30), ..talkative() };
    let (server, model) = serve_staged(options).await;
    let sender = model.stage();
    let request = post("/v1/completions", r#"{"prompt":"Hi","stream":true}"#);
    let mut client = server.send(request).await;
    assert_eq!(client.head().await.status, 200, "no answer yet");
    let too_long = ModelError::TooLong { needed: 9000, available: 8192 };
    sender.send(Err(too_long)).await.expect("a reader");
    let rest = String::from_utf8(client.chunks().await).expect("text");
    assert!(rest.contains(r#""param":"prompt""#), "{rest}");
}

#[tokio::test]
async fn requests_that_the_model_cannot_serve_never_reach_it() {
    let bare = ChatCard { template: None, infills: false, ..card() };
    let script: Result<Vec<Event>, ModelError> = Ok(vec![text("Hello"), done(1)]);
    let model = Arc::new(ScriptedChat::new([script]).with_card(bare));
    let server = serve_chat(Arc::clone(&model)).await;
    for (path, body, field) in
        [("/v1/chat/completions", HI, "messages"), ("/v1/responses", r#"{"input":"Hi"}"#, "input")]
    {
        check_refusal(
            &server.ask(post(path, body)).await,
            invalid_as("unsupported_parameter", field),
            "this model has no chat template; it continues texts at /v1/completions",
        );
    }
    check_refusal(
        &server.ask(post("/v1/completions", r#"{"prompt":"a","suffix":"c"}"#)).await,
        invalid_as("unsupported_parameter", "suffix"),
        "this model cannot do what 'suffix' asks for: its vocabulary has no \
         fill-in-the-middle tokens",
    );
    assert_eq!(model.requests(), []);
    assert_eq!(server.ask(post("/v1/completions", r#"{"prompt":"a"}"#)).await.status(), 200);
}

#[tokio::test]
async fn requests_that_cannot_be_read() {
    let server = serve_chat(scripted([])).await;
    for (path, body, param, message) in [
        ("/v1/chat/completions", "{}", Some("messages"), "'messages' is missing"),
        (
            "/v1/chat/completions",
            r#"{"messages":[{"role":"user","content":"Hi"}],"tool_choice":{"function":{"name":"x"}}}"#,
            Some("tool_choice"),
            "'tool_choice' names 'x', which is not among the tools",
        ),
        (
            "/v1/chat/completions",
            "[",
            None,
            "the body is not valid JSON: EOF while parsing a list at line 1 column 1",
        ),
        ("/v1/completions", "{}", Some("prompt"), "'prompt' is missing"),
        ("/v1/embeddings", "{}", Some("input"), "'input' is missing"),
    ] {
        let answer = server.ask(post(path, body)).await;
        check_refusal(&answer, invalid(param), message);
    }
    let form = post_with("/v1/chat/completions", "Content-Type: text/plain\r\n", HI);
    assert_eq!(server.ask(form).await.status(), 415);
    assert_eq!(server.get("/v1/chat/completions").await.status(), 405);
}

#[tokio::test]
async fn a_full_model_rejects_with_retry_after() {
    let (server, model) = serve_staged(ServerOptions::default()).await;
    let mut held = Vec::new();
    for count in 1..=2 {
        let answer_sender = model.stage();
        let client = server.send(chat(&HI.replacen('{', r#"{"max_tokens":50,"#, 1))).await;
        model.asked(count).await;
        held.push((answer_sender, client));
    }
    // The first request still needs 50 tokens at 0.1 s each: 5 s.
    let expected = unavailable("queue_full", Some("5"));
    check_refusal(&server.ask(chat(HI)).await, expected, "the model is busy; try again in 5 s");
    let (answer_sender, mut client) = held.pop().expect("a held permit");
    send_all(&answer_sender, [text("Hello"), done(1)]).await;
    assert_eq!(client.answer().await.status(), 200);
    let answer_sender = model.stage();
    let mut client = server.send(chat(HI)).await;
    // A permit is free again.
    send_all(&answer_sender, [text("Hello"), done(1)]).await;
    assert_eq!(client.answer().await.status(), 200);
}

#[tokio::test]
async fn a_server_without_a_chat_model_answers_503() {
    let server = Server::start_registry(Registry::default(), ServerOptions::default()).await;
    let expected = unavailable("no_target", None);
    let message = "this hob has no chat model; get one with `hob pull`";
    for (path, body) in [
        ("/v1/chat/completions", HI),
        ("/v1/completions", r#"{"prompt":"Hi"}"#),
        ("/v1/embeddings", r#"{"input":"Hi"}"#),
    ] {
        check_refusal(&server.ask(post(path, body)).await, expected, message);
    }
}

#[tokio::test]
async fn routes_that_use_a_model_need_a_key() {
    let model = scripted([Ok(vec![text("Hello"), done(1)])]);
    let server = serve_chat_with(model, with_key("My API Key")).await;
    for path in ["/chat/completions", "/v1/completions", "/v1/embeddings"] {
        assert_eq!(server.ask(post(path, HI)).await.status(), 401, "{path}");
    }
    let headers = "Content-Type: application/json\r\nAuthorization: Bearer My API Key\r\n";
    let answer = server.ask(post_with("/v1/chat/completions", headers, HI)).await;
    assert_eq!(answer.json()["choices"][0]["message"]["content"], Value::from("Hello"));
}
