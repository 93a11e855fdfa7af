//! `GET /api/hob/now` and `GET /api/hob/requests/{id}`: what runs, what ended, and how it went.
//! A key that may use some names only sees its own requests, and nobody else's numbers.

use std::sync::Arc;
use std::time::Instant;

use axum::Router;
use axum::extract::State;
use axum::http::header::{CACHE_CONTROL, CONTENT_TYPE};
use axum::middleware::from_fn_with_state;
use axum::response::{IntoResponse, Response};
use axum::routing::get;
use hob_wire::{AliasView, NowView, RequestView};

use super::{locked, views};
use crate::failure::ApiError;
use crate::guard::check_key;
use crate::headers::JSON;
use crate::keys::Caller;
use crate::requests::NamePath;
use crate::router::App;
use crate::{lifecycle, routes};

/// Rows of requests that run: nobody reads more, and the page asks every second.
const RUNNING_SHOWN_MAX: usize = 200;
const ENDED_SHOWN_MAX: usize = 20;

/// The page asks for it all day, so it is no news in the log.
pub(crate) const NOW: &str = "/api/hob/now";

pub(crate) fn routes(app: &Arc<App>) -> Router<Arc<App>> {
    Router::new()
        .route(NOW, get(now))
        .route("/api/hob/requests/{id}", get(request))
        .route_layer(from_fn_with_state(Arc::clone(app), check_key))
}

async fn now(State(app): State<Arc<App>>, caller: Caller) -> Response {
    let registry = app.registry();
    let running = app.now.running(&caller);
    let mut requests: Vec<RequestView> = running.iter().map(|one| one.view(&registry)).collect();
    let queue = views::queue(&requests, &registry);
    requests.truncate(RUNNING_SHOWN_MAX);
    let ended = app.now.ended(&caller);
    json(hob_wire::now(&NowView {
        requests,
        recent: ended.iter().take(ENDED_SHOWN_MAX).map(|one| one.view()).collect(),
        aliases: aliases(&app, &caller),
        models: lifecycle::entries(&registry, &caller),
        upstreams: routes::upstream_views(&registry, &caller),
        queue,
    }))
}

/// By its number, with or without the `hob-` that stands before it in headers.
async fn request(
    State(app): State<Arc<App>>,
    caller: Caller,
    NamePath(id): NamePath,
) -> Result<Response, ApiError> {
    let number = id.strip_prefix("hob-").unwrap_or(&id).parse::<u64>().ok();
    let view = number.and_then(|number| find(&app, &caller, number));
    let view = view.ok_or(ApiError::NoSuchRequest { id })?;
    Ok(json(hob_wire::request(&view)))
}

/// Among those that run first: one that ends meanwhile is found among those that ended.
fn find(app: &App, caller: &Caller, id: u64) -> Option<RequestView> {
    let running = app.now.running(caller);
    if let Some(one) = running.iter().find(|one| one.id == id) {
        return Some(one.view(&app.registry()));
    }
    let ended = app.now.ended(caller);
    ended.iter().find(|one| one.running.id == id).map(|one| one.view())
}

fn aliases(app: &App, caller: &Caller) -> Vec<AliasView> {
    let seen = locked(&app.now.hour).seen(Instant::now(), |key| caller.sees(key));
    seen.into_iter().map(|(name, heard)| heard.into_view(name)).collect()
}

fn json(body: String) -> Response {
    ([(CONTENT_TYPE, JSON), (CACHE_CONTROL, "no-store")], body).into_response()
}
