//! Which name selects which model, and what lists and metrics say about chat models.

use std::sync::Arc;

use hob_core::chat::ChatCard;
use hob_core::scripted::ScriptedChat;
use hob_core::{Admission, Chat, ChatEvent, ChatModel, RegisteredModel, Registry};
use hob_server::{KeyOptions, ServerOptions};
use serde_json::{Value, json};

use crate::chat_model::{Event, done, scripted, serve_chat, serve_chat_with, text};
use crate::chatting::{HI, STREAM, chat};
use crate::keys::{PHONE, named, post_as, with_keys};
use crate::server::Server;

#[tokio::test]
async fn names_lead_where_they_should() {
    let answers = (0..8).map(|_| Ok(vec![text("Hello"), done(1)]));
    let model = scripted(answers);
    let server = serve_chat(Arc::clone(&model)).await;
    for (name, expected) in [
        (r#""model":"smol","#, "smol"),
        (r#""model":"smol:latest","#, "smol:latest"),
        (r#""model":"assistant","#, "assistant"),
        (r#""model":"assistant:latest","#, "assistant:latest"),
        ("", "smol"),
    ] {
        let body = HI.replace(r#""model":"smol","#, name);
        let answer = server.ask(chat(&body)).await;
        assert_eq!((answer.status(), &answer.json()["model"]), (200, &json!(expected)), "{name}");
        assert_eq!(answer.header("x-hob-target"), Some("smol"));
    }
    for (name, status, code, message) in [
        (
            "smoll",
            404,
            json!("model_not_found"),
            "no model is called 'smoll'; the nearest are smol",
        ),
        (
            "gpt-4o-mini",
            404,
            json!("model_not_found"),
            "no model is called 'gpt-4o-mini'; GET /v1/models lists all",
        ),
        ("kokoro", 400, Value::Null, "'kokoro' is a speech model, and this needs a chat model"),
    ] {
        let answer = server.ask(chat(&HI.replace("smol", name))).await;
        let error = json!({
            "message": message, "type": "invalid_request_error", "param": "model", "code": code,
        });
        assert_eq!((answer.status(), &answer.json()["error"]), (status, &error));
    }
    let speech = server.post_speech(r#"{"model":"smol","input":"Hi"}"#).await;
    let message = "'smol' is a chat model, and this needs a speech model";
    assert_eq!(speech.error("message"), (400, json!(message)));
}

/// Clients such as Open WebUI choose the first model of the list.
#[tokio::test]
async fn the_default_is_the_first_of_the_list() {
    for name in ["smol", "assistant"] {
        let options =
            ServerOptions { default_chat: Some(name.to_owned()), ..ServerOptions::default() };
        let server = serve_chat_with(scripted([]), options).await;
        let list = server.get("/v1/models").await.json();
        let ids: Vec<_> = (0..3).map(|at| list["data"][at]["id"].as_str()).collect();
        let other = if name == "smol" { "assistant" } else { "smol" };
        assert_eq!(ids, [Some(name), Some(other), Some("kokoro")]);
    }
}

#[tokio::test]
async fn the_default_can_be_named() {
    for (name, status) in [("assistant", 200), ("other", 404)] {
        let options =
            ServerOptions { default_chat: Some(name.to_owned()), ..ServerOptions::default() };
        let model = scripted([Ok(vec![text("Hello"), done(1)])]);
        let server = serve_chat_with(model, options).await;
        let answer = server.ask(chat(&HI.replace(r#""model":"smol","#, ""))).await;
        assert_eq!(answer.status(), status, "{name}");
    }
}

#[tokio::test]
async fn several_models_have_no_default_unless_one_is_configured() {
    let mut registry = Registry::default();
    for name in ["cloud", "near"] {
        let model = scripted([Ok(vec![text("Hello"), done(1)])]);
        registry.add(RegisteredModel::<Chat>::new(name, model, Admission::new(2, 0.1)));
    }
    let server = Server::start_registry(registry, ServerOptions::default()).await;
    let bare = server.ask(chat(&HI.replace(r#""model":"smol","#, ""))).await;
    assert_eq!(bare.error("param"), (400, json!("model")));
    let named = server.ask(chat(&HI.replace("smol", "near"))).await;
    assert_eq!(named.status(), 200);
    let ready = server.get("/ready").await;
    assert_eq!((ready.status(), &ready.json()["model"]), (200, &json!("cloud")));
}

/// `builders` is a team.
fn with_team(names: &[&str]) -> Registry {
    let mut registry = Registry::default();
    for name in names {
        let model = ScriptedChat::new([Ok(vec![text("Hello"), done(1)])]);
        let card = ChatCard { is_team: *name == "builders", ..model.card().clone() };
        let model: Arc<dyn ChatModel> = Arc::new(model.with_card(card));
        registry.add(RegisteredModel::<Chat>::new(name, model, Admission::new(2, 0.1)));
    }
    registry
}

#[tokio::test]
async fn a_team_is_never_the_default() {
    let bare = HI.replace(r#""model":"smol","#, "");
    for (names, target) in [(&["builders", "smol"][..], Some("smol")), (&["builders"], None)] {
        let server = Server::start_registry(with_team(names), ServerOptions::default()).await;
        let answer = server.ask(chat(&bare)).await;
        assert_eq!(answer.header("x-hob-target"), target, "{names:?}");
        let list = server.get("/v1/models").await.json();
        assert_eq!(list["data"][0]["id"], target.unwrap_or("builders"), "{names:?}");
    }
    // Without a default, a client still chooses the first of the list.
    let registry = with_team(&["builders", "cloud", "smol"]);
    let server = Server::start_registry(registry, ServerOptions::default()).await;
    let list = server.get("/v1/models").await.json();
    assert_eq!(list["data"][0]["id"], "cloud");
    assert_eq!(list["data"][2]["id"], "builders");
    let tags = server.get("/api/tags").await.json();
    assert_eq!(tags["models"][0]["name"], "cloud:latest");
    let aliases = Some(vec!["builders".to_owned()]);
    let options = with_keys([KeyOptions { aliases, ..named("phone", PHONE) }]);
    let server = Server::start_registry(with_team(&["builders", "smol"]), options).await;
    let refused = server.ask(post_as(PHONE, "/v1/chat/completions", &bare)).await;
    assert_eq!(refused.error("code"), (403, json!("model_not_allowed")));
}

#[tokio::test]
async fn chat_and_speech_models_are_listed_together() {
    let server = serve_chat(scripted([])).await;
    let list = server.get("/v1/models").await.json();
    let names: Vec<_> = list["data"].as_array().expect("a list").iter().map(|m| &m["id"]).collect();
    assert_eq!(names, [&json!("smol"), &json!("assistant"), &json!("kokoro")]);
    let hob = json!({
        "kind": "chat", "state": "warm",
        "capabilities": ["chat", "completion", "embedding", "tools", "thinking"],
    });
    for name in ["smol", "assistant", "smol:latest"] {
        let model = server.get(&format!("/v1/models/{name}")).await.json();
        assert_eq!((&model["id"], &model["hob"]), (&json!(name), &hob));
        assert_eq!(model["context_length"], 8192);
    }
    let audio = json!({"models": [{"id": "kokoro", "name": "kokoro"}]});
    assert_eq!(server.get("/v1/audio/models").await.json(), audio);
}

/// The same end of an answer, with four guessed tokens, of which three were right.
fn guessed(event: Event) -> Event {
    event.map(|event| match event {
        ChatEvent::Done(mut completion) => {
            (completion.timings.draft_tokens, completion.timings.accepted_tokens) = (4, 3);
            ChatEvent::Done(completion)
        }
        other => other,
    })
}

#[tokio::test]
async fn metrics_count_what_chat_takes() {
    let thought = Ok(ChatEvent::Reasoning("Hm".to_owned()));
    let scripts = [Ok(vec![thought, text("Hello"), guessed(done(5))]), Ok(vec![text("Hel")])];
    let server = serve_chat(scripted(scripts)).await;
    server.ask(chat(HI)).await;
    server.ask(chat(STREAM)).await;
    server.ask(chat("{}")).await;
    server.get("/metrics").await.has_lines(&[
        r#"hob_requests_total{route="/chat/completions",status="200"} 2"#,
        r#"hob_requests_total{route="/chat/completions",status="400"} 1"#,
        r#"hob_chat_ttft_seconds_count{model="smol"} 2"#,
        r#"hob_chat_answers_total{model="smol",outcome="complete"} 1"#,
        r#"hob_chat_answers_total{model="smol",outcome="failed"} 1"#,
        r#"hob_chat_tokens_total{model="smol",kind="prompt"} 12"#,
        r#"hob_chat_tokens_total{model="smol",kind="cached"} 4"#,
        r#"hob_chat_tokens_total{model="smol",kind="completion"} 5"#,
        r#"hob_spec_decode_num_draft_tokens_total{model="smol"} 4"#,
        r#"hob_spec_decode_num_accepted_tokens_total{model="smol"} 3"#,
        r#"hob_chat_in_flight{model="smol"} 0"#,
        r#"hob_chat_in_flight_max{model="smol"} 2"#,
        r#"hob_chat_backlog_tokens{model="smol"} 0"#,
        r#"hob_model_state{model="smol",state="warm"} 1"#,
    ]);
}
