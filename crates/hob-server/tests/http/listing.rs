//! Requests that use no model: lists, health, readiness, metrics, the page.

use hob_core::ModelState;
use hob_server::ServerOptions;
use serde_json::json;

use crate::client::{Client, request};
use crate::model::{loading, sound};
use crate::server::Server;

#[tokio::test]
async fn models_are_listed_with_their_aliases_and_found_by_any_name() {
    let server = Server::start().await;
    server.model.set_state(loading(3));
    let list = server.get("/v1/models").await.json();
    let names: Vec<_> = list["data"].as_array().expect("a list").iter().map(|m| &m["id"]).collect();
    assert_eq!(names, [&json!("kokoro"), &json!("narrator")]);
    assert_eq!(list["data"][1]["hob"]["state"], "loading");
    for name in ["kokoro", "narrator", "tts-1", "gpt-4o-mini-tts"] {
        let model = server.get(&format!("/v1/models/{name}")).await.json();
        assert_eq!((&model["id"], &model["object"]), (&json!(name), &json!("model")));
    }
    for (path, name) in [("org%2Fother", "org/other"), ("org/other", "org/other"), ("%ff", "")] {
        let answer = server.get(&format!("/v1/models/{path}")).await;
        let message = format!("no model is called '{name}'; GET /v1/models lists all");
        assert_eq!(answer.error("message"), (404, json!(message)));
    }
    for name in ["kokoro", "narrator"] {
        let route = server.get(&format!("/api/hob/routes/{name}")).await.json();
        let target = &route["targets"][0];
        assert_eq!((&target["name"], &target["status"]), (&json!("kokoro"), &json!("active")));
    }
    assert_eq!(server.get("/api/hob/routes/other").await.status(), 404);
    let audio = json!({"models": [{"id": "kokoro", "name": "kokoro"}, {"id": "narrator", "name": "narrator"}]});
    assert_eq!(server.get("/v1/audio/models").await.json(), audio);
}

#[tokio::test]
async fn voices_that_can_speak_are_listed() {
    let server = Server::start().await;
    let voices = server.get("/v1/audio/voices").await.json();
    let fable = json!({"id": "bm_fable", "name": "fable", "language": "en-GB", "gender": "male"});
    assert_eq!(
        (voices["voices"].as_array().map(Vec::len), &voices["voices"][2]),
        (Some(4), &fable)
    );
    let legacy = server.get("/v1/audio/voices?x=1&legacy=true").await.json();
    assert_eq!(legacy, json!({"voices": ["af_heart", "af_nova", "bm_fable", "jf_alpha"]}));
}

#[tokio::test]
async fn a_blend_can_be_kept_used_and_forgotten() {
    let server = Server::start().await;
    let combine = "/v1/audio/voices/combine";
    let blend = "af_heart(2)+af_nova(1)";
    let body = json!({"voices": blend, "name": "warm"}).to_string();
    let kept = server.ask(crate::client::post(combine, &body)).await.json();
    let expect = json!({"id": "warm", "voices": blend, "language": "en-US", "gender": "female", "kept": true});
    assert_eq!(kept, expect);
    let ids = async || server.get("/v1/audio/voices?legacy=true").await.json();
    assert_eq!(
        ids().await,
        json!({"voices": ["af_heart", "af_nova", "bm_fable", "jf_alpha", "warm"]})
    );

    // The staged model knows no blends, and says what it was asked for.
    let refused = server.post_speech(r#"{"input":"Hi","voice":"warm"}"#).await.json();
    let message = refused["error"]["message"].as_str().unwrap_or_default();
    assert!(message.contains(&format!("no voice is called '{blend}'")), "{message}");

    let delete = |name: &str| {
        let path = format!("/v1/audio/voices/{name}");
        server.ask(crate::client::request("DELETE", &path, "Host: localhost\r\n"))
    };
    assert_eq!(delete("warm").await.json(), json!({"id": "warm", "deleted": true}));
    assert_eq!(delete("warm").await.json()["error"]["param"], "voice");
    assert_eq!(ids().await, json!({"voices": ["af_heart", "af_nova", "bm_fable", "jf_alpha"]}));
}

#[tokio::test]
async fn openai_s_names_stand_in_a_blend() {
    let server = Server::start().await;
    let body = json!({"voices": ["nova(2)", "af_heart"], "name": "warm"}).to_string();
    let kept = server.ask(crate::client::post("/v1/audio/voices/combine", &body)).await.json();
    assert_eq!(kept["voices"], "af_nova(2)+af_heart");
    let refused = server.post_speech(r#"{"input":"Hi","voice":"nova+marin(0.5)"}"#).await.json();
    let message = refused["error"]["message"].as_str().unwrap_or_default();
    assert!(message.contains("no voice is called 'af_nova+af_heart(0.5)'"), "{message}");
}

#[tokio::test]
async fn the_default_voice_may_be_a_blend() {
    let answer = async |default: &str| {
        let default_voice = Some(default.to_owned());
        let options = ServerOptions { default_voice, ..ServerOptions::default() };
        let server = Server::start_with(options).await;
        server.model.stage_all([sound(0.5, 240)]);
        let answer = server.post_speech(r#"{"input":"Hi","response_format":"pcm"}"#).await;
        (answer, server.model.asked())
    };
    // The staged model knows no blends, and says what it was asked for.
    let (refused, _) = answer("nova(2)+af_heart").await;
    let text = refused.text();
    assert!(text.contains("no voice is called 'af_nova(2)+af_heart'"), "{text}");
    // The model lists its default voice first. A blend of voices that it does not have is for another model.
    for default in ["af_nova", "af_other+af_heart"] {
        let (answer, asked) = answer(default).await;
        assert_eq!(answer.status(), 200, "{default}");
        assert_eq!(asked[0].voice, "af_heart", "{default}");
    }
}

#[tokio::test]
async fn blends_that_cannot_be_kept_are_refused() {
    let server = Server::start().await;
    for (body, reason) in [
        (r#"{"voices":"af_heart+af_nope","name":"x"}"#, "no voice is called 'af_nope'"),
        (r#"{"voices":"af_heart+jf_alpha","name":"x"}"#, "use voices of one language"),
        (r#"{"voices":"af_heart(2)-af_nova(2)","name":"x"}"#, "add to almost nothing"),
        (r#"{"voices":"af_heart","name":"a b"}"#, "must begin with a letter"),
        (r#"{"voices":"af_heart","name":"nova"}"#, "is taken"),
        (r#"{"voices":"af_heart","name":"bm_fable"}"#, "is taken"),
        (r#"{"voices":"af_heart","name":"combine"}"#, "is taken"),
    ] {
        let answer = server.ask(crate::client::post("/v1/audio/voices/combine", body)).await;
        assert_eq!(answer.status(), 400, "{body}");
        assert!(answer.text().contains(reason), "{body}: {}", answer.text());
    }
    let bare = crate::client::post("/v1/audio/voices/combine", r#"["af_heart","af_nova"]"#);
    let answer = server.ask(bare).await.json();
    assert_eq!((&answer["id"], &answer["kept"]), (&json!("af_heart+af_nova"), &json!(false)));
    let ids = server.get("/v1/audio/voices?legacy=true").await.json();
    assert_eq!(ids, json!({"voices": ["af_heart", "af_nova", "bm_fable", "jf_alpha"]}));
}

#[tokio::test]
async fn ready_means_that_it_would_speak_at_once() {
    let server = Server::start().await;
    let health = json!({"status": "ok", "version": env!("CARGO_PKG_VERSION")});
    let down = ModelState::Down { reason: "no such file".to_owned() };
    for (state, status, name, retry_after) in [
        (ModelState::Ready, 200, "ready", None),
        (ModelState::Cold, 503, "cold", None),
        (loading(3), 503, "loading", Some("3")),
        (down, 503, "down", None),
    ] {
        server.model.set_state(state);
        let answer = server.get("/ready").await;
        assert_eq!(
            (answer.status(), answer.header("retry-after")),
            (status, retry_after),
            "{name}"
        );
        assert_eq!(answer.json()["status"], name);
        assert_eq!(answer.json()["error"].is_object(), status != 200, "{name}");
        assert_eq!(server.get("/health").await.json(), health, "{name}");
    }
}

#[tokio::test]
async fn metrics_say_what_happened() {
    let server = Server::start().await;
    server.model.stage_all([sound(0.1, 36_000)]);
    server.post_speech(r#"{"input":"Hi"}"#).await;
    server.post_speech("{}").await;
    server.get("/nowhere/else").await;
    let sender = server.model.stage();
    let mut client = server.speak(r#"{"input":"twelve chars","response_format":"pcm"}"#).await;
    sender.send(sound(0.1, 240)).await.expect("a listener");
    client.head().await;
    let metrics = server.get("/metrics").await;
    assert!(
        metrics.header("content-type").is_some_and(|t| t.starts_with("text/plain; version=0.0.4"))
    );
    metrics.has_lines(&[
        r#"hob_requests_total{route="/audio/speech",status="200"} 2"#,
        r#"hob_requests_total{route="/audio/speech",status="400"} 1"#,
        r#"hob_requests_total{route="other",status="404"} 1"#,
        r#"hob_speech_ttfa_seconds_count{model="kokoro"} 2"#,
        r#"hob_speech_answers_total{model="kokoro",outcome="complete"} 1"#,
        r#"hob_speech_audio_ms_total{model="kokoro"} 1500"#,
        r#"hob_speech_in_flight{model="kokoro"} 1"#,
        r#"hob_speech_in_flight_max{model="kokoro"} 2"#,
        r#"hob_model_state{model="kokoro",state="warm"} 1"#,
        r#"hob_model_state{model="kokoro",state="down"} 0"#,
    ]);
    // Twelve characters are 0.8 s, or longer if the first answer was longer than expected.
    let backlog = r#"hob_speech_backlog_seconds{model="kokoro"} "#;
    let backlog_s = metrics.text().lines().find_map(|line| line.strip_prefix(backlog));
    let backlog_s: f64 = backlog_s.and_then(|s| s.parse().ok()).expect("a number");
    assert!((0.79..0.85).contains(&backlog_s), "{backlog_s}");
}

#[tokio::test]
async fn paths_and_methods_that_are_not_there() {
    let server = Server::start().await;
    for (method, path, status, message) in [
        ("GET", "/v1/nothing", 404, "there is no route /v1/nothing"),
        ("POST", "/nothing", 404, "there is no route /nothing"),
        ("GET", "/../Cargo.toml", 404, "there is no route /../Cargo.toml"),
        ("GET", "/%2e%2e/Cargo.toml", 404, "there is no route /%2e%2e/Cargo.toml"),
        ("GET", "/v1/audio/speech", 405, "/v1/audio/speech does not take GET"),
        ("DELETE", "/v1/models/kokoro", 405, "/v1/models/kokoro does not take DELETE"),
        ("PUT", "/health", 405, "/health does not take PUT"),
        ("POST", "/", 405, "/ does not take POST"),
    ] {
        let answer = server.ask(request(method, path, "Host: localhost\r\n")).await;
        assert_eq!(answer.error("message"), (status, json!(message)));
        assert_eq!(answer.header("allow").is_some(), status == 405, "{method} {path}");
    }
}

async fn head(server: &Server, path: &str) -> crate::client::Head {
    let mut client = Client::connect(server.address).await;
    client.send(request("HEAD", path, "Host: localhost\r\nConnection: close\r\n")).await;
    client.bodiless().await
}

#[tokio::test]
async fn head_answers_like_get_without_a_body() {
    let server = Server::start().await;
    for path in ["/", "/health", "/ready", "/v1/models", "/metrics"] {
        let length = server.get(path).await.header("content-length").map(str::to_owned);
        let head = head(&server, path).await;
        assert_eq!(head.status, 200, "{path}");
        if path != "/metrics" {
            assert_eq!(head.header("content-length"), length.as_deref(), "{path}");
        }
    }
    assert_eq!(head(&server, "/v1/audio/speech").await.status, 405);
}

#[tokio::test]
async fn the_page_is_served_with_headers_that_keep_others_out() {
    let server = Server::start().await;
    let page = request("GET", "/", "Host: localhost\r\nAccept: text/html\r\n");
    let page = server.ask(page).await;
    assert_eq!(
        (page.status(), page.header("content-type")),
        (200, Some("text/html; charset=utf-8"))
    );
    assert!(page.text().contains("href=\"benchmarks/\""), "it links to the results page");
    assert_eq!(page.header("x-content-type-options"), Some("nosniff"));
    assert_eq!(page.header("cache-control"), Some("no-cache"));
    let policy = page.header("content-security-policy").expect("a policy");
    assert!(policy.starts_with("default-src 'none'; script-src 'self';"), "{policy}");
    assert!(!policy.contains("unsafe"), "{policy}");
    let etag = page.header("etag").expect("a tag");
    for seen in [etag.to_owned(), format!("W/{etag}")] {
        let headers = format!("Host: localhost\r\nAccept: text/html\r\nIf-None-Match: {seen}\r\n");
        let again = server.ask(request("GET", "/", &headers)).await;
        assert_eq!((again.status(), again.header("etag")), (304, Some(etag)), "{seen}");
    }
    let index = server.get("/index.html").await;
    assert_eq!(index.body, page.body);
    assert_eq!(
        server.get("/app.js").await.header("content-type"),
        Some("text/javascript; charset=utf-8")
    );
}
