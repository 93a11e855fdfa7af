//! `hob ledger`: the ledger's rows after the server has ended.
//! The server has real models and its own home, so no other program writes there.

use serde_json::{Value, json};

use crate::real_server::Served;
use crate::{Has, User, stderr, stdout, until_ok};

/// Rows are written after the answers, in the background.
pub(crate) fn rows(user: &User, count: usize) -> Vec<Value> {
    until_ok(60, || {
        let rows = user.json("ledger --json --last 100");
        let rows: Vec<Value> = serde_json::from_value(rows).expect("a list");
        if rows.len() >= count { Ok(rows) } else { Err(format!("{} of {count} rows", rows.len())) }
    })
}

#[test]
fn rows_outlive_a_server_that_is_killed() {
    let user = User::with_only(&["kokoro", "smollm2"]);
    let mut served = Served::start(&user).until_ready("smollm2");
    let hi = json!([{"role": "user", "content": "Say hello to Anna."}]);
    let answer = served.chat(&json!({"messages": hi, "max_tokens": 8})).expect("an answer");
    served
        .ask("Hello.", "af_heart")
        .and_then(|mut sound| std::io::copy(&mut sound.as_reader(), &mut std::io::sink()))
        .expect("sound");
    let before = rows(&user, 2);
    served.child.kill().expect("killed");
    served.child.wait().expect("an end");

    let after = rows(&user, 2);
    assert_eq!(after, before);
    let [speech, chat] = after.try_into().expect("two rows, the latest first");
    assert_eq!(
        (&chat["route"], &chat["alias"], &chat["target"]),
        (&json!("chat"), &json!("smollm2"), &json!("smollm2"))
    );
    assert_eq!(
        (&chat["outcome"], &chat["is_warm"], &chat["error"]),
        (&json!("complete"), &json!(true), &Value::Null)
    );
    for name in ["prompt_tokens", "completion_tokens"] {
        assert_eq!(chat[name], answer["usage"][name], "{name}");
    }
    let ms = |row: &Value, column: &str| row[column].as_f64().expect("a number");
    assert!(
        0.0 < ms(&chat, "first_ms") && ms(&chat, "first_ms") <= ms(&chat, "total_ms"),
        "{chat}"
    );
    assert_eq!((&speech["route"], &speech["outcome"]), (&json!("speech"), &json!("complete")));
    assert!(ms(&speech, "audio_ms") > 200.0, "{speech}");

    let table = user.prints("ledger --by target --since 1h");
    let names: Vec<&str> =
        table.lines().filter_map(|line| line.split_whitespace().next()).collect();
    assert_eq!(names, ["name", "kokoro", "smollm2", "times:"]);
    assert_eq!(user.prints("ledger").lines().count(), 3);

    // Without the speech model, the next start is shorter.
    std::fs::remove_file(user.path("hob/models/kokoro")).expect("a link");
    let again = Served::start(&user).until_ready("smollm2");
    again.chat(&json!({"messages": hi, "max_tokens": 2})).expect("an answer");
    assert_eq!(rows(&user, 3).len(), 3);
    again.end("-INT");
}

#[test]
fn a_file_that_is_no_ledger_is_left_alone_and_the_ledger_can_be_turned_off() {
    let user = User::with_only(&["smollm2"]);
    let file = user.path("hob/ledger.sqlite3");
    std::fs::write(&file, "a diary ".repeat(100)).expect("written");
    let mut served = Served::start(&user);
    served.wait_for_note("ledger.sqlite3 cannot be used");
    served.wait_for_note("ledger.enabled = false");
    drop(served);
    assert!(std::fs::read_to_string(&file).expect("still there").starts_with("a diary"));
    user.configure("[ledger]\nenabled = false\n");
    let served = Served::start(&user).until_ready("smollm2");
    served.end("-INT");
}

#[test]
fn without_requests_it_says_so() {
    let user = User::new();
    let nothing = user.hob("ledger").assert().success();
    assert_eq!(
        (stdout(&nothing).as_str(), stderr(&nothing).trim()),
        ("", "no requests yet; `hob serve` logs them")
    );
    assert_eq!(user.prints("ledger --json").trim(), "[]");
    let older = user.hob("ledger --since 1h").assert().success();
    assert_eq!(stderr(&older).trim(), "no requests since then");
    user.fails("ledger --last 0", 2, "0 is not in 1..");
    let wrong = user.hob("ledger --since yesterday").assert().failure();
    stderr(&wrong).has(&["expected 30m, 24h, 7d, 4w, or a date"]);
}
