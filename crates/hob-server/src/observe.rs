//! The outermost layer: makes the context of every request, counts it, and logs one line for it.
//! Logs never contain the text of requests or answers.

use std::convert::Infallible;
use std::future::ready;
use std::sync::Arc;
use std::task::{Context, Poll};

use axum::extract::rejection::PathRejection;
use axum::extract::{FromRequestParts, MatchedPath, Path, Query, Request};
use axum::http::request::Parts;
use axum::http::{HeaderName, HeaderValue, Method};
use axum::response::{IntoResponse, Response};
use futures::future::BoxFuture;
use hob_wire::operations::{NOW, is_ollamas};
use hob_wire::{WireError, ollama_error};
use tower::{Layer, Service};

use crate::api_error::{ApiError, RefusedKey, with_error_as};
use crate::context::{RequestContext, Services, next_id};
use crate::guard::{Guard, preflight, share};
use crate::reloadable_state::ReloadableState;

const REQUEST_ID: HeaderName = HeaderName::from_static("x-request-id");
const HOB_REQUEST_ID: HeaderName = HeaderName::from_static("x-hob-request-id");
const HOPS_MAX: u32 = 4;
/// Routes that the page polls, as [`route_of`] writes them.
const POLLED: [&str; 3] = [NOW.path, "/teams", "/runs"];

/// What a path names: one name, or two.
pub(crate) struct NamePath<T = String>(pub(crate) T);

impl<S: Send + Sync, T> FromRequestParts<S> for NamePath<T>
where
    Path<T>: FromRequestParts<S, Rejection = PathRejection>,
{
    type Rejection = ApiError;

    async fn from_request_parts(parts: &mut Parts, state: &S) -> Result<NamePath<T>, ApiError> {
        let path = Path::<T>::from_request_parts(parts, state).await;
        path.map(|Path(names)| NamePath(names)).map_err(|_| ApiError::PathNotUtf8)
    }
}

/// The pairs of an address's query.
pub(crate) struct QueryPairs(pub(crate) Vec<(String, String)>);

impl<S: Send + Sync> FromRequestParts<S> for QueryPairs {
    type Rejection = ApiError;

    async fn from_request_parts(parts: &mut Parts, state: &S) -> Result<QueryPairs, ApiError> {
        let query = Query::from_request_parts(parts, state).await;
        let Query(pairs) = query.map_err(|rejected| {
            WireError::invalid("query", format!("cannot be read: {}", rejected.body_text()))
        })?;
        Ok(QueryPairs(pairs))
    }
}

/// Numbers, times, counts, checks and logs every request. One layer for all of it, and not one of axum's function layers:
/// those copy all layers below them for every request.
#[derive(Clone)]
pub(crate) struct Observe(Arc<ObserveShared>);

struct ObserveShared {
    state: ReloadableState,
    services: Arc<Services>,
    guard: Guard,
}

impl Observe {
    pub(crate) fn new(state: ReloadableState, services: Arc<Services>, guard: Guard) -> Observe {
        Observe(Arc::new(ObserveShared { state, services, guard }))
    }
}

impl<S> Layer<S> for Observe {
    type Service = ObservedRoute<S>;

    fn layer(&self, inner: S) -> ObservedRoute<S> {
        ObservedRoute { shared: Arc::clone(&self.0), inner }
    }
}

/// A route below [`Observe`].
#[derive(Clone)]
pub(crate) struct ObservedRoute<S> {
    shared: Arc<ObserveShared>,
    inner: S,
}

impl<S> Service<Request> for ObservedRoute<S>
where
    S: Service<Request, Response = Response, Error = Infallible>,
    S::Future: Send + 'static,
{
    type Response = Response;
    type Error = Infallible;
    type Future = BoxFuture<'static, Result<Response, Infallible>>;

    fn poll_ready(&mut self, cx: &mut Context<'_>) -> Poll<Result<(), Infallible>> {
        self.inner.poll_ready(cx)
    }

    fn call(&mut self, mut request: Request) -> Self::Future {
        let ObserveShared { state, services, guard } = &*self.shared;
        let (config, services) = (state.config(), Arc::clone(services));
        let context = RequestContext::new(next_id(), request.headers(), config, services);
        request.extensions_mut().insert(context.clone());
        let hops = context.trace.hops();
        let (route, method) = (route_of(&request), request.method().clone());
        let reader = guard.reader(request.headers());
        let seen = SeenRequest { context, route, method, reader };
        let checked = match hops > HOPS_MAX {
            true => Err(ApiError::Loop { hops }),
            false => guard.check(&request),
        };
        let early = match checked {
            Ok(()) if seen.reader.is_some() => preflight(&request),
            Ok(()) => None,
            Err(refused) => Some(refused.into_response()),
        };
        match early {
            None => {
                let answer = self.inner.call(request);
                Box::pin(async move { answer.await.map(|response| seen.answered(response)) })
            }
            Some(response) => Box::pin(ready(Ok::<_, Infallible>(seen.answered(response)))),
        }
    }
}

/// What is counted and logged of a request when it is answered.
struct SeenRequest {
    context: RequestContext,
    route: String,
    method: Method,
    /// The origin that may read the answer.
    reader: Option<HeaderValue>,
}

impl SeenRequest {
    fn answered(self, mut response: Response) -> Response {
        let SeenRequest { context, route, method, reader } = self;
        let (id, services) = (context.id, &context.services);
        let status = response.status().as_u16();
        // Here, because the guard and the router refuse requests before their route sees them.
        if status >= 400 && is_ollamas(&route) {
            response = with_error_as(|error| ollama_error(&error.message), response);
        }
        services.metrics.request(&route, status);
        if let Some(RefusedKey(code)) = response.extensions().get() {
            services.metrics.key_refused(context.caller.key().unwrap_or_default(), code);
        }
        let ms = context.received_at.elapsed().as_millis() as u64;
        let is_polled = method == Method::GET && POLLED.contains(&route.as_str());
        if is_polled || services.in_flight.has(id) {
            tracing::debug!(id, %method, route, status, ms, "request");
        } else {
            tracing::info!(id, %method, route, status, ms, "request");
        }
        if let Some(origin) = reader {
            share(response.headers_mut(), origin);
        }
        if let Ok(id) = HeaderValue::try_from(format!("hob-{id}")) {
            response.headers_mut().insert(HOB_REQUEST_ID, id.clone());
            response.headers_mut().insert(REQUEST_ID, id);
        }
        response
    }
}

/// The route's pattern, not the path: paths can contain anything, and would create endless metrics.
fn route_of(request: &Request) -> String {
    let Some(matched) = request.extensions().get::<MatchedPath>() else {
        return "other".to_owned();
    };
    let path = matched.as_str();
    path.strip_prefix("/v1").filter(|rest| rest.starts_with('/')).unwrap_or(path).to_owned()
}
