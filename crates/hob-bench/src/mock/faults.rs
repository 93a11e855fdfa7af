//! Faults of servers, each with a name, and one complete answer.
//! Its words are always the same, so a test can see which of them were lost.

use std::time::Duration;

use hob_core::enum_table;
use serde_json::{Value, json};

/// The words of every complete answer; a stream has one word in each event.
pub const WORDS: [&str; 4] = ["Hello", " from", " the mock,", " wörld 🌍."];
const MEBIBYTE: usize = 1 << 20;
/// Time between writes, so that they do not share a packet. From a shared packet, a reader would see only the end of the
/// connection.
const PACKET_PAUSE: Duration = Duration::from_millis(5);

enum_table! {
    /// One way to answer, most of them wrong.
    #[derive(Clone, Copy, Debug, PartialEq, Eq)]
    pub enum MockFault: name {
        /// answers well
        Fine = "fine",
        /// 503 with Retry-After: 7
        Unavailable = "503",
        /// 503 without Retry-After
        Overloaded = "503-bare",
        /// 500
        Failing = "500",
        /// 429 with Retry-After: 30
        Limited = "429",
        /// 401
        KeyRefused = "401",
        /// 400: the prompt is too long
        TooLong = "400-too-long",
        /// 400 for a request with min_p, an answer without it
        Picky = "400-min-p",
        /// 400: the request is wrong
        Refused = "400",
        /// an error frame at once, in a 200
        EarlyError = "early-error",
        /// never a status line
        Silent = "hang",
        /// a 200, and then nothing
        SilentBody = "hang-body",
        /// an error frame after two words
        ErrorAfter = "error-mid",
        /// the connection ends after two words
        CutAfter = "cut-mid",
        /// nothing more after two words
        StallAfter = "stall-mid",
        /// the connection ends after two words; a request for the rest gets the rest
        CutOnce = "cut-once",
        /// nothing more after two words; a request for the rest gets the rest
        StallOnce = "stall-once",
        /// the connection ends after two words; a request for the rest gets another answer
        CutChanged = "cut-changed",
        /// one line that is not JSON
        BadLine = "bad-line",
        /// five lines that are not JSON
        BadLines = "bad-lines",
        /// a good end without [DONE]
        NoDone = "no-done",
        /// the body ends before the first word
        EofEarly = "eof",
        /// the body ends after two words, without the end of the answer
        EofAfter = "eof-mid",
        /// [DONE] without a finish_reason
        NoFinish = "no-finish",
        /// a good end without any word
        Empty = "empty",
        /// a web page with status 200
        Html = "html",
        /// a redirect to itself
        Redirect = "redirect",
        /// all events in one write
        Packed = "packed",
        /// one byte in each write
        Split = "split",
        /// line breaks of two characters
        Crlf = "crlf",
        /// a line of 1 MiB
        LongLine = "long-line",
        /// bytes without a line break, without end
        Endless = "endless",
        /// one event with lines without end
        GiantEvent = "giant-event",
        /// comments without end and no word, as fast as the client reads
        Pings = "pings",
        /// words without end, as fast as the client reads
        Flood = "flood",
        /// no usage
        NoUsage = "no-usage",
        /// thinks, also if the request turns thinking off
        Thinks = "thinks",
        /// calls tools; every call has index 0
        Calls = "calls",
        /// answers in one piece, also if the request asks for a stream
        Unstreamed = "unstreamed",
    }
}

/// What the server does next with an answer's body.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Step {
    /// Writes a chunk.
    Send(Vec<u8>),
    Pause(Duration),
    /// Writes nothing until the client leaves.
    Hang,
    /// Ends the connection.
    Cut,
    /// Writes this chunk again and again until the client leaves.
    Repeat(Vec<u8>),
}

/// A faulty answer.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum FaultyAnswer {
    /// No status line.
    Silence,
    Whole {
        status: u16,
        /// Further lines of the header, each with its line break.
        header: &'static str,
        body: String,
    },
    /// Status 200 and an event stream.
    Stream(Vec<Step>),
}

impl MockFault {
    /// The answer to a chat request.
    pub(super) fn answer(self, request: &Value, streams: bool) -> FaultyAnswer {
        let repeated = words_of_last_answer(request);
        match self {
            MockFault::Unavailable => {
                error(503, "retry-after: 7\r\n", "the server is out of service")
            }
            MockFault::Overloaded => error(503, "", "too many requests"),
            MockFault::Failing => error(500, "", "it broke"),
            MockFault::Limited => error(429, "retry-after: 30\r\n", "too many requests"),
            MockFault::KeyRefused => error(401, "", "unknown key"),
            MockFault::Refused => error(400, "", "the request is wrong"),
            MockFault::TooLong => too_long(),
            MockFault::Picky if request.get("min_p").is_some() => unknown_parameter(),
            MockFault::Silent => FaultyAnswer::Silence,
            MockFault::Html => {
                let body = "<html><body>Welcome!</body></html>".to_owned();
                FaultyAnswer::Whole { status: 200, header: "content-type: text/html\r\n", body }
            }
            MockFault::Redirect => {
                let header = "location: /v1/chat/completions\r\n";
                FaultyAnswer::Whole { status: 307, header, body: String::new() }
            }
            MockFault::CutOnce | MockFault::StallOnce if repeated > 0 => {
                FaultyAnswer::Stream(send([vec![role()], words(repeated..4), tail()].concat()))
            }
            MockFault::CutChanged if repeated > 0 => {
                FaultyAnswer::Stream(send([vec![role(), word("Hello again.")], tail()].concat()))
            }
            _ if !streams || self == MockFault::Unstreamed => complete_answer(),
            _ => FaultyAnswer::Stream(self.steps()),
        }
    }

    fn steps(self) -> Vec<Step> {
        let error = "data: {\"error\":{\"message\":\"the model failed\",\"code\":500}}\n\n";
        let then = |events: Vec<String>, last: Step| [send(events), vec![last]].concat();
        match self {
            MockFault::EarlyError => send(vec![error.to_owned()]),
            MockFault::SilentBody => vec![Step::Hang],
            MockFault::ErrorAfter => send([first_half(), vec![error.to_owned()]].concat()),
            MockFault::CutAfter | MockFault::CutOnce | MockFault::CutChanged => {
                [apart(first_half()), vec![Step::Cut]].concat()
            }
            MockFault::StallAfter | MockFault::StallOnce => then(first_half(), Step::Hang),
            MockFault::BadLine => send([first_half(), bad(1), second_half()].concat()),
            MockFault::BadLines => apart([first_half(), bad(5), second_half()].concat()),
            MockFault::NoDone => send([first_half(), without_done()].concat()),
            MockFault::EofEarly => send(vec![role()]),
            MockFault::EofAfter => send(first_half()),
            MockFault::NoFinish => send([first_half(), words(2..4), vec![done()]].concat()),
            MockFault::Empty => send(vec![role(), finish("stop"), usage(), done()]),
            MockFault::Packed => send(vec![fine().concat()]),
            MockFault::Split => fine()
                .concat()
                .into_bytes()
                .into_iter()
                .map(|byte| Step::Send(vec![byte]))
                .collect(),
            MockFault::Crlf => send(vec![fine().concat().replace('\n', "\r\n")]),
            MockFault::LongLine => send([first_half(), vec![long()], second_half()].concat()),
            MockFault::Endless => vec![Step::Repeat(vec![b'x'; 64 << 10])],
            MockFault::GiantEvent => vec![Step::Repeat("data: x\n".repeat(8 << 10).into_bytes())],
            MockFault::Pings => vec![Step::Repeat(": ping\n\n".repeat(8 << 10).into_bytes())],
            MockFault::Flood => then(vec![role()], Step::Repeat(word(" more").into_bytes())),
            MockFault::NoUsage => {
                send([first_half(), words(2..4), vec![finish("stop"), done()]].concat())
            }
            MockFault::Thinks => send([vec![role(), thought()], words(0..4), tail()].concat()),
            MockFault::Calls => {
                send([vec![role()], calls(), vec![finish("stop"), done()]].concat())
            }
            _ => send(fine()),
        }
    }
}

fn send(events: Vec<String>) -> Vec<Step> {
    events.into_iter().map(|event| Step::Send(event.into_bytes())).collect()
}

/// Each event in a packet of its own.
fn apart(events: Vec<String>) -> Vec<Step> {
    let steps =
        events.into_iter().map(|event| [Step::Send(event.into_bytes()), Step::Pause(PACKET_PAUSE)]);
    steps.flatten().collect()
}

fn error(status: u16, header: &'static str, message: &str) -> FaultyAnswer {
    let body = json!({ "error": { "message": message, "code": status } }).to_string();
    FaultyAnswer::Whole { status, header, body }
}

fn too_long() -> FaultyAnswer {
    let error = json!({ "message": "the request exceeds the available context size",
        "type": "exceed_context_size_error", "n_prompt_tokens": 9000, "n_ctx": 512 });
    FaultyAnswer::Whole { status: 400, header: "", body: json!({ "error": error }).to_string() }
}

fn unknown_parameter() -> FaultyAnswer {
    let error = json!({ "message": "Unsupported parameter: 'min_p'", "param": "min_p",
        "code": "unsupported_parameter" });
    FaultyAnswer::Whole { status: 400, header: "", body: json!({ "error": error }).to_string() }
}

fn complete_answer() -> FaultyAnswer {
    let message = json!({ "role": "assistant", "content": WORDS.concat() });
    let usage = json!({ "prompt_tokens": 7, "completion_tokens": 4, "total_tokens": 11 });
    let choice = json!({ "index": 0, "message": message, "finish_reason": "stop" });
    let body = json!({ "id": "mock-1", "object": "chat.completion", "created": 1, "model": "mock",
        "choices": [choice], "usage": usage });
    FaultyAnswer::Whole { status: 200, header: "", body: body.to_string() }
}

/// The number of words in the request's last message, if it is the start of an answer that broke off.
fn words_of_last_answer(request: &Value) -> usize {
    let last = request["messages"].as_array().and_then(|messages| messages.last());
    let content = last.filter(|last| last["role"] == "assistant").map(|last| &last["content"]);
    (1..WORDS.len())
        .find(|count| content.is_some_and(|content| *content == WORDS[..*count].concat()))
        .unwrap_or(0)
}

fn chunk(choice: &Value) -> String {
    let chunk = json!({ "id": "mock-1", "object": "chat.completion.chunk", "created": 1,
        "model": "mock", "choices": [choice] });
    format!("data: {chunk}\n\n")
}

fn delta(delta: &Value) -> String {
    chunk(&json!({ "index": 0, "delta": delta, "finish_reason": null }))
}

fn role() -> String {
    delta(&json!({ "role": "assistant", "content": "" }))
}

fn word(text: &str) -> String {
    delta(&json!({ "content": text }))
}

fn thought() -> String {
    delta(&json!({ "reasoning_content": "Let me think." }))
}

fn words(which: std::ops::Range<usize>) -> Vec<String> {
    WORDS[which].iter().map(|text| word(text)).collect()
}

fn finish(reason: &str) -> String {
    chunk(&json!({ "index": 0, "delta": {}, "finish_reason": reason }))
}

fn usage() -> String {
    let usage = json!({ "prompt_tokens": 7, "completion_tokens": 4, "total_tokens": 11,
        "prompt_tokens_details": { "cached_tokens": 3 } });
    format!(
        "data: {}\n\n",
        json!({ "object": "chat.completion.chunk", "choices": [], "usage": usage })
    )
}

fn done() -> String {
    "data: [DONE]\n\n".to_owned()
}

fn first_half() -> Vec<String> {
    [vec![role()], words(0..2)].concat()
}

fn tail() -> Vec<String> {
    vec![finish("stop"), usage(), done()]
}

fn without_done() -> Vec<String> {
    [words(2..4), vec![finish("stop"), usage()]].concat()
}

fn second_half() -> Vec<String> {
    [words(2..4), tail()].concat()
}

fn fine() -> Vec<String> {
    [first_half(), second_half()].concat()
}

fn bad(lines: usize) -> Vec<String> {
    vec!["data: {\"choices\":[{\"del\n\n".to_owned(); lines]
}

/// A comment of 1 MiB.
fn long() -> String {
    format!(": {}\n\n", "x".repeat(MEBIBYTE))
}

fn calls() -> Vec<String> {
    let call = |id: &str, name: &str, arguments: &str| {
        delta(&json!({ "tool_calls": [{ "index": 0, "id": id, "type": "function",
            "function": { "name": name, "arguments": arguments } }] }))
    };
    vec![call("a", "add", "{\"x\":"), call("a", "", "1}"), call("b", "mul", "{}")]
}
