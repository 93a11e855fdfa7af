//! A server with known ability on a port of its own: right with a known share, after a known time.

use std::collections::BTreeMap;
use std::io::{Read as _, Write as _};
use std::net::TcpStream;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::thread;
use std::time::Duration;

use crate::loopback::{Loopback, Request};

/// The number of tokens that the server counts for each prompt.
const PROMPT_TOKENS: usize = 40;

/// What the server can do.
#[derive(Clone, Debug, Default)]
pub(crate) struct Ability {
    /// The answer to each question, right or wrong.
    pub(crate) replies: BTreeMap<String, String>,
    /// Before the first visible character.
    pub(crate) wait_ms: u64,
    /// Tokens of thinking, unless `reasoning_effort` is `none`.
    pub(crate) thoughts: usize,
    /// With this budget or less, a thinking server says nothing.
    pub(crate) thinks_up_to: u64,
    /// The number of the question at which the server breaks off, once. 0: never.
    pub(crate) dies_at: usize,
    /// Whether it tells log-probabilities of its own tokens only.
    pub(crate) ignores_echo: bool,
    /// What it says to a question that has no reply.
    pub(crate) judge: Option<fn(&str) -> String>,
    /// The question at which it breaks off each time.
    pub(crate) chokes_on: &'static str,
    /// The question to which its answer has no end.
    pub(crate) never_ends_on: &'static str,
    /// The temperature at which all its replies are wrong.
    pub(crate) wrong_at: Option<f64>,
    /// Whether it ends each connection without a word.
    pub(crate) is_dead: bool,
    /// Whether it keeps all prompts in a cache, and tells how much of each it had.
    pub(crate) caches_prompts: bool,
    /// Whether only `enable_thinking` turns thinking off. `think` then moves the thought into the answer.
    pub(crate) is_stubborn: bool,
}

/// A server on a port of its own.
pub(crate) struct Server {
    pub(crate) url: String,
    pub(crate) ability: Arc<Mutex<Ability>>,
    /// Questions, without the probes.
    pub(crate) asked: Arc<AtomicUsize>,
}

/// What all connections share.
struct Shared {
    ability: Arc<Mutex<Ability>>,
    asked: Arc<AtomicUsize>,
    /// All prompts so far.
    prompts: Mutex<Vec<String>>,
}

impl Server {
    pub(crate) fn start(ability: Ability) -> Server {
        let (ability, asked) = (Arc::new(Mutex::new(ability)), Arc::new(AtomicUsize::new(0)));
        let shared = Arc::new(Shared {
            ability: Arc::clone(&ability),
            asked: Arc::clone(&asked),
            prompts: Mutex::default(),
        });
        let server = Loopback::start(move |request, stream| serve(&request, stream, &shared));
        Server { url: server.url, ability, asked }
    }
}

fn serve(request: &Request, writer: &mut TcpStream, shared: &Shared) {
    let ability = shared.ability.lock().expect("the ability").clone();
    match (request.method.as_str(), request.path.as_str()) {
        _ if ability.is_dead => {}
        ("GET", path) if path.starts_with("/v1/models") => {
            whole(writer, 200, r#"{"object":"list","data":[{"id":"m","object":"model"}]}"#);
        }
        ("POST", "/v1/chat/completions") => answer(writer, &request.body, &ability, shared),
        ("POST", "/v1/completions") => whole(writer, 200, &scored(&request.body, &ability)),
        _ => whole(writer, 404, "{}"),
    }
}

fn whole(writer: &mut TcpStream, status: u16, body: &str) {
    let length = body.len();
    let head = format!("HTTP/1.1 {status} OK\r\nconnection: close\r\ncontent-length: {length}");
    let text = format!("{head}\r\n\r\n{body}");
    writer.write_all(text.as_bytes()).expect("written");
}

/// The share of a prompt that an earlier one begins with, in tokens.
fn cached_tokens(prompt: &str, earlier: &Mutex<Vec<String>>) -> usize {
    let mut earlier = earlier.lock().expect("the prompts");
    let shared = |one: &String| one.bytes().zip(prompt.bytes()).take_while(|(a, b)| a == b).count();
    let longest = earlier.iter().map(shared).max().unwrap_or_default();
    earlier.push(prompt.to_owned());
    PROMPT_TOKENS * longest / prompt.len().max(1)
}

fn answer(writer: &mut TcpStream, body: &[u8], ability: &Ability, shared: &Shared) {
    let body: serde_json::Value = serde_json::from_slice(body).expect("JSON");
    let prompt = body["messages"].as_array().and_then(|all| all.last()).expect("a message");
    let prompt = prompt["content"].as_str().expect("a prompt");
    let question = prompt.split_once("] ").map_or(prompt, |(_, question)| question);
    let judged = ability.judge.map(|judge| judge(question));
    let reply = ability.replies.get(question).or(judged.as_ref());
    let is_wrong = ability.wrong_at.is_some() && body["temperature"].as_f64() == ability.wrong_at;
    let wrong = "The answer is 7.".to_owned();
    let reply = if is_wrong { reply.map(|_| &wrong) } else { reply };
    let budget = body["max_tokens"].as_u64().expect("a limit");
    let leaks = ability.is_stubborn && body["think"] == false;
    let is_off = match ability.is_stubborn {
        true => leaks || body["chat_template_kwargs"]["enable_thinking"] == false,
        false => body["reasoning_effort"] == "none",
    };
    let thinks = ability.thoughts > 0 && !is_off;
    let is_spent = thinks && reply.is_some() && budget <= ability.thinks_up_to;
    if question == ability.chokes_on {
        return;
    }
    if reply.is_some() && shared.asked.fetch_add(1, Ordering::Relaxed) + 1 == ability.dies_at {
        return;
    }
    let cached = ability.caches_prompts.then(|| cached_tokens(prompt, &shared.prompts));
    let mut text =
        "HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\nconnection: close\r\n\r\n"
            .to_owned();
    writer.write_all(text.as_bytes()).expect("written");
    text.clear();
    let event = |delta: serde_json::Value, finish: Option<&str>| {
        let choice = serde_json::json!({ "index": 0, "delta": delta, "finish_reason": finish });
        format!("data: {}\n\n", serde_json::json!({ "choices": [choice] }))
    };
    let thoughts = if thinks { ability.thoughts } else { 0 };
    for _ in 0..thoughts {
        text += &event(serde_json::json!({ "reasoning_content": "hm " }), None);
    }
    if reply.is_some() {
        writer.write_all(text.as_bytes()).expect("written");
        text.clear();
        thread::sleep(Duration::from_millis(ability.wait_ms));
    }
    if question == ability.never_ends_on {
        text += &event(serde_json::json!({ "content": "And so on" }), None);
        writer.write_all(text.as_bytes()).expect("written");
        // Until the client leaves.
        let _gone = writer.read(&mut [0]);
        return;
    }
    let opening = if leaks { "Okay, the user asks this. " } else { "" };
    let words = if is_spent { "" } else { reply.map_or("ok", String::as_str) };
    let words = format!("{opening}{words}");
    let pieces: Vec<&str> = words.split_inclusive(' ').collect();
    for piece in &pieces {
        text += &event(serde_json::json!({ "content": piece }), None);
    }
    text += &event(serde_json::json!({}), Some(if is_spent { "length" } else { "stop" }));
    let mut usage = serde_json::json!({
        "prompt_tokens": PROMPT_TOKENS, "completion_tokens": thoughts + pieces.len().max(1),
        "completion_tokens_details": { "reasoning_tokens": thoughts },
    });
    if let Some(cached) = cached {
        usage["prompt_tokens_details"] = serde_json::json!({ "cached_tokens": cached });
    }
    text += &format!("data: {}\n\n", serde_json::json!({ "choices": [], "usage": usage }));
    text += "data: [DONE]\n\n";
    // `connection: close`: the end of the body is the end of the connection.
    let _gone = writer.write_all(text.as_bytes());
}

/// Log-probabilities of the words of a text, and of one more token. The reply to a question is the likeliest.
fn scored(body: &[u8], ability: &Ability) -> String {
    let body: serde_json::Value = serde_json::from_slice(body).expect("JSON");
    let prompt = body["prompt"].as_str().expect("a prompt");
    let question = prompt.strip_prefix("Question: ").and_then(|rest| rest.split_once("\nAnswer:"));
    let (question, option) = question.expect("a question with an option");
    let is_likely = ability.replies.get(question).map(String::as_str) == Some(option.trim());
    let words: Vec<&str> = prompt.split_inclusive(' ').chain([" more"]).collect();
    let starts = words.iter().scan(0, |at, word| {
        let start = *at;
        *at += word.chars().count();
        Some(start)
    });
    let value = |at: usize| match at {
        0 => serde_json::Value::Null,
        at if at + 2 >= words.len() && is_likely => (-0.1).into(),
        _ => (-1.0).into(),
    };
    let mut logprobs = serde_json::json!({
        "tokens": words, "text_offset": starts.collect::<Vec<usize>>(),
        "token_logprobs": (0..words.len()).map(value).collect::<Vec<_>>(),
    });
    if ability.ignores_echo {
        logprobs =
            serde_json::json!({ "tokens": ["x"], "text_offset": [90], "token_logprobs": [-1.0] });
    }
    serde_json::json!({ "choices": [{ "text": "", "logprobs": logprobs }] }).to_string()
}
