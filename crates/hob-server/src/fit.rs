//! `/api/fit`: whether a model fits on a machine, and how fast it would be.
//! [`FitService`] has the machines and models. This file decides which caller may ask about which model.

use std::sync::Arc;

use axum::Router;
use axum::extract::{Extension, Request};
use axum::response::{IntoResponse, Response};
use hob_wire::{FitRequest, fit_machines, fit_models, operations, parse_fit, parse_fit_query};

use crate::api_error::ApiError;
use crate::context::RequestContext;
use crate::documented_routes::DocumentedRoutes as _;
use crate::fit_service::FitService;
use crate::guard::KeyRule;
use crate::headers::{JSON, answer_headers, insert_ignored, uncached_json};
use crate::observe::QueryPairs;
use crate::request_body::read_command;
use crate::teams::blocking;

type Service = Extension<Arc<dyn FitService>>;

/// Without a service there are no routes.
pub(crate) fn routes(service: Option<&Arc<dyn FitService>>) -> Router {
    let Some(service) = service else { return Router::new() };
    Router::new()
        .at(&operations::FIT_BY_QUERY, by_address)
        .at(&operations::FIT, by_body)
        .at(&operations::FIT_MACHINES, machines)
        .at(&operations::FIT_MODELS, models)
        .layer(Extension(Arc::clone(service)))
        .route_layer(KeyRule::Required)
}

/// `GET /api/fit`: parameters in the address, so that it can be shared.
async fn by_address(
    context: RequestContext,
    service: Service,
    QueryPairs(pairs): QueryPairs,
) -> Result<Response, ApiError> {
    answer(&context, service, parse_fit_query(&pairs)?).await
}

/// `POST /api/fit`.
async fn by_body(service: Service, request: Request) -> Result<Response, ApiError> {
    let (context, body) = read_command(request, parse_fit).await?;
    answer(&context, service, body).await
}

async fn answer(
    context: &RequestContext,
    service: Service,
    request: FitRequest,
) -> Result<Response, ApiError> {
    // A caller learns only about names that its key may use.
    if !service.is_published(&request.model) {
        context.caller.check(&request.model)?;
    }
    let mut headers = answer_headers(JSON);
    insert_ignored(&mut headers, &request.ignored);
    let answered = blocking(&service, move |service| Ok(service.assess(&request))).await??;
    Ok((headers, answered.to_json()).into_response())
}

/// `GET /api/fit/machines`.
async fn machines(service: Service) -> Result<Response, ApiError> {
    let names = blocking(&service, |service| Ok(service.machines())).await?;
    Ok(uncached_json(fit_machines(&names)))
}

/// `GET /api/fit/models`: the installed models that this caller may use.
async fn models(service: Service, context: RequestContext) -> Result<Response, ApiError> {
    let mut models = blocking(&service, |service| Ok(service.models())).await?;
    models.retain(|model| !model.installed || context.caller.allows(&model.name));
    Ok(uncached_json(fit_models(&models)))
}
