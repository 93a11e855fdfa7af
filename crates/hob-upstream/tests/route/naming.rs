//! Names: aliases of aliases, circles, servers that nobody knows, and what a new configuration keeps.
//! A configuration that cannot be meant is refused whole, with the nearest name.

use hob_core::routing::{Switchboard, TargetStanding};
use hob_core::{Fault, ModelError};
use hob_upstream::{
    AliasOptions, Clocks, Gateway, GatewayError, GatewayOptions, Secret, TargetOptions,
    UpstreamKind, UpstreamOptions,
};

use super::puppet::{Act, Puppet};
use super::{Stage, streamed};

fn alias(name: &str, targets: &[&str]) -> AliasOptions {
    let targets = targets.iter().map(|name| TargetOptions::plain(name)).collect();
    AliasOptions { targets, ..AliasOptions::plain(name) }
}

fn upstream(name: &str) -> UpstreamOptions {
    UpstreamOptions {
        name: name.to_owned(),
        kind: UpstreamKind::OpenAi,
        url: "http://127.0.0.1:9".to_owned(),
        key: Some(Secret::new("sk-1")),
        clocks: Clocks::default(),
        slots: None,
        queue_max: 8,
        is_listed: false,
        num_ctx: None,
    }
}

fn build(aliases: Vec<AliasOptions>) -> Result<Gateway, GatewayError> {
    let locals = vec![Puppet::new("smol", vec![Act::Say(&["Hi"])]).local()];
    Gateway::new(
        GatewayOptions { upstreams: vec![upstream("gpu")], aliases, ..Default::default() },
        locals,
        None,
    )
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
fn names_that_lead_nowhere_are_refused_with_the_nearest() {
    for (aliases, said) in [
        (
            vec![alias("fast", &["smoll"])],
            "alias 'fast' leads to 'smoll', which nobody is called; did you mean smol?",
        ),
        (
            vec![alias("fast", &["gpo/qwen3"])],
            "alias 'fast' leads to 'gpo/qwen3', which nobody is called; did you mean gpu/qwen3?",
        ),
        (vec![alias("fast", &[])], "alias 'fast' has no targets"),
        (
            vec![alias("smol", &["gpu/x"])],
            "'smol' is the name of a model here, and cannot be an alias too",
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
    let route = Switchboard::route(&gateway, "gpt-4o-mini").expect("an alias");
    let names: Vec<&str> = route.targets.iter().map(|target| target.name.as_str()).collect();
    assert_eq!(names, ["gpu/team/qwen3", "smol"]);
    assert_eq!(route.targets[0].standing, TargetStanding::Answers);
    assert_eq!(Switchboard::route(&gateway, "smol"), None, "a model is no alias");
}

#[test]
fn a_model_is_found_by_its_server_s_name_and_its_own() {
    let gateway = build(Vec::new()).expect("good");
    for (name, found) in
        [("gpu/qwen3", true), ("gpu/team/qwen3", true), ("gpu/", false), ("gpx/qwen3", false)]
    {
        assert_eq!(gateway.find_chat(name).is_some(), found, "{name}");
    }
}

#[tokio::test(start_paused = true)]
async fn what_stayed_the_same_is_remembered() {
    let broken = Fault::Limited { message: "no".to_owned(), retry_after: None };
    let stage = Stage::new(&[("a", vec![Act::Refuse(ModelError::upstream("a", broken))])]);
    stage.ask(streamed()).await;
    let options = || GatewayOptions { aliases: vec![alias("other", &["a"])], ..Default::default() };
    let locals = || vec![stage.puppets[0].local()];
    let renewed = Gateway::new(options(), locals(), Some(&stage.gateway)).expect("good");
    let standing = |gateway: &Gateway| {
        Switchboard::route(gateway, "other").expect("an alias").targets[0].standing.clone()
    };
    assert!(matches!(standing(&renewed), TargetStanding::Rests { .. }));
    let anew = Gateway::new(options(), locals(), None).expect("good");
    assert_eq!(standing(&anew), TargetStanding::Answers);
}
