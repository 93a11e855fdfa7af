//! `GET /api/hob/routes/{name}` and `GET /api/hob/upstreams`: who would answer, and how the others are.
//! From memory: no server is asked because somebody looks.

use std::sync::Arc;

use axum::Router;
use axum::extract::State;
use axum::http::header::CONTENT_TYPE;
use axum::middleware::from_fn_with_state;
use axum::response::{IntoResponse, Response};
use axum::routing::get;
use hob_core::routing::{RouteView, TargetStatus, TargetView, UpstreamView};
use hob_core::{ChatTarget, Registry, UnknownModel};

use crate::failure::ApiError;
use crate::guard::check_key;
use crate::headers::JSON;
use crate::keys::Caller;
use crate::requests::NamePath;
use crate::router::App;

pub(crate) fn routes(app: &Arc<App>) -> Router<Arc<App>> {
    Router::new()
        .route("/api/hob/routes/{*name}", get(one))
        .route("/api/hob/upstreams", get(all))
        .route_layer(from_fn_with_state(Arc::clone(app), check_key))
}

/// A model that is no alias leads to itself.
async fn one(
    State(app): State<Arc<App>>,
    caller: Caller,
    NamePath(name): NamePath,
) -> Result<Response, ApiError> {
    caller.check(&app, &name)?;
    let registry = app.registry();
    let view = registry.elsewhere().and_then(|elsewhere| elsewhere.route(&name));
    let view = match (view, registry.chat(&name)) {
        (Some(view), _) => view,
        (None, Ok(target)) => itself(&name, &target),
        (None, Err(UnknownModel { name, near })) => {
            return Err(ApiError::UnknownModel(UnknownModel { name, near }));
        }
    };
    Ok(json(hob_wire::route(&view)))
}

async fn all(State(app): State<Arc<App>>, caller: Caller) -> Result<Response, ApiError> {
    caller.check_sees_all(&app, "upstreams, their addresses and their models")?;
    Ok(json(hob_wire::upstreams(&upstream_views(&app.registry(), &caller))))
}

/// None for a key that is for some names only.
pub(crate) fn upstream_views(registry: &Registry, caller: &Caller) -> Vec<UpstreamView> {
    if !caller.sees_all() {
        return Vec::new();
    }
    registry.elsewhere().map(|elsewhere| elsewhere.upstreams()).unwrap_or_default()
}

fn itself(name: &str, target: &ChatTarget) -> RouteView {
    let view = TargetView {
        name: target.name.clone(),
        status: TargetStatus::Active,
        state: target.model.state(),
        context_tokens: Some(target.model.card().context_tokens).filter(|tokens| *tokens > 0),
        in_flight: target.admission.in_flight(),
        last_failure: None,
        thinks_anyway: false,
    };
    RouteView { alias: name.to_owned(), pick: "order", targets: vec![view] }
}

fn json(body: String) -> Response {
    ([(CONTENT_TYPE, JSON)], body).into_response()
}
