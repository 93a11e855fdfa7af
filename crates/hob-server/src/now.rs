//! `GET /api/hob/now` and `GET /api/hob/requests/{id}`: running and ended requests, and statistics.
//! A key that is restricted to some names sees only its own requests.

use axum::Router;
use axum::response::Response;
use hob_wire::{NowView, RequestView, UpstreamList, operations};

use crate::api_error::ApiError;
use crate::context::RequestContext;
use crate::documented_routes::DocumentedRoutes as _;
use crate::guard::KeyRule;
use crate::headers::uncached_json;
use crate::in_flight::queue;
use crate::observe::NamePath;
use crate::{lifecycle, routes};

/// Maximum rows of running requests. The page requests this every second.
const RUNNING_SHOWN_MAX: usize = 200;
const ENDED_SHOWN_MAX: usize = 20;

pub(crate) fn routes() -> Router {
    Router::new()
        .at(&operations::NOW, now)
        .at(&operations::REQUEST, request)
        .route_layer(KeyRule::Required)
}

async fn now(context: RequestContext) -> Response {
    let (registry, caller) = (context.registry(), &context.caller);
    let in_flight = &context.services.in_flight;
    let running = in_flight.running(caller);
    let mut requests: Vec<RequestView> = running.iter().map(|one| one.view(registry)).collect();
    let queue = queue(&requests, registry);
    requests.truncate(RUNNING_SHOWN_MAX);
    let ended = in_flight.ended(caller);
    uncached_json(hob_wire::now(&NowView {
        requests,
        recent: ended.iter().take(ENDED_SHOWN_MAX).map(|one| one.view()).collect(),
        aliases: in_flight.last_hour(caller),
        models: lifecycle::entries(registry, caller),
        upstreams: UpstreamList::of(routes::upstream_views(registry, caller)).upstreams,
        queue,
    }))
}

/// Finds a request by its number, with or without the `hob-` prefix of headers.
async fn request(context: RequestContext, NamePath(id): NamePath) -> Result<Response, ApiError> {
    let number = id.strip_prefix("hob-").unwrap_or(&id).parse::<u64>().ok();
    let view = number.and_then(|number| find(&context, number));
    let view = view.ok_or(ApiError::NoSuchRequest { id })?;
    Ok(uncached_json(hob_wire::request(&view)))
}

/// Checks running requests first: one that ends meanwhile is then found among the ended ones.
fn find(context: &RequestContext, id: u64) -> Option<RequestView> {
    let in_flight = &context.services.in_flight;
    let running = in_flight.running(&context.caller);
    if let Some(one) = running.iter().find(|one| one.id == id) {
        return Some(one.view(context.registry()));
    }
    in_flight.ended(&context.caller).iter().find(|one| one.id() == id).map(|one| one.view())
}
