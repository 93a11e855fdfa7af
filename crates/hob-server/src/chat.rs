//! `POST /chat/completions`: parse, find the model, let the first event come, and only then say 200.
//! After that a failure is an event without `choices`, and no `[DONE]` follows it.

use std::sync::Arc;
use std::time::{Duration, SystemTime};

use axum::extract::{Request, State};
use axum::http::HeaderValue;
use axum::response::{IntoResponse, Response};
use futures::FutureExt;
use hob_core::chat::Prompt;
use hob_core::{ChatEvent, ChatRequest, ChatTarget, ModelError};
use hob_wire::{
    AnswerChunks, AnswerHead, ChatAnswer, ChatChunks, ChatDelivery, CollectedAnswer, chat_failed,
    parse_chat,
};

use tokio::time::timeout;

use crate::account::Asked;
use crate::asking::{Asking, Held, read_asking};
use crate::body::{Answer, Dialect, stream_body};
use crate::converse::{Question, Reply, converse, seeded};
use crate::failure::ApiError;
use crate::headers::{ALIAS, EVENTS, JSON, QUEUE_MS, answer_headers, insert_ignored, insert_text};
use crate::keys::Caller;
use crate::requests::Received;
use crate::router::App;

/// A comment, which readers of events skip and proxies count as life.
const KEEP_ALIVE: &str = ": hob\n\n";

/// Changes when answers to the same request might.
const FINGERPRINT: &str = concat!("hob-", env!("CARGO_PKG_VERSION"));

pub(crate) async fn complete(
    State(app): State<Arc<App>>,
    request: Request,
) -> Result<Response, ApiError> {
    let Asking { received, caller, held, mut wire } =
        read_asking(&app, request, parse_chat).await?;
    wire.model = caller.chat_name(&app, wire.model)?;
    let target = app.chat_target(wire.model.as_deref())?;
    check(&target, &wire.request)?;
    let asked = asked(wire.model.clone(), wire.delivery, received, (caller, held));
    let head = head(wire.model, &target, received);
    let ignored = &without_effect(&target, wire.ignored, wire.unknown);
    let requests = seeded(wire.request, wire.choices);
    let question = Question { target, requests, asked };
    match wire.delivery {
        ChatDelivery::Whole => {
            let answer = ChatAnswer::new(head, wire.choices, wire.calls);
            whole(converse(&app, question).await?, answer, ignored).await
        }
        ChatDelivery::Events(usage) => {
            let chunks = ChatChunks::new(head, wire.choices, wire.calls, usage);
            let loading = wire.tells_loading.then(|| Arc::clone(&question.target));
            streamed(app, question, loading, (chunks, ignored)).await
        }
    }
}

pub(crate) async fn whole(
    mut reply: Reply,
    mut answer: impl CollectedAnswer,
    ignored: &[String],
) -> Result<Response, ApiError> {
    reply.collect(|choice, event| answer.add(choice, event)).await?;
    let mut headers = reply.headers(JSON);
    insert_ignored(&mut headers, ignored);
    let queue_ms = answer.queue_ms() + reply.queued().as_secs_f64() * 1e3;
    headers.insert(QUEUE_MS, HeaderValue::from(queue_ms.round() as u64));
    Ok((headers, answer.to_json()).into_response())
}

/// Who wants to hear of a model's loading hears of it when this has passed.
const LOADING_AFTER: Duration = Duration::from_secs(1);

/// The status waits for the first event, so that it is true; but not for so long that a proxy between
/// here and the client gives up.
pub(crate) async fn streamed(
    app: Arc<App>,
    question: Question,
    loading: Option<Arc<ChatTarget>>,
    (chunks, ignored): (impl AnswerChunks + Send + 'static, &[String]),
) -> Result<Response, ApiError> {
    let limits = app.limits;
    let early = if loading.is_some() { LOADING_AFTER } else { limits.early_headers_after };
    let alias = question.asked.alias.clone();
    let mut opening = async move { converse(&app, question).await }.boxed();
    let (mut headers, answer) = match timeout(early, &mut opening).await {
        Ok(reply) => {
            let reply = reply?;
            (reply.headers(EVENTS), Answer::Begun(Box::new(reply)))
        }
        Err(_) => {
            let mut headers = answer_headers(EVENTS);
            insert_text(&mut headers, ALIAS, alias.as_deref().unwrap_or_default());
            (headers, Answer::Awaited(opening, loading))
        }
    };
    insert_ignored(&mut headers, ignored);
    let body = stream_body(answer, OpenAi(chunks), limits.keep_alive_every);
    Ok((headers, body).into_response())
}

/// What the account is told of a request on either route.
pub(crate) fn asked(
    alias: Option<String>,
    delivery: ChatDelivery,
    received: Received,
    (caller, held): (Caller, Held),
) -> Asked {
    let is_streamed = matches!(delivery, ChatDelivery::Events(_));
    Asked { received, caller, held, route: "chat", alias, is_streamed }
}

/// What the pieces of an answer say alike. A request that named no model hears which one it was.
pub(crate) fn head(asked: Option<String>, target: &ChatTarget, received: Received) -> AnswerHead {
    let now = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH).unwrap_or_default();
    AnswerHead {
        id: format!("{:x}{:04x}", now.as_micros(), received.id),
        created_unix_s: now.as_secs(),
        model: asked.unwrap_or_else(|| target.name.clone()),
        fingerprint: FINGERPRINT,
    }
}

/// Parameters to be named as ignored: those that hob does not know too, unless the target may know them.
pub(crate) fn without_effect(
    target: &ChatTarget,
    mut ignored: Vec<String>,
    unknown: Vec<String>,
) -> Vec<String> {
    if !target.model.card().takes_unknown {
        ignored.extend(unknown);
    }
    ignored
}

/// What can be known from the card alone, so that no model is loaded to refuse.
pub(crate) fn check(target: &ChatTarget, request: &ChatRequest) -> Result<(), ApiError> {
    let card = target.model.card();
    if !card.sees && has_pictures(&request.prompt) {
        let why = "it reads text only, and a message has a picture";
        return Err(ApiError::Unsupported { field: "messages", why });
    }
    match &request.prompt {
        Prompt::Chat(_) if card.template.is_none() => Err(ModelError::NoTemplate.into()),
        Prompt::Infill { .. } if !card.fills_in => Err(ApiError::Unsupported {
            field: "suffix",
            why: "its vocabulary has no marks for a gap to be filled in",
        }),
        Prompt::Chat(_) | Prompt::Infill { .. } | Prompt::Text(_) | Prompt::Tokens(_) => Ok(()),
    }
}

fn has_pictures(prompt: &Prompt) -> bool {
    match prompt {
        Prompt::Chat(conversation) => {
            conversation.messages.iter().any(|message| !message.images.is_empty())
        }
        Prompt::Text(_) | Prompt::Tokens(_) | Prompt::Infill { .. } => false,
    }
}

/// OpenAI's events, of either route.
struct OpenAi<C>(C);

impl<C: AnswerChunks + Send + 'static> Dialect for OpenAi<C> {
    fn event(&mut self, choice: u32, event: ChatEvent) -> String {
        self.0.event(choice, event)
    }

    fn end(&mut self) -> String {
        self.0.end()
    }

    fn failed(&mut self, refusal: &ApiError) -> String {
        chat_failed(&refusal.body())
    }

    fn keep_alive(&self) -> Option<&'static str> {
        Some(KEEP_ALIVE)
    }
}
