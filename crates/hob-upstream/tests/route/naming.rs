//! Names: nested aliases, cycles, unknown servers, and what a new configuration keeps.
//! An invalid configuration is rejected as a whole, with the nearest name.

use std::sync::Arc;

use hob_core::UpstreamResolver;
use hob_core::routing::TargetStatus;
use hob_core::scripted::ScriptedChat;
use hob_core::{
    Admission, Chat, ChatCard, ChatModel, Fault, ModelError, RegisteredModel, Registry, Resolve,
};
use hob_upstream::{
    AliasOptions, Gateway, GatewayError, GatewayOptions, Secret, TargetOptions, UpstreamKind,
    UpstreamOptions,
};

use super::fake_model::{FakeAnswer, FakeModel, locals};
use super::{Stage, streamed};

fn alias(name: &str, targets: &[&str]) -> AliasOptions {
    let targets = targets.iter().map(|name| TargetOptions::plain(name)).collect();
    AliasOptions { targets, ..AliasOptions::plain(name) }
}

fn upstream(name: &str) -> UpstreamOptions {
    let plain = UpstreamOptions::plain(name, UpstreamKind::OpenAi, "http://127.0.0.1:9");
    UpstreamOptions { key: Some(Secret::new("sk-1")), queue_max: 8, ..plain }
}

fn build(aliases: Vec<AliasOptions>) -> Result<Gateway, GatewayError> {
    build_with("smol", ChatCard::default(), aliases)
}

/// Next to a local model with this name and card.
fn build_with(
    name: &str,
    card: ChatCard,
    aliases: Vec<AliasOptions>,
) -> Result<Gateway, GatewayError> {
    let model: Arc<dyn ChatModel> = Arc::new(ScriptedChat::new([]).with_card(card));
    let mut locals = Registry::default();
    locals.add(RegisteredModel::<Chat>::new(name, model, Admission::new(1, 0.0)));
    let upstreams = vec![upstream("gpu")];
    Gateway::new(GatewayOptions { upstreams, aliases, ..Default::default() }, &locals, None)
}

#[test]
fn aliases_of_aliases_have_limits_before_they_are_resolved() {
    let chain = |n: usize| alias(&format!("a{n:04}"), &[&format!("a{:04}", n + 1)]);
    let mut chained: Vec<AliasOptions> = (0..5_000).map(chain).collect();
    chained.push(alias("a5000", &["smol"]));
    let refused = build(chained).expect_err("too deep").to_string();
    assert_eq!(refused, "alias 'a0000' leads through more than 16 aliases");

    let doubling = |n: usize| {
        let next = format!("a{}", n + 1);
        alias(&format!("a{n}"), &[&next, &next])
    };
    let mut doubled: Vec<AliasOptions> = (0..9).map(doubling).collect();
    doubled.push(alias("a9", &["smol"]));
    let refused = build(doubled).expect_err("too many").to_string();
    assert!(refused.starts_with("alias 'a0' leads to more than 256 targets"), "{refused}");

    let targets = vec!["smol"; 200];
    let wide = (0..100).map(|n| alias(&format!("a{n}"), &targets)).collect();
    let refused = build(wide).expect_err("too many").to_string();
    assert_eq!(refused, "all aliases together lead to more than 16384 targets");
}

#[test]
fn an_alias_has_the_size_the_age_and_the_abilities_of_its_model_here() {
    let card = ChatCard {
        context_tokens: 8192,
        trained_context_tokens: 8192,
        architecture: "llama".to_owned(),
        parameters: 134_515_008,
        quantization: "Q4_1".to_owned(),
        file_bytes: 98_000_000,
        digest: Some("ab12".to_owned()),
        modified_unix_s: 1_793_491_200,
        template: Some(String::new()),
        calls_tools: true,
        is_embedder: true,
        scores_prompts: true,
        ..ChatCard::default()
    };
    let aliases =
        vec![alias("far", &["gpu/x"]), alias("fast", &["gpu/x", "smol"]), alias("own", &["smol"])];
    let gateway = build_with("smol", card.clone(), aliases).expect("a gateway");
    let mut aliases = Registry::default();
    gateway.add_aliases(&mut aliases);
    let cards: Vec<ChatCard> =
        aliases.models::<Chat>().map(|alias| alias.model.card().clone()).collect();
    let [far, fast, own] = &cards[..] else { panic!("{} aliases", cards.len()) };
    assert_eq!(own, &card);
    let file = |card: &ChatCard| (card.file_bytes, card.modified_unix_s, card.quantization.clone());
    assert_eq!(file(fast), file(&card));
    assert!(fast.calls_tools && fast.sees, "what any of them can");
    assert!(!fast.scores_prompts, "what only one of them does");
    assert!(far.file_bytes == 0 && far.modified_unix_s > 1_700_000_000, "{far:?}");
}

/// A session must not ask it early: each request may act.
#[test]
fn an_alias_that_may_lead_to_a_team_is_one() {
    let card = ChatCard { is_team: true, ..ChatCard::default() };
    let aliases = vec![alias("far", &["gpu/x"]), alias("near", &["gpu/x", "team"])];
    let gateway = build_with("team", card, aliases).expect("a gateway");
    for (name, is_team) in [("far", false), ("near", true)] {
        let found = Resolve::<Chat>::resolve(&gateway, name).expect("an alias");
        assert_eq!(found.model.is_team(), is_team, "{name}");
    }
}

#[test]
fn names_that_lead_nowhere_are_refused_with_the_nearest() {
    for (aliases, said) in [
        (
            vec![alias("fast", &["smoll"])],
            "alias 'fast' leads to 'smoll', which does not exist; did you mean smol?",
        ),
        (
            vec![alias("fast", &["gpo/qwen3"])],
            "alias 'fast' leads to 'gpo/qwen3', which does not exist; did you mean gpu/qwen3?",
        ),
        (vec![alias("fast", &[])], "alias 'fast' has no targets"),
        (
            vec![alias("smol", &["gpu/x"])],
            "'smol' is the name of a local model, and cannot be an alias too",
        ),
        (
            vec![alias("a", &["b"]), alias("b", &["smol", "a"])],
            "alias 'a' leads back to itself: a → b → a",
        ),
    ] {
        assert_eq!(build(aliases).expect_err(said).to_string(), said);
    }
}

#[test]
fn an_alias_of_an_alias_has_its_targets() {
    let aliases = vec![alias("gpt-4o-mini", &["fast"]), alias("fast", &["gpu/team/qwen3", "smol"])];
    let gateway = build(aliases).expect("good");
    let route = UpstreamResolver::route(&gateway, "gpt-4o-mini").expect("an alias");
    let names: Vec<&str> = route.targets.iter().map(|target| target.name.as_str()).collect();
    assert_eq!(names, ["gpu/team/qwen3", "smol"]);
    assert_eq!(route.targets[0].status, TargetStatus::Active);
    assert_eq!(UpstreamResolver::route(&gateway, "smol"), None, "a model is not an alias");
}

#[test]
fn a_target_may_be_any_name_of_a_local_model() {
    let mut locals = locals(&[FakeModel::new("smol", vec![FakeAnswer::Say(&["Hi"])])]);
    locals.also_called("smol:135m", "smol");
    let aliases = vec![alias("fast", &["smol:135m"]), alias("also", &["smol"])];
    let options = GatewayOptions { aliases, ..Default::default() };
    let gateway = Gateway::new(options, &locals, None).expect("good");
    for name in ["fast", "also"] {
        let route = UpstreamResolver::route(&gateway, name).expect("an alias");
        assert_eq!(route.targets[0].name, "smol", "one target, with one circuit breaker");
    }
}

#[test]
fn a_model_is_found_by_its_server_s_name_and_its_own() {
    let gateway = build(Vec::new()).expect("good");
    for (name, found) in
        [("gpu/qwen3", true), ("gpu/team/qwen3", true), ("gpu/", false), ("gpx/qwen3", false)]
    {
        assert_eq!(Resolve::<Chat>::resolve(&gateway, name).is_some(), found, "{name}");
    }
}

#[tokio::test]
async fn a_model_of_a_server_shows_the_circuit_of_its_requests_without_an_alias() {
    let gateway = build(Vec::new()).expect("good");
    let status = || {
        let route = UpstreamResolver::route(&gateway, "gpu/qwen3").expect("a route");
        route.targets[0].status.clone()
    };
    assert_eq!(status(), TargetStatus::Active);
    let found = Resolve::<Chat>::resolve(&gateway, "gpu/qwen3").expect("a name");
    assert!(found.model.chat(streamed()).await.is_err(), "no server listens there");
    assert!(matches!(status(), TargetStatus::Open { .. }), "{:?}", status());
    let servers = UpstreamResolver::upstreams(&gateway);
    let troubled: Vec<&str> =
        servers[0].troubled.iter().map(|target| target.name.as_str()).collect();
    assert_eq!(troubled, ["gpu/qwen3"]);
    assert_eq!(UpstreamResolver::route(&gateway, "gpx/qwen3"), None);
}

#[tokio::test(start_paused = true)]
async fn unchanged_servers_keep_their_state() {
    let broken = Fault::Limited { message: "no".to_owned(), retry_after: None };
    let stage = Stage::new(&[("a", vec![FakeAnswer::Refuse(ModelError::upstream("a", broken))])]);
    stage.ask(streamed()).await;
    let options = || GatewayOptions { aliases: vec![alias("other", &["a"])], ..Default::default() };
    let locals = locals(&stage.fakes);
    let renewed = Gateway::new(options(), &locals, Some(&stage.gateway)).expect("good");
    let status = |gateway: &Gateway| {
        UpstreamResolver::route(gateway, "other").expect("an alias").targets[0].status.clone()
    };
    assert!(matches!(status(&renewed), TargetStatus::Open { .. }));
    let fresh = Gateway::new(options(), &locals, None).expect("good");
    assert_eq!(status(&fresh), TargetStatus::Active);
}
