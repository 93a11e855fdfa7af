//! Loading and unloading models over HTTP: the state that lists show, and the effect of requests.
//! The test controls the lifecycle.

use std::sync::{Arc, Mutex};
use std::time::Duration;

use futures::FutureExt;
use futures::future::BoxFuture;
use hob_core::scripted::ScriptedChat;
use hob_core::{
    Admission, Chat, ChatModel, KeepAlive, MemoryUse, ModelError, ModelLifecycle, ModelState,
    RegisteredModel, locked,
};
use hob_server::{KeyOptions, ServerOptions};
use serde_json::{Value, json};
use tokio::sync::mpsc;

use crate::client::post;
use crate::keys::{LAPTOP, PHONE, named, post_as, with_key, with_keys};
use crate::model::worker_lost;
use crate::server::Server;

/// A call to the lifecycle.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum LifecycleCall {
    Load,
    Unload,
    UnloadIfIdle,
    KeepAlive(KeepAlive),
}

pub(crate) type Loaded = Result<(), ModelError>;

/// The test decides when and how a load ends.
pub(crate) struct StagedLifecycle {
    state: Mutex<ModelState>,
    memory_use: Mutex<MemoryUse>,
    calls: Mutex<Vec<LifecycleCall>>,
    loads: tokio::sync::Mutex<mpsc::Receiver<Loaded>>,
}

impl StagedLifecycle {
    pub(crate) fn new() -> (Arc<StagedLifecycle>, mpsc::Sender<Loaded>) {
        let (load_results, loads) = mpsc::channel(4);
        let lifecycle = StagedLifecycle {
            state: Mutex::new(ModelState::Cold),
            memory_use: Mutex::default(),
            calls: Mutex::default(),
            loads: tokio::sync::Mutex::new(loads),
        };
        (Arc::new(lifecycle), load_results)
    }

    pub(crate) fn calls(&self) -> Vec<LifecycleCall> {
        std::mem::take(&mut *locked(&self.calls))
    }

    pub(crate) fn occupy(&self, state: ModelState, memory_use: MemoryUse) {
        *locked(&self.state) = state;
        *locked(&self.memory_use) = memory_use;
    }

    fn record(&self, calls: LifecycleCall) {
        locked(&self.calls).push(calls);
    }
}

impl ModelLifecycle for StagedLifecycle {
    fn state(&self) -> ModelState {
        locked(&self.state).clone()
    }

    fn load(&self) -> BoxFuture<'_, Loaded> {
        self.record(LifecycleCall::Load);
        async {
            if self.state() == ModelState::Ready {
                return Ok(());
            }
            *locked(&self.state) = ModelState::Loading { ready_in: Duration::from_millis(1500) };
            let loaded = self.loads.lock().await.recv().await.expect("an end");
            *locked(&self.state) =
                if loaded.is_ok() { ModelState::Ready } else { ModelState::Cold };
            loaded
        }
        .boxed()
    }

    fn unload(&self) -> BoxFuture<'_, ()> {
        self.record(LifecycleCall::Unload);
        *locked(&self.state) = ModelState::Cold;
        async {}.boxed()
    }

    fn unload_if_idle(&self) -> BoxFuture<'_, bool> {
        self.record(LifecycleCall::UnloadIfIdle);
        let is_idle = self.memory_use().in_flight == 0;
        if is_idle {
            *locked(&self.state) = ModelState::Cold;
        }
        async move { is_idle }.boxed()
    }

    fn keep_alive(&self, time: KeepAlive) {
        self.record(LifecycleCall::KeepAlive(time));
    }

    fn memory_use(&self) -> MemoryUse {
        locked(&self.memory_use).clone()
    }
}

/// A server with the chat models `smol`, which is local, and `cloud`, which is on another server, and the speech
/// model `kokoro`.
pub(crate) async fn server_with(
    smol: Arc<dyn ChatModel>,
    lifecycle: Option<Arc<dyn ModelLifecycle>>,
    options: ServerOptions,
) -> Server {
    let chat = |name: &str, model, lifecycle| {
        let model = RegisteredModel::<Chat>::new(name, model, Admission::new(2, 0.5));
        Arc::new(RegisteredModel { lifecycle, ..model })
    };
    let options = ServerOptions { default_chat: Some("smol".to_owned()), ..options };
    Server::start_models(options, |registry| {
        registry.add(chat("smol", smol, lifecycle));
        registry.add(chat("cloud", Arc::new(ScriptedChat::new([])), None));
        registry.add_alias("mini", "smol");
        ["smol", "org/smol"].into_iter().for_each(|other| registry.also_called(other, "smol"));
    })
    .await
}

/// A server whose model `smol` the test loads.
pub(crate) async fn server() -> (Server, Arc<StagedLifecycle>, mpsc::Sender<Loaded>) {
    let (lifecycle, load_results) = StagedLifecycle::new();
    let smol = Arc::new(ScriptedChat::new([]));
    let server = server_with(smol, Some(lifecycle.clone()), ServerOptions::default()).await;
    (server, lifecycle, load_results)
}

fn entry(state: &str) -> Value {
    json!({
        "name": "smol", "kind": "chat", "state": state, "ready_in_s": null,
        "resident_bytes": null, "vram_bytes": 0, "in_flight": 0, "expires_at": null,
        "context_length": 8192, "load_ms": null,
    })
}

#[tokio::test]
async fn loaded_models_are_listed_with_their_memory() {
    let (server, lifecycle, _load_results) = server().await;
    assert_eq!(server.get("/api/hob/ps").await.json(), json!({"models": [entry("cold")]}));
    let memory_use = MemoryUse {
        resident_bytes: Some(150_000_000),
        in_flight: 2,
        load_took: Some(Duration::from_millis(812)),
        ..MemoryUse::default()
    };
    lifecycle.occupy(ModelState::Ready, memory_use);
    let mut warm = entry("warm");
    (warm["resident_bytes"], warm["in_flight"], warm["load_ms"]) =
        (json!(150_000_000), json!(2), json!(812));
    assert_eq!(server.get("/api/hob/ps").await.json(), json!({"models": [warm]}));
}

#[tokio::test]
async fn a_model_is_put_into_memory_and_taken_out_by_any_name() {
    let (server, lifecycle, load_results) = server().await;
    load_results.try_send(Ok(())).expect("room");
    let load = post("/api/hob/load", r#"{"model":"mini:latest","keep_alive":"5m","x":1}"#);
    let loaded = server.ask(load).await;
    assert_eq!((loaded.status(), loaded.json()), (200, entry("warm")));
    assert_eq!(loaded.header("x-hob-ignored"), Some("x"));
    let five_minutes = KeepAlive::For(Duration::from_secs(300));
    assert_eq!(lifecycle.calls(), [LifecycleCall::KeepAlive(five_minutes), LifecycleCall::Load]);
    let unloaded = server.ask(post("/api/hob/unload", r#"{"model":"smol"}"#)).await;
    assert_eq!((unloaded.status(), unloaded.json()), (200, entry("cold")));
    assert_eq!(lifecycle.calls(), [LifecycleCall::Unload]);
}

#[tokio::test]
async fn a_key_for_some_names_unloads_a_model_after_its_answers() {
    let (lifecycle, _load_results) = StagedLifecycle::new();
    let held = Some(Arc::clone(&lifecycle) as Arc<dyn ModelLifecycle>);
    let phone = KeyOptions { aliases: Some(vec!["smol".to_owned()]), ..named("phone", PHONE) };
    let options = with_keys([named("laptop", LAPTOP), phone]);
    let server = server_with(Arc::new(ScriptedChat::new([])), held, options).await;
    let after_answers = LifecycleCall::KeepAlive(KeepAlive::For(Duration::ZERO));
    for (key, in_flight, calls) in [
        (PHONE, 1, vec![LifecycleCall::UnloadIfIdle, after_answers]),
        (PHONE, 0, vec![LifecycleCall::UnloadIfIdle]),
        (LAPTOP, 1, vec![LifecycleCall::Unload]),
    ] {
        let memory_use = MemoryUse { in_flight, ..MemoryUse::default() };
        lifecycle.occupy(ModelState::Ready, memory_use);
        let unload = post_as(key, "/api/hob/unload", r#"{"model":"smol"}"#);
        assert_eq!(server.ask(unload).await.status(), 200);
        assert_eq!(lifecycle.calls(), calls, "{key}, {in_flight}");
    }
}

#[tokio::test]
async fn a_load_is_reported_line_by_line() {
    let (server, _residence, load_results) = server().await;
    let calls = post("/api/hob/load", r#"{"model":"smol","stream":true}"#);
    let mut client = server.send(&calls).await;
    let head = client.head().await;
    assert_eq!((head.status, head.header("content-type")), (200, Some("application/x-ndjson")));
    let loading = "{\"state\":\"loading\",\"ready_in_s\":1.5}\n";
    // The second line comes because time passed, not because something happened.
    for _ in 0..2 {
        assert_eq!(client.chunk().await.expect("a line"), Some(loading.as_bytes().to_vec()));
    }
    load_results.send(Ok(())).await.expect("a lifecycle");
    let rest = String::from_utf8(client.chunks().await).expect("text");
    let last: Value = serde_json::from_str(rest.lines().last().expect("a line")).expect("JSON");
    assert_eq!(last, entry("warm"));
}

#[tokio::test]
async fn a_loading_that_fails_says_so_in_its_last_line_or_at_once() {
    let (server, _residence, load_results) = server().await;
    let calls = post("/api/hob/load", r#"{"model":"smol","stream":true}"#);
    let mut client = server.send(&calls).await;
    client.head().await;
    client.chunk().await.expect("a line");
    load_results.send(Err(worker_lost())).await.expect("a lifecycle");
    let rest = String::from_utf8(client.chunks().await).expect("text");
    let last: Value = serde_json::from_str(rest.lines().last().expect("a line")).expect("JSON");
    assert_eq!(last["error"]["code"], "worker_lost");

    let error = ModelError::OutOfMemory {
        needed_bytes: 9_000_000,
        available_bytes: 2_000_000,
        what_fits: None,
    };
    for stream in ["true", "false"] {
        load_results.send(Err(error.clone())).await.expect("room");
        let load = format!(r#"{{"model":"smol","stream":{stream}}}"#);
        let refused = server.ask(post("/api/hob/load", load)).await;
        assert_eq!(refused.error("code"), (503, json!("out_of_memory")), "{stream}");
    }
    load_results.send(Ok(())).await.expect("room");
    let loaded = server.ask(&calls).await;
    let loaded: Value = serde_json::from_str(loaded.text()).expect("one line");
    assert_eq!(loaded, entry("warm"), "what is there at once has no lines before it");
}

#[tokio::test]
async fn a_model_that_cannot_be_loaded_is_rejected() {
    let (server, lifecycle, _load_results) = server().await;
    let elsewhere = "'cloud' is a model of another server; this hob cannot load or unload it";
    let speech = "'kokoro' is a model of another server; this hob cannot load or unload it";
    let unknown = "no model is called 'smool'; the nearest are smol";
    for (body, status, message) in [
        (r#"{"model":"cloud"}"#, 400, elsewhere),
        (r#"{"model":"kokoro"}"#, 400, speech),
        (r#"{"model":"smool"}"#, 404, unknown),
        ("{}", 400, "'model' is missing"),
    ] {
        for path in ["/api/hob/load", "/api/hob/unload"] {
            let refused = server.ask(post(path, body)).await;
            assert_eq!(refused.error("message"), (status, json!(message)), "{path} {body}");
        }
    }
    assert_eq!(lifecycle.calls(), []);
}

#[tokio::test]
async fn a_loading_without_end_is_given_up() {
    let (lifecycle, _load_results) = StagedLifecycle::new();
    let options =
        ServerOptions { token_time_max: Duration::from_millis(20), ..ServerOptions::default() };
    let server = server_with(Arc::new(ScriptedChat::new([])), Some(lifecycle), options).await;
    let refused = server.ask(post("/api/hob/load", r#"{"model":"smol"}"#)).await;
    assert_eq!(refused.error("code"), (504, json!("timeout")));
}

#[tokio::test]
async fn memory_wants_the_key() {
    let (lifecycle, _load_results) = StagedLifecycle::new();
    let smol = Arc::new(ScriptedChat::new([]));
    let server = server_with(smol, Some(lifecycle.clone()), with_key("secret")).await;
    assert_eq!(server.get("/api/hob/ps").await.status(), 401);
    for path in ["/api/hob/load", "/api/hob/unload"] {
        assert_eq!(server.ask(post(path, r#"{"model":"smol"}"#)).await.status(), 401, "{path}");
    }
    assert_eq!(lifecycle.calls(), []);
}
