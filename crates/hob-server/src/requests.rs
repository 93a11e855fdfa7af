//! Every request from outside: its number, its clock, its line in the log, and the reading of its body.
//! Never its text: what people have read aloud, or ask, is theirs.

use std::error::Error as _;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Instant;

use axum::body::{Body, to_bytes};
use axum::extract::{MatchedPath, Request, State};
use axum::http::header::{CONTENT_LENGTH, CONTENT_TYPE, ORIGIN, REFERER, USER_AGENT};
use axum::http::{Extensions, HeaderMap, HeaderName, HeaderValue};
use axum::middleware::Next;
use axum::response::{IntoResponse, Response};
use bytes::Bytes;
use http_body_util::LengthLimitError;
use tokio::time::timeout;

use crate::failure::Refusal;
use crate::now;
use crate::router::{App, Limits};

const REQUEST_ID: HeaderName = HeaderName::from_static("x-request-id");
const HOB_REQUEST_ID: HeaderName = HeaderName::from_static("x-hob-request-id");
/// Servers like this one that a request came through; two that point at each other would hand it to and
/// fro for ever.
const HOPS: HeaderName = HeaderName::from_static("x-hob-hops");
const HOPS_MAX: u32 = 4;
/// As `hob bench` names itself.
const BENCH: &[u8] = b"hob-bench/";

/// A request's number and the moment its headers were read.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Received {
    pub(crate) id: u64,
    pub(crate) at: Instant,
    /// Servers like this one that it came through.
    pub(crate) hops: u32,
    /// By a benchmark, which is not what anybody waited for.
    pub(crate) is_bench: bool,
}

impl Received {
    /// What [`observe`] put among a request's extensions.
    pub(crate) fn of(extensions: &Extensions) -> Received {
        let received = extensions.get::<Received>().copied();
        received.unwrap_or_else(|| Received { id: 0, at: Instant::now(), hops: 0, is_bench: false })
    }
}

/// Numbers, times, counts and logs every request.
pub(crate) async fn observe(
    State(app): State<Arc<App>>,
    mut request: Request,
    next: Next,
) -> Response {
    static LAST_ID: AtomicU64 = AtomicU64::new(0);
    let id = LAST_ID.fetch_add(1, Ordering::Relaxed) + 1;
    let (hops, is_bench) = (hops(request.headers()), is_bench(request.headers()));
    let received = Received { id, at: Instant::now(), hops, is_bench };
    request.extensions_mut().insert(received);
    let route = route_of(&request);
    let method = request.method().clone();
    let mut response = if received.hops > HOPS_MAX {
        Refusal::Loop { hops: received.hops }.into_response()
    } else {
        next.run(request).await
    };
    let status = response.status().as_u16();
    app.metrics.request(&route, status);
    let ms = received.at.elapsed().as_millis() as u64;
    if route == now::NOW || app.now.has(id) {
        tracing::debug!(id = received.id, %method, route, status, ms, "request");
    } else {
        tracing::info!(id = received.id, %method, route, status, ms, "request");
    }
    if let Ok(id) = HeaderValue::try_from(format!("hob-{}", received.id)) {
        response.headers_mut().insert(HOB_REQUEST_ID, id.clone());
        response.headers_mut().insert(REQUEST_ID, id);
    }
    response
}

fn hops(headers: &HeaderMap) -> u32 {
    let said = headers.get(HOPS).and_then(|hops| hops.to_str().ok()?.parse().ok());
    said.unwrap_or(0)
}

fn is_bench(headers: &HeaderMap) -> bool {
    headers.get(USER_AGENT).is_some_and(|who| who.as_bytes().starts_with(BENCH))
}

/// The route's pattern, never the path: a path can hold anything, and would make endless metrics.
fn route_of(request: &Request) -> String {
    let Some(matched) = request.extensions().get::<MatchedPath>() else {
        return "other".to_owned();
    };
    let path = matched.as_str();
    path.strip_prefix("/v1").filter(|rest| rest.starts_with('/')).unwrap_or(path).to_owned()
}

/// The whole body of a JSON request, within the limits.
pub(crate) async fn read_json(
    headers: &HeaderMap,
    body: Body,
    limits: &Limits,
) -> Result<Bytes, Refusal> {
    check_type(headers)?;
    let bytes_max = limits.body_bytes_max;
    // What says that it is too large need not be read to be believed.
    if announced(headers).is_some_and(|bytes| bytes > bytes_max as u64) {
        return Err(Refusal::BodyTooLarge { bytes_max });
    }
    let time_max = limits.read_time_max;
    let read = timeout(time_max, to_bytes(body, bytes_max)).await;
    let read = read.map_err(|_| Refusal::BodyTooSlow { time_max })?;
    read.map_err(|error| {
        let too_large = error.source().is_some_and(|source| source.is::<LengthLimitError>());
        if too_large { Refusal::BodyTooLarge { bytes_max } } else { Refusal::BodyBrokenOff }
    })
}

/// No type at all is taken for JSON; another one is a client's mistake, or a form on a foreign page.
fn check_type(headers: &HeaderMap) -> Result<(), Refusal> {
    let Some(value) = headers.get(CONTENT_TYPE) else { return Ok(()) };
    let got = String::from_utf8_lossy(value.as_bytes()).to_ascii_lowercase();
    let essence = got.split(';').next().unwrap_or_default().trim();
    if essence == "application/json" || essence.ends_with("+json") {
        return Ok(());
    }
    // What `curl -d` says when nobody tells it otherwise, as Ollama's manuals have it.
    if essence == "application/x-www-form-urlencoded" && !is_browsers(headers) {
        return Ok(());
    }
    Err(Refusal::NotJson { got })
}

/// A page cannot keep its browser from saying at least one of these of a form.
fn is_browsers(headers: &HeaderMap) -> bool {
    [ORIGIN, REFERER, HeaderName::from_static("sec-fetch-site")]
        .iter()
        .any(|name| headers.contains_key(name))
}

fn announced(headers: &HeaderMap) -> Option<u64> {
    headers.get(CONTENT_LENGTH)?.to_str().ok()?.parse().ok()
}
