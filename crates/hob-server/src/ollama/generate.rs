//! `POST /api/chat` and `/api/generate`: an answer, or a request to load or unload a model.
//! Parameters without effect on the model are dropped here, because Ollama's clients do not check them first.

use std::time::{Instant, SystemTime};

use axum::extract::Request;
use axum::response::{IntoResponse, Response};
use hob_core::chat::{Effort, Prompt, Role, Thinking};
use hob_core::{Chat, ChatCard, ChatEvent, ChatRequest};
use hob_wire::{
    OllamaAction, OllamaAnswer, OllamaDelivery, OllamaShape, ollama_error, ollama_loaded,
    ollama_unloaded, parse_ollama_chat, parse_ollama_generate,
};

use super::json_with;
use crate::api_error::{ApiError, FieldNames};
use crate::chat::check;
use crate::chat_answer::ChatStart;
use crate::chat_body::{ChatFormat, PendingAnswer, stream_body};
use crate::generic_answer::Answer;
use crate::headers::{JSON, LINES, insert_ignored, json};
use crate::in_flight::Endpoint;
use crate::lifecycle::{load_if_ours, unload_when_idle};
use crate::request_body::{Intake, read_request};
use crate::tracker::RequestStart;

const NAMES: FieldNames = &[("max_tokens", "num_predict"), ("response_format", "format")];

/// `POST /api/chat`.
pub(super) async fn chat(request: Request) -> Result<Response, ApiError> {
    answer(request, OllamaShape::Chat).await
}

/// `POST /api/generate`.
pub(super) async fn generate(request: Request) -> Result<Response, ApiError> {
    answer(request, OllamaShape::Generate).await
}

async fn answer(request: Request, shape: OllamaShape) -> Result<Response, ApiError> {
    let parse = match shape {
        OllamaShape::Chat => parse_ollama_chat,
        OllamaShape::Generate => parse_ollama_generate,
    };
    let Intake { context, guards, mut body } = read_request(request, parse).await?;
    let resolved = context.resolve::<Chat>(body.model)?;
    let name = resolved.shown_name().to_owned();
    let model = resolved.model;
    let request = match body.action {
        OllamaAction::Answer(request) => *request,
        OllamaAction::Load(keep_alive) => {
            drop(guards);
            context.caller.count_request()?;
            load_if_ours(model.lifecycle.as_ref(), keep_alive, context.options()).await?;
            return Ok(json(ollama_loaded(shape, &name, SystemTime::now())));
        }
        OllamaAction::Unload => {
            drop(guards);
            context.caller.count_request()?;
            unload_when_idle(&model, context.options()).await?;
            return Ok(json(ollama_unloaded(shape, &name, SystemTime::now())));
        }
    };
    // Ollama would cut the prompt to a smaller context, and load the model again for a larger one.
    if body.context_tokens.is_some_and(|wished| wished != model.model.card().context_tokens) {
        body.ignored.push("options.num_ctx".to_owned());
    }
    let request = settle(request, shape, model.model.card(), &mut body.ignored);
    check(&model, &request)?;
    let lines = Lines {
        answer: OllamaAnswer::new(shape, &name, body.delivery).remembering(&request.prompt),
        received_at: context.received_at,
    };
    let keep_alive_every = context.options().keep_alive_every;
    let is_streamed = body.delivery == OllamaDelivery::Lines;
    let (endpoint, name) = (Endpoint::CHAT, Some(name));
    let start = RequestStart { context, guards, endpoint, name, is_streamed };
    let answer = ChatStart { start, model, requests: vec![request] }.start().await;
    let answer = answer.map_err(|error| error.about(NAMES))?;
    match body.delivery {
        OllamaDelivery::Lines => {
            let mut headers = answer.headers(LINES);
            insert_ignored(&mut headers, &body.ignored);
            let answer = PendingAnswer::Begun(Box::new(answer));
            let body = stream_body(answer, lines, keep_alive_every);
            Ok((headers, body).into_response())
        }
        OllamaDelivery::Whole => whole(answer, lines, &body.ignored).await,
    }
}

async fn whole(
    mut answer: Answer<Chat>,
    mut lines: Lines,
    ignored: &[String],
) -> Result<Response, ApiError> {
    let mut body = String::new();
    let read = answer.collect(|choice, event| body += &lines.event(choice, event)).await;
    read.map_err(|error| error.about(NAMES))?;
    // The values of some headers are known only at the end.
    let mut headers = answer.headers(JSON);
    insert_ignored(&mut headers, ignored);
    Ok(json_with(headers, body))
}

/// Reports thinking as ignored if the model cannot think. A model without a template continues its prompt,
/// like in Ollama.
fn settle(
    mut request: ChatRequest,
    shape: OllamaShape,
    card: &ChatCard,
    ignored: &mut Vec<String>,
) -> ChatRequest {
    let is_to_think = request.thinking.effort.is_some_and(|effort| effort != Effort::None);
    if is_to_think && !card.thinks {
        ignored.push("think".to_owned());
        request.thinking = Thinking::default();
    }
    if shape == OllamaShape::Generate && card.template.is_none() {
        request.prompt = single_text(request.prompt);
    }
    request
}

/// The text of a conversation with one user message. A conversation with an image stays a conversation.
fn single_text(prompt: Prompt) -> Prompt {
    match prompt {
        Prompt::Chat(mut conversation) => match conversation.messages.pop() {
            Some(only)
                if conversation.messages.is_empty()
                    && only.role == Role::User
                    && only.images.is_empty() =>
            {
                Prompt::Text(only.text)
            }
            last => {
                conversation.messages.extend(last);
                Prompt::Chat(conversation)
            }
        },
        other => other,
    }
}

/// An answer in Ollama's format. Its last event makes its last line, so nothing follows.
struct Lines {
    answer: OllamaAnswer,
    received_at: Instant,
}

impl ChatFormat for Lines {
    fn event(&mut self, _choice: u32, event: ChatEvent) -> String {
        self.answer.take(event, SystemTime::now(), self.received_at.elapsed())
    }

    fn end(&mut self) -> String {
        String::new()
    }

    fn failed(&mut self, error: &ApiError) -> String {
        ollama_error(&error.body().message) + "\n"
    }

    fn names(&self) -> FieldNames {
        NAMES
    }
}
