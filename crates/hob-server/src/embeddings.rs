//! `POST /embeddings`: texts in, vectors out, all at once.
//! The model is one of the chat models: hob has no others that read.

use std::sync::Arc;

use axum::extract::{Request, State};
use axum::response::{IntoResponse, Response};
use hob_wire::parse_embeddings;

use crate::account::Asked;
use crate::asking::{Asking, read_asking};
use crate::converse::embed;
use crate::failure::ApiError;
use crate::headers::{JSON, TARGET, answer_headers, insert_ignored, insert_text, insert_way};
use crate::router::App;

pub(crate) async fn embeddings(
    State(app): State<Arc<App>>,
    request: Request,
) -> Result<Response, ApiError> {
    let Asking { received, caller, held, mut wire } =
        read_asking(&app, request, parse_embeddings).await?;
    wire.model = caller.chat_name(&app, wire.model)?;
    let target = app.chat_target(wire.model.as_deref())?;
    let alias = wire.model.clone();
    let asked = Asked { received, caller, held, route: "embeddings", alias, is_streamed: false };
    let made = embed(&app, &target, wire.request, asked).await;
    let (made, way) = made.map_err(|refusal| refusal.about("input"))?;
    let mut headers = answer_headers(JSON);
    insert_text(&mut headers, TARGET, way.target.as_ref().unwrap_or(&target.name));
    insert_way(&mut headers, &way);
    insert_ignored(&mut headers, &wire.ignored);
    let model = wire.model.as_deref().unwrap_or(&target.name);
    Ok((headers, hob_wire::embeddings(model, &made, wire.encoding)).into_response())
}
