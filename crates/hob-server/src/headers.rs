//! The headers of answers: which target answered, how many attempts it took, and how long. `tracker.rs` has the values.
//! Also answers that are JSON and nothing else.

use std::time::Duration;

use axum::body::Body;
use axum::http::header::{CACHE_CONTROL, CONTENT_TYPE, X_CONTENT_TYPE_OPTIONS};
use axum::http::{HeaderMap, HeaderName, HeaderValue};
use axum::response::{IntoResponse, Response};
use hob_core::trace::TraceData;

/// The requested name.
pub(crate) const ALIAS: HeaderName = HeaderName::from_static("x-hob-alias");
/// The number of attempts.
pub(crate) const ATTEMPTS: HeaderName = HeaderName::from_static("x-hob-attempts");
/// The targets that failed, each with its failure.
pub(crate) const FAILED: HeaderName = HeaderName::from_static("x-hob-failed");
/// Time that hob itself took.
pub(crate) const OVERHEAD_MS: HeaderName = HeaderName::from_static("x-hob-overhead-ms");
/// Why the model is not on the device of its first choice, and where it is.
pub(crate) const PLACEMENT: HeaderName = HeaderName::from_static("x-hob-placement");
/// `ignored`: thinking was switched off, but the model thought.
pub(crate) const THINKING: HeaderName = HeaderName::from_static("x-hob-thinking");
/// `counted`: hob counted the tokens, because the target did not report them.
pub(crate) const USAGE: HeaderName = HeaderName::from_static("x-hob-usage");
pub(crate) const IGNORED: HeaderName = HeaderName::from_static("x-hob-ignored");
pub(crate) const QUEUE_MS: HeaderName = HeaderName::from_static("x-hob-queue-ms");
pub(crate) const TARGET: HeaderName = HeaderName::from_static("x-hob-target");
pub(crate) const TTFA_MS: HeaderName = HeaderName::from_static("x-hob-ttfa-ms");
pub(crate) const TTFT_MS: HeaderName = HeaderName::from_static("x-hob-ttft-ms");
pub(crate) const VOICE: HeaderName = HeaderName::from_static("x-hob-voice");
/// Whether the model was in memory when the request came.
pub(crate) const WARM: HeaderName = HeaderName::from_static("x-hob-warm");

const ACCEL_BUFFERING: HeaderName = HeaderName::from_static("x-accel-buffering");

pub(crate) const JSON: &str = "application/json";
pub(crate) const LINES: &str = "application/x-ndjson";
pub(crate) const EVENTS: &str = "text/event-stream; charset=utf-8";

/// Usual number of headers of an answer, with those of the outer layers.
const HEADERS_USUAL: usize = 16;

/// Headers of every answer that may take a while: proxies must not cache or buffer it.
pub(crate) fn answer_headers(content_type: &'static str) -> HeaderMap {
    let mut headers = HeaderMap::with_capacity(HEADERS_USUAL);
    headers.insert(CONTENT_TYPE, HeaderValue::from_static(content_type));
    headers.insert(CACHE_CONTROL, HeaderValue::from_static("no-cache"));
    headers.insert(ACCEL_BUFFERING, HeaderValue::from_static("no"));
    headers.insert(X_CONTENT_TYPE_OPTIONS, HeaderValue::from_static("nosniff"));
    headers
}

/// A successful answer.
pub(crate) fn answer_with(headers: HeaderMap, body: Body) -> Response {
    let mut response = Response::new(body);
    *response.headers_mut() = headers;
    response
}

pub(crate) fn json(body: String) -> Response {
    ([(CONTENT_TYPE, JSON)], body).into_response()
}

/// JSON that changes from one request to the next.
pub(crate) fn uncached_json(body: String) -> Response {
    ([(CONTENT_TYPE, JSON), (CACHE_CONTROL, "no-store")], body).into_response()
}

/// Adds a header that only people read. Leaves it out if a header cannot hold the text.
pub(crate) fn insert_text(headers: &mut HeaderMap, name: HeaderName, text: &str) {
    if let Ok(value) = HeaderValue::try_from(text) {
        headers.insert(name, value);
    }
}

/// Adds the names of parameters without effect to those that are already listed.
pub(crate) fn insert_ignored(headers: &mut HeaderMap, ignored: &[String]) {
    if ignored.is_empty() {
        return;
    }
    let more = hob_wire::ignored_header(ignored);
    let known = headers.get(IGNORED).and_then(|known| known.to_str().ok());
    let all = known.map(|known| format!("{known},{more}")).unwrap_or(more);
    insert_text(headers, IGNORED, &all);
}

/// The attempts, and what is special about the answer.
pub(crate) fn insert_trace(headers: &mut HeaderMap, trace: &TraceData) {
    headers.insert(ATTEMPTS, HeaderValue::from(trace.asked.max(1)));
    if !trace.failed.is_empty() {
        let each =
            trace.failed.iter().map(|attempt| format!("{}={}", attempt.target, attempt.kind));
        insert_text(headers, FAILED, &each.collect::<Vec<_>>().join(", "));
    }
    if !trace.queued.is_zero() {
        headers.insert(QUEUE_MS, whole_ms(trace.queued));
    }
    if let Some(note) = &trace.placement_note {
        // A driver's name for its card may have other characters, such as ®.
        let note = note.replace(|c: char| !matches!(c, ' '..='~'), "?");
        insert_text(headers, PLACEMENT, &note);
    }
    if trace.thought_anyway {
        headers.insert(THINKING, HeaderValue::from_static("ignored"));
    }
    if trace.counted_here {
        headers.insert(USAGE, HeaderValue::from_static("counted"));
    }
    insert_ignored(headers, &trace.dropped);
}

pub(crate) fn whole_ms(time: Duration) -> HeaderValue {
    HeaderValue::from(time.as_millis() as u64)
}
