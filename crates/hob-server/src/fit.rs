//! `/api/fit`: where a model would live on a machine, and how fast it would be.
//! [`FitDesk`] knows machines and models; this file checks what the caller may see.

use std::fmt;
use std::sync::Arc;

use axum::Router;
use axum::extract::rejection::QueryRejection;
use axum::extract::{Extension, Query, Request, State};
use axum::http::header::{CACHE_CONTROL, CONTENT_TYPE};
use axum::middleware::from_fn_with_state;
use axum::response::{IntoResponse, Response};
use axum::routing::get;
use hob_core::fit::FitError;
use hob_wire::{
    FitAnswer, FitModel, FitRequest, WireError, fit_machines, fit_models, parse_fit,
    parse_fit_query,
};

use crate::asking::read_wish;
use crate::failure::ApiError;
use crate::guard::check_key;
use crate::headers::{JSON, answer_headers, insert_ignored};
use crate::keys::Caller;
use crate::router::App;

/// Machines and models by name. Methods may read headers and query the system, so they run on a blocking thread.
pub trait FitDesk: fmt::Debug + Send + Sync {
    /// The machine that hob runs on comes first.
    fn machines(&self) -> Vec<String>;

    fn models(&self) -> Vec<FitModel>;

    /// Whether the model is in the public table. For other names the caller's key decides.
    fn is_published(&self, model: &str) -> bool;

    /// Assesses a model on a machine.
    ///
    /// # Errors
    /// A name is unknown, or the model cannot be assessed.
    fn assess(&self, request: &FitRequest) -> Result<FitAnswer, Unanswerable>;
}

/// Why a model cannot be assessed on a machine.
#[derive(Clone, Debug, PartialEq, thiserror::Error)]
pub enum Unanswerable {
    #[error("there is no {field} '{name}' here{}", nearest(.near))]
    Unknown { field: &'static str, name: String, near: Vec<String> },
    #[error("{model} cannot be read: {reason}")]
    Unreadable { model: String, reason: String },
    #[error("{model}: {error}")]
    Impossible { model: String, error: FitError },
}

fn nearest(near: &[String]) -> String {
    if near.is_empty() { String::new() } else { format!("; the nearest are {}", near.join(", ")) }
}

type Desk = Extension<Arc<dyn FitDesk>>;

/// Empty without a desk.
pub(crate) fn routes(app: &Arc<App>, desk: Option<&Arc<dyn FitDesk>>) -> Router<Arc<App>> {
    let Some(desk) = desk else { return Router::new() };
    Router::new()
        .route("/api/fit", get(by_address).post(by_body))
        .route("/api/fit/machines", get(machines))
        .route("/api/fit/models", get(models))
        .layer(Extension(Arc::clone(desk)))
        .route_layer(from_fn_with_state(Arc::clone(app), check_key))
}

/// `GET /api/fit`, so that a URL can be shared.
async fn by_address(
    State(app): State<Arc<App>>,
    desk: Desk,
    caller: Caller,
    query: Result<Query<Vec<(String, String)>>, QueryRejection>,
) -> Result<Response, ApiError> {
    let Query(pairs) = query.map_err(|rejected| WireError::Invalid {
        field: "query",
        reason: format!("cannot be read: {}", rejected.body_text()),
    })?;
    answer(&app, desk, &caller, parse_fit_query(&pairs)?).await
}

/// `POST /api/fit`.
async fn by_body(
    State(app): State<Arc<App>>,
    desk: Desk,
    request: Request,
) -> Result<Response, ApiError> {
    let (caller, asked) = read_wish(&app, request, parse_fit).await?;
    answer(&app, desk, &caller, asked).await
}

async fn answer(
    app: &App,
    Extension(desk): Desk,
    caller: &Caller,
    request: FitRequest,
) -> Result<Response, ApiError> {
    // A caller learns only about models that it may use.
    if !desk.is_published(&request.model) {
        caller.check(app, &request.model)?;
    }
    let mut headers = answer_headers(JSON);
    insert_ignored(&mut headers, &request.ignored);
    let answered = blocking(move || desk.assess(&request)).await??;
    Ok((headers, answered.to_json()).into_response())
}

/// `GET /api/fit/machines`.
async fn machines(Extension(desk): Desk) -> Result<Response, ApiError> {
    let names = blocking(move || desk.machines()).await?;
    Ok(json(fit_machines(&names)))
}

/// `GET /api/fit/models`: known models, and the stored ones that this caller may use.
async fn models(Extension(desk): Desk, caller: Caller) -> Result<Response, ApiError> {
    let mut models = blocking(move || desk.models()).await?;
    models.retain(|model| !model.installed || caller.allows(&model.name));
    Ok(json(fit_models(&models)))
}

/// # Errors
/// The task panicked; the message stays internal.
async fn blocking<T: Send + 'static>(
    work: impl FnOnce() -> T + Send + 'static,
) -> Result<T, ApiError> {
    tokio::task::spawn_blocking(work).await.map_err(|_| ApiError::FitFailed)
}

fn json(body: String) -> Response {
    ([(CONTENT_TYPE, JSON), (CACHE_CONTROL, "no-store")], body).into_response()
}
