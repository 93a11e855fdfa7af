//! Requests in flight, from outside: their stages, their end, and who may see them.
//! The staged models wait for the test, so each stage stands still while the test reads it.

use std::sync::Arc;
use std::time::Duration;

use hob_core::chat::{TokenLogprob, TokenText};
use hob_core::{ChatEvent, Fault, MemoryUse, ModelError, ModelState};
use hob_server::{KeyOptions, ServerOptions};
use serde_json::{Value, json};

use crate::chat_model::{
    StagedChat, begun, chat_lost, done, scripted, serve_chat, serve_staged, text,
};
use crate::chatting::{HI, STREAM, chat};
use crate::client::{get, post, send_all, until};
use crate::keys::{LAPTOP, PHONE, get_as, named, post_as, with_keys};
use crate::lifecycle::{StagedLifecycle, server_with};
use crate::model::sound;
use crate::server::Server;

async fn now(server: &Server) -> Value {
    server.get("/api/hob/now").await.json()
}

async fn now_as(server: &Server, key: &str) -> Value {
    server.ask(get_as(key, "/api/hob/now")).await.json()
}

/// The answer of `/api/hob/now`, when `count` requests have ended.
async fn ended(server: &Server, count: usize) -> Value {
    until(async || {
        let seen = now(server).await;
        let recent = seen["recent"].as_array().map_or(0, Vec::len);
        (recent >= count).then_some(seen)
    })
    .await
}

fn count(list: &Value) -> usize {
    list.as_array().expect("a list").len()
}

#[tokio::test]
async fn a_request_is_seen_at_each_stage_and_afterwards() {
    let (server, model) = serve_staged(ServerOptions::default()).await;
    assert_eq!(now(&server).await["queue"], json!({"in_flight": 0, "waiting": 0, "targets": []}));
    let sender = model.stage();
    let mut client = server.send(chat(STREAM)).await;
    let trace = model.asked(1).await.remove(0).trace;

    let seen = now(&server).await;
    let one = &seen["requests"][0];
    assert_eq!((&one["stage"], &one["alias"]), (&json!("waiting"), &json!("smol")));
    assert_eq!((&one["ttft_ms"], &one["tokens"]), (&Value::Null, &json!(0)));
    assert_eq!((&one["route"], &one["streamed"]), (&json!("chat"), &json!(true)));
    let target = json!({"name": "smol", "in_flight": 1, "waiting": 1, "in_flight_max": 2});
    assert_eq!(seen["queue"], json!({"in_flight": 1, "waiting": 1, "targets": [target]}));
    assert!(one.get("outcome").is_none(), "{one}");

    // The trace of a gateway in between.
    trace.asking("gpu/q", true);
    let error = ModelError::upstream("gpu/q", Fault::CutOff);
    trace.failed("gpu/q", &error, Duration::from_millis(20));
    assert_eq!(now(&server).await["requests"][0]["target"], Value::Null);
    trace.asking("spare/q", false);
    trace.note(|data| data.queued = Duration::from_millis(40));
    let seen = now(&server).await;
    let one = &seen["requests"][0];
    let failed = json!([{"target": "gpu/q", "reason": "cut_off", "ms": 20.0}]);
    assert_eq!((&one["stage"], &one["target"]), (&json!("asking"), &json!("spare/q")));
    assert_eq!((&one["failed"], &one["attempts"]), (&failed, &json!(2)));

    trace.answers("spare/q", std::time::Instant::now(), Duration::from_millis(5));
    let note = "Vulkan0 (Card®) had no room: the model runs on the processor";
    trace.note(|data| data.placement_note = Some(note.to_owned()));
    sender.send(text("Hel")).await.expect("a reader");
    let head = client.head().await;
    for (name, said) in [("warm", "false"), ("queue-ms", "40"), ("attempts", "2")] {
        assert_eq!(head.header(&format!("x-hob-{name}")), Some(said), "{name}");
    }
    let placement = "Vulkan0 (Card?) had no room: the model runs on the processor";
    assert_eq!(head.header("x-hob-placement"), Some(placement));
    let id = head.header("x-hob-request-id").expect("an id").to_owned();
    let one = server.get(&format!("/api/hob/requests/{id}")).await.json();
    assert_eq!((&one["stage"], &one["tokens"]), (&json!("answering"), &json!(1)));
    assert!(one["ttft_ms"].as_f64().is_some_and(|ms| ms > 0.0), "{one}");

    sender.send(done(7)).await.expect("a reader");
    client.chunks().await;
    let seen = ended(&server, 1).await;
    assert_eq!(count(&seen["requests"]), 0);
    let number = id.strip_prefix("hob-").expect("a prefix");
    let one = server.get(&format!("/api/hob/requests/{number}")).await.json();
    assert_eq!(one, seen["recent"][0], "with and without its prefix");
    assert_eq!((&one["id"], &one["stage"]), (&json!(id), &json!("ended")));
    assert_eq!((&one["outcome"], &one["tokens"]), (&json!("complete"), &json!(7)));
    assert_eq!((&one["queue_ms"], &one["prompt_tokens"]), (&json!(47.0), &json!(12)));
    assert_eq!((&one["failed"], &one["target"]), (&failed, &json!("spare/q")));
    assert!(one["overhead_ms"].is_number() && one["total_ms"].as_f64() > one["ttft_ms"].as_f64());
    let names = &seen["aliases"][0];
    assert_eq!((&names["name"], &names["requests"]), (&json!("smol"), &json!(1)));
    assert_eq!((&names["ttft_warm"]["n"], &names["ttft_cold"]["n"]), (&json!(0), &json!(1)));
    assert_eq!(names["ttft_cold"]["p95"], Value::Null, "of one there is no 95th percentile");
}

#[tokio::test]
async fn a_client_that_left_leaves_nothing_behind() {
    let (server, model) = serve_staged(ServerOptions::default()).await;
    let (sender, client) = begun(&server, &model, chat(STREAM)).await;
    assert_eq!(count(&now(&server).await["requests"]), 1);
    client.leave(&sender).await;
    let seen = ended(&server, 1).await;
    assert_eq!((count(&seen["requests"]), &seen["queue"]["in_flight"]), (0, &json!(0)));
    let one = &seen["recent"][0];
    assert_eq!((&one["outcome"], &one["tokens"]), (&json!("abandoned"), &json!(1)));
}

#[tokio::test]
async fn a_token_with_its_log_probability_counts_once() {
    let (server, model) = serve_staged(ServerOptions::default()).await;
    let (sender, mut client) = begun(&server, &model, chat(STREAM)).await;
    let token = TokenText(b"lo".to_vec());
    let logprobs = vec![TokenLogprob { token, logprob: -0.5, top: Vec::new() }];
    send_all(&sender, [Ok(ChatEvent::Logprobs(logprobs)), text("lo")]).await;
    client.chunk().await.expect("a chunk");
    assert_eq!(now(&server).await["requests"][0]["tokens"], 2);
}

#[tokio::test]
async fn failures_say_which_and_the_latest_is_first() {
    let model = Arc::new(StagedChat::new().with_state(ModelState::Cold));
    let server = serve_chat(Arc::clone(&model)).await;
    let (sender, mut client) = begun(&server, &model, chat(STREAM)).await;
    sender.send(Err(chat_lost())).await.expect("a reader");
    client.chunks().await;
    ended(&server, 1).await;
    let held = [model.stage(), model.stage()];
    let mut clients = [server.client().await, server.client().await];
    for client in &mut clients {
        client.send(chat(HI)).await;
    }
    model.asked(3).await;
    assert_eq!(server.ask(chat(HI)).await.status(), 503);
    let seen = ended(&server, 2).await;
    let errors = [&seen["recent"][0]["error"], &seen["recent"][1]["error"]];
    assert_eq!(errors, [&json!("queue_full"), &json!("worker_lost")]);
    assert_eq!(count(&seen["requests"]), 2);
    let names = &seen["aliases"][0];
    assert_eq!((&names["requests"], &names["failed"]), (&json!(2), &json!(2)));
    assert_eq!((&names["ttft_cold"]["n"], &names["total"]["n"]), (&json!(1), &json!(0)));
    drop(held);
}

#[tokio::test]
async fn a_model_that_is_being_loaded_is_a_stage_of_its_own() {
    let loading = ModelState::Loading { ready_in: Duration::from_millis(2500) };
    let model = Arc::new(StagedChat::new().with_state(loading));
    let server = serve_chat(Arc::clone(&model)).await;
    let _sender = model.stage();
    let _client = server.send(chat(STREAM)).await;
    model.asked(1).await;
    let one = &now(&server).await["requests"][0];
    assert_eq!((&one["stage"], &one["ready_in_s"]), (&json!("loading"), &json!(2.5)));
}

#[tokio::test]
async fn speech_is_measured_in_sound() {
    let server = Server::start().await;
    let sender = server.model.stage();
    let mut client =
        server.speak(r#"{"model":"narrator","input":"Hello.","response_format":"pcm"}"#).await;
    sender.send(sound(0.1, 2400)).await.expect("a listener");
    client.head().await;
    let one = now(&server).await["requests"][0].clone();
    assert_eq!((&one["route"], &one["alias"]), (&json!("speech"), &json!("narrator")));
    assert_eq!((&one["audio_ms"], &one["tokens"]), (&json!(100), &Value::Null));
    drop(sender);
    client.chunks().await;
    let seen = ended(&server, 1).await;
    assert_eq!(
        (&seen["recent"][0]["audio_ms"], &seen["recent"][0]["outcome"]),
        (&json!(100), &json!("complete"))
    );
}

#[tokio::test]
async fn a_key_for_some_names_sees_its_own_requests_only() {
    let phone = KeyOptions { aliases: Some(vec!["assistant".to_owned()]), ..named("phone", PHONE) };
    let options = with_keys([named("laptop", LAPTOP), phone]);
    let (server, model) = serve_staged(options).await;
    let ask = STREAM.replace("smol", "assistant");
    let mut ids = Vec::new();
    let mut held = Vec::new();
    for key in [LAPTOP, PHONE] {
        let request = post_as(key, "/v1/chat/completions", &ask);
        let sender = model.stage();
        let mut client = server.send(request).await;
        sender.send(text("Hel")).await.expect("a reader");
        ids.push(client.head().await.header("x-hob-request-id").expect("an id").to_owned());
        held.push((sender, client));
    }
    let keys = |seen: &Value| {
        let requests = seen["requests"].as_array().expect("a list").iter();
        requests.map(|one| one["key"].as_str().unwrap_or("-").to_owned()).collect::<Vec<_>>()
    };
    assert_eq!(keys(&now_as(&server, LAPTOP).await), ["laptop", "phone"]);
    let theirs = now_as(&server, PHONE).await;
    assert_eq!(
        (keys(&theirs), &theirs["queue"]["in_flight"]),
        (vec!["phone".to_owned()], &json!(1))
    );
    let status = async |key, id: &str| {
        server.ask(get_as(key, &format!("/api/hob/requests/{id}"))).await.status()
    };
    assert_eq!((status(PHONE, &ids[0]).await, status(PHONE, &ids[1]).await), (404, 200));
    assert_eq!((status(LAPTOP, &ids[0]).await, status(LAPTOP, &ids[1]).await), (200, 200));
    for (sender, client) in &mut held {
        sender.send(done(1)).await.expect("a reader");
        client.chunks().await;
    }
    until(async || (count(&now_as(&server, LAPTOP).await["recent"]) == 2).then_some(())).await;
    let theirs = now_as(&server, PHONE).await;
    assert_eq!((count(&theirs["recent"]), &theirs["aliases"][0]["requests"]), (1, &json!(1)));
    assert_eq!(now_as(&server, LAPTOP).await["aliases"][0]["requests"], json!(2));
    assert_eq!((status(PHONE, &ids[0]).await, status(PHONE, &ids[1]).await), (404, 200));
    for path in ["/api/hob/now", &format!("/api/hob/requests/{}", ids[0])] {
        assert_eq!(server.get(path).await.status(), 401, "{path}");
    }
}

#[tokio::test]
async fn a_request_that_used_no_model_is_not_listed() {
    let server = serve_chat(Arc::new(StagedChat::new())).await;
    assert_eq!(server.ask(chat("{}")).await.status(), 400);
    assert_eq!(server.ask(post("/v1/embeddings", "{")).await.status(), 400);
    assert_eq!(count(&ended(&server, 0).await["recent"]), 0);
    let health = server.get("/health").await;
    let id = health.header("x-hob-request-id").expect("an id").to_owned();
    for id in [id.as_str(), "hob-", "0", "-1", "hob-hob-1", "99999999999999999999999"] {
        let answer = server.ask(get(&format!("/api/hob/requests/{id}"))).await;
        assert_eq!(answer.status(), 404, "{id}");
        assert_eq!(answer.json()["error"]["code"], "request_not_found", "{id}");
    }
}

#[tokio::test]
async fn models_in_memory_are_those_of_ps() {
    let (lifecycle, load_results) = StagedLifecycle::new();
    let memory_use = MemoryUse { resident_bytes: Some(1 << 30), ..MemoryUse::default() };
    lifecycle.occupy(ModelState::Ready, memory_use);
    load_results.try_send(Ok(())).expect("room");
    let server = server_with(scripted([]), Some(lifecycle), ServerOptions::default()).await;
    let models = server.get("/api/hob/ps").await.json()["models"].clone();
    let seen = now(&server).await;
    assert_eq!((count(&models), &seen["models"]), (1, &models));
    assert_eq!(seen["upstreams"], json!([]));
}
