//! Ollama's routes as its clients use them: lines, whole answers, lists, memory requests, and all errors.

use std::sync::Arc;
use std::time::Duration;

use hob_core::chat::{Completion, Effort, FinishReason, Prompt, Timings, Usage};
use hob_core::scripted::{ScriptedCall, ScriptedChat};
use hob_core::{ChatCard, ChatEvent, KeepAlive, MemoryUse, ModelError, ModelState};
use hob_server::ServerOptions;
use serde_json::{Value, json};

use crate::chat_model::{Event, StagedChat, begun, serve_staged, text};
use crate::client::{Answer, post, post_with, request};
use crate::keys::with_key;
use crate::lifecycle::{self, LifecycleCall, server_with};
use crate::model::worker_lost;
use crate::server::Server;

fn done() -> Event {
    let usage = Usage { prompt_tokens: 26, completion_tokens: 9, ..Usage::default() };
    let timings = Timings {
        load_ms: 3.5,
        queue_ms: 1.0,
        prompt_ms: 130.0,
        predicted_ms: 400.0,
        ..Timings::default()
    };
    Ok(ChatEvent::Done(Completion { finish: FinishReason::Stop, usage, timings }))
}

fn hello() -> ScriptedCall<ChatEvent> {
    Ok(vec![Ok(ChatEvent::Reasoning("Hm.".to_owned())), text("Hel"), text("lo"), done()])
}

async fn server(
    scripts: impl IntoIterator<Item = ScriptedCall<ChatEvent>>,
) -> (Server, Arc<ScriptedChat>) {
    let model = Arc::new(ScriptedChat::new(scripts));
    (server_of(&model, ServerOptions::default()).await, model)
}

async fn server_of(model: &Arc<ScriptedChat>, options: ServerOptions) -> Server {
    server_with(model.clone(), None, options).await
}

/// The lines of an answer, without the values that depend on the clock.
fn lines(answer: &Answer) -> Vec<Value> {
    assert_eq!(answer.header("content-type"), Some("application/x-ndjson"), "{answer:?}");
    answer.text().lines().map(|line| timeless(serde_json::from_str(line).expect("JSON"))).collect()
}

fn timeless(mut object: Value) -> Value {
    let fields = object.as_object_mut().expect("an object");
    for clock in ["created_at", "total_duration"] {
        fields.remove(clock);
    }
    object
}

fn message(message: Value) -> Value {
    json!({"model": "mini", "message": message, "done": false})
}

fn took(mut object: Value) -> Value {
    let took = json!({
        "done": true, "done_reason": "stop", "load_duration": 3_500_000,
        "prompt_eval_count": 26, "prompt_eval_duration": 130_000_000,
        "eval_count": 9, "eval_duration": 400_000_000,
    });
    let fields = object.as_object_mut().expect("an object");
    fields.extend(took.as_object().expect("an object").clone());
    object
}

const CHAT: &str = r#"{"model":"mini","messages":[{"role":"user","content":"Hi"}]}"#;
const WHOLE: &str =
    r#"{"model":"mini","messages":[{"role":"user","content":"Hi"}],"stream":false}"#;

#[tokio::test]
async fn chat_answers_in_lines() {
    let (server, model) = server([hello()]).await;
    let answer = server.ask(post("/api/chat", CHAT)).await;
    let expected = [
        message(json!({"role": "assistant", "content": "", "thinking": "Hm."})),
        message(json!({"role": "assistant", "content": "Hel"})),
        message(json!({"role": "assistant", "content": "lo"})),
        took(message(json!({"role": "assistant", "content": ""}))),
    ];
    assert_eq!(lines(&answer), expected);
    assert_eq!((answer.status(), answer.header("x-hob-target")), (200, Some("smol")));
    assert_eq!(answer.header("x-hob-ignored"), None);
    assert_eq!(model.requests().len(), 1);
}

#[tokio::test]
async fn a_whole_answer_is_one_object() {
    let (server, _model) = server([hello(), hello()]).await;
    let answer = server.ask(post("/api/chat", WHOLE)).await;
    let said = json!({"role": "assistant", "content": "Hello", "thinking": "Hm."});
    assert_eq!(timeless(answer.json()), took(message(said)));
    let generate = r#"{"prompt":"Hi","stream":false}"#;
    let answer = server.ask(post("/api/generate", generate)).await;
    let said = json!({"model": "smol", "response": "Hello", "thinking": "Hm."});
    let mut answered = timeless(answer.json());
    let context = answered.as_object_mut().and_then(|fields| fields.remove("context"));
    assert!(context.is_some_and(|context| context.is_array()), "{answer:?}");
    assert_eq!(answered, took(said), "the answer names the model");
}

#[tokio::test]
async fn a_context_continues_the_conversation_and_is_streamed_too() {
    let (server, model) = server([hello(), hello(), hello()]).await;
    let first = server.ask(post("/api/generate", r#"{"prompt":"I am Anna."}"#)).await;
    let last = lines(&first).pop().expect("a last line");
    let next = json!({"prompt": "Who am I?", "context": last["context"], "stream": false});
    let second = server.ask(post("/api/generate", next.to_string())).await;
    assert_eq!((second.status(), second.header("x-hob-ignored")), (200, None));
    let asked = model.requests();
    let Prompt::Chat(conversation) = &asked[1].prompt else { panic!("no conversation") };
    let turns: Vec<&str> =
        conversation.messages.iter().map(|message| message.text.as_str()).collect();
    assert_eq!(turns, ["I am Anna.", "Hello", "Who am I?"]);
    assert_ne!(second.json()["context"], last["context"]);
    let raw = r#"{"prompt":"Once","raw":true,"stream":false}"#;
    assert_eq!(server.ask(post("/api/generate", raw)).await.json().get("context"), None);
}

#[tokio::test]
async fn a_tag_that_is_true_of_the_model_leads_to_it() {
    let card = ChatCard {
        parameters: 134_515_008,
        quantization: "Q4_1".to_owned(),
        template: Some(String::new()),
        ..ChatCard::default()
    };
    let model = Arc::new(ScriptedChat::new([hello(), hello(), hello()]).with_card(card));
    let server = server_of(&model, ServerOptions::default()).await;
    for (name, status) in [
        ("smol:135m", 200),
        ("smol:135m-instruct-q4_1", 200),
        ("mini:135m", 200),
        ("smol:360m", 404),
        ("smoll:135m", 404),
    ] {
        let body = CHAT.replace("mini", name);
        assert_eq!(server.ask(post("/api/chat", &body)).await.status(), status, "{name}");
        let pulled = server.ask(post("/api/pull", json!({"model": name}).to_string())).await;
        assert_eq!(pulled.status(), status, "{name}");
    }
}

#[tokio::test]
async fn tools_are_called_with_objects() {
    let call = ChatEvent::ToolCall { index: 0, id: "c1".to_owned(), name: "weather".to_owned() };
    let piece = |piece: &str| Ok(ChatEvent::ToolArguments { index: 0, piece: piece.to_owned() });
    let script = vec![Ok(call), piece(r#"{"city":"#), piece(r#""Rome"}"#), done()];
    let (server, _model) = server([Ok(script)]).await;
    let answer = server.ask(post("/api/chat", CHAT)).await;
    let function = json!({"index": 0, "name": "weather", "arguments": {"city": "Rome"}});
    let calls = json!([{"id": "c1", "function": function}]);
    assert_eq!(
        lines(&answer),
        [
            message(json!({"role": "assistant", "content": "", "tool_calls": calls})),
            took(message(json!({"role": "assistant", "content": ""}))),
        ]
    );
}

#[tokio::test]
async fn parameters_that_a_model_cannot_follow_are_dropped() {
    let card = ChatCard { context_tokens: 64, ..ChatCard::default() };
    let model = Arc::new(ScriptedChat::new([hello(), hello(), hello()]).with_card(card));
    let server = server_of(&model, ServerOptions::default()).await;
    let body = r#"{"prompt":"Once","think":true,"options":{"num_ctx":65,"seed":4}}"#;
    let answer = server.ask(post("/api/generate", body)).await;
    assert_eq!(answer.header("x-hob-ignored"), Some("options.num_ctx,think"));
    let body = r#"{"prompt":"Once","think":false,"options":{"num_ctx":64}}"#;
    assert_eq!(server.ask(post("/api/generate", body)).await.header("x-hob-ignored"), None);
    let body = r#"{"prompt":"Once","options":{"num_ctx":63}}"#;
    let shorter = server.ask(post("/api/generate", body)).await;
    assert_eq!(shorter.header("x-hob-ignored"), Some("options.num_ctx"));
    let asked = model.requests();
    let once = Prompt::Text("Once".to_owned());
    assert_eq!((&asked[0].prompt, asked[0].thinking.effort), (&once, None));
    assert_eq!(asked[0].sampling.seed, Some(4));
    assert_eq!((&asked[1].prompt, asked[1].thinking.effort), (&once, Some(Effort::None)));
    for body in [r#"{"prompt":"Once","system":"Rhyme."}"#, CHAT] {
        let path = if body == CHAT { "/api/chat" } else { "/api/generate" };
        let refused = server.ask(post(path, body)).await;
        let error = ModelError::NoTemplate.to_string();
        assert_eq!((refused.status(), refused.json()), (400, json!({"error": error})));
    }
}

#[tokio::test]
async fn an_answer_that_breaks_off_says_so_in_its_last_line() {
    let broken = || Ok(vec![text("Hel"), Err(worker_lost())]);
    let (server, _model) = server([broken(), Ok(vec![text("Hel")]), broken()]).await;
    let lost = json!({"error": worker_lost().to_string()});
    let answer = server.ask(post("/api/chat", CHAT)).await;
    let last: Value =
        serde_json::from_str(answer.text().lines().last().expect("a line")).expect("JSON");
    assert_eq!((answer.status(), last), (200, lost.clone()));
    let answer = server.ask(post("/api/chat", CHAT)).await;
    assert!(answer.text().ends_with("the answer ended before it was complete\"}\n"), "{answer:?}");
    let whole = server.ask(post("/api/generate", r#"{"prompt":"Hi","stream":false}"#)).await;
    assert_eq!((whole.status(), whole.json()), (503, lost));
}

#[tokio::test]
async fn errors_of_the_model_name_ollama_s_fields() {
    let invalid = |field| ModelError::InvalidField { field, reason: "does not fit".to_owned() };
    let refusals = [Err(invalid("response_format")), Err(invalid("max_tokens"))];
    let (server, _model) = server(refusals).await;
    for field in ["format", "num_predict"] {
        let error = json!({"error": format!("'{field}' does not fit")});
        let refused = server.ask(post("/api/chat", CHAT)).await;
        assert_eq!((refused.status(), refused.json()), (400, error));
    }
}

#[tokio::test]
async fn a_client_that_leaves_stops_the_work() {
    let model = Arc::new(StagedChat::new());
    let server = server_with(Arc::clone(&model) as _, None, ServerOptions::default()).await;
    let (sender, mut client) = begun(&server, &model, post("/api/chat", CHAT)).await;
    client.chunk().await.expect("a line");
    assert_eq!(server.in_flight(), 1);
    client.leave(&sender).await;
}

#[tokio::test]
async fn errors_have_ollama_s_format() {
    let busy = ModelError::Busy { retry_after: Duration::from_secs(7) };
    let long = ModelError::TooLong { needed: 9000, available: 8192 };
    let (server, _model) = server([Err(busy.clone()), Err(long.clone())]).await;
    let unknown = "no model is called 'smool'; the nearest are smol";
    let unpulled = "no model is called 'smool'; clients cannot download one: run `hob pull smool`";
    let speech = "'kokoro' is a speech model, and this needs a chat model";
    let mut rows = vec![
        ("chat", CHAT, 503, busy.to_string(), Some("7")),
        ("chat", CHAT, 400, long.to_string(), None),
    ];
    for (body, status, message) in [
        (r#"{"model":"smool"}"#, 404, unknown),
        (r#"{"model":"kokoro"}"#, 400, speech),
        (r#"{"model":7}"#, 400, "'model' must be a string, and is a number"),
        ("[]", 400, "the body must be a JSON object, and is a list"),
    ] {
        for path in ["chat", "generate", "embed", "embeddings", "show", "pull"] {
            let message = if (path, status) == ("pull", 404) { unpulled } else { message };
            rows.push((path, body, status, message.to_owned(), None));
        }
    }
    for (path, body, status, message, retry_after) in rows {
        let refused = server.ask(post(&format!("/api/{path}"), body)).await;
        assert_eq!(
            (refused.status(), refused.json()),
            (status, json!({"error": message})),
            "{path}"
        );
        assert_eq!(refused.header("retry-after"), retry_after, "{path} {body}");
    }
    let form = post_with("/api/chat", "Content-Type: text/plain\r\n", CHAT);
    let refused = server.ask(form).await;
    let message = "the body must be application/json, and is 'text/plain'";
    assert_eq!((refused.status(), refused.json()), (415, json!({"error": message})));
}

#[tokio::test]
async fn what_is_refused_before_its_route_has_ollama_s_format_too() {
    let (server, _model) = server([]).await;
    let host = "'evil.example' is not an allowed host name of this server; add it to allowed_hosts \
                to allow it";
    for (method, headers, status, message) in [
        ("POST", "Host: evil.example\r\n", 421, host),
        ("GET", "Host: localhost\r\n", 405, "/api/chat does not take GET"),
    ] {
        let refused = server.ask(request(method, "/api/chat", headers)).await;
        assert_eq!((refused.status(), refused.json()), (status, json!({"error": message})));
    }
}

#[tokio::test]
async fn routes_that_hob_lacks_say_so() {
    let (server, _model) = server([]).await;
    for (method, path) in [
        ("POST", "/api/create"),
        ("POST", "/api/copy"),
        ("DELETE", "/api/delete"),
        ("POST", "/api/push"),
        ("POST", "/api/blobs/sha256:ab"),
    ] {
        let answer = server.ask(request(method, path, "Host: localhost\r\n")).await;
        let error =
            format!("{path} is not supported: manage models with `hob pull` and `hob models`");
        assert_eq!((answer.status(), answer.json()), (501, json!({"error": error})), "{method}");
    }
}

#[tokio::test]
async fn the_root_answers_people_and_programs() {
    let (server, _model) = server([]).await;
    let asked = |accept: &str| request("GET", "/", &format!("Host: localhost\r\n{accept}"));
    for (accept, kind, body) in [
        ("", "text/plain; charset=utf-8", Some("Ollama is running")),
        ("Accept: */*\r\n", "text/plain; charset=utf-8", Some("Ollama is running")),
        ("Accept: application/json\r\n", "application/json", Some(r#"{"status":true}"#)),
        ("Accept: Text/HTML,application/json;q=0.9\r\n", "text/html; charset=utf-8", None),
    ] {
        let answer = server.ask(asked(accept)).await;
        let said = (answer.status(), answer.header("content-type"), answer.header("vary"));
        assert_eq!(said, (200, Some(kind), Some("accept")), "{accept}");
        match body {
            Some(body) => assert_eq!(answer.text(), body),
            None => assert!(answer.text().starts_with("<!doctype html>"), "the page"),
        }
    }
    for path in ["/", "/api/version", "/api/tags"] {
        let client =
            server.send(request("HEAD", path, "Host: localhost\r\nConnection: close\r\n")).await;
        assert_eq!(client.bodiless().await.status, 200, "{path}");
    }
    let version = server.get("/api/version").await.json();
    let version = version["version"].as_str().expect("a text").split('.');
    let version: Vec<u32> = version.map(|part| part.parse().expect("a number")).collect();
    // VS Code rejects an Ollama before 0.6.4.
    assert!(version >= vec![0, 6, 4], "{version:?}");
}

#[tokio::test]
async fn models_are_listed_under_every_name_and_shown_by_any() {
    let card = ChatCard {
        context_tokens: 4096,
        trained_context_tokens: 8192,
        architecture: "llama".to_owned(),
        parameters: 134_515_008,
        quantization: "Q4_1".to_owned(),
        file_bytes: 98,
        template: Some("T".to_owned()),
        calls_tools: true,
        ..ChatCard::default()
    };
    let model = Arc::new(ScriptedChat::new([]).with_card(card));
    let server = server_of(&model, ServerOptions::default()).await;
    let tags = server.get("/api/tags").await.json();
    let tags = tags["models"].as_array().expect("a list");
    let names: Vec<&Value> = tags.iter().map(|tag| &tag["name"]).collect();
    assert_eq!(names, ["smol:latest", "cloud:latest", "mini:latest"], "the default one first");
    assert_eq!((&tags[2]["size"], &tags[2]["details"]["family"]), (&json!(98), &json!("llama")));
    for name in ["smol", "smol:latest", "mini", "mini:latest"] {
        let shown = server.ask(post("/api/show", json!({"name": name}).to_string())).await.json();
        assert_eq!(shown["model_info"]["llama.context_length"], 8192, "{name}");
        assert_eq!(shown["capabilities"], json!(["completion", "tools"]));
        assert_eq!(
            (&shown["template"], &shown["parameters"]),
            (&json!("T"), &json!("num_ctx 4096"))
        );
    }
}

#[tokio::test]
async fn loaded_models_are_listed() {
    let (server, lifecycle, _load_results) = lifecycle::server().await;
    assert_eq!(server.get("/api/ps").await.json(), json!({"models": []}), "cold");
    let memory_use = MemoryUse { resident_bytes: Some(150), ..MemoryUse::default() };
    lifecycle.occupy(ModelState::Ready, memory_use);
    let listed = server.get("/api/ps").await.json();
    let model = &listed["models"][0];
    assert_eq!((&model["name"], &model["size"]), (&json!("smol:latest"), &json!(150)));
    assert_eq!(model["context_length"], 8192);
    assert_eq!(listed["models"].as_array().map(Vec::len), Some(1), "the model of this server");
}

#[tokio::test]
async fn a_model_that_is_here_was_pulled() {
    let (server, _model) = server([]).await;
    let pulled = server.ask(post("/api/pull", r#"{"model":"mini:latest"}"#)).await;
    assert_eq!(lines(&pulled), [json!({"status": "success"})]);
    let pulled = server.ask(post("/api/pull", r#"{"name":"smol","stream":false}"#)).await;
    assert_eq!((pulled.status(), pulled.json()), (200, json!({"status": "success"})));
}

#[tokio::test]
async fn without_a_prompt_it_is_about_memory() {
    let (server, lifecycle, load_results) = lifecycle::server().await;
    let minute = LifecycleCall::KeepAlive(KeepAlive::For(Duration::from_secs(60)));
    let unload = LifecycleCall::UnloadIfIdle;
    for (path, body, calls, expected) in [
        ("/api/generate", r#"{"model":"smol"}"#, vec![LifecycleCall::Load], {
            json!({"model": "smol", "response": "", "done": true, "done_reason": "load"})
        }),
        ("/api/chat", r#"{"messages":[],"keep_alive":"1m"}"#, vec![minute, LifecycleCall::Load], {
            let message = json!({"role": "assistant", "content": ""});
            json!({"model": "smol", "message": message, "done": true, "done_reason": "load"})
        }),
        ("/api/generate", r#"{"model":"mini","keep_alive":0}"#, vec![unload], {
            json!({"model": "mini", "response": "", "done": true, "done_reason": "unload"})
        }),
        ("/api/embed", r#"{"input":""}"#, vec![LifecycleCall::Load], {
            json!({"model": "smol", "embeddings": [], "load_duration": 0, "prompt_eval_count": 0})
        }),
    ] {
        if calls.contains(&LifecycleCall::Load) {
            load_results.try_send(Ok(())).expect("room");
        }
        let answer = server.ask(post(path, body)).await;
        assert_eq!((answer.status(), timeless(answer.json())), (200, expected), "{body}");
        assert_eq!(lifecycle.calls(), calls, "{body}");
    }
}

#[tokio::test]
async fn unloading_ends_no_answer_and_leaves_other_servers_alone() {
    let (server, lifecycle, _load_results) = lifecycle::server().await;
    lifecycle.occupy(ModelState::Ready, MemoryUse { in_flight: 1, ..MemoryUse::default() });
    let unload = server.ask(post("/api/generate", r#"{"keep_alive":0}"#)).await;
    assert_eq!(unload.json()["done_reason"], "unload");
    // A request may have begun a moment ago, so only the model can say whether it is idle.
    let kept = LifecycleCall::KeepAlive(KeepAlive::For(Duration::ZERO));
    assert_eq!(lifecycle.calls(), [LifecycleCall::UnloadIfIdle, kept]);
    let loaded = server.ask(post("/api/generate", r#"{"model":"cloud"}"#)).await;
    assert_eq!(loaded.json()["done_reason"], "load", "a model of another server counts as loaded");
    let refused = server.ask(post("/api/generate", r#"{"model":"cloud","keep_alive":0}"#)).await;
    let error = "'cloud' is a model of another server; this hob cannot load or unload it";
    assert_eq!((refused.status(), refused.json()), (400, json!({"error": error})));
}

#[tokio::test]
async fn texts_become_vectors_in_two_ways() {
    let vectors = vec![vec![0.5, -0.5], vec![1.0, 0.0]];
    let model = Arc::new(ScriptedChat::new([]).with_vectors(vectors));
    let server = server_of(&model, ServerOptions::default()).await;
    let embed = r#"{"model":"smol","input":["a","b"],"truncate":true}"#;
    let answer = server.ask(post("/api/embed", embed)).await;
    assert_eq!(answer.header("x-hob-ignored"), Some("truncate"));
    assert_eq!(answer.header("x-hob-target"), Some("smol"));
    let expected = json!({
        "model": "smol", "embeddings": [[0.5, -0.5], [1.0, 0.0]], "load_duration": 0,
        "prompt_eval_count": 2,
    });
    assert_eq!(timeless(answer.json()), expected);
    let old = server.ask(post("/api/embeddings", r#"{"model":"smol","prompt":"a"}"#)).await;
    assert_eq!(old.json(), json!({"embedding": [0.5, -0.5]}));
}

#[tokio::test]
async fn costly_routes_need_the_key() {
    let model = Arc::new(ScriptedChat::new([hello()]));
    let server = server_of(&model, with_key("secret")).await;
    for path in ["/", "/api/version", "/api/tags"] {
        assert_eq!(server.get(path).await.status(), 200, "{path}");
    }
    let error = "this server requires an API key: send 'Authorization: Bearer KEY'";
    for path in ["chat", "generate", "embed", "embeddings", "show", "pull", "create"] {
        let refused = server.ask(post(&format!("/api/{path}"), CHAT)).await;
        assert_eq!((refused.status(), refused.json()), (401, json!({"error": error})), "{path}");
        assert_eq!(refused.header("www-authenticate"), Some("Bearer"), "{path}");
    }
    assert_eq!(server.get("/api/ps").await.status(), 401);
    let headers = "Content-Type: application/json\r\nAuthorization: Bearer secret\r\n";
    assert_eq!(server.ask(post_with("/api/chat", headers, CHAT)).await.status(), 200);
}

#[tokio::test]
async fn a_whole_answer_says_what_is_known_only_at_its_end() {
    let (server, model) = serve_staged(ServerOptions::default()).await;
    let sender = model.stage();
    let asks = r#"{"model":"smol","messages":[{"role":"user","content":"Hi"}],"stream":false}"#;
    let mut client = server.send(post("/api/chat", asks)).await;
    // The server has read the first piece when there is room for the second.
    for piece in ["Hel", "lo"] {
        sender.send(text(piece)).await.expect("a reader");
    }
    model.asked(1).await[0].trace.note(|data| data.counted_here = true);
    sender.send(done()).await.expect("a reader");
    let answer = client.answer().await;
    assert_eq!((answer.status(), answer.header("x-hob-usage")), (200, Some("counted")));
}
