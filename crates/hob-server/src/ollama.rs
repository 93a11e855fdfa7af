//! Ollama's routes, for clients that support no other API. Each is one of hob's own routes in another format.
//! Routes that create, copy or delete models answer `501`: users manage model files with hob's commands.

mod embed;
mod generate;
mod lists;

use axum::Router;
use axum::extract::Request;
use axum::http::header::{ACCEPT, CONTENT_TYPE, VARY};
use axum::http::{HeaderMap, HeaderValue};
use axum::response::{IntoResponse, Response};
use hob_core::{Chat, UnknownModel};
use hob_wire::{OllamaDelivery, ollama_success, operations, parse_ollama_named};

use crate::api_error::ApiError;
use crate::documented_routes::DocumentedRoutes as _;
use crate::guard::KeyRule;
use crate::headers::{JSON, LINES, answer_headers, json};
use crate::page;
use crate::request_body::read_command;

/// The routes of Ollama's API, the root `/` among them. The root, the version and the list of models need no key,
/// because clients read them to find out whether a server is Ollama.
pub(crate) fn routes() -> Router {
    let keyed = Router::new()
        .at(&operations::OLLAMA_SHOW, lists::show)
        .at(&operations::OLLAMA_PS, lists::ps)
        .at(&operations::OLLAMA_CHAT, generate::chat)
        .at(&operations::OLLAMA_GENERATE, generate::generate)
        .at(&operations::OLLAMA_EMBED, embed::embed)
        .at(&operations::OLLAMA_EMBEDDINGS, embed::embeddings)
        .at(&operations::OLLAMA_PULL, pull)
        .at(&operations::OLLAMA_CREATE, not_offered)
        .at(&operations::OLLAMA_COPY, not_offered)
        .at(&operations::OLLAMA_DELETE, not_offered)
        .at(&operations::OLLAMA_PUSH, not_offered)
        .at(&operations::OLLAMA_BLOB, not_offered)
        .route_layer(KeyRule::Required);
    Router::new()
        .at(&operations::OLLAMA_TAGS, lists::tags)
        .route_layer(KeyRule::IfSent)
        .at(&operations::HOME, home)
        .at(&operations::OLLAMA_VERSION, lists::version)
        .merge(keyed)
}

/// `GET /`: the page for people, and a short text for programs that look for Ollama.
async fn home(request: Request) -> Result<Response, ApiError> {
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

/// `POST /api/pull`: succeeds for an installed model. hob downloads no models for clients.
async fn pull(request: Request) -> Result<Response, ApiError> {
    let (context, named) = read_command(request, parse_ollama_named).await?;
    context.caller.check(&named.model)?;
    context.find::<Chat>(Some(&named.model)).map_err(|error| match error {
        ApiError::UnknownModel(UnknownModel { name, .. }) => ApiError::NotPulled { name },
        other => other,
    })?;
    Ok(match named.delivery {
        OllamaDelivery::Lines => (answer_headers(LINES), ollama_success() + "\n").into_response(),
        OllamaDelivery::Whole => json(ollama_success()),
    })
}

async fn not_offered(request: Request) -> ApiError {
    let path = request.uri().path().to_owned();
    ApiError::NotOffered { path, instead: "manage models with `hob pull` and `hob models`" }
}

fn json_with(mut headers: HeaderMap, body: String) -> Response {
    headers.insert(CONTENT_TYPE, HeaderValue::from_static(JSON));
    (headers, body).into_response()
}
