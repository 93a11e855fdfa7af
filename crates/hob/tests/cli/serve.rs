//! `hob serve` without a model: what it rejects and what it prints.

use std::net::TcpListener;

use serde_json::json;

use crate::real_server::Served;
use crate::{Has, User, json_stdout, stderr, until};

#[test]
fn an_address_that_others_reach_is_refused_without_a_key() {
    let user = User::new();
    user.refusal("serve --listen 0.0.0.0:0", 2)
        .has(&["can be reached from other machines and no API key is set", "--allow-remote"]);
    user.write("empty", "\n");
    user.configure("[server]\nlisten = \"0.0.0.0:0\"\napi_key_file = \"empty\"\n");
    user.fails("serve", 2, "holds no API key");
}

#[test]
fn a_short_key_is_refused_for_an_open_address() {
    let user = User::new()
        .configured("[dev]\nmock_unknown_models = true\n[keys.laptop]\nsecret = \"env:KEY\"\n");
    let serve = |listen: &str, variable: &str| {
        let mut hob = user.hob(format!("serve --listen {listen}"));
        stderr(&hob.env(variable, "x").env("KEY", "y").assert().code(2))
    };
    serve("0.0.0.0:0", "HOB_API_KEY").has(&["the API key has 1 character,", "at least 16"]);
    serve("0.0.0.0:0", "UNUSED").has(&["keys.laptop.secret: has 1 character,"]);
    let checked = user.hob("config check").env("KEY", "y").assert();
    checked.success();
}

#[test]
fn with_a_key_or_allow_remote_an_open_address_is_accepted() {
    let user = User::new();
    let serve = |args: &str, key: &str| {
        let mut hob = user.hob(format!("serve --listen 0.0.0.0:0 {args}"));
        stderr(&hob.env("HOB_API_KEY", key).assert().code(3))
    };
    const KEY: &str = "abracadabra-alakazam";
    for said in [serve("", KEY), serve("--allow-remote", "")] {
        assert!(said.contains("hob pull"), "{said}");
        assert!(!said.contains(KEY), "{said}");
    }
}

#[test]
fn a_named_model_file_that_is_missing_is_an_error() {
    let user = User::with_models();
    user.refusal("serve --listen 127.0.0.1:0 --chat-model nowhere/qwen3.gguf", 3)
        .has(&["qwen3.gguf cannot be used", "--chat-model"]);
}

#[test]
fn without_models_it_says_how_to_get_them() {
    let user = User::new();
    user.refusal("serve --listen 127.0.0.1:0", 3).has(&["is not stored", "hob pull"]);
    assert!(!user.path("home/.local/share/hob/ledger.sqlite3").exists(), "nothing is left behind");
}

#[test]
fn a_taken_port_names_who_took_it() {
    let user = User::new();
    let listener = TcpListener::bind("127.0.0.1:0").expect("a port");
    let address = listener.local_addr().expect("an address").to_string();
    let said = user.refusal(format!("serve --listen {address}"), 5);
    assert!(said.contains(&format!("{address} is in use by")), "{said}");
    if cfg!(target_os = "linux") {
        assert!(said.contains(&format!("(process {})", std::process::id())), "{said}");
    }
    assert!(said.contains("choose another port: hob serve --listen 127.0.0.1:"), "{said}");
}

#[test]
fn an_address_of_another_machine_is_refused() {
    let said = User::new().refusal("serve --allow-remote --listen 192.0.2.1:8484", 5);
    assert!(said.contains("cannot listen on 192.0.2.1:8484"), "{said}");
}

#[test]
fn a_home_that_cannot_be_written_does_not_stop_the_server() {
    let user = User::new().with_home("home2").configured("[dev]\nmock_unknown_models = true\n");
    // A folder in the place of the ledger's file cannot be written, not even by root.
    std::fs::create_dir_all(user.path("home2/ledger.sqlite3")).expect("a folder");
    let mut served = Served::start(&user);
    served.wait_for_note("the ledger");
    served.wait_for_note("requests are not logged");
    let messages = json!([{"role": "user", "content": "Hello"}]);
    let answer = served.chat(&json!({"model": "any", "messages": messages}));
    assert_eq!(answer.expect("an answer")["choices"][0]["finish_reason"], "stop");
    let is_counted = || served.metric("hob_ledger_lost_total") == Some(1.0);
    until(60, "the row that is lost is not counted", is_counted);
}

#[test]
fn the_results_page_does_not_depend_on_the_working_folder() {
    let user =
        User::new().configured("[server]\nrecords = \"runs\"\n[dev]\nmock_unknown_models = true\n");
    let result = r#"[{"model_filename": "Qwen3-8B-Q4_K_M.gguf", "backends": "CPU", "n_prompt": 0,
        "n_gen": 128, "test_time": "2026-11-02T10:00:00Z", "samples_ts": [5.0], "avg_ts": 5.0}]"#;
    user.write("out.json", result);
    let import = user.hob("bench import out.json --out runs --json").assert();
    let kept = json_stdout(&import.success());
    let id = kept[0]["id"].as_str().expect("an id");

    let file = user.path("work/hob.toml");
    let file = file.to_str().expect("a path");
    let mut hob = user.process(&["serve", "--listen", "127.0.0.1:0", "--config", file]);
    hob.current_dir(user.path("home")).env("HOB_LOG", "info");
    let mut served = Served::run(hob);
    served.wait_for_note("/benchmarks shows the folder that its settings name").has(&["work/runs"]);
    let page = ureq::get(format!("{}benchmarks/records.js", served.url)).call();
    let page = page.expect("a page").body_mut().read_to_string().expect("text");
    assert!(page.contains(id) && page.contains("the folder that its settings name"), "{page}");
    assert!(!page.contains("work/runs"), "the page names no path of the machine");
}
