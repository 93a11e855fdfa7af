//! Answers that measure: 68 events, at once or at a reader's pace, and an answer in one piece.
//! They are made once, because a request that waits for JSON to be written is not the gateway's fault.

use std::io;
use std::sync::LazyLock;
use std::time::Duration;

use axum::http::header::CONTENT_TYPE;
use axum::response::{IntoResponse, Response};
use bytes::Bytes;
use futures::{Stream, StreamExt, stream};
use serde_json::json;
use tokio::time::sleep;

use super::WORDS;
use super::faults::{role, tail, word};

/// In an answer that measures.
pub(super) const TOKENS: usize = 64;
/// Between two tokens of an answer at a reader's pace.
pub(super) const PACE: Duration = Duration::from_millis(10);

static MEASURED: LazyLock<Vec<Bytes>> = LazyLock::new(|| {
    let tokens = vec![word(" token"); TOKENS];
    [vec![role()], tokens, tail()].concat().into_iter().map(Bytes::from).collect()
});

static SMALL: LazyLock<Vec<Bytes>> = LazyLock::new(|| {
    let words = WORDS.iter().map(|text| word(text)).collect();
    [vec![role()], words, tail()].concat().into_iter().map(Bytes::from).collect()
});

static WHOLE: LazyLock<Bytes> = LazyLock::new(|| {
    let message = json!({ "role": "assistant", "content": WORDS.concat() });
    let usage = json!({ "prompt_tokens": 7, "completion_tokens": 4, "total_tokens": 11 });
    let choice = json!({ "index": 0, "message": message, "finish_reason": "stop" });
    let answer = json!({ "id": "mock-1", "object": "chat.completion", "created": 1, "model": "mock",
        "choices": [choice], "usage": usage });
    answer.to_string().into()
});

/// The 68 events of `fast` and `paced`: a role, 64 tokens, and how an answer ends.
pub(super) fn events() -> &'static [Bytes] {
    &MEASURED
}

/// The 8 events of an answer with the words of the one in one piece: for gateways that always stream.
pub(super) fn small() -> &'static [Bytes] {
    &SMALL
}

/// The body of an answer in one piece.
pub(super) fn whole_body() -> &'static Bytes {
    &WHOLE
}

/// Each event in a packet of its own, as fast as they are taken.
pub(super) fn fast() -> impl Stream<Item = io::Result<Bytes>> {
    stream::iter(events().iter().cloned().map(Ok))
}

pub(super) fn paced() -> impl Stream<Item = io::Result<Bytes>> {
    stream::iter(events().iter().cloned().enumerate()).then(|(place, event)| async move {
        // The role and the first token come at once, and so does what ends the answer.
        if (2..=TOKENS).contains(&place) {
            sleep(PACE).await;
        }
        Ok(event)
    })
}

pub(super) fn whole() -> Response {
    ([(CONTENT_TYPE, "application/json")], whole_body().clone()).into_response()
}
