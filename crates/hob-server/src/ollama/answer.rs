//! `POST /api/chat` and `/api/generate`: one request in two shapes, or a wish about memory.
//! What the model is not made for is settled here, because Ollama's clients do not ask before.

use std::sync::Arc;
use std::time::SystemTime;

use axum::extract::{Request, State};
use axum::response::{IntoResponse, Response};
use hob_core::chat::{Effort, Prompt, Role, Thinking};
use hob_core::{ChatCard, ChatEvent, ChatRequest};
use hob_wire::{
    OllamaAnswer, OllamaDelivery, OllamaShape, OllamaWish, ollama_loaded, ollama_unloaded,
    parse_ollama_chat, parse_ollama_generate,
};

use super::{OllamaError, error_text, json, json_with};
use crate::account::Asked;
use crate::asking::{Asking, read_asking};
use crate::body::{Answer, Dialect, stream_body};
use crate::chat::check;
use crate::converse::{Question, Reply, converse};
use crate::failure::ApiError;
use crate::headers::{JSON, LINES, insert_ignored};
use crate::lifecycle::{load_if_ours, unload_when_idle};
use crate::requests::Received;
use crate::router::App;

/// `POST /api/chat`.
pub(super) async fn chat(
    State(app): State<Arc<App>>,
    request: Request,
) -> Result<Response, OllamaError> {
    answer(&app, request, OllamaShape::Chat).await
}

/// `POST /api/generate`.
pub(super) async fn generate(
    State(app): State<Arc<App>>,
    request: Request,
) -> Result<Response, OllamaError> {
    answer(&app, request, OllamaShape::Generate).await
}

async fn answer(app: &App, request: Request, shape: OllamaShape) -> Result<Response, OllamaError> {
    let parse = match shape {
        OllamaShape::Chat => parse_ollama_chat,
        OllamaShape::Generate => parse_ollama_generate,
    };
    let Asking { received, caller, held, wire: mut asked } =
        read_asking(app, request, parse).await?;
    let model = caller.chat_name(app, asked.model)?;
    let target = app.chat_target(model.as_deref())?;
    let model = model.unwrap_or_else(|| target.name.clone());
    let request = match asked.wish {
        OllamaWish::Answer(request) => *request,
        OllamaWish::Load(keep_alive) => {
            drop(held);
            caller.take_request(app)?;
            load_if_ours(target.lifecycle.as_ref(), keep_alive, &app.limits).await?;
            return Ok(json(ollama_loaded(shape, &model, SystemTime::now())));
        }
        OllamaWish::Unload => {
            drop(held);
            caller.take_request(app)?;
            unload_when_idle(&target, &app.limits).await?;
            return Ok(json(ollama_unloaded(shape, &model, SystemTime::now())));
        }
    };
    // The model's context is not cut to what was asked for: it holds that much, or the header says otherwise.
    if asked.context_tokens.is_some_and(|wished| wished > target.model.card().context_tokens) {
        asked.ignored.push("options.num_ctx".to_owned());
    }
    let request = settle(request, shape, target.model.card(), &mut asked.ignored);
    check(&target, &request)?;
    let answer = OllamaAnswer::new(shape, &model, asked.delivery).remembering(&request.prompt);
    let is_streamed = asked.delivery == OllamaDelivery::Lines;
    let alias = Some(model.clone());
    let account = Asked { received, caller, held, route: "chat", alias, is_streamed };
    let question = Question { target, requests: vec![request], asked: account };
    let reply = converse(app, question).await?;
    let lines = Lines { answer, received };
    match asked.delivery {
        OllamaDelivery::Lines => Ok(stream(app, reply, lines, &asked.ignored)),
        OllamaDelivery::Whole => Ok(whole(reply, lines, &asked.ignored).await?),
    }
}

fn stream(app: &App, reply: Reply, lines: Lines, ignored: &[String]) -> Response {
    let mut headers = reply.headers(LINES);
    insert_ignored(&mut headers, ignored);
    (headers, stream_body(Answer::Begun(Box::new(reply)), lines, app.limits.keep_alive_every))
        .into_response()
}

async fn whole(
    mut reply: Reply,
    mut lines: Lines,
    ignored: &[String],
) -> Result<Response, ApiError> {
    let mut headers = reply.headers(JSON);
    insert_ignored(&mut headers, ignored);
    let mut body = String::new();
    reply.collect(|choice, event| body += &lines.event(choice, event)).await?;
    Ok(json_with(headers, body))
}

/// A wish that the model cannot follow, and that changes nothing about the kind of answer, is
/// named. A model without a template continues what it is given, as it does in Ollama.
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
        request.prompt = untold(request.prompt);
    }
    request
}

/// The text of a conversation that holds nothing but one. A picture would be lost in it.
fn untold(prompt: Prompt) -> Prompt {
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

/// An answer in Ollama's words. Its last event makes its last line, so nothing follows.
struct Lines {
    answer: OllamaAnswer,
    received: Received,
}

impl Dialect for Lines {
    fn event(&mut self, _choice: u32, event: ChatEvent) -> String {
        self.answer.take(event, SystemTime::now(), self.received.at.elapsed())
    }

    fn end(&mut self) -> String {
        String::new()
    }

    fn failed(&mut self, refusal: &ApiError) -> String {
        error_text(refusal) + "\n"
    }
}
