//! Which names lead to which kind of model. A server that fails at one kind stays in use for
//! the others.

use std::sync::Arc;
use std::sync::mpsc::sync_channel;
use std::time::Duration;

use hob_core::UpstreamResolver;
use hob_core::routing::TargetStatus;
use hob_core::scripted::{ScriptedChat, ScriptedTranscript};
use hob_core::{
    Admission, AnyModel, Chat, ChatRequest, Clock, Fault, Kind, ModelError, ModelState, Registered,
    RegisteredModel, Registry, Resolve, Speech, Transcription,
};
use hob_upstream::{Gateway, GatewayError, GatewayOptions, UpstreamKind, UpstreamOptions};

use crate::stage::{
    End, Play, Stage, alias, chunked, gateway_of, local_voice, request, speak, status, upstream,
    whole,
};

fn local<T: Registered>(name: &str, model: Arc<T::Model>) -> Arc<RegisteredModel<T>> {
    Arc::new(RegisteredModel::new(name, model, Admission::new(1, 0.0)))
}

fn locals() -> Registry {
    let mut registry = Registry::default();
    registry.add(local::<Chat>("smol", Arc::new(ScriptedChat::new([]))));
    registry.add(local::<Speech>("kokoro", local_voice(Play::Speak)));
    registry.add(local::<Transcription>("whisper", Arc::new(ScriptedTranscript::new([]))));
    registry
}

fn gateway(url: &str, aliases: &[(&str, &[&str])]) -> Result<Gateway, GatewayError> {
    let options = GatewayOptions {
        upstreams: vec![upstream("far", UpstreamKind::OpenAi, url)],
        aliases: aliases.iter().map(|(name, targets)| alias(name, targets)).collect(),
        ..GatewayOptions::default()
    };
    Gateway::new(options, &locals(), None)
}

const NOWHERE: &str = "http://127.0.0.1:9";

#[tokio::test]
async fn a_name_is_what_its_models_of_our_own_are() {
    let aliases: [(&str, &[&str]); 5] = [
        ("talk", &["smol", "far/q"]),
        ("voice", &["far/tts", "kokoro"]),
        ("narrator", &["voice"]),
        ("ears", &["whisper"]),
        ("any", &["far/x"]),
    ];
    let gateway = gateway(NOWHERE, &aliases).expect("a gateway");
    for (name, chats, speaks, listens) in [
        ("talk", true, false, false),
        ("voice", false, true, false),
        ("narrator", false, true, false),
        ("ears", false, false, true),
        ("any", true, true, true),
        ("far/anything", true, true, true),
        ("near/anything", false, false, false),
        ("nobody", false, false, false),
    ] {
        let found = (
            Resolve::<Chat>::resolve(&gateway, name).is_some(),
            Resolve::<Speech>::resolve(&gateway, name).is_some(),
            Resolve::<Transcription>::resolve(&gateway, name).is_some(),
        );
        assert_eq!(found, (chats, speaks, listens), "{name}");
    }
    let mut aliases = Registry::default();
    gateway.add_aliases(&mut aliases);
    let names = |kind: Kind| {
        let names = aliases.all().filter(|model| model.kind() == kind).map(AnyModel::name);
        names.collect::<Vec<_>>().join(" ")
    };
    assert_eq!(Kind::ALL.map(names), ["any talk", "narrator voice", "ears"]);
    let view = gateway.route("narrator").expect("a route");
    let targets: Vec<_> = view.targets.iter().map(|target| target.name.as_str()).collect();
    assert_eq!(targets, ["far/tts", "kokoro"]);
    assert_eq!(view.targets[0].status, TargetStatus::Active);
}

#[tokio::test]
async fn an_alias_that_cannot_be_followed_is_rejected() {
    let mixed = gateway(NOWHERE, &[("odd", &["smol", "voice"]), ("voice", &["kokoro"])]);
    let error = mixed.expect_err("two kinds");
    let (first, second) = (Kind::Chat, Kind::Speech);
    assert_eq!(error, GatewayError::MixedKinds { alias: "odd".to_owned(), first, second });
    let said = "alias 'odd' leads to a chat model and to a speech model (expected one kind)";
    assert_eq!(error.to_string(), said);
    let unknown = gateway(NOWHERE, &[("a", &["kokora"])]).expect_err("nobody");
    assert!(unknown.to_string().ends_with("did you mean kokoro?"), "{unknown}");
}

#[tokio::test]
async fn a_server_that_cannot_speak_may_still_chat() {
    let server = Stage::of([status(404, r#"{"error":{"message":"no such path"}}"#)]).await;
    let gateway = gateway(&server.url, &[("any", &["far/x"])]).expect("a gateway");
    let failed = speak(&gateway, "any", request("Hi")).await.expect_err("it cannot speak");
    assert_eq!(failed.kind(), "no_such_model");
    let resting = speak(&gateway, "any", request("Hi")).await.expect_err("it rests");
    assert!(matches!(resting, ModelError::Resting { .. }), "{resting:?}");
    let view = gateway.route("any").expect("a route");
    assert_eq!(view.targets[0].status, TargetStatus::Active, "as a chat model");
    assert_eq!(server.hits(), 1);
}

#[tokio::test]
async fn another_hob_says_which_voices_and_chat_models_it_has() {
    let voices =
        r#"{"voices":[{"id":"af_sky","name":"Sky","language":"en-US","gender":"female"}]}"#;
    let voices = whole("application/json", voices);
    let models = r#"{"data":[{"id":"smol","hob":{"kind":"chat"}},{"id":"ears","hob":{"kind":"transcription"}},
        {"id":"builders","hob":{"kind":"chat"},"pipeline":{"type":"pipe","valves":true}}]}"#;
    let server = Stage::of([whole("application/json", models), voices]).await;
    let hob =
        UpstreamOptions { is_listed: true, ..upstream("hob", UpstreamKind::Hob, &server.url) };
    let gateway = gateway_of(vec![hob], Vec::new(), &Registry::default());
    let target = Resolve::<Speech>::resolve(&gateway, "hob/kokoro").expect("a name");
    assert_eq!(target.model.voices().len(), 13, "OpenAI's, until it has been asked");
    gateway.refresh_lists().await;
    let asked: Vec<_> = server.asked().into_iter().map(|asked| asked.path).collect();
    assert_eq!(asked, ["/v1/models", "/v1/audio/voices"]);
    let voices: Vec<_> = target.model.voices().iter().map(|voice| voice.id.as_str()).collect();
    assert_eq!(voices, ["af_sky"]);
    let listed: Vec<_> = gateway.listed().into_iter().map(|model| model.name).collect();
    assert_eq!(listed, ["hob/smol", "hob/builders"], "the other one holds no conversation");
    for (name, is_team) in [("hob/smol", false), ("hob/builders", true)] {
        let model = Resolve::<Chat>::resolve(&gateway, name).expect("a name").model.clone();
        assert_eq!(model.is_team(), is_team, "{name}");
    }
}

/// hob requests the details of 64 models. This server gives none.
#[tokio::test(start_paused = true)]
async fn all_models_of_a_large_ollama_server_have_a_state_and_the_context_that_is_set() {
    let names: Vec<String> = (0..70).map(|number| format!(r#"{{"name":"m{number}"}}"#)).collect();
    let tags = whole("application/json", format!(r#"{{"models":[{}]}}"#, names.join(",")));
    let loaded = whole("application/json", r#"{"models":[{"name":"m69"}]}"#);
    let server = Stage::of([tags, loaded]).await;
    // A paused clock stands still during a blocking task, so a slow machine has the time for all requests.
    let (_end, ended) = sync_channel::<()>(0);
    let _still = tokio::task::spawn_blocking(move || ended.recv());
    let far = UpstreamOptions {
        is_listed: true,
        num_ctx: Some(4096),
        ..upstream("far", UpstreamKind::Ollama, &server.url)
    };
    let gateway = gateway_of(vec![far], Vec::new(), &Registry::default());
    gateway.refresh_lists().await;
    let listed = gateway.listed();
    assert_eq!(listed.len(), 70);
    for model in listed {
        let is_loaded = model.name == "far/m69";
        let state = if is_loaded { ModelState::Ready } else { ModelState::Cold };
        assert_eq!((model.state, model.context_tokens), (state, Some(4096)), "{}", model.name);
    }
    assert_eq!(server.hits(), 2 + 64);
}

/// Ollama gives up the load of a model when its client leaves.
#[tokio::test]
async fn a_model_that_its_server_has_to_load_gets_the_time_for_it() {
    for (loaded, first_token_s, expected_s) in
        [("", None, 45 + 300), ("", Some(20), 20), (r#"{"name":"m"}"#, None, 45)]
    {
        let tags = whole("application/json", r#"{"models":[{"name":"m"}]}"#);
        let loaded = whole("application/json", format!(r#"{{"models":[{loaded}]}}"#));
        let silence = chunked("application/x-ndjson", &[], End::Never);
        let server = Stage::of([tags, loaded, status(404, "{}"), silence]).await;
        let mut far = UpstreamOptions::plain("far", UpstreamKind::Ollama, &server.url);
        far.timeouts.first_token = first_token_s.map(Duration::from_secs);
        let gateway = gateway_of(vec![far], Vec::new(), &Registry::default());
        gateway.refresh_lists().await;
        let target = Resolve::<Chat>::resolve(&gateway, "far/m").expect("a name");
        let mut asking = target.model.chat(ChatRequest::default());
        while server.hits() < 4 {
            assert!(futures::poll!(&mut asking).is_pending());
            tokio::task::yield_now().await;
        }
        tokio::time::pause();
        let Err(ModelError::Unanswered { last, .. }) = asking.await else { panic!("an answer") };
        tokio::time::resume();
        let after = Duration::from_secs(expected_s);
        let silent = Fault::TimedOut { clock: Clock::FirstToken, after };
        assert_eq!(*last, ModelError::upstream("far/m", silent));
    }
}
