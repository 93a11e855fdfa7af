//! Everything that goes wrong with servers, each under its name, and two that go right.
//! The words of an answer are always the same, so that a reader can tell what got lost.

use std::io;
use std::sync::atomic::Ordering;
use std::time::Duration;

use axum::body::Body;
use axum::http::header::{CONTENT_TYPE, LOCATION, RETRY_AFTER};
use axum::http::{HeaderValue, StatusCode};
use axum::response::{IntoResponse, Response};
use bytes::Bytes;
use futures::{Stream, StreamExt, stream};
use serde_json::json;
use tokio::time::sleep;

use super::Counts;
use super::measured::{fast, paced, whole};

/// What every whole answer says; in pieces, one word each.
pub const WORDS: [&str; 4] = ["Hello", " from", " the mock,", " wörld 🌍."];
/// Longer than any limit of a test.
const FOR_EVER: Duration = Duration::from_secs(3600);
const MEBIBYTE: usize = 1 << 20;

macro_rules! faults {
    ($($(#[doc = $what:literal])+ $variant:ident = $name:literal),* $(,)?) => {
        /// What a model of the mock does.
        #[derive(Clone, Copy, Debug, PartialEq, Eq)]
        pub enum Fault {
            $($(#[doc = $what])+ $variant),*
        }

        impl Fault {
            pub const ALL: &'static [Fault] = &[$(Fault::$variant),*];

            pub fn name(self) -> &'static str {
                match self { $(Fault::$variant => $name),* }
            }

            /// For people: what it does.
            pub fn meaning(self) -> &'static str {
                match self { $(Fault::$variant => concat!($($what),+).trim_ascii()),* }
            }
        }
    };
}

faults! {
    /// answers well
    Fine = "fine",
    /// 68 events at once
    Fast = "fast",
    /// 64 tokens, 10 ms apart
    Paced = "paced",
    /// 503 with Retry-After: 7
    Unavailable = "503",
    /// 503 without a word when to come back
    Overloaded = "503-bare",
    /// 500
    Failing = "500",
    /// 429 with Retry-After: 30
    Limited = "429",
    /// 401
    KeyRefused = "401",
    /// 400 that complains of the prompt's length
    TooLong = "400-too-long",
    /// 400 that does not know min_p, and takes the request without it
    Picky = "400-min-p",
    /// 400 of the request's own making
    Refused = "400",
    /// an error frame at once, in a 200
    EarlyError = "early-error",
    /// no status line, ever
    Silent = "hang",
    /// a 200, and then nothing
    SilentBody = "hang-body",
    /// an error frame after two words
    ErrorAfter = "error-mid",
    /// the connection is cut after two words
    CutAfter = "cut-mid",
    /// nothing more after two words
    StallAfter = "stall-mid",
    /// the connection is cut after two words, and the rest comes when that is asked for
    CutOnce = "cut-once",
    /// nothing more after two words, and the rest comes when that is asked for
    StallOnce = "stall-once",
    /// the connection is cut after two words, and whoever asks for the rest hears another beginning
    CutAnew = "cut-anew",
    /// one line that is no JSON
    BadLine = "bad-line",
    /// five lines that are no JSON
    BadLines = "bad-lines",
    /// a good end without [DONE]
    NoDone = "no-done",
    /// the end of the body before anything was said
    EofEarly = "eof",
    /// the end of the body after two words, without an end of the answer
    EofAfter = "eof-mid",
    /// [DONE] without a finish_reason
    NoFinish = "no-finish",
    /// a good end with nothing said
    Empty = "empty",
    /// a web page with status 200
    Html = "html",
    /// a redirect to itself
    Redirect = "redirect",
    /// all events in one packet
    Packed = "packed",
    /// one byte in each packet
    Split = "split",
    /// line breaks of two characters
    Crlf = "crlf",
    /// a line of 1 MiB
    LongLine = "long-line",
    /// bytes without a line break, for ever
    Endless = "endless",
    /// one event of endless lines
    GiantEvent = "giant-event",
    /// comments without end, as fast as they are taken, and not a word
    Pings = "pings",
    /// words for ever, as fast as they are taken
    Flood = "flood",
    /// no usage
    NoUsage = "no-usage",
    /// thinks, whatever it was told
    Thinks = "thinks",
    /// calls a tool, with every call numbered 0
    Calls = "calls",
    /// ignores that the answer was to be streamed
    Unstreamed = "unstreamed",
}

impl Fault {
    pub fn of(name: &str) -> Option<Fault> {
        Fault::ALL.iter().copied().find(|fault| fault.name() == name)
    }

    pub(super) async fn answer(self, counts: &Counts, streams: bool, body: &Bytes) -> Response {
        match self {
            Fault::Unavailable => refused(503, "out for lunch", Some("7")),
            Fault::Overloaded => refused(503, "too much to do", None),
            Fault::Failing => refused(500, "it broke", None),
            Fault::Limited => refused(429, "not so fast", Some("30")),
            Fault::KeyRefused => refused(401, "who are you?", None),
            Fault::Refused => refused(400, "no such thing", None),
            Fault::TooLong => too_long(),
            Fault::Picky if contains(body, b"\"min_p\"") => unknown_parameter(),
            Fault::Silent => {
                sleep(FOR_EVER).await;
                refused(500, "awake at last", None)
            }
            Fault::Html => ([(CONTENT_TYPE, "text/html")], "<html><body>Welcome!</body></html>")
                .into_response(),
            Fault::Redirect => {
                let here = HeaderValue::from_static("/v1/chat/completions");
                (StatusCode::TEMPORARY_REDIRECT, [(LOCATION, here)]).into_response()
            }
            Fault::CutOnce | Fault::StallOnce if said(body) > 0 => {
                events(counts, lines([vec![role()], words(said(body)..4), tail()].concat()))
            }
            Fault::CutAnew if said(body) > 0 => {
                events(counts, lines([vec![role(), word("Hello again.")], tail()].concat()))
            }
            _ if !streams || self == Fault::Unstreamed => whole(),
            _ => events(counts, self.pieces()),
        }
    }

    /// The body's packets.
    fn pieces(self) -> stream::BoxStream<'static, io::Result<Bytes>> {
        let all = lines;
        let then_wait = stream::once(async {
            sleep(FOR_EVER).await;
            Err(io::ErrorKind::TimedOut.into())
        });
        let cut = stream::once(async { Err(io::ErrorKind::ConnectionReset.into()) });
        let error = "data: {\"error\":{\"message\":\"the model fell over\",\"code\":500}}\n\n";
        match self {
            Fault::EarlyError => all(vec![error.to_owned()]).boxed(),
            Fault::SilentBody => then_wait.boxed(),
            Fault::ErrorAfter => all([begun(), vec![error.to_owned()]].concat()).boxed(),
            Fault::CutAfter | Fault::CutOnce | Fault::CutAnew => paused(begun()).chain(cut).boxed(),
            Fault::StallAfter | Fault::StallOnce => all(begun()).chain(then_wait).boxed(),
            Fault::BadLine => all([begun(), bad(1), ended()].concat()).boxed(),
            Fault::BadLines => paused([begun(), bad(5), ended()].concat()).boxed(),
            Fault::NoDone => all([begun(), without_done()].concat()).boxed(),
            Fault::EofEarly => all(vec![role()]).boxed(),
            Fault::EofAfter => all(begun()).boxed(),
            Fault::NoFinish => all([begun(), words(2..4), vec![done()]].concat()).boxed(),
            Fault::Empty => all(vec![role(), finish("stop"), usage(), done()]).boxed(),
            Fault::Packed => all(vec![fine().concat()]).boxed(),
            Fault::Split => single_bytes(fine().concat()).boxed(),
            Fault::Crlf => all(vec![fine().concat().replace('\n', "\r\n")]).boxed(),
            Fault::LongLine => all([begun(), vec![long()], ended()].concat()).boxed(),
            Fault::Endless => endless(Bytes::from(vec![b'x'; 64 << 10])).boxed(),
            Fault::GiantEvent => endless(Bytes::from("data: x\n".repeat(8 << 10))).boxed(),
            Fault::Pings => endless(Bytes::from(": ping\n\n".repeat(8 << 10))).boxed(),
            Fault::Flood => all(vec![role()]).chain(endless(word(" more").into())).boxed(),
            Fault::NoUsage => {
                all([begun(), words(2..4), vec![finish("stop"), done()]].concat()).boxed()
            }
            Fault::Thinks => all([vec![role(), thought()], words(0..4), tail()].concat()).boxed(),
            Fault::Calls => {
                all([vec![role()], calls(), vec![finish("stop"), done()]].concat()).boxed()
            }
            Fault::Fast => fast().boxed(),
            Fault::Paced => paced().boxed(),
            _ => all(fine()).boxed(),
        }
    }
}

/// An error with a status.
pub(super) fn refused(status: u16, message: &str, retry_after: Option<&'static str>) -> Response {
    let status = StatusCode::from_u16(status).unwrap_or(StatusCode::INTERNAL_SERVER_ERROR);
    let body = axum::Json(json!({ "error": { "message": message, "code": status.as_u16() } }));
    let mut response = (status, body).into_response();
    if let Some(wait) = retry_after {
        response.headers_mut().insert(RETRY_AFTER, HeaderValue::from_static(wait));
    }
    response
}

fn too_long() -> Response {
    let error = json!({ "message": "the request exceeds the available context size",
        "type": "exceed_context_size_error", "n_prompt_tokens": 9000, "n_ctx": 512 });
    (StatusCode::BAD_REQUEST, axum::Json(json!({ "error": error }))).into_response()
}

fn unknown_parameter() -> Response {
    let error = json!({ "message": "Unsupported parameter: 'min_p'", "param": "min_p",
        "code": "unsupported_parameter" });
    (StatusCode::BAD_REQUEST, axum::Json(json!({ "error": error }))).into_response()
}

/// Words of an answer that broke off, which is handed back to be gone on with.
fn said(body: &[u8]) -> usize {
    let body: serde_json::Value = serde_json::from_slice(body).unwrap_or_default();
    let last = body["messages"].as_array().and_then(|messages| messages.last());
    let said = last.filter(|last| last["role"] == "assistant").map(|last| &last["content"]);
    (1..WORDS.len())
        .find(|count| said.is_some_and(|said| *said == WORDS[..*count].concat()))
        .unwrap_or(0)
}

fn contains(body: &[u8], part: &[u8]) -> bool {
    body.windows(part.len()).any(|window| window == part)
}

/// Counts what is taken, and whether somebody left before the end.
struct Taken {
    counts: Counts,
    is_over: bool,
}

impl Drop for Taken {
    fn drop(&mut self) {
        if !self.is_over {
            self.counts.0.gone.fetch_add(1, Ordering::Relaxed);
        }
    }
}

fn events(
    counts: &Counts,
    pieces: impl Stream<Item = io::Result<Bytes>> + Send + 'static,
) -> Response {
    let mut taken = Taken { counts: counts.clone(), is_over: false };
    let pieces = pieces.map(Some).chain(stream::once(async { None }));
    let counted = pieces.filter_map(move |piece| {
        match &piece {
            Some(Ok(bytes)) => {
                taken.counts.0.bytes.fetch_add(bytes.len(), Ordering::Relaxed);
            }
            Some(Err(_)) | None => taken.is_over = true,
        }
        std::future::ready(piece)
    });
    ([(CONTENT_TYPE, "text/event-stream")], Body::from_stream(counted)).into_response()
}

fn chunk(choice: &serde_json::Value) -> String {
    let chunk = json!({ "id": "mock-1", "object": "chat.completion.chunk", "created": 1,
        "model": "mock", "choices": [choice] });
    format!("data: {chunk}\n\n")
}

fn delta(delta: &serde_json::Value) -> String {
    chunk(&json!({ "index": 0, "delta": delta, "finish_reason": null }))
}

pub(super) fn role() -> String {
    delta(&json!({ "role": "assistant", "content": "" }))
}

pub(super) fn word(text: &str) -> String {
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

fn begun() -> Vec<String> {
    [vec![role()], words(0..2)].concat()
}

pub(super) fn tail() -> Vec<String> {
    vec![finish("stop"), usage(), done()]
}

fn without_done() -> Vec<String> {
    [words(2..4), vec![finish("stop"), usage()]].concat()
}

fn ended() -> Vec<String> {
    [words(2..4), tail()].concat()
}

fn fine() -> Vec<String> {
    [begun(), ended()].concat()
}

fn bad(lines: usize) -> Vec<String> {
    vec!["data: {\"choices\":[{\"del\n\n".to_owned(); lines]
}

/// A comment, which says nothing.
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

fn lines(lines: Vec<String>) -> impl Stream<Item = io::Result<Bytes>> {
    stream::iter(lines.into_iter().map(|line| Ok(line.into())))
}

/// What comes before a break is on its way before the break: else both could be one packet, and a
/// reader would see the break only.
fn paused(lines: Vec<String>) -> impl Stream<Item = io::Result<Bytes>> {
    stream::iter(lines).then(|line| async {
        sleep(Duration::from_millis(5)).await;
        Ok(line.into())
    })
}

fn single_bytes(text: String) -> impl Stream<Item = io::Result<Bytes>> {
    stream::iter(text.into_bytes()).then(|byte| async move {
        tokio::task::yield_now().await;
        Ok(Bytes::copy_from_slice(&[byte]))
    })
}

fn endless(piece: Bytes) -> impl Stream<Item = io::Result<Bytes>> {
    stream::repeat(piece).then(|piece| async {
        tokio::task::yield_now().await;
        Ok(piece)
    })
}
