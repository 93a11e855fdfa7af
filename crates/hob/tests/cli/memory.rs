//! Two real chat models and a voice, in memory that holds only one of them.
//! Checks which model is unloaded, which request gets `Retry-After`, and that a model that is answering is never
//! unloaded.

use std::io::{BufRead, BufReader};
use std::thread;

use serde_json::{Value, json};

use crate::real_server::{Served, agent};
use crate::{Has, User, until, until_ok};

/// Each chat model takes about 270 MB, and the voice 343.
const CONFIG: &str = "\
[memory]
max = \"450MB\"
[chat]
threads = 1
parallel = 1
load = \"first_request\"
[model.second]
model = \"smollm2\"
[alias.patient]
to = [\"second\"]
while_loading = \"wait\"
";

fn question(model: &str) -> Value {
    let messages = json!([{"role": "user", "content": "Say hello to Anna."}]);
    json!({"model": model, "temperature": 0, "max_tokens": 8, "messages": messages})
}

fn answered(served: &Served, model: &str) {
    until_ok(300, || {
        let answer = served.post("v1/chat/completions", &question(model)).body;
        if answer["choices"][0]["message"]["content"].is_string() {
            return Ok(());
        }
        // On a busy machine a load takes longer than a request waits, so the client must try again.
        assert_eq!(answer["error"]["code"], "model_loading", "{answer}");
        Err(answer)
    });
}

/// The lines of an answer that continues until the iterator is dropped.
fn story(served: &Served, model: &str) -> impl Iterator<Item = String> + use<> {
    let body = json!({
        "model": model, "stream": true, "max_tokens": 3000, "temperature": 0,
        "messages": [{"role": "user", "content": "Tell me a very long story about a ship."}],
    });
    let answer = agent().post(format!("{}v1/chat/completions", served.url)).send_json(body);
    let body = answer.expect("an answer").into_body().into_reader();
    let mut lines = BufReader::new(body).lines().map_while(Result::ok);
    assert!(lines.next().is_some(), "it begins");
    lines
}

#[test]
fn models_that_do_not_fit_together_take_turns_and_none_is_cut_off() {
    let user = User::with_models().configured(CONFIG);
    let served = Served::start(&user).until_ready("kokoro");
    assert_eq!(served.warm(), ["kokoro"]);
    answered(&served, "smollm2");
    assert_eq!(served.warm(), ["smollm2"]);
    answered(&served, "second");
    assert_eq!(served.warm(), ["second"]);

    let mut telling = story(&served, "second");
    let refused = served.post("v1/chat/completions", &question("smollm2"));
    assert_eq!(refused.status, 503);
    let retry_after = refused.header("retry-after").and_then(|seconds| seconds.parse::<u64>().ok());
    assert!(retry_after.is_some_and(|seconds| (1..=120).contains(&seconds)), "{retry_after:?}");
    assert_eq!(refused.header("x-should-retry"), Some("true"));
    let error = &refused.body["error"];
    assert_eq!(error["code"], "no_room");
    let message = error["message"].as_str().expect("a text");
    message.has(&["MB are needed", "second (", "answering"]);
    assert!(telling.next().is_some(), "the story goes on");
    assert_eq!(served.warm(), ["second"]);

    // The model is loaded as soon as possible, even without another request.
    drop(telling);
    until(300, "smollm2 is not in memory", || served.warm() == ["smollm2"]);
    answered(&served, "smollm2");
    an_alias_that_waits_is_answered_when_the_other_model_is_done(&served);
    served.end("-INT");
}

fn an_alias_that_waits_is_answered_when_the_other_model_is_done(served: &Served) {
    let telling = story(served, "smollm2");
    thread::scope(|scope| {
        let waiting: Vec<_> =
            (0..3).map(|_| scope.spawn(|| served.chat(&question("patient")))).collect();
        let are_there = || served.metric("hob_chat_in_flight{model=\"patient\"") == Some(3.0);
        until(300, "not all of them came in", are_there);
        assert_eq!(served.warm(), ["smollm2"], "it is answering");
        drop(telling);
        for answer in waiting {
            let answer = answer.join().expect("a thread").expect("an answer");
            assert!(answer["choices"][0]["message"]["content"].is_string(), "{answer}");
        }
    });
    assert_eq!(served.warm(), ["second"]);
}

#[test]
fn a_model_that_can_never_fit_is_rejected_with_both_numbers() {
    let user = User::with_models().configured(&CONFIG.replace("450MB", "100MB"));
    let mut served = Served::start(&user);
    served.wait_for_note("hob: loading the model needs about ").has(&[" and 100 MB are free"]);
    let refused = served.chat(&question("second"));
    assert!(refused.is_err(), "{refused:?}");
    assert_eq!(served.warm(), Vec::<String>::new());
    served.end("-INT");
}
