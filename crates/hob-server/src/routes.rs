//! `GET /api/hob/routes/{name}` and `GET /api/hob/upstreams`: the targets of a name, and the other servers.
//! Views come from memory: no server is contacted.

use axum::Router;
use axum::response::Response;
use hob_core::routing::{RouteView, TargetStatus, TargetView, UpstreamView};
use hob_core::{AnyModel, Chat, Kind, Registry};
use hob_wire::{AliasRoute, UpstreamList, operations};

use crate::api_error::ApiError;
use crate::context::RequestContext;
use crate::documented_routes::DocumentedRoutes as _;
use crate::guard::KeyRule;
use crate::headers::json;
use crate::keys::Caller;
use crate::observe::NamePath;

pub(crate) fn routes() -> Router {
    Router::new()
        .at(&operations::ROUTE, one)
        .at(&operations::UPSTREAMS, all)
        .route_layer(KeyRule::Required)
}

/// A model that is not an alias is its own only target.
async fn one(context: RequestContext, NamePath(name): NamePath) -> Result<Response, ApiError> {
    context.caller.check(&name)?;
    let registry = context.registry();
    // A request finds a model of this hob before one of another server. No alias has its own name among its targets.
    let is_found = |view: &RouteView| {
        !registry.has(&name) || view.targets.iter().all(|target| target.name != name)
    };
    let view = registry.upstreams().and_then(|upstreams| upstreams.route(&name)).filter(is_found);
    let view = match (view, registry.find::<Chat>(&name)) {
        (Some(view), _) => view,
        (None, Ok(model)) => itself(&name, &*model),
        (None, Err(unknown)) => {
            let kinds = [Kind::Speech, Kind::Transcription];
            let model = kinds.into_iter().find_map(|kind| registry.find_any(kind, &name));
            itself(&name, &*model.ok_or(ApiError::UnknownModel(unknown))?)
        }
    };
    Ok(json(AliasRoute::of(view).to_json()))
}

async fn all(context: RequestContext) -> Result<Response, ApiError> {
    context.caller.check_sees_all("upstreams, their addresses and their models")?;
    Ok(json(UpstreamList::of(upstream_views(context.registry(), &context.caller)).to_json()))
}

/// Empty for a key that is restricted to some names.
pub(crate) fn upstream_views(registry: &Registry, caller: &Caller) -> Vec<UpstreamView> {
    if !caller.sees_all() {
        return Vec::new();
    }
    registry.upstreams().map(|upstreams| upstreams.upstreams()).unwrap_or_default()
}

fn itself(name: &str, model: &dyn AnyModel) -> RouteView {
    let view = TargetView {
        name: model.name().to_owned(),
        status: TargetStatus::Active,
        state: model.state(),
        context_tokens: model.context_tokens().filter(|tokens| *tokens > 0),
        in_flight: model.in_flight(),
        last_failure: None,
        thinks_anyway: false,
    };
    RouteView { alias: name.to_owned(), strategy: "order", targets: vec![view] }
}
