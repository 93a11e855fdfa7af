//! `POST /chat/completions`: parses, finds the model, waits for the first event, and only then sends 200.
//! A later failure is an event without `choices`, and no `[DONE]` follows it.

use std::sync::Arc;
use std::time::{Duration, SystemTime};

use axum::body::Body;
use axum::extract::Request;
use axum::http::HeaderValue;
use axum::response::Response;
use futures::FutureExt;
use hob_core::chat::Prompt;
use hob_core::{Chat, ChatEvent, ChatRequest, ModelError, RegisteredModel};
use hob_wire::{
    AnswerChunks, AnswerHead, ChatAnswer, ChatChunks, ChatDelivery, CollectedAnswer, chat_failed,
    parse_chat,
};
use tokio::time::timeout;

use crate::api_error::{ApiError, CHAT_PROMPT, FieldNames};
use crate::chat_answer::{ChatStart, seeded};
use crate::chat_body::{ChatFormat, PendingAnswer, stream_body};
use crate::context::RequestContext;
use crate::headers::{
    ALIAS, EVENTS, JSON, QUEUE_MS, answer_headers, answer_with, insert_ignored, insert_text,
};
use crate::in_flight::Endpoint;
use crate::names::Resolved;
use crate::request_body::{Intake, RequestGuards, read_request};
use crate::tracker::RequestStart;

/// A comment, which event parsers skip and proxies count as activity.
pub(crate) const KEEP_ALIVE: &str = ": hob\n\n";

/// Changes whenever answers to the same request may change.
const FINGERPRINT: &str = concat!("hob-", env!("CARGO_PKG_VERSION"));

/// Errors of models name the fields of this route.
const NAMES: FieldNames = &[];

/// A client that asked for loading progress gets it after this time.
const LOADING_AFTER: Duration = Duration::from_secs(1);

pub(crate) async fn complete(request: Request) -> Result<Response, ApiError> {
    let Intake { context, guards, body } = read_request(request, parse_chat).await?;
    let resolved = context.resolve::<Chat>(body.model)?;
    check(&resolved.model, &body.request)?;
    let head = head(&resolved, &context);
    let ignored = &without_effect(&resolved.model, body.ignored, body.unknown);
    let requests = seeded(body.request, body.choices);
    let start = start(context, guards, resolved, (requests, body.delivery));
    match body.delivery {
        ChatDelivery::Whole => {
            let mut answer = ChatAnswer::new(head, body.choices, body.calls);
            whole(start, NAMES, (&mut answer, ignored)).await
        }
        ChatDelivery::Events(usage) => {
            let chunks = ChatChunks::new(head, body.choices, body.calls, usage);
            let loading = body.tells_loading.then(|| Arc::clone(&start.model));
            streamed(start, loading, (OpenAi(chunks, NAMES), ignored)).await
        }
    }
}

/// A request on one of OpenAI's routes, ready to be sent.
pub(crate) fn start(
    context: RequestContext,
    guards: RequestGuards,
    resolved: Resolved<Chat>,
    (requests, delivery): (Vec<ChatRequest>, ChatDelivery),
) -> ChatStart {
    let start = RequestStart {
        context,
        guards,
        endpoint: Endpoint::CHAT,
        name: resolved.name,
        is_streamed: matches!(delivery, ChatDelivery::Events(_)),
    };
    ChatStart { start, model: resolved.model, requests }
}

/// `names`: what the route calls the fields that errors name.
pub(crate) async fn whole(
    start: ChatStart,
    names: FieldNames,
    (collected, ignored): (&mut impl CollectedAnswer, &[String]),
) -> Result<Response, ApiError> {
    let about = |error: ApiError| error.about(names);
    let mut answer = start.start().await.map_err(about)?;
    answer.collect(|choice, event| collected.add(choice, event)).await.map_err(about)?;
    let mut headers = answer.headers(JSON);
    insert_ignored(&mut headers, ignored);
    let queue_ms = collected.queue_ms() + answer.queued().as_secs_f64() * 1e3;
    headers.insert(QUEUE_MS, HeaderValue::from(queue_ms.round() as u64));
    Ok(answer_with(headers, Body::from(collected.to_json())))
}

/// The status waits for the first event, so that it is correct, but not so long that a proxy gives up.
pub(crate) async fn streamed(
    start: ChatStart,
    loading: Option<Arc<RegisteredModel<Chat>>>,
    (format, ignored): (impl ChatFormat, &[String]),
) -> Result<Response, ApiError> {
    let options = start.start.context.options();
    let early = if loading.is_some() { LOADING_AFTER } else { options.early_headers_after };
    let keep_alive_every = options.keep_alive_every;
    let alias = start.start.name.clone().unwrap_or_else(|| start.model.name.clone());
    let mut opening = start.start().boxed();
    let (mut headers, answer) = match timeout(early, &mut opening).await {
        Ok(answer) => {
            let answer = answer.map_err(|error| error.about(format.names()))?;
            (answer.headers(EVENTS), PendingAnswer::Begun(Box::new(answer)))
        }
        Err(_) => {
            let mut headers = answer_headers(EVENTS);
            insert_text(&mut headers, ALIAS, &alias);
            (headers, PendingAnswer::Awaited(opening, loading))
        }
    };
    insert_ignored(&mut headers, ignored);
    let body = stream_body(answer, format, keep_alive_every);
    Ok(answer_with(headers, body))
}

/// Fields that all pieces of an answer repeat.
pub(crate) fn head(resolved: &Resolved<Chat>, context: &RequestContext) -> AnswerHead {
    let now = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH).unwrap_or_default();
    AnswerHead {
        id: format!("{:x}{:04x}", now.as_micros(), context.id),
        created_unix_s: now.as_secs(),
        model: resolved.shown_name().to_owned(),
        fingerprint: FINGERPRINT,
    }
}

/// Parameters to report as ignored. Unknown parameters are reported too, unless the model may know them.
pub(crate) fn without_effect(
    model: &RegisteredModel<Chat>,
    mut ignored: Vec<String>,
    unknown: Vec<String>,
) -> Vec<String> {
    if !model.model.card().takes_unknown {
        ignored.extend(unknown);
    }
    ignored
}

/// Rejects what the model's card rules out, so that no model is loaded only to reject a request.
pub(crate) fn check(model: &RegisteredModel<Chat>, request: &ChatRequest) -> Result<(), ApiError> {
    let card = model.model.card();
    if !card.sees && has_pictures(&request.prompt) {
        let why = "it accepts text only, and a message contains an image";
        return Err(ApiError::Unsupported { field: CHAT_PROMPT, why });
    }
    match &request.prompt {
        Prompt::Chat(_) if card.template.is_none() => Err(ModelError::NoTemplate.into()),
        Prompt::Infill { .. } if !card.infills => Err(ApiError::Unsupported {
            field: "suffix",
            why: "its vocabulary has no fill-in-the-middle tokens",
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

/// OpenAI's events, for chat and for completions, and the route's names of fields.
pub(crate) struct OpenAi<C>(pub(crate) C, pub(crate) FieldNames);

impl<C: AnswerChunks + Send + 'static> ChatFormat for OpenAi<C> {
    fn event(&mut self, choice: u32, event: ChatEvent) -> String {
        self.0.event(choice, event)
    }

    fn end(&mut self) -> String {
        self.0.end()
    }

    fn failed(&mut self, error: &ApiError) -> String {
        chat_failed(&error.body())
    }

    fn names(&self) -> FieldNames {
        self.1
    }

    fn keep_alive(&self) -> Option<&'static str> {
        Some(KEEP_ALIVE)
    }
}
