//! `hob quantize listened`: records of the listening page become figures, and other files a clear error.

use crate::{Has, User};

/// Three trials, of which two are right.
fn record(time: &str, target: &str) -> String {
    format!(
        r#"{{"schema": "listening/1", "kind": "abx", "source": "kokoro", "target": "{target}", "voice": "af_heart",
        "sentences": ["One.", "Two."], "time": "{time}", "summary": {{}}, "answers": [
            {{"sentence": 1, "a": "source", "x": "source", "answer": "a", "correct": true}},
            {{"sentence": 1, "a": "target", "x": "target", "answer": "a", "correct": true}},
            {{"sentence": 2, "a": "source", "x": "source", "answer": "b", "correct": false}}]}}"#
    )
}

#[test]
fn records_of_listeners_are_counted_for_each_pair_of_models() {
    let user = User::new();
    for (file, time, target) in
        [("1.json", "10:00", "small"), ("2.json", "11:00", "small"), ("3.json", "12:00", "other")]
    {
        user.write(file, &record(time, target));
    }
    let words = "quantize listened 1.json 2.json 3.json";
    user.prints(words).has(&["4 of 6 right, 2 tests", "2 of 3 right, 1 test"]);
    let tallies = user.json(format!("{words} --json"));
    let small = &tallies[1]["abx"];
    assert_eq!((&small["trials"], &small["correct"]), (&6.into(), &4.into()), "{tallies}");
    // At least 4 of 6 by guessing: (15 + 6 + 1) / 64.
    let p = small["p"].as_f64().expect("a number");
    assert!((p - 22.0 / 64.0).abs() < 1e-9, "{tallies}");
}

#[test]
fn a_file_that_is_no_record_is_named() {
    let user = User::new();
    user.write("1.json", &record("10:00", "small"));
    user.write("copy.json", &record("10:00", "small"));
    user.write("other.json", r#"{"schema": "eval/1"}"#);
    let rows = [
        ("1.json copy.json", "1.json and copy.json are the same record"),
        ("1.json other.json", "other.json: its schema is 'eval/1'"),
        ("missing.json", "missing.json"),
        ("", "<FILE>"),
    ];
    for (files, expected) in rows {
        user.fails(format!("quantize listened {files}"), 2, expected);
    }
}
