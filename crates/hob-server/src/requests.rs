//! Every request from outside: its number, its clock and its line in the log.
//! Never its text: what people have read aloud, or ask, is theirs.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Instant;

use axum::extract::rejection::PathRejection;
use axum::extract::{FromRequestParts, MatchedPath, Path, Request, State};
use axum::http::header::USER_AGENT;
use axum::http::request::Parts;
use axum::http::{Extensions, HeaderMap, HeaderName, HeaderValue};
use axum::middleware::Next;
use axum::response::{IntoResponse, Response};

use crate::failure::ApiError;
use crate::now;
use crate::router::App;

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

/// The name at the end of a path.
pub(crate) struct NamePath(pub(crate) String);

impl<S: Send + Sync> FromRequestParts<S> for NamePath {
    type Rejection = ApiError;

    async fn from_request_parts(parts: &mut Parts, state: &S) -> Result<NamePath, ApiError> {
        let Path(name) = Path::from_request_parts(parts, state)
            .await
            .map_err(|_: PathRejection| ApiError::PathNotUtf8)?;
        Ok(NamePath(name))
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
        ApiError::Loop { hops: received.hops }.into_response()
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
