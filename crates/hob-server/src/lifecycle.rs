//! hob's own routes for loaded models: list, load and unload.
//! Models of other servers are rejected, because hob does not load them.

use std::convert::Infallible;
use std::sync::Arc;
use std::time::Duration;

use axum::Router;
use axum::body::Body;
use axum::extract::Request;
use axum::response::{IntoResponse, Response};
use futures::future::BoxFuture;
use futures::stream;
use hob_core::{
    AnyModel, Chat, KeepAlive, Kind, ModelLifecycle, ModelState, RegisteredModel, Registry, Speech,
    Transcription,
};
use hob_wire::{
    ResidenceRequest, ResidentModel, loading_line, operations, parse_residence, resident, residents,
};
use tokio::time::timeout;

use crate::api_error::ApiError;
use crate::context::RequestContext;
use crate::documented_routes::DocumentedRoutes as _;
use crate::guard::KeyRule;
use crate::headers::{JSON, LINES, answer_headers, insert_ignored, json};
use crate::keys::Caller;
use crate::options::ServerOptions;
use crate::request_body::read_command;

/// Interval of progress lines during a load.
const PROGRESS_EVERY: Duration = Duration::from_millis(250);

type Lifecycle = Arc<dyn ModelLifecycle>;

pub(crate) fn routes() -> Router {
    Router::new()
        .at(&operations::RESIDENTS, list)
        .at(&operations::LOAD, load)
        .at(&operations::UNLOAD, unload_now)
        .route_layer(KeyRule::Required)
}

/// Loads a model, and sets how long it stays loaded. Does nothing for a model of another server.
///
/// # Errors
/// The load fails, or takes too long.
pub(crate) async fn load_if_ours(
    lifecycle: Option<&Lifecycle>,
    keep_alive: Option<KeepAlive>,
    options: &ServerOptions,
) -> Result<(), ApiError> {
    let Some(lifecycle) = lifecycle else { return Ok(()) };
    if let Some(time) = keep_alive {
        lifecycle.keep_alive(time);
    }
    let time_max = options.token_time_max;
    let loaded = timeout(time_max, lifecycle.load()).await;
    Ok(loaded.map_err(|_| ApiError::ResidenceStalled { time_max })??)
}

/// Unloads a model, now or when its requests have ended. Ends no answer, also if a request begins meanwhile.
///
/// # Errors
/// The model belongs to another server, or does not unload in time.
pub(crate) async fn unload_when_idle(
    model: &RegisteredModel<Chat>,
    options: &ServerOptions,
) -> Result<(), ApiError> {
    let lifecycle = model.lifecycle.as_ref();
    let lifecycle = lifecycle.ok_or_else(|| ApiError::NotOurs { name: model.name.clone() })?;
    unload_after_answers(lifecycle, options).await
}

async fn unload_after_answers(
    lifecycle: &Lifecycle,
    options: &ServerOptions,
) -> Result<(), ApiError> {
    // Without a loaded model, this ends a load, or the wait for one.
    if lifecycle.state() != ModelState::Ready {
        return unload(lifecycle, options).await;
    }
    let time_max = options.token_time_max;
    let is_gone = timeout(time_max, lifecycle.unload_if_idle()).await;
    if !is_gone.map_err(|_| ApiError::ResidenceStalled { time_max })? {
        lifecycle.keep_alive(KeepAlive::For(Duration::ZERO));
    }
    Ok(())
}

async fn unload(lifecycle: &Lifecycle, options: &ServerOptions) -> Result<(), ApiError> {
    let time_max = options.token_time_max;
    let gone = timeout(time_max, lifecycle.unload()).await;
    gone.map_err(|_| ApiError::ResidenceStalled { time_max })
}

/// A model that this hob loads and unloads.
struct Resident {
    name: String,
    kind: Kind,
    context_tokens: Option<u32>,
    lifecycle: Lifecycle,
}

impl Resident {
    /// `None`: a model of another server.
    fn new(name: &str, model: &dyn AnyModel) -> Option<Resident> {
        Some(Resident {
            name: name.to_owned(),
            kind: model.kind(),
            context_tokens: model.context_tokens(),
            lifecycle: Arc::clone(model.lifecycle()?),
        })
    }

    fn entry(&self) -> ResidentModel {
        let (state, memory_use) = (self.lifecycle.state(), self.lifecycle.memory_use());
        ResidentModel::new(&self.name, self.kind, &state, memory_use, self.context_tokens)
    }
}

/// `GET /api/hob/ps`.
async fn list(context: RequestContext) -> Response {
    json(residents(entries(context.registry(), &context.caller)))
}

/// The models that this caller may use, under the names that it may use.
pub(crate) fn entries(registry: &Registry, caller: &Caller) -> Vec<ResidentModel> {
    let entry = |model: &dyn AnyModel| {
        let name = caller.shown_as(registry, model.name())?;
        Some(Resident::new(name, model)?.entry())
    };
    registry.all().filter_map(entry).collect()
}

/// `POST /api/hob/load`.
async fn load(request: Request) -> Result<Response, ApiError> {
    let (context, command, held) = read(request).await?;
    let (lifecycle, keep_alive) = (Arc::clone(&held.lifecycle), command.keep_alive);
    let mut loading =
        Box::pin(
            async move { load_if_ours(Some(&lifecycle), keep_alive, context.options()).await },
        );
    if !command.reports_progress {
        loading.await?;
        return Ok(loaded(&held, &command));
    }
    // A load that fails at once keeps its own status.
    match timeout(Duration::ZERO, &mut loading).await {
        Ok(done) => done?,
        Err(_) => return Ok(with_progress(LoadProgress { held, loading }, &command)),
    }
    let mut headers = answer_headers(LINES);
    insert_ignored(&mut headers, &command.ignored);
    Ok((headers, resident(&held.entry()) + "\n").into_response())
}

/// `POST /api/hob/unload`: unloads at once, also while requests run. A key for some names ends no answer of another key.
async fn unload_now(request: Request) -> Result<Response, ApiError> {
    let (context, command, held) = read(request).await?;
    match context.caller.sees_all() {
        true => unload(&held.lifecycle, context.options()).await?,
        false => unload_after_answers(&held.lifecycle, context.options()).await?,
    }
    Ok(loaded(&held, &command))
}

async fn read(request: Request) -> Result<(RequestContext, ResidenceRequest, Resident), ApiError> {
    let (context, command) = read_command(request, parse_residence).await?;
    context.caller.check(&command.model)?;
    let held = find(&context, &command.model)?;
    context.caller.count_request()?;
    Ok((context, command, held))
}

/// A model of any kind.
fn find(context: &RequestContext, name: &str) -> Result<Resident, ApiError> {
    let model: Arc<dyn AnyModel> = match context.find::<Chat>(Some(name)) {
        Ok(model) => model,
        Err(error) => match context.find::<Speech>(Some(name)) {
            Ok(model) => model,
            Err(_) => context.find::<Transcription>(Some(name)).map_err(|_| error)?,
        },
    };
    Resident::new(model.name(), &*model).ok_or_else(|| ApiError::NotOurs { name: name.to_owned() })
}

fn loaded(held: &Resident, request: &ResidenceRequest) -> Response {
    let mut headers = answer_headers(JSON);
    insert_ignored(&mut headers, &request.ignored);
    (headers, resident(&held.entry())).into_response()
}

/// A load that runs while its client reads progress lines.
struct LoadProgress {
    held: Resident,
    loading: BoxFuture<'static, Result<(), ApiError>>,
}

fn with_progress(progress: LoadProgress, request: &ResidenceRequest) -> Response {
    let mut headers = answer_headers(LINES);
    insert_ignored(&mut headers, &request.ignored);
    let first = stream::iter([Ok::<_, Infallible>(progress.line())]);
    let rest = stream::unfold(Some(progress), async |progress| {
        let mut progress = progress?;
        let (line, more) = progress.next().await;
        Some((Ok(line), more.then_some(progress)))
    });
    let body = Body::from_stream(futures::StreamExt::chain(first, rest));
    (headers, body).into_response()
}

impl LoadProgress {
    fn line(&self) -> String {
        loading_line(&self.held.lifecycle.state()) + "\n"
    }

    /// The next line, and whether more may follow.
    async fn next(&mut self) -> (String, bool) {
        match timeout(PROGRESS_EVERY, &mut self.loading).await {
            Err(_) => (self.line(), true),
            Ok(Ok(())) => (resident(&self.held.entry()) + "\n", false),
            Ok(Err(error)) => (error.body().to_json() + "\n", false),
        }
    }
}
