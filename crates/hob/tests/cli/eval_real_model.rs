//! `hob eval` with the stored models: scores that repeat, a report, a grade by hand, a base model, and a run that was
//! stopped. The last test needs no model.

use std::io::{BufRead as _, BufReader};
use std::process::Stdio;

use serde_json::Value;

use crate::real_server::Served;
use crate::{Has, User, json_stdout, kill, stderr};

/// A few items of easy tasks.
const SMALL: &str =
    "eval --tasks arithmetic:2x1,logic-grid:2x2,absent:short --items 2 --budget-tokens 24";

#[test]
fn a_model_has_the_same_scores_twice_and_a_person_can_correct_them() {
    let user = User::with_only(&["smollm2"]);
    let evaluate = || {
        let ran = user.hob(format!("{SMALL} --json")).assert().success();
        stderr(&ran).has(&["6 items are too few"]);
        json_stdout(&ran)
    };
    let (first, second) = (evaluate(), evaluate());
    let overall = |record: &Value| record["eval"]["overall"].clone();
    assert_eq!((&first["kind"], &overall(&first)["n"]), (&"eval".into(), &6.into()));
    for figure in ["accuracy", "score", "verdicts"] {
        assert_eq!(overall(&first)[figure], overall(&second)[figure], "{figure}");
    }
    assert!(overall(&first)["ttfv_p50_ms"].as_f64() > Some(1.0), "{first}");
    let id = second["id"].as_str().expect("an id");
    let line = format!("eval grade {id} arithmetic/2x1/0 correct --why 'it was right'");
    user.prints(line).has(&["is now correct"]);
    user.prints("eval report").has(&[
        "smollm2",
        "first visible",
        "arithmetic:2x1",
        "Batch reasoning",
        "Bounds: interactive",
    ]);
    let report = user.json("eval report --json");
    assert_eq!(report["arms"][0]["eval"]["corrected_by_hand"], 1);
    let site = user.prints("site build --without-published");
    assert!(site.contains("2 runs"), "a correction replaces its record: {site}");
}

/// Two texts for a base model to complete.
const QUESTIONS: &str = r#"{"prompt": "The capital of France is Paris. The capital of Italy is", "reference": "Rome"}
{"prompt": "One, two, three, four,", "reference": "five"}
"#;
/// Two questions with choices.
const CHOICES: &str = r#"{"prompt": "What do bees make?", "choices": ["honey", "concrete", "glass"], "answer": 0}
{"prompt": "What falls from clouds?", "choices": ["furniture", "rain", "numbers"], "answer": 1}
"#;

#[test]
fn a_base_model_is_evaluated_by_its_completions_and_by_log_probabilities() {
    let user = User::with_only(&["gemma-3-270m-base"]);
    user.write("questions.jsonl", QUESTIONS);
    user.write("choices.jsonl", CHOICES);
    // One server for all evaluations, because loading the model takes most of the time.
    let serve = "serve --listen 127.0.0.1:0 --chat-model gemma-3-270m-base";
    let served = Served::run(user.process(serve)).until_ready("gemma-3-270m-base");
    let evaluate = |file: &str, how: &str| {
        let target = format!("--target {} --api hob --model gemma-3-270m-base", served.url);
        let record = user.json(format!("eval {target} --file {file} --json {how}"));
        let overall = &record["eval"]["overall"];
        (overall["n"].clone(), overall["accuracy"].clone(), overall["verdicts"].clone())
    };
    let few = "--completion --budget-tokens 8";
    let continued = [(); 2].map(|()| evaluate("questions.jsonl", few));
    assert_eq!(continued[0], continued[1]);
    let chosen = evaluate("choices.jsonl", "--choices-by-logprob");
    for found in [&continued[0], &chosen] {
        assert!(found.0 == 2 && found.1.as_f64() >= Some(0.5), "{found:?}");
    }
}

#[test]
fn an_evaluation_on_a_server_of_its_own_goes_on_where_it_was_stopped() {
    let user = User::with_only(&["smollm2"]);
    let words = "eval --tasks arithmetic:2x1 --items 8 --budget-tokens 16";
    let mut first = user.process(words);
    let mut first = first.stderr(Stdio::piped()).spawn().expect("hob starts");
    let lines = BufReader::new(first.stderr.take().expect("piped")).lines().map_while(Result::ok);
    let mut lines = lines.skip_while(|line| !line.contains("arithmetic/2x1/0"));
    assert!(lines.next().is_some(), "the first answer is shown");
    kill("-INT", first.id());
    lines.for_each(drop);
    first.wait().expect("it ends");
    user.notes(words).has(&["goes on after "]);
}

#[test]
fn items_are_printed_without_a_server_and_mistakes_are_named() {
    let user = User::new();
    let items = user.prints("eval items --tasks code --items 2");
    let lines: Vec<Value> =
        items.lines().map(|line| serde_json::from_str(line).expect("an item")).collect();
    assert_eq!(lines.len(), 2);
    assert_eq!(
        (&lines[0]["id"], &lines[0]["checker"]["kind"]),
        (&"code/easy/0".into(), &"code".into())
    );
    let tasks = user.prints("eval tasks");
    assert!(tasks.contains("logic-grid") && tasks.contains("6x6"), "{tasks}");
    user.write("bad.jsonl", "{\"prompt\": \"?\", \"refrence\": 1}\n");
    std::fs::create_dir(user.path("work/sub")).expect("a folder");
    for file in ["own.jsonl", "sub/own.jsonl"] {
        user.write(file, "{\"prompt\": \"?\", \"reference\": 1}\n");
    }
    let rows = [
        ("eval --tasks magic", "'magic' is not a task (expected one of logic-grid, arithmetic"),
        ("eval --tasks needle:9", "'9' is not a size of needle (such as 1000@10%"),
        (
            "eval --file bad.jsonl",
            "line 1: the field 'refrence' is unknown (did you mean 'reference'?)",
        ),
        (
            "eval items --file own.jsonl,sub/own.jsonl",
            "sub/own.jsonl: another file has the id 'own/1' too",
        ),
        ("eval items --file own.jsonl --items 5", "--items has no effect"),
        ("eval --items 0", "0 items (expected 1 to 100000)"),
        ("eval --runs-min 6", "--runs-min has no effect"),
        ("bench eval --runs-max 9", "--runs-max has no effect"),
        ("eval --plan p.yaml --budget-s 9", "cannot be used with"),
        (
            "eval --choices-by-logprob --thinking on",
            "a thought has no log-probability that could be compared",
        ),
        ("eval --choices-by-logprob --temperature 1", "cannot be used with"),
        ("eval --temperature 0,3", "expected 0 to 2"),
        ("eval --target http://127.0.0.1:1 --ready-s 9", "--ready-s has no effect"),
        ("eval report", "has no evaluation"),
        ("eval judge aa bb --judge m", "no run in bench/records ends in 'aa'"),
        ("eval judge aa bb", "--judge <NAME>"),
    ];
    for (words, expected) in rows {
        user.fails(words, 2, expected);
    }
}
