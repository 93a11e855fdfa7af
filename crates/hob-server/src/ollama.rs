//! Ollama's routes, for clients that speak nothing else. Each is one of hob's own in other words.
//! Making and moving models is not offered: a model's files are the business of whoever runs hob.

mod answer;
mod embed;
mod lists;

use std::sync::Arc;

use axum::Router;
use axum::body::Body;
use axum::extract::{Request, State};
use axum::http::header::{ACCEPT, CONTENT_TYPE, VARY};
use axum::http::{HeaderMap, HeaderValue};
use axum::middleware::{Next, from_fn_with_state};
use axum::response::{IntoResponse, Response};
use axum::routing::{any, get, post};
use hob_wire::{OllamaDelivery, ollama_error, ollama_success, parse_ollama_named};

use crate::asking::read_wish;
use crate::failure::ApiError;
use crate::guard::{check_key, notice_key};
use crate::headers::{JSON, LINES, answer_headers};
use crate::page;
use crate::router::App;

/// A refusal as Ollama's clients read it: the same status and headers, another envelope.
pub(crate) struct OllamaError(ApiError);

impl<E: Into<ApiError>> From<E> for OllamaError {
    fn from(error: E) -> OllamaError {
        OllamaError(error.into())
    }
}

impl IntoResponse for OllamaError {
    fn into_response(self) -> Response {
        let text = error_text(&self.0);
        let (head, _) = self.0.into_response().into_parts();
        Response::from_parts(head, Body::from(text))
    }
}

/// `{"error": …}`, before an answer and at the end of one that broke off.
fn error_text(refusal: &ApiError) -> String {
    ollama_error(&refusal.body().message)
}

/// All of them, as they stand below the root. What Ollama tells everybody, hob does too; the rest
/// wants the key, where there is one.
pub(crate) fn routes(app: &Arc<App>) -> Router<Arc<App>> {
    let keyed = Router::new()
        .route("/api/show", post(lists::show))
        .route("/api/ps", get(lists::ps))
        .route("/api/chat", post(answer::chat))
        .route("/api/generate", post(answer::generate))
        .route("/api/embed", post(embed::embed))
        .route("/api/embeddings", post(embed::embeddings))
        .route("/api/pull", post(pull))
        .route("/api/create", any(not_offered))
        .route("/api/copy", any(not_offered))
        .route("/api/delete", any(not_offered))
        .route("/api/push", any(not_offered))
        .route("/api/blobs/{digest}", any(not_offered))
        .route_layer(from_fn_with_state(Arc::clone(app), check_key_here));
    Router::new()
        .route("/api/tags", get(lists::tags))
        .route_layer(from_fn_with_state(Arc::clone(app), notice_key))
        .route("/", get(home))
        .route("/api/version", get(lists::version))
        .merge(keyed)
}

async fn check_key_here(
    state: State<Arc<App>>,
    request: Request,
    next: Next,
) -> Result<Response, OllamaError> {
    Ok(check_key(state, request, next).await?)
}

/// `GET /`: the page for people, and what programs ask for to see who is there.
async fn home(request: Request) -> Result<Response, OllamaError> {
    let accept = request.headers().get(ACCEPT).map(|value| value.as_bytes().to_ascii_lowercase());
    let accept = String::from_utf8_lossy(accept.as_deref().unwrap_or_default()).into_owned();
    let mut response = if accept.contains("text/html") {
        page::index(request).await?
    } else if accept.contains(JSON) {
        json(r#"{"status":true}"#.to_owned())
    } else {
        "Ollama is running".into_response()
    };
    response.headers_mut().insert(VARY, HeaderValue::from_static("accept"));
    Ok(response)
}

/// `POST /api/pull`: a model that is here was pulled. hob fetches none because a client asks.
async fn pull(State(app): State<Arc<App>>, request: Request) -> Result<Response, OllamaError> {
    let (caller, named) = read_wish(&app, request, parse_ollama_named).await?;
    caller.check(&app, &named.model)?;
    app.chat_target(Some(&named.model))?;
    Ok(match named.delivery {
        OllamaDelivery::Lines => (answer_headers(LINES), ollama_success() + "\n").into_response(),
        OllamaDelivery::Whole => json(ollama_success()),
    })
}

async fn not_offered(request: Request) -> OllamaError {
    ApiError::NotOffered { path: request.uri().path().to_owned() }.into()
}

fn json(body: String) -> Response {
    json_with(HeaderMap::new(), body)
}

fn json_with(mut headers: HeaderMap, body: String) -> Response {
    headers.insert(CONTENT_TYPE, HeaderValue::from_static(JSON));
    (headers, body).into_response()
}
