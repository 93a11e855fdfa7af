//! `POST /embeddings`: texts in, vectors out, all in one answer.
//! The model is one of the chat models; hob has no others that read text.

use axum::extract::Request;
use axum::response::{IntoResponse, Response};
use hob_core::Chat;
use hob_wire::parse_embeddings;

use crate::api_error::{ApiError, CHAT_PROMPT};
use crate::chat_answer::embed;
use crate::headers::insert_ignored;
use crate::in_flight::Endpoint;
use crate::request_body::{Intake, read_request};
use crate::tracker::RequestStart;

pub(crate) async fn embeddings(request: Request) -> Result<Response, ApiError> {
    let Intake { context, guards, body } = read_request(request, parse_embeddings).await?;
    let resolved = context.resolve::<Chat>(body.model)?;
    let (endpoint, name) = (Endpoint::EMBEDDINGS, resolved.name.clone());
    let start = RequestStart { context, guards, endpoint, name, is_streamed: false };
    let made = embed(start, &resolved.model, body.request).await;
    let (made, mut headers) = made.map_err(|error| error.about(&[(CHAT_PROMPT, "input")]))?;
    insert_ignored(&mut headers, &body.ignored);
    let vectors = hob_wire::embeddings(resolved.shown_name(), &made, body.encoding);
    Ok((headers, vectors).into_response())
}
