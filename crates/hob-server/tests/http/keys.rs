//! Several keys: the owner of a request, what each key's holder sees, and which models it may use.

use std::sync::Arc;

use hob_core::ModelState;
use hob_core::scripted::ScriptedChat;
use hob_server::{KeyDigest, KeyOptions, ServerOptions};
use serde_json::{Value, json};

use crate::chat_model::{Event, done, scripted, text};
use crate::client::{Answer, get, post, post_with, request};
use crate::lifecycle::{StagedLifecycle, server_with};
use crate::log::Log;
use crate::model::sound;
use crate::refusals::check_refusal;
use crate::server::Server;

/// The key called `laptop`.
pub(crate) const LAPTOP: &str = "hob-laptop-7d1f5a";
/// The key called `phone`.
pub(crate) const PHONE: &str = "hob-phone-91c3e0";

pub(crate) const HI: &str = r#"{"messages":[{"role":"user","content":"Hi"}]}"#;

/// This is the only key, and it may do everything.
pub(crate) fn with_key(key: &str) -> ServerOptions {
    with_keys([named("default", key)])
}

pub(crate) fn with_keys(keys: impl IntoIterator<Item = KeyOptions>) -> ServerOptions {
    ServerOptions { keys: keys.into_iter().collect(), ..ServerOptions::default() }
}

pub(crate) fn named(name: &str, key: &str) -> KeyOptions {
    KeyOptions::new(name, KeyDigest::of(key).expect("a key"))
}

/// `POST` with a key.
pub(crate) fn post_as(key: &str, path: &str, json: &str) -> Vec<u8> {
    let headers = format!("Content-Type: application/json\r\nAuthorization: Bearer {key}\r\n");
    post_with(path, &headers, json)
}

pub(crate) fn get_as(key: &str, path: &str) -> String {
    request("GET", path, &format!("Host: localhost\r\nx-api-key: {key}\r\n"))
}

/// Checks how many requests of `phone` were refused for this reason.
pub(crate) async fn check_refused_count(server: &Server, reason: &str, count: usize) {
    let line = format!(r#"hob_key_refused_total{{key="phone",reason="{reason}"}} {count}"#);
    server.ask(get_as(LAPTOP, "/metrics")).await.has_lines(&[&line]);
}

/// Models `smol` (or `mini`), `cloud` and `kokoro`; `laptop` may use all, `phone` these.
async fn server(aliases: &[&str], scripts: usize) -> Server {
    let scripts = (0..scripts).map(|_| Ok(vec![text("Hello"), done(1)]));
    server_of(aliases, scripts.collect()).await
}

async fn server_of(
    aliases: &[&str],
    scripts: Vec<Result<Vec<Event>, hob_core::ModelError>>,
) -> Server {
    let phone = KeyOptions {
        aliases: Some(aliases.iter().map(|&alias| alias.to_owned()).collect()),
        ..named("phone", PHONE)
    };
    let (lifecycle, load_results) = StagedLifecycle::new();
    lifecycle.occupy(ModelState::Ready, Default::default());
    load_results.try_send(Ok(())).expect("room");
    let model: Arc<ScriptedChat> = scripted(scripts);
    server_with(model, Some(lifecycle), with_keys([named("laptop", LAPTOP), phone])).await
}

/// The names in a list, in any of its formats.
fn names(answer: &Answer) -> Vec<String> {
    let json = answer.json();
    let list = json.get("data").or(json.get("models")).and_then(Value::as_array).expect("a list");
    let name = |entry: &Value| entry.get("name").or(entry.get("id")).cloned();
    list.iter().filter_map(|entry| Some(name(entry)?.as_str()?.to_owned())).collect()
}

#[tokio::test]
async fn each_key_sees_what_it_may_use() {
    let server = server(&["mini", "kokoro"], 0).await;
    let all = ["smol", "cloud", "mini", "kokoro"];
    for (path, theirs, all) in [
        ("/v1/models", &["mini", "kokoro"][..], &all[..]),
        ("/models", &["mini", "kokoro"], &all),
        ("/v1/audio/models", &["kokoro"], &["kokoro"]),
        ("/api/tags", &["mini:latest"], &["smol:latest", "cloud:latest", "mini:latest"]),
        ("/api/ps", &["mini:latest"], &["smol:latest"]),
        ("/api/hob/ps", &["mini"], &["smol"]),
    ] {
        assert_eq!(names(&server.ask(get_as(PHONE, path)).await), theirs, "{path}");
        assert_eq!(names(&server.ask(get_as(LAPTOP, path)).await), all, "{path}");
    }
    for path in ["/v1/models", "/v1/audio/models", "/api/tags"] {
        let all = names(&server.ask(get_as(LAPTOP, path)).await);
        assert_eq!(names(&server.ask(get(path)).await), all, "{path} needs no key");
    }
    // Clients verify their key with a list.
    for path in ["/v1/models", "/models", "/v1/audio/models", "/v1/audio/voices", "/api/tags"] {
        assert_eq!(server.ask(get_as("hob-wrong", path)).await.status(), 401, "{path}");
    }
    for path in ["/health", "/ready", "/openapi.json", "/api/version"] {
        assert_eq!(server.ask(get_as("hob-wrong", path)).await.status(), 200, "{path}");
    }
    for (name, status) in
        [("mini", 200), ("mini:latest", 200), ("tts-1", 200), ("smol", 403), ("nothing", 403)]
    {
        let answer = server.ask(get_as(PHONE, &format!("/v1/models/{name}"))).await;
        assert_eq!(answer.status(), status, "{name}");
    }
}

#[tokio::test]
async fn a_key_s_names_mean_what_they_mean_in_requests() {
    for alias in ["smol", "SMOL", "org/Smol", "smol:latest"] {
        let server = server(&["kokoro", alias], 4).await;
        for path in ["/v1/models", "/api/tags", "/api/hob/ps"] {
            let theirs = names(&server.ask(get_as(PHONE, path)).await);
            assert!(
                theirs.iter().any(|name| name.starts_with("smol")),
                "{alias} {path} {theirs:?}"
            );
        }
        for (name, status) in [
            ("smol", 200),
            ("Smol", 200),
            ("org/smol", 200),
            ("smol:instruct", 200),
            ("smol:360m", 403),
            ("mini", 403),
            ("cloud", 403),
        ] {
            let answer = server.ask(get_as(PHONE, &format!("/v1/models/{name}"))).await;
            assert_eq!(answer.status(), status, "{alias} {name}");
        }
        for name in ["smol", "SMOL", "org/smol", "smol:instruct"] {
            let body =
                format!(r#"{{"model":"{name}","messages":[{{"role":"user","content":"Hi"}}]}}"#);
            let answer = server.ask(post_as(PHONE, "/v1/chat/completions", &body)).await;
            assert_eq!(answer.status(), 200, "{alias} {name}");
        }
    }
}

#[tokio::test]
async fn names_that_a_key_may_not_use_are_refused_on_every_route() {
    let server = server(&["mini", "kokoro"], 0).await;
    let bodies = [
        ("/v1/chat/completions", r#"{"model":"NAME","messages":[{"role":"user","content":"Hi"}]}"#),
        ("/v1/completions", r#"{"model":"NAME","prompt":"Hi"}"#),
        ("/v1/embeddings", r#"{"model":"NAME","input":"Hi"}"#),
        ("/v1/audio/speech", r#"{"model":"NAME","input":"Hi"}"#),
        ("/api/hob/load", r#"{"model":"NAME"}"#),
        ("/api/hob/unload", r#"{"model":"NAME"}"#),
        ("/api/chat", r#"{"model":"NAME","messages":[{"role":"user","content":"Hi"}]}"#),
        ("/api/generate", r#"{"model":"NAME","prompt":"Hi"}"#),
        ("/api/generate", r#"{"model":"NAME"}"#),
        ("/api/embed", r#"{"model":"NAME","input":"Hi"}"#),
        ("/api/embeddings", r#"{"model":"NAME","prompt":"Hi"}"#),
        ("/api/show", r#"{"model":"NAME"}"#),
        ("/api/pull", r#"{"model":"NAME"}"#),
    ];
    for (path, body) in bodies {
        for name in ["smol", "nothing", "smol:latest", "minimal"] {
            let answer = server.ask(post_as(PHONE, path, &body.replace("NAME", name))).await;
            let message = format!("this key may not use '{name}'; it may use mini, kokoro");
            if path.starts_with("/api/") && !path.starts_with("/api/hob") {
                let said = (answer.status(), answer.json(), answer.header("x-should-retry"));
                assert_eq!(said, (403, json!({"error": message}), Some("false")), "{path}");
                continue;
            }
            let code = Some("model_not_allowed");
            let row = (403, Some("model"), code, Some("false"), None);
            check_refusal(&answer, row, &message);
        }
    }
    check_refused_count(&server, "model_not_allowed", 4 * bodies.len()).await;
}

#[tokio::test]
async fn an_alias_may_be_used_though_its_target_may_not() {
    let server = server(&["mini"], 4).await;
    for (path, body) in [
        ("/v1/chat/completions", r#"{"model":"mini","messages":[{"role":"user","content":"Hi"}]}"#),
        ("/v1/completions", r#"{"model":"mini:latest","prompt":"Hi"}"#),
        ("/api/chat", r#"{"model":"mini","messages":[{"role":"user","content":"Hi"}]}"#),
        ("/api/generate", r#"{"model":"mini:latest","prompt":"Hi"}"#),
        ("/api/show", r#"{"model":"mini"}"#),
        ("/api/hob/load", r#"{"model":"mini"}"#),
    ] {
        let answer = server.ask(post_as(PHONE, path, body)).await;
        assert_eq!(answer.status(), 200, "{path} {answer:?}");
    }
}

#[tokio::test]
async fn without_a_name_it_is_the_default_or_else_the_first_that_they_may_use() {
    for (aliases, expected) in [
        (&["cloud", "smol"][..], "smol"),
        (&["kokoro", "mini"], "mini"),
        (&["nothing", "mini", "cloud"], "mini"),
        (&["smol:latest"], "smol"),
    ] {
        let server = server(aliases, 1).await;
        let answer = server.ask(post_as(PHONE, "/v1/chat/completions", HI)).await;
        assert_eq!((answer.status(), &answer.json()["model"]), (200, &json!(expected)));
        assert_eq!(answer.header("x-hob-target"), Some("smol"));
        // Clients choose the first of a list.
        for (path, tag) in [("/v1/models", ""), ("/api/tags", ":latest")] {
            let theirs = names(&server.ask(get_as(PHONE, path)).await);
            assert_eq!(theirs[0], format!("{expected}{tag}"), "{aliases:?} {path}");
        }
    }
    let server = server(&["kokoro"], 0).await;
    let answer = server.ask(post_as(PHONE, "/v1/chat/completions", HI)).await;
    let code = Some("model_not_allowed");
    let row = (403, Some("model"), code, Some("false"), None);
    check_refusal(&answer, row, "this key may use no chat model; it may use kokoro");
}

#[tokio::test]
async fn openais_names_for_speech_mean_a_model_that_they_may_use() {
    for (aliases, model, status) in [
        (&["kokoro"][..], "", 200),
        (&["kokoro"], r#""model":"tts-1","#, 200),
        (&["kokoro"], r#""model":"hexgrad/Kokoro-82M","#, 200),
        (&["mini"], r#""model":"kokoro_v1","#, 403),
        (&["tts-1"], r#""model":"tts-1","#, 200),
        (&["tts-1"], r#""model":"kokoro","#, 403),
        (&["mini"], r#""model":"tts-1","#, 403),
        (&["mini"], "", 403),
    ] {
        let server = server(aliases, 0).await;
        server.model.stage_all([sound(0.1, 100)]);
        let body = format!(r#"{{{model}"input":"Hi"}}"#);
        let answer = server.ask(post_as(PHONE, "/v1/audio/speech", &body)).await;
        assert_eq!(answer.status(), status, "{aliases:?} {model}");
        let voices = server.ask(get_as(PHONE, "/v1/audio/voices")).await;
        assert_eq!(voices.status(), if aliases == ["mini"] { 403 } else { 200 }, "{aliases:?}");
    }
}

#[tokio::test]
async fn a_key_for_some_names_sees_no_upstreams_and_no_metrics() {
    let server = server(&["mini"], 0).await;
    for path in ["/metrics", "/v1/metrics", "/api/hob/upstreams"] {
        let refused = server.ask(get_as(PHONE, path)).await;
        assert_eq!(refused.error("code"), (403, json!("not_allowed")), "{path}");
        assert_eq!(server.ask(get_as(LAPTOP, path)).await.status(), 200, "{path}");
    }
    let now = server.ask(get_as(PHONE, "/api/hob/now")).await.json();
    assert_eq!(now["upstreams"], json!([]));
}

#[tokio::test]
async fn keys_are_nowhere_to_be_read() {
    const WRONG: &str = "hob-wrong-0b5a77";
    let log = Log::default();
    let _listening = log.listen();
    let server = server(&["mini"], 2).await;
    let mut requests = Vec::new();
    for key in [LAPTOP, PHONE, WRONG] {
        for path in ["/v1/models", "/v1/models/smol", "/metrics", "/api/tags", "/api/ps", "/no"] {
            requests.push(get_as(key, path).into_bytes());
            let headers = format!("Host: localhost\r\nAuthorization: Basic {key}\r\n");
            requests.push(request("GET", path, &headers).into_bytes());
        }
        for path in ["/v1/chat/completions", "/api/chat", "/v1/audio/speech", "/api/hob/load"] {
            requests.push(post_as(key, path, HI));
            requests.push(post_as(key, path, "{"));
        }
    }
    requests.push(post("/v1/chat/completions", HI));
    // The beginning of the SHA-256 of the first key.
    let digest = "bef57928";
    for request in requests {
        let answer = server.ask(request).await;
        let said = format!("{:?} {}", answer.head, String::from_utf8_lossy(&answer.body));
        for secret in [LAPTOP, PHONE, WRONG, digest] {
            assert!(!said.contains(secret), "{said}");
        }
    }
    let logged = log.text();
    assert!(logged.contains("request") && logged.contains("status=401"), "{logged}");
    for secret in [LAPTOP, PHONE, WRONG, digest] {
        assert!(!logged.contains(secret), "{logged}");
    }
}
