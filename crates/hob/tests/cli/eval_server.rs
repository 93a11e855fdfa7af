//! `hob eval` on a scripted server: a run that was killed goes on, and a plan says beforehand what its items can show.

use std::collections::BTreeMap;
use std::io::{BufRead as _, BufReader};
use std::process::Stdio;
use std::sync::atomic::Ordering;

use hob_models::catalog::names::named;
use serde_json::Value;

use crate::free_port::free_port;
use crate::scripted_server::{Ability, Server};
use crate::{Has, User, json_stdout, stderr, stdout};

const ITEMS: usize = 12;

/// Sums in a file, and the replies to them: every third one is wrong.
fn sums(user: &User) -> BTreeMap<String, String> {
    let line = |number: usize| {
        let sum = number + 1000;
        format!(r#"{{"id":"q{number}","prompt":"What is {number} + 1000?","reference":{sum}}}"#)
    };
    let lines: Vec<String> = (0..ITEMS).map(line).collect();
    user.write("sums.jsonl", &lines.join("\n"));
    let reply = |number: usize| {
        let value = if number % 3 == 2 { 7 } else { number + 1000 };
        (format!("What is {number} + 1000?"), format!("The answer is {value}."))
    };
    (0..ITEMS).map(reply).collect()
}

#[test]
fn a_killed_evaluation_goes_on_and_has_the_scores_of_one_that_was_not_killed() {
    let user = User::new();
    let never_ends_on = "What is 5 + 1000?";
    let ability = Ability { replies: sums(&user), never_ends_on, ..Ability::default() };
    let server = Server::start(ability);
    let words = format!("eval --target {} --model m --file sums.jsonl --json", server.url);
    let mut first = user.process(&words);
    let first = first.stdout(Stdio::null()).stderr(Stdio::piped()).spawn();
    let mut first = first.expect("hob starts");
    let mut lines =
        BufReader::new(first.stderr.take().expect("piped")).lines().map_while(Result::ok);
    // The sixth answer has no end, so hob waits for it when it is killed.
    assert!(lines.any(|line| line.contains("5 of 12, sums/q4")), "five answers are shown");
    first.kill().and_then(|()| first.wait()).expect("it ran");
    server.ability.lock().expect("the ability").never_ends_on = "";

    let run = |more: &str| {
        let ran = user.hob(format!("{words} {more}")).assert().success();
        (json_stdout(&ran)["eval"]["overall"].clone(), stderr(&ran))
    };
    let (resumed, said) = run("");
    assert!(said.contains("goes on after 5 of 12 answers"), "{said}");
    let (whole, said) = run("--out other");
    assert!(!said.contains("goes on after"), "{said}");
    for figure in ["n", "accuracy", "accuracy_ci95", "score", "score_ci95", "verdicts"] {
        assert_eq!(resumed[figure], whole[figure], "{figure}");
    }
    assert_eq!((&whole["n"], &whole["verdicts"]["correct"]), (&ITEMS.into(), &8.into()));
    // Five before the kill, perhaps the one without an end, the seven that are left, and then all.
    let asked = server.asked.load(Ordering::Relaxed);
    assert!((2 * ITEMS..=2 * ITEMS + 1).contains(&asked), "{asked}: no answer is asked for again");
}

#[cfg(target_os = "linux")]
#[test]
fn code_with_long_results_is_graded_by_all_of_them() {
    let user = User::new();
    let test = |n: usize| serde_json::json!({ "arguments": [n], "expected": "x".repeat(n) });
    let tests = [test(20_000), test(30_000)];
    let checker = serde_json::json!({ "kind": "code", "entry": "f", "tests": tests });
    let item = serde_json::json!({ "prompt": "Repeat an x.", "checker": checker });
    user.write("own.jsonl", &item.to_string());
    let code = "```python\ndef f(n):\n    return 'x' * n\n```".to_owned();
    let replies = BTreeMap::from([("Repeat an x.".to_owned(), code)]);
    let server = Server::start(Ability { replies, ..Ability::default() });
    let words = format!("eval --target {} --model m --file own.jsonl --json", server.url);
    let ran = user.hob(words).env("PATH", "/usr/local/bin:/usr/bin:/bin").assert();
    if stderr(&ran).contains("code of answers cannot be run here") {
        println!("not tested: this machine lets no sandbox work");
        return;
    }
    let ran = ran.success();
    let record = json_stdout(&ran);
    assert_eq!(record["eval"]["overall"]["verdicts"]["correct"], 1, "{}", stderr(&ran));
}

/// The records of the plan, and what was said. A machine that is too busy to measure has records all the same.
fn carried_out(user: &User, plan: &str) -> (Vec<Value>, String) {
    user.write("plan.yaml", &format!("schema: bench-plan/1\nname: small\n{plan}"));
    let ran = user.hob("bench plan plan.yaml --json").assert();
    let record = |line: &str| serde_json::from_str(line).expect("a record");
    (stdout(&ran).lines().map(record).collect(), stderr(&ran))
}

/// The answered items of each record.
fn counts(records: &[Value]) -> Vec<Option<u64>> {
    records.iter().map(|record| record["eval"]["overall"]["n"].as_u64()).collect()
}

#[test]
fn two_servers_of_a_plan_start_on_one_port_one_after_the_other() {
    let user = User::new();
    user.write(
        "two.jsonl",
        "{\"prompt\":\"a\",\"reference\":1}\n{\"prompt\":\"b\",\"reference\":2}\n",
    );
    let address = format!("127.0.0.1:{}", free_port());
    let mock = assert_cmd::cargo::cargo_bin("hob");
    let target = |name: &str, tokens: u32| {
        let script = format!("ttft_ms=5,itl_ms=1,tokens={tokens}");
        let launch = format!("'{}' mock --listen {address} --script {script}", mock.display());
        format!("{{name: {name}, url: \"http://{address}\", launch: \"{launch}\"}}")
    };
    let plan = format!(
        "targets: [{}, {}]\nmatrix: {{kind: [eval], items_file: [two.jsonl]}}\n",
        target("first", 8),
        target("second", 9)
    );
    let (records, said) = carried_out(&user, &plan);
    assert!(!said.contains("is in use"), "{said}");
    assert_eq!(counts(&records), [Some(2), Some(2)], "{said}");
}

#[test]
fn two_quants_at_one_address_do_not_take_answers_of_each_other() {
    let user = User::new();
    let server = Server::start(Ability { replies: sums(&user), ..Ability::default() });
    // The same weights twice: only the plan says what they are.
    for quant in ["Q4_K_M", "Q8_0"] {
        user.write(&format!("{quant}.gguf"), "weights");
    }
    let plan = format!(
        "targets: [{{name: here, url: \"{}\", model_file: \"{{quant}}.gguf\"}}]\n\
         matrix: {{kind: [eval], quant: [Q4_K_M, Q8_0], items_file: [sums.jsonl]}}\n",
        server.url
    );
    let (records, said) = carried_out(&user, &plan);
    assert_eq!(server.asked.load(Ordering::Relaxed), 2 * ITEMS, "{said}");
    assert_eq!(counts(&records), [Some(ITEMS as u64); 2], "{said}");
    let began_with_others =
        |line: &str| line.contains("part 1 of") && line.contains("goes on after");
    assert!(!said.lines().any(began_with_others), "{said}");
}

#[test]
fn a_model_that_the_server_does_not_list_is_a_failed_cell_and_the_others_go_on() {
    let user = User::new();
    let server = Server::start(Ability { replies: sums(&user), ..Ability::default() });
    let plan = format!(
        "targets: [{{name: here, url: \"{}\"}}]\n\
         matrix: {{kind: [eval], model: [nothere, m], items_file: [sums.jsonl]}}\n",
        server.url
    );
    let (records, said) = carried_out(&user, &plan);
    assert!(said.contains("has no model nothere; it lists m"), "{said}");
    assert_eq!(server.asked.load(Ordering::Relaxed), ITEMS, "{said}");
    let models: Vec<&str> =
        records.iter().filter_map(|record| record["model"]["name"].as_str()).collect();
    assert_eq!(models, ["nothere", "m"], "{said}");
    assert_eq!(records[0]["status"], "failed");
}

#[test]
fn a_report_takes_files_outside_the_folder_of_the_records() {
    let user = User::new();
    let server = Server::start(Ability { replies: sums(&user), ..Ability::default() });
    let target = format!("--target {} --model m", server.url);
    let record = user.json(format!("eval {target} --file sums.jsonl --out other --json"));
    let months = std::fs::read_dir(user.path("work/other")).into_iter().flatten().flatten();
    let files = months.flat_map(|month| std::fs::read_dir(month.path()).into_iter().flatten());
    let mut paths = files.flatten().map(|file| file.path());
    let file = paths.find(|path| path.extension().is_some_and(|end| end == "yaml"));
    let file = file.expect("the record").display().to_string();
    let report = user.json(&["eval", "report", &file, "--json"]);
    assert_eq!(report["arms"].as_array().map(Vec::len), Some(1));
    assert_eq!(report["arms"][0]["record"], record["id"]);
    let quick = &report["uses"][5];
    assert_eq!((&quick["scenario"], quick["arm"].is_string()), (&"quick".into(), true));
    let shown = user.prints(&["eval", "report", &file]);
    let title = |line: &str| line.split_whitespace().eq(["use", "best", "why"]);
    assert!(shown.lines().any(title), "{shown}");
    assert!(shown.lines().any(|line| line.trim_start().starts_with("Quick ")), "{shown}");
}

#[test]
fn a_plan_says_beforehand_what_its_items_can_show() {
    let user = User::new();
    let plan = "schema: bench-plan/1\nname: small\n\
                targets: [{name: here, url: \"http://127.0.0.1:1\"}]\n\
                matrix: {kind: [eval], task: [\"logic-grid:einstein\", \"units:2\"], items: 40}\n";
    user.write("plan.yaml", plan);
    user.notes("bench plan plan.yaml --dry-run").has(&[
        "logic-grid:einstein: this is one puzzle, so it is asked once",
        "41 items: between two arms, a difference of ",
        "10 points need 204 items",
    ]);
}

/// The plan that is shipped, and the questions that it names.
const QUALITY_PLAN: &str = include_str!("../../../../bench/plans/quality.yaml");
const ARTICLES: &str = include_str!("../../../../bench/eval/articles.jsonl");

#[test]
fn the_plan_of_three_models_can_be_carried_out_with_models_that_hob_knows() {
    let user = User::new();
    std::fs::create_dir_all(user.path("work/bench/eval")).expect("a folder");
    user.write("bench/eval/articles.jsonl", ARTICLES);
    user.write("quality.yaml", QUALITY_PLAN);
    let dry = user.hob("bench plan quality.yaml --dry-run").assert().success();
    let (cells, said) = (stdout(&dry), stderr(&dry));
    for model in ["lfm2:24b-a2b", "qwen3:30b-a3b", "deepseek-r1:14b"] {
        assert_eq!(cells.matches(&format!(" eval {model} ")).count(), 4, "{cells}");
        assert!(named(model).is_some(), "`hob pull {model}` does not know it");
    }
    // Three items in each cell, and at most 1,200 s for each: evaluations are not ended by `cell_s`.
    assert!(said.contains("12 of 12 cells are left, 720 min at most"), "{said}");
    assert!(said.contains("3 items are too few"), "{said}");
}
