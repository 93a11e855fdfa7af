//! `POST /api/embed` and the older `/api/embeddings`: texts in, vectors out.
//! A request without text only loads the model, as on all of Ollama's routes.

use std::time::Instant;

use axum::extract::Request;
use axum::http::HeaderMap;
use axum::response::Response;
use hob_core::{Chat, Embeddings};
use hob_wire::{
    OllamaEmbed, WireError, ollama_embedding, ollama_embeddings, parse_ollama_embed,
    parse_ollama_embeddings,
};

use super::json_with;
use crate::api_error::ApiError;
use crate::chat_answer;
use crate::headers::insert_ignored;
use crate::in_flight::Endpoint;
use crate::lifecycle::load_if_ours;
use crate::request_body::{Intake, read_request};
use crate::tracker::RequestStart;

/// `POST /api/embed`.
pub(super) async fn embed(request: Request) -> Result<Response, ApiError> {
    let made = make(request, parse_ollama_embed).await?;
    let body = ollama_embeddings(&made.model, &made.embeddings, made.received_at.elapsed());
    Ok(json_with(made.headers, body))
}

/// `POST /api/embeddings`.
pub(super) async fn embeddings(request: Request) -> Result<Response, ApiError> {
    let made = make(request, parse_ollama_embeddings).await?;
    Ok(json_with(made.headers, ollama_embedding(&made.embeddings)))
}

struct EmbedResult {
    model: String,
    embeddings: Embeddings,
    headers: HeaderMap,
    received_at: Instant,
}

async fn make(
    request: Request,
    parse: fn(&[u8]) -> Result<OllamaEmbed, WireError>,
) -> Result<EmbedResult, ApiError> {
    let Intake { context, guards, body } = read_request(request, parse).await?;
    let received_at = context.received_at;
    let resolved = context.resolve::<Chat>(body.model)?;
    let model = resolved.shown_name().to_owned();
    let (embeddings, mut headers) = if body.request.inputs.is_empty() {
        drop(guards);
        context.caller.count_request()?;
        let (lifecycle, keep_alive) = (resolved.model.lifecycle.as_ref(), body.request.keep_alive);
        load_if_ours(lifecycle, keep_alive, context.options()).await?;
        (Embeddings { vectors: Vec::new(), prompt_tokens: 0 }, HeaderMap::new())
    } else {
        let (endpoint, name) = (Endpoint::EMBEDDINGS, Some(model.clone()));
        let start = RequestStart { context, guards, endpoint, name, is_streamed: false };
        chat_answer::embed(start, &resolved.model, body.request).await?
    };
    insert_ignored(&mut headers, &body.ignored);
    Ok(EmbedResult { model, embeddings, headers, received_at })
}
