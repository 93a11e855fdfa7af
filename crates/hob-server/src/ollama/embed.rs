//! `POST /api/embed` and the older `/api/embeddings`: texts in, vectors out.
//! Without a text it is about memory only, as with every route of Ollama's.

use std::sync::Arc;

use axum::extract::{Request, State};
use axum::http::HeaderMap;
use axum::response::Response;
use hob_core::Embeddings;
use hob_wire::{
    OllamaEmbed, WireError, ollama_embedding, ollama_embeddings, parse_ollama_embed,
    parse_ollama_embeddings,
};

use super::{OllamaError, json_with};
use crate::account::Asked;
use crate::asking::{Asking, read_asking};
use crate::converse;
use crate::headers::insert_ignored;
use crate::lifecycle::load_if_ours;
use crate::requests::Received;
use crate::router::App;

/// `POST /api/embed`.
pub(super) async fn embed(
    State(app): State<Arc<App>>,
    request: Request,
) -> Result<Response, OllamaError> {
    let made = make(&app, request, parse_ollama_embed).await?;
    let body = ollama_embeddings(&made.model, &made.embeddings, made.received.at.elapsed());
    Ok(json_with(made.headers, body))
}

/// `POST /api/embeddings`.
pub(super) async fn embeddings(
    State(app): State<Arc<App>>,
    request: Request,
) -> Result<Response, OllamaError> {
    let made = make(&app, request, parse_ollama_embeddings).await?;
    Ok(json_with(made.headers, ollama_embedding(&made.embeddings)))
}

struct Made {
    model: String,
    embeddings: Embeddings,
    headers: HeaderMap,
    received: Received,
}

async fn make(
    app: &App,
    request: Request,
    parse: fn(&[u8]) -> Result<OllamaEmbed, WireError>,
) -> Result<Made, OllamaError> {
    let Asking { received, caller, held, wire: asked } = read_asking(app, request, parse).await?;
    let model = caller.chat_name(app, asked.model)?;
    let target = app.chat_target(model.as_deref())?;
    let model = model.unwrap_or_else(|| target.name.clone());
    let embeddings = if asked.request.inputs.is_empty() {
        drop(held);
        caller.take_request(app)?;
        load_if_ours(target.lifecycle.as_ref(), asked.request.keep_alive, &app.limits).await?;
        Embeddings { vectors: Vec::new(), prompt_tokens: 0 }
    } else {
        let alias = Some(model.clone());
        let route = "embeddings";
        let account = Asked { received, caller, held, route, alias, is_streamed: false };
        converse::embed(app, &target, asked.request, account).await?.0
    };
    let mut headers = HeaderMap::new();
    insert_ignored(&mut headers, &asked.ignored);
    Ok(Made { model, embeddings, headers, received })
}
