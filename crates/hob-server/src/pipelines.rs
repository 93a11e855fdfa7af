//! The routes of Open WebUI's Pipelines: teams are pipelines, and their limits are valves.
//! [`PipelineService`] has the team files. This file decides who may change them.

use std::sync::Arc;

use axum::Router;
use axum::extract::{Extension, Request};
use axum::http::Method;
use axum::http::header::CONTENT_TYPE;
use axum::middleware::{Next, map_response};
use axum::response::{IntoResponse, Response};
use hob_wire::{
    operations, parse_pipeline_address, parse_pipeline_name, parse_valves, pipeline_changed,
    pipeline_error, pipeline_message,
};

use crate::api_error::{ApiError, with_error_as};
use crate::context::RequestContext;
use crate::documented_routes::DocumentedRoutes as _;
use crate::guard::KeyRule;
use crate::headers::{JSON, uncached_json};
use crate::observe::NamePath;
use crate::pipeline_service::PipelineService;
use crate::request_body::{read_command, read_command_up_to};
use crate::teams::blocking;
use crate::upload::read_file;

/// Bytes of a team file.
const TEAM_BYTES_MAX: usize = 1 << 20;

type Service = Extension<Arc<dyn PipelineService>>;

type Answer = Result<Response, ApiError>;

/// Answers at the root as a Pipelines server does, which is how clients know one. Only for an address of its own.
pub(crate) async fn answer_root(request: Request, next: Next) -> Response {
    if request.method() == Method::GET && request.uri().path() == "/" {
        return ([(CONTENT_TYPE, JSON)], r#"{"status":true}"#).into_response();
    }
    next.run(request).await
}

/// Without a service there are no routes.
pub(crate) fn routes(service: Option<&Arc<dyn PipelineService>>) -> Router {
    let Some(service) = service else { return Router::new() };
    let of_chats = Router::new()
        .at(&operations::PIPELINES, list)
        .at(&operations::INLET, inlet)
        .at(&operations::OUTLET, outlet)
        .route_layer(KeyRule::RequiredForChat);
    Router::new()
        .at(&operations::RELOAD_PIPELINES, reload)
        .at(&operations::ADD_PIPELINE, add)
        .at(&operations::UPLOAD_PIPELINE, upload)
        .at(&operations::DELETE_PIPELINE, delete)
        .at(&operations::VALVES, valves)
        .at(&operations::VALVES_SPEC, spec)
        .at(&operations::UPDATE_VALVES, update)
        .route_layer(KeyRule::Required)
        .merge(of_chats)
        .layer(Extension(Arc::clone(service)))
        .layer(map_response(with_detail))
}

/// Open WebUI shows the member `detail` of an error.
async fn with_detail(response: Response) -> Response {
    with_error_as(pipeline_error, response)
}

/// `GET /v1/pipelines`.
async fn list(context: RequestContext, service: Service) -> Answer {
    let mut ids = blocking(&service, |service| Ok(service.teams())).await?;
    ids.retain(|id| context.caller.allows(id));
    Ok(uncached_json(hob_wire::pipelines(&ids)))
}

/// `POST /v1/pipelines/reload`.
async fn reload(context: RequestContext, service: Service) -> Answer {
    context.caller.check_sees_all("team files and their mistakes")?;
    let mistakes = blocking(&service, |service| Ok(service.mistakes())).await?;
    let read = "team files are read within a second of each change";
    Ok(uncached_json(pipeline_message(&match &mistakes[..] {
        [] => format!("{read}; they have no mistakes"),
        mistakes => format!("{read}; they have mistakes: {}", mistakes.join("; ")),
    })))
}

/// `POST /v1/pipelines/add`.
async fn add(service: Service, request: Request) -> Answer {
    let (context, url) = read_command(request, parse_pipeline_address).await?;
    context.caller.check_changes_teams()?;
    context.caller.count_request()?;
    let (name, text) = service.download(&url).await?;
    added(&service, name, text).await
}

/// `POST /v1/pipelines/upload`.
async fn upload(context: RequestContext, service: Service, request: Request) -> Answer {
    context.caller.check_changes_teams()?;
    let (parts, body) = request.into_parts();
    let file = read_file(&context, (&parts.headers, body), TEAM_BYTES_MAX).await?;
    added(&service, file.name.unwrap_or_default(), file.bytes.to_vec()).await
}

async fn added(service: &Service, name: String, text: Vec<u8>) -> Answer {
    let id = blocking(service, move |service| service.add(&name, &text)).await?;
    Ok(uncached_json(pipeline_changed(&id, "the team is served within a second")))
}

/// `DELETE /v1/pipelines/delete`.
async fn delete(service: Service, request: Request) -> Answer {
    let (context, id) = read_command(request, parse_pipeline_name).await?;
    context.caller.check_changes_teams()?;
    let deleted = id.clone();
    blocking(&service, move |service| service.delete(&deleted)).await?;
    Ok(uncached_json(pipeline_changed(&id, "the file stays, with .disabled behind its name")))
}

/// `GET /v1/{id}/valves`.
async fn valves(context: RequestContext, service: Service, NamePath(id): NamePath) -> Answer {
    context.caller.check(&id)?;
    valves_answer(&service, id).await
}

/// `GET /v1/{id}/valves/spec`.
async fn spec(context: RequestContext, service: Service, NamePath(id): NamePath) -> Answer {
    context.caller.check(&id)?;
    let valves = blocking(&service, move |service| service.valves(&id)).await?;
    Ok(uncached_json(hob_wire::valves_spec(&valves)))
}

/// `POST /v1/{id}/valves/update`.
async fn update(service: Service, NamePath(id): NamePath, request: Request) -> Answer {
    let (context, changes) = read_command(request, parse_valves).await?;
    context.caller.check_changes_teams()?;
    let changed = id.clone();
    blocking(&service, move |service| service.set_valves(&changed, &changes)).await?;
    valves_answer(&service, id).await
}

async fn valves_answer(service: &Service, id: String) -> Answer {
    let valves = blocking(service, move |service| service.valves(&id)).await?;
    Ok(uncached_json(hob_wire::valves(&valves)))
}

/// `POST /v1/{id}/filter/inlet`.
async fn inlet(NamePath(id): NamePath, request: Request) -> Answer {
    let (context, body) = read_command_up_to(usize::MAX, request, hob_wire::inlet).await?;
    context.caller.check(&id)?;
    Ok(uncached_json(body))
}

/// `POST /v1/{id}/filter/outlet`.
async fn outlet(NamePath(id): NamePath, request: Request) -> Answer {
    let (context, body) = read_command_up_to(usize::MAX, request, hob_wire::outlet).await?;
    context.caller.check(&id)?;
    Ok(uncached_json(body))
}
