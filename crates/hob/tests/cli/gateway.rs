//! Aliases, other servers and keys, as a user configures them.
//! Includes the self-test of all faults, one hob behind another in each protocol, and a configuration that changes
//! while requests run.

use std::fs;
use std::io::Write;
use std::time::{Duration, Instant};

use serde_json::{Value, json};

use crate::free_port::free_port;
use crate::ledger::rows;
use crate::loopback::Loopback;
use crate::real_server::Served;
use crate::{Has, User, stderr, stdout, until};

/// No server listens there: the port needs more rights than tests have.
const CLOSED: &str = "http://127.0.0.1:1";

/// A hob that answers every model name with a fixed text.
fn behind() -> (User, Served) {
    Served::with("[dev]\nmock_unknown_models = true\n")
}

/// The table of another server in `hob.toml`.
pub(crate) fn upstream(name: &str, kind: &str, url: &str) -> String {
    format!("[upstream.{name}]\nkind = \"{kind}\"\nurl = \"{url}\"\n")
}

/// The table of an alias with these targets.
pub(crate) fn alias(name: &str, targets: &[&str]) -> String {
    format!("[alias.{name}]\nto = {targets:?}\n")
}

fn hello(model: &str) -> Value {
    json!({"model": model, "messages": [{"role": "user", "content": "Hi"}]})
}

#[test]
fn every_fault_is_survived_or_reported() {
    let user = User::new();
    let told = user.hob("selftest gateway").assert().success();
    assert!(stderr(&told).contains("all 151 cases passed"), "{}", stdout(&told));
}

#[test]
fn a_user_s_own_alias_is_rehearsed_with_its_own_targets() {
    let (_behind, there) = behind();
    let there = upstream("there", "hob", &there.url);
    let user = User::new().configured(&(there + &alias("fast", &["there/any"])));
    user.prints("selftest gateway --alias fast").has(&["Hello! How can I help?"]);
    let refused = user.hob("selftest gateway --alias slow").assert().failure();
    stderr(&refused).has(&["there is no alias 'slow'"]);
}

#[test]
fn one_address_leads_to_a_server_of_every_openai_or_ollama_kind() {
    let (_behind, there) = behind();
    // Anthropic has neither completions nor embeddings.
    let kinds =
        ["hob", "ollama", "openai", "llama-server", "vllm", "sglang", "tabby", "openrouter"];
    let config: String = kinds.iter().map(|kind| upstream(kind, kind, &there.url)).collect();
    let dead = upstream("dead", "openai", CLOSED);
    let fast = alias("fast", &["dead/gone", "ollama/any"]);
    let asked = alias("\"fast? yes\"", &["ollama/any"]);
    let (user, here) = Served::with(&[config, dead, fast, asked].concat());
    for kind in kinds {
        let answer = here.post("v1/chat/completions", &hello(&format!("{kind}/any")));
        let message = &answer.body["choices"][0]["message"]["content"];
        assert_eq!((answer.status, message), (200, &json!("Hello! How can I help?")), "{kind}");
        assert_eq!(answer.header("x-hob-target"), Some(format!("{kind}/any").as_str()));
        let body = json!({"model": format!("{kind}/any"), "prompt": "Once"});
        let answer = here.post("v1/completions", &body);
        assert_eq!(answer.status, 200, "{kind}: {}", answer.body);
        let body = json!({"model": format!("{kind}/any"), "input": ["a", "b"]});
        let answer = here.post("v1/embeddings", &body);
        let count = answer.body["data"].as_array().map(Vec::len);
        assert_eq!((answer.status, count), (200, Some(2)), "{kind}: {}", answer.body);
    }
    let answer = here.post("v1/chat/completions", &hello("fast"));
    assert_eq!(
        (
            answer.header("x-hob-alias"),
            answer.header("x-hob-target"),
            answer.header("x-hob-failed")
        ),
        (Some("fast"), Some("ollama/any"), Some("dead/gone=unreachable, dead/gone=unreachable"))
    );
    assert_eq!(answer.body["model"], "fast", "the name that was asked for");
    let route = user.hob(format!("route fast --server {}", here.url)).assert().success();
    assert!(
        stdout(&route).starts_with("fast would be answered by ollama/any"),
        "{}",
        stdout(&route)
    );
    let route = user.hob(format!("route 'fast? yes' --server {}", here.url)).assert().success();
    assert!(stdout(&route).starts_with("fast? yes would be answered by"), "{}", stdout(&route));
    let upstreams = user.hob(format!("upstreams --json --server {}", here.url)).assert().success();
    let upstreams: Vec<Value> = serde_json::from_str(&stdout(&upstreams)).expect("JSON");
    assert_eq!(upstreams.len(), kinds.len() + 1);
    let rows = rows(&user, 22);
    let fell = rows.iter().find(|row| row["alias"] == "fast").expect("its row");
    assert_eq!(fell["target"], "ollama/any");
    assert!(fell["attempts"].as_str().is_some_and(|way| way.contains("dead/gone=unreachable")));
}

#[test]
fn a_name_without_a_target_is_reported_as_such() {
    let expected = "no alias, model or upstream model is called 'slow'";
    User::new().fails("route slow", 2, expected);
    let expected = "'smollm2' is a model of this hob, which does not run";
    User::new().fails("route smollm2", 5, expected);
}

#[test]
fn lists_come_from_memory_while_servers_are_down() {
    // Accepts connections and sends nothing.
    let silent = std::net::TcpListener::bind("127.0.0.1:0").expect("a port");
    let url = format!("http://{}", silent.local_addr().expect("an address"));
    let dead: String = (0..8)
        .map(|n| format!("[upstream.dead{n}]\nurl = \"{url}\"\nlist_models = true\n"))
        .collect();
    let gone = format!("[upstream.gone]\nurl = \"{CLOSED}\"\nlist_models = true\n");
    let (_user, here) = Served::with(&format!("{dead}{gone}[alias.fast]\nto = [\"gone/x\"]\n"));
    here.get("v1/models");
    let listed = || {
        let started = Instant::now();
        (here.get("v1/models"), started.elapsed())
    };
    let (models, _) = listed();
    assert_eq!((models.status, &models.body["data"][0]["id"]), (200, &json!("fast")));
    // A request that waited for the silent servers would take three seconds each time.
    let took = (0..3).map(|_| listed().1).min();
    assert!(took < Some(Duration::from_millis(500)), "{took:?}");
    let answer = here.post("v1/chat/completions", &hello("fast"));
    assert_eq!((answer.status, &answer.body["error"]["type"]), (502, &json!("upstream_error")));
}

#[test]
fn a_server_that_points_back_at_itself_is_found_out() {
    let user = User::new();
    let address = format!("127.0.0.1:{}", free_port());
    let me = upstream("me", "hob", &format!("http://{address}"));
    let round = alias("round", &["me/round"]);
    user.configure(&format!("[server]\nlisten = \"{address}\"\n{me}{round}"));
    let here = Served::run(user.process("serve"));
    let answer = here.post("v1/chat/completions", &hello("round"));
    let error = &answer.body["error"];
    assert_eq!((answer.status, &error["code"]), (508, &json!("loop_detected")));
    assert!(error["message"].as_str().expect("words").contains("points back"), "{error}");
}

#[test]
fn keys_open_what_they_are_for_and_nothing_else() {
    let (_behind, there) = behind();
    let [fast, dear] = ["fast", "dear"].map(|name| alias(name, &["there/any"]));
    let limits = "aliases = [\"fast\"]\nrequests_per_minute = 2\n";
    let key = format!("[keys.laptop]\nsecret = \"sha256:{LAPTOP_SHA256}\"\n{limits}");
    let there = upstream("there", "hob", &there.url);
    let (_user, here) = Served::with(&[there, fast, dear, key].concat());
    let ask = |key, model| here.post_as(key, "v1/chat/completions", &hello(model));
    assert_eq!(ask(None, "fast").status, 401);
    assert_eq!(ask(Some("guess"), "fast").status, 401);
    let other = ask(Some("laptop-key"), "dear");
    assert_eq!((other.status, &other.body["error"]["code"]), (403, &json!("model_not_allowed")));
    assert_eq!(ask(Some("laptop-key"), "there/any").status, 403);
    let begun = Instant::now();
    for _ in 0..2 {
        assert_eq!(ask(Some("laptop-key"), "fast").status, 200);
    }
    let limited = ask(Some("laptop-key"), "fast");
    assert_eq!(limited.status, 429);
    // The limit is two per minute: one minute, minus the time since the first request.
    let wait_s: u32 = limited.header("retry-after").expect("a time").parse().expect("seconds");
    let elapsed_s = u32::try_from(begun.elapsed().as_secs()).expect("a short time");
    assert!(wait_s <= 61 && wait_s + elapsed_s >= 59, "{wait_s} s after {elapsed_s} s");
}

/// The SHA-256 of `laptop-key`.
const LAPTOP_SHA256: &str = "9b7b36061a684541007d2c543574a1db801bc8f41f85ac5fdc0155fe72a9ec38";

#[test]
fn a_configuration_that_changes_is_followed_whole_or_not_at_all() {
    let (_behind, there) = behind();
    let there = upstream("there", "hob", &there.url);
    let config = |name: &str| there.clone() + &alias(name, &["there/any"]);
    let (user, mut here) = Served::with(&config("old"));
    let status =
        |served: &Served, name: &str| served.post("v1/chat/completions", &hello(name)).status;
    assert_eq!((status(&here, "old"), status(&here, "new")), (200, 404));
    user.configure(&config("new"));
    until(60, "the change was not followed", || status(&here, "new") == 200);
    assert_eq!(status(&here, "old"), 404);
    here.wait_for_note("hob applied the new aliases, upstreams, keys and pronunciations");
    user.configure(&(config("new") + "[ledger]\ndays = 3\n"));
    here.wait_for_note("the change in [ledger] needs a restart of hob");
    user.configure(&config("new"));
    here.wait_for_note("hob applied the new");
    user.configure(&config("new").replace("there/any", "missing/any"));
    let is_refusal = |note: &String| {
        assert!(!note.contains("[ledger]"), "hob was started with this table: {note}");
        note.contains("hob.toml:5:1: alias 'new' leads to 'missing/any'")
    };
    let said = std::iter::from_fn(|| here.next_note()).find(is_refusal).expect("a refusal");
    assert!(said.contains("which does not exist"), "{said}");
    here.wait_for_note("hob keeps using the previous configuration");
    assert_eq!(status(&here, "new"), 200);
    fs::remove_file(user.path("work").join("hob.toml")).expect("removed");
    assert_eq!(status(&here, "new"), 200);
}

#[test]
fn a_server_with_one_slot_makes_two_choices_and_has_it_again() {
    let (_behind, there) = behind();
    let limits = "slots = 1\nqueue_size = 1\nfirst_token_timeout = \"30s\"\n";
    let (_user, here) = Served::with(&(upstream("there", "hob", &there.url) + limits));
    for _ in 0..3 {
        let mut body = hello("there/any");
        body["n"] = json!(2);
        let answer = here.post("v1/chat/completions", &body);
        let count = answer.body["choices"].as_array().map(Vec::len);
        assert_eq!((answer.status, count), (200, Some(2)), "{}", answer.body);
    }
}

#[test]
fn a_key_that_a_server_repeats_is_never_shown() {
    const KEY: &str = "sk-very-secret";
    for whole in [
        "HTTP/1.1 401 Unauthorized\r\ncontent-type: application/json\r\nconnection: close\r\n\r\n\
         {\"error\":{\"message\":\"bad key sk-very-secret\"}}",
        "HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\nconnection: close\r\n\r\n\
         data: {\"error\":{\"message\":\"bad key sk-very-secret\",\"code\":401}}\n\n",
        "HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\nconnection: close\r\n\r\n\
         data: {\"error\":{\"message\":\"bad key sk-very-secret\",\"code\":429}}\n\n",
    ] {
        let server = Loopback::start(move |_, stream| {
            stream.write_all(whole.as_bytes()).expect("an answer");
        });
        let user = User::new();
        let key = user.write("key", KEY);
        let key = format!("key = \"file:{}\"\n", key.display());
        user.configure(&(upstream("cloud", "openai", &server.url) + &key));
        let here = Served::start(&user);
        let answer = here.post("v1/chat/completions", &hello("cloud/any"));
        let said = answer.body.to_string();
        assert!(answer.status >= 400 && said.contains("bad key …"), "{said}");
        assert!(!said.contains(KEY) && !format!("{:?}", answer.headers).contains(KEY), "{said}");
    }
}

#[test]
fn a_change_that_takes_the_last_key_does_not_open_the_house() {
    let user = User::new();
    let key = format!("[keys.laptop]\nsecret = \"sha256:{LAPTOP_SHA256}\"\n");
    user.configure(&format!("[dev]\nmock_unknown_models = true\n{key}"));
    let mut here = Served::run(user.process("serve --listen 0.0.0.0:0"));
    let status =
        |served: &Served, key| served.post_as(key, "v1/chat/completions", &hello("any")).status;
    assert_eq!((status(&here, None), status(&here, Some("laptop-key"))), (401, 200));
    user.configure("[dev]\nmock_unknown_models = true\n");
    here.wait_for_note("hob keeps using the previous configuration");
    assert_eq!((status(&here, None), status(&here, Some("laptop-key"))), (401, 200));
}

#[test]
fn a_key_that_is_replaced_in_its_file_no_longer_opens() {
    let status = |served: &Served, key| {
        served.post_as(Some(key), "v1/chat/completions", &hello("any")).status
    };
    for place in
        ["[keys.laptop]\nsecret = \"file:laptop.key\"", "[server]\napi_key_file = \"laptop.key\""]
    {
        let user = User::new();
        let file = user.write("laptop.key", "first-key\n");
        user.configure(&format!("[dev]\nmock_unknown_models = true\n{place}\n"));
        let mut here = Served::start(&user);
        assert_eq!((status(&here, "first-key"), status(&here, "second-key")), (200, 401));
        user.write("laptop.key", "second-key\n");
        here.wait_for_note("a file with a key changed");
        assert_eq!((status(&here, "first-key"), status(&here, "second-key")), (401, 200));
        fs::remove_file(file).expect("removed");
        here.wait_for_note("laptop.key: ");
        assert_eq!(status(&here, "second-key"), 200, "the last key stays in use");
    }
}
