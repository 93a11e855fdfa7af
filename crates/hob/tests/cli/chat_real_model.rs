//! The real small chat model behind a real server:
//! the content of a conversation, the prompt cache, and eight answers whose worker is killed.

use std::io::{BufRead, BufReader, Read};
use std::process::Command;
use std::thread;

use serde_json::{Value, json};

use crate::real_server::{Served, agent};
use crate::{Has, User, exit_code, kill, stderr, stdout, until, until_ok};

/// A worker that is stopped takes seconds to end.
#[test]
fn a_second_ctrl_c_does_not_wait_for_workers() {
    let user = User::with_only(&["kokoro", "smollm2"]);
    let mut served = Served::start(&user);
    served.until_warm(&["kokoro", "smollm2"]);
    let worker = served.worker("chat").expect("it runs");
    kill("-STOP", &worker);
    served.signal("-INT");
    // Workers end after all answers, and this one ends first.
    until(60, "the workers do not end", || served.worker("speech").is_none());
    served.signal("-INT");
    let code = exit_code(&mut served.child);
    // An error means that it has ended already.
    let _ended = Command::new("/bin/kill").args(["-KILL", &worker]).output();
    assert_eq!(code, Some(130));
}

fn question(messages: Value) -> Value {
    json!({"model": "smollm2", "temperature": 0, "max_tokens": 24, "messages": messages})
}

/// One server for all, because starting one takes longer than most of the answers.
#[test]
fn one_server_reuses_its_cache_refuses_what_cannot_be_answered_keeps_schemas_and_loads_again() {
    let user = User::with_only(&["smollm2"]);
    let served = Served::start(&user).until_ready("smollm2");
    // The first request of the server: nothing of its prompt is in the cache.
    the_second_turn_of_a_conversation_reuses_the_cache(&served);
    a_prompt_that_does_not_fit_is_refused_with_both_numbers(&served);
    a_schema_is_kept_by_the_real_model_whatever_the_budget(&served);
    a_grammar_that_never_compiles_is_refused_and_its_worker_lives(&served);
    a_model_is_unloaded_and_comes_back_for_the_next_question(&user, &served);
    served.end("-INT");
}

fn the_second_turn_of_a_conversation_reuses_the_cache(served: &Served) {
    let asked = json!([{"role": "user", "content": "Say hello to Anna."}]);
    let first = served.chat(&question(asked.clone())).expect("an answer");
    let said = first["choices"][0]["message"]["content"].as_str().expect("a text");
    assert!(said.contains("Hello"), "{said}");
    let prompt = first["usage"]["prompt_tokens"].as_u64().expect("a number");
    assert_eq!(first["timings"]["prompt_n"], prompt);

    let turns = json!([
        asked[0],
        {"role": "assistant", "content": said},
        {"role": "user", "content": "And to Peter?"},
    ]);
    let second = served.chat(&question(turns)).expect("an answer");
    let cached = second["usage"]["prompt_tokens_details"]["cached_tokens"].as_u64();
    assert!(cached.expect("a number") >= prompt, "{}", second["usage"]);
}

/// The body of the answer, which is a refusal of the client's request.
fn refused(served: &Served, body: &Value) -> Value {
    let answer = served.post("v1/chat/completions", body);
    assert_eq!(answer.status, 400);
    answer.body
}

fn a_prompt_that_does_not_fit_is_refused_with_both_numbers(served: &Served) {
    let long = "word ".repeat(20_000);
    let body = question(json!([{"role": "user", "content": long}]));
    let error = refused(served, &body);
    assert_eq!(error["error"]["code"], "context_length_exceeded");
    let message = error["error"]["message"].as_str().expect("a text");
    let numbers = message.split(|c: char| !c.is_ascii_digit()).filter(|part| !part.is_empty());
    assert_eq!(numbers.count(), 2, "{message}");
}

#[test]
fn a_draft_model_of_the_same_vocabulary_is_accepted() {
    let user = User::with_only(&["smollm2"]);
    user.shallow_model("small.gguf");
    user.configure("[chat]\nthreads = 1\ndraft_model = \"small.gguf\"\n");
    let asked = user.hob("chat --max-tokens 8 Hello").assert().success();
    assert!(!stdout(&asked).trim().is_empty(), "{}", stderr(&asked));
}

#[test]
fn a_draft_model_of_another_vocabulary_is_refused_before_any_answer() {
    let user = User::with_only(&["smollm2", "gemma-3-270m-base"])
        .configured("[chat]\ndraft_model = \"gemma-3-270m-base\"\n");
    let asked = user.hob("chat Hello").assert().failure();
    stderr(&asked).has(&[
        "cannot guess for this model: its token",
        "set chat.draft_model to a smaller model of the same family",
    ]);
    assert_eq!(stdout(&asked), "");
}

fn a_schema_is_kept_by_the_real_model_whatever_the_budget(served: &Served) {
    let schema = json!({
        "type": "object", "additionalProperties": false, "required": ["city", "people"],
        "properties": {"city": {"type": "string"}, "people": {"type": "integer"}},
    });
    for (seed, tokens_max) in [(1, 16), (2, 40), (3, 200)] {
        let answer = served.chat(&json!({
            "model": "smollm2", "temperature": 1, "seed": seed, "max_tokens": tokens_max,
            "messages": [{"role": "user", "content": "Name a city and how many people live in it."}],
            "response_format": {
                "type": "json_schema", "json_schema": {"name": "city", "schema": schema},
            },
        }));
        let answer = answer.expect("an answer");
        let text = answer["choices"][0]["message"]["content"].as_str().expect("a text");
        let value: Value = serde_json::from_str(text).expect("JSON");
        assert!(value["city"].is_string() && value["people"].is_i64(), "{text}");
    }
}

/// In the worker, this grammar would compile for minutes, and take all memory. The test takes the 10 s that a grammar may
/// take.
fn a_grammar_that_never_compiles_is_refused_and_its_worker_lives(served: &Served) {
    let worker = served.worker("chat").expect("a worker");
    let part = |at: usize| {
        format!("/(.*[a{}].{{{}}}).*/", char::from(b'b' + (at % 25) as u8), at % 60 + 1)
    };
    let parts: Vec<String> = (0..900).map(part).collect();
    let hello = question(json!([{"role": "user", "content": "Say hello to Anna."}]));
    let mut held = hello.clone();
    held["grammar"] = json!(format!("start: T\nT: {}\n", parts.join(" & ")));
    let error = refused(served, &held);
    assert_eq!(error["error"]["param"], "grammar");
    assert_eq!(refused(served, &held), error, "the second time without a trial");
    served.chat(&hello).expect("an answer");
    assert_eq!(served.worker("chat").as_deref(), Some(worker.as_str()), "the same process");
}

#[test]
fn eight_answers_end_with_an_error_when_their_worker_is_killed_and_the_next_request_works() {
    let user = User::with_only(&["smollm2", "kokoro"]);
    let served = Served::start(&user).until_ready("smollm2");
    let speech = served.ask(&"The sea is calm tonight. ".repeat(8), "af_heart").expect("sound");
    let mut speech = speech.into_reader();
    speech.read_exact(&mut [0; 4800]).expect("sound");
    thread::scope(|scope| {
        let streams: Vec<_> = (0..8)
            .map(|stream| {
                let story = format!("Tell me a very long story about ship number {stream}.");
                let served = &served;
                scope.spawn(move || last_line(served, &story))
            })
            .collect();
        // Four answers run by then, and four wait for a slot. No answer ends by itself, so it does not matter how
        // late the last one starts.
        let is_full = || served.metric("hob_chat_in_flight{") == Some(8.0);
        until(300, "not all eight are in flight", is_full);
        served.kill_worker("chat");
        for stream in streams {
            let last = stream.join().expect("a stream");
            assert!(last.contains(r#""error""#) && last.contains("worker"), "{last}");
            assert!(!last.contains("choices"), "{last}");
        }
    });
    // On a busy machine the restart takes longer than a request waits, so the client must try again.
    let next = question(json!([{"role": "user", "content": "Are you there?"}]));
    let answer = until_ok(300, || served.chat(&next));
    assert!(answer["choices"][0]["message"]["content"].is_string(), "{answer}");
    let mut rest = Vec::new();
    speech.read_to_end(&mut rest).expect("the sound goes on to its end");
    assert!(rest.len() > 480_000, "{} bytes", rest.len());
    served.end("-INT");
}

/// The last line of a streamed answer, or the error if there is no answer.
pub(crate) fn last_line(served: &Served, text: &str) -> String {
    let body = json!({
        "model": "smollm2", "stream": true, "max_tokens": 3000, "temperature": 0, "ignore_eos": true,
        "messages": [{"role": "user", "content": text}],
    });
    let answer = agent().post(format!("{}v1/chat/completions", served.url)).send_json(body);
    let lines = BufReader::new(answer.expect("an answer").into_body().into_reader()).lines();
    lines.map_while(Result::ok).filter(|line| !line.is_empty()).last().unwrap_or_default()
}

fn a_model_is_unloaded_and_comes_back_for_the_next_question(user: &User, served: &Served) {
    let url = served.url.trim_end_matches('/');
    user.hob(format!("unload smollm2 --server {url}")).assert().success();
    assert_eq!(served.worker("chat"), None);
    let answer = served.chat(&question(json!([{"role": "user", "content": "Hello!"}])));
    let answer = answer.expect("an answer");
    assert!(answer["timings"]["load_ms"].as_f64().expect("a number") > 0.0, "{answer}");
    assert!(served.worker("chat").is_some());
}
