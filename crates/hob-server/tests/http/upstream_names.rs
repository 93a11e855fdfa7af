//! Names of models on other servers: hob resolves them when no local model has the name, and records which server
//! answered.
//! `hob-upstream` is replaced by a resolver that writes the same events into the trace.

use std::sync::Arc;
use std::time::Duration;

use futures::{StreamExt, stream};
use hob_core::routing::{ListedModel, RouteView, TargetStatus, TargetView, UpstreamView};
use hob_core::scripted::{SpeechOf, TranscriptOf, american_voice};
use hob_core::{
    Admission, Chat, Fault, ModelError, ModelState, RegisteredModel, Registry, Resolve, Speech,
    SpeechModel, SpeechRequest, SpeechStream, Trace, TranscriptRequest, Transcription,
    UpstreamResolver,
};
use hob_server::ServerOptions;
use hob_server::ledger::Outcome;
use serde_json::json;

use crate::chat_model::StagedChat;
use crate::client::post;
use crate::ledger::{rows, with_ledger};
use crate::model::sound;
use crate::server::Server;
use crate::transcript_model::{delta, done, form_with};

fn record_attempts(trace: &Trace, name: &str) -> Result<(), ModelError> {
    let error = ModelError::upstream("gpu/a", Fault::CutOff);
    trace.asking("gpu/a", true);
    trace.failed("gpu/a", &error, Duration::from_millis(1));
    if name == "gpu/none" {
        return Err(error);
    }
    trace.asking("gpu/b", true);
    trace.answers("gpu/b", std::time::Instant::now(), Duration::from_millis(1));
    Ok(())
}

/// A voice with two targets: `gpu/a` fails, and `gpu/b` answers.
fn fallback_voice() -> Arc<dyn SpeechModel> {
    Arc::new(SpeechOf::new(vec![american_voice("nova")], async |request: SpeechRequest| {
        record_attempts(&request.trace, &request.voice)?;
        Ok(SpeechStream::new(24_000, stream::iter([sound(0.5, 10)])))
    }))
}

/// Resolves every name of the server `gpu`. `gpu/any` is an alias of `gpu/a`, and `gpu/to-NAME` one of this hob's model.
#[derive(Debug)]
pub(crate) struct Gpu;

impl Resolve<Chat> for Gpu {
    fn resolve(&self, _name: &str) -> Option<Arc<RegisteredModel<Chat>>> {
        None
    }
}

impl Resolve<Speech> for Gpu {
    fn resolve(&self, name: &str) -> Option<Arc<RegisteredModel<Speech>>> {
        let model = RegisteredModel::new(name, fallback_voice(), Admission::new(1, 0.0));
        name.starts_with("gpu/").then(|| Arc::new(model))
    }
}

impl Resolve<Transcription> for Gpu {
    fn resolve(&self, name: &str) -> Option<Arc<RegisteredModel<Transcription>>> {
        let model = TranscriptOf::new(async |request: TranscriptRequest| {
            record_attempts(&request.trace, "")?;
            Ok(stream::iter([delta("Hi"), done(1.0)]).boxed())
        });
        let model = RegisteredModel::new(name, Arc::new(model) as _, Admission::new(1, 0.0));
        name.starts_with("gpu/").then(|| Arc::new(model))
    }
}

impl UpstreamResolver for Gpu {
    fn listed(&self) -> Vec<ListedModel> {
        Vec::new()
    }

    fn route(&self, name: &str) -> Option<RouteView> {
        let target = TargetView {
            name: name.replace("gpu/any", "gpu/a").replace("gpu/to-", ""),
            status: TargetStatus::HalfOpen,
            state: ModelState::Ready,
            context_tokens: None,
            in_flight: 0,
            last_failure: None,
            thinks_anyway: false,
        };
        let view = RouteView { alias: name.to_owned(), strategy: "order", targets: vec![target] };
        name.starts_with("gpu/").then_some(view)
    }

    fn upstreams(&self) -> Vec<UpstreamView> {
        Vec::new()
    }
}

async fn serve(options: ServerOptions, change: impl FnOnce(&mut Registry)) -> Server {
    Server::start_models(options, |registry| {
        registry.set_upstreams(Arc::new(Gpu));
        change(registry);
    })
    .await
}

#[tokio::test]
async fn the_target_is_named_and_logged() {
    let folder = tempfile::tempdir().expect("a folder");
    let options = with_ledger(folder.path());
    let server = serve(options, |_| {}).await;
    for (request, route) in [
        (post("/v1/audio/speech", r#"{"model":"gpu/tts","input":"Hi"}"#), "speech"),
        (form_with(&[("model", "gpu/ears")]), "transcription"),
    ] {
        let answer = server.ask(request).await;
        assert_eq!(answer.status(), 200, "{answer:?}");
        assert_eq!(answer.header("x-hob-target"), Some("gpu/b"));
        assert_eq!(answer.header("x-hob-attempts"), Some("2"));
        let count = if route == "speech" { 1 } else { 2 };
        let row = rows(folder.path(), count).await.remove(count - 1);
        assert_eq!((row.route.as_str(), row.target.as_str()), (route, "gpu/b"));
        assert!(row.alias.starts_with("gpu/") && row.outcome == Outcome::Complete, "{row:?}");
    }
    let failing = r#"{"model":"gpu/tts","voice":"gpu/none","input":"Hi"}"#;
    assert_eq!(server.ask(post("/v1/audio/speech", failing)).await.status(), 502);
    let row = rows(folder.path(), 3).await.remove(2);
    assert_eq!(
        (row.target.as_str(), row.error.as_deref()),
        ("gpu/tts", Some("stream_interrupted"))
    );
    assert_eq!(row.attempts.as_deref(), Some("gpu/a=cut_off 1 ms"));
}

#[tokio::test]
async fn local_names_win_over_upstream_names() {
    let server =
        serve(ServerOptions::default(), |registry| registry.add_alias("far", "gpu/tts")).await;
    server.model.stage_all([crate::model::sound(0.1, 100)]);
    let local = server.post_speech(r#"{"model":"kokoro","input":"Hi"}"#).await;
    assert_eq!(
        (local.header("x-hob-target"), local.header("x-hob-attempts")),
        (Some("kokoro"), Some("1"))
    );
    let remote = server.post_speech(r#"{"model":"far","input":"Hi"}"#).await;
    assert_eq!(remote.header("x-hob-target"), Some("gpu/b"));
    let unknown = server.post_speech(r#"{"model":"cpu/tts","input":"Hi"}"#).await;
    assert_eq!(unknown.status(), 404);
    let options =
        ServerOptions { default_transcript: Some("gpu/ears".to_owned()), ..Default::default() };
    let server = serve(options, |_| {}).await;
    for fields in [&[][..], &[("model", "whisper-1")]] {
        let answer = server.ask(form_with(fields)).await;
        assert_eq!(answer.header("x-hob-target"), Some("gpu/b"), "{fields:?}");
    }
}

#[tokio::test]
async fn the_route_of_a_local_name_is_its_own() {
    let own = RegisteredModel::<Speech>::new("gpu/own", fallback_voice(), Admission::new(1, 0.0));
    let server = serve(ServerOptions::default(), |registry| registry.add(own)).await;
    for (name, status) in [("gpu/own", "active"), ("gpu/tts", "half_open")] {
        let route = server.get(&format!("/api/hob/routes/{name}")).await.json();
        assert_eq!(route["targets"][0]["status"], status, "{route}");
    }
}

#[tokio::test]
async fn an_alias_without_a_target_yet_shows_no_limit_of_requests() {
    let model = Arc::new(StagedChat::new());
    let alias = RegisteredModel::<Chat>::new("gpu/any", model.clone(), Admission::new(2, 0.1));
    let server = serve(ServerOptions::default(), |registry| registry.add(alias)).await;
    let body = r#"{"model":"gpu/any","messages":[{"role":"user","content":"Hi"}]}"#;
    let _client = server.send(post("/v1/chat/completions", body)).await;
    model.asked(1).await;
    let seen = server.get("/api/hob/now").await.json();
    let target = json!({"name": "gpu/any", "in_flight": 1, "waiting": 1, "in_flight_max": null});
    assert_eq!(seen["queue"]["targets"], json!([target]));
}
