//! `/v1/responses` and `/v1/conversations`: the path of chat with another JSON format, and with stored conversations.
//! A response is stored when it is complete. One that broke off, or whose client left, is not.

use std::sync::Arc;
use std::time::SystemTime;

use axum::Router;
use axum::extract::Request;
use axum::response::{IntoResponse, Response};
use hob_core::chat::{OutputFormat, Prompt, ToolChoice};
use hob_core::routing::prompt_tokens_guess;
use hob_core::{Chat, ChatEvent, ChatRequest};
use hob_wire::{
    AnswerChunks as _, AnswerHead, ChatDelivery, CollectedAnswer as _, InputEntry, ResponseAnswer,
    ResponseItem, ResponseSource, ResponseView, WireResponse, conversation_deleted,
    estimated_input_tokens, operations, parse_conversation, parse_conversation_items,
    parse_item_page, parse_response, parse_response_view, response_deleted, response_items,
};
use uuid::Uuid;

use crate::api_error::{ApiError, CHAT_PROMPT, FieldNames};
use crate::chat::{KEEP_ALIVE, check, head, start, streamed, whole};
use crate::chat_body::ChatFormat;
use crate::context::{RequestContext, Services};
use crate::documented_routes::DocumentedRoutes as _;
use crate::guard::KeyRule;
use crate::headers::{EVENTS, answer_headers, json};
use crate::observe::{NamePath, QueryPairs};
use crate::request_body::{Intake, read_command, read_request};
use crate::response_store::{Items, OwnResponses, StoredKind};

const NAMES: FieldNames = &[
    (CHAT_PROMPT, "input"),
    ("max_tokens", "max_output_tokens"),
    ("response_format", "text.format"),
];

pub(crate) fn routes() -> Router {
    Router::new()
        .at(&operations::CREATE_RESPONSE, create)
        .at(&operations::COUNT_INPUT_TOKENS, input_tokens)
        .at(&operations::COMPACT_RESPONSE, compact)
        .at(&operations::RESPONSE, response)
        .at(&operations::DELETE_RESPONSE, delete_response)
        .at(&operations::CANCEL_RESPONSE, response)
        .at(&operations::RESPONSE_INPUT, response_input)
        .at(&operations::CREATE_CONVERSATION, create_conversation)
        .at(&operations::CONVERSATION, conversation)
        .at(&operations::UPDATE_CONVERSATION, update_conversation)
        .at(&operations::DELETE_CONVERSATION, delete_conversation)
        .at(&operations::CONVERSATION_ITEMS, conversation_items)
        .at(&operations::ADD_CONVERSATION_ITEMS, add_items)
        .at(&operations::CONVERSATION_ITEM, item)
        .at(&operations::DELETE_CONVERSATION_ITEM, delete_item)
        .route_layer(KeyRule::Required)
}

async fn create(request: Request) -> Result<Response, ApiError> {
    let Intake { context, guards, body: mut sent } = read_request(request, parse_response).await?;
    let resolved = context.resolve::<Chat>(sent.model.take())?;
    // Ids of stored things have to be hard to guess: without keys, they are all that protects them.
    let head = AnswerHead { id: new_id(), ..head(&resolved, &context) };
    let ending = Ending::new(&context, &mut sent, &head.id)?;
    let request = sent.chat_request(ending.items.iter().map(|item| &**item))?;
    check(&resolved.model, &request).map_err(|error| error.about(NAMES))?;
    let ignored = &[sent.ignored, sent.unknown].concat();
    let start = start(context, guards, resolved, (vec![request], sent.delivery));
    let mut answer = ResponseAnswer::new(head, sent.settings);
    match sent.delivery {
        ChatDelivery::Whole => {
            let response = whole(start, NAMES, (&mut answer, ignored)).await?;
            ending.store(&answer);
            Ok(response)
        }
        ChatDelivery::Events(_) => {
            let loading = sent.tells_loading.then(|| Arc::clone(&start.model));
            let format = ResponseFormat { answer, ending: Some(ending) };
            streamed(start, loading, (format, ignored)).await
        }
    }
}

fn new_id() -> String {
    Uuid::now_v7().simple().to_string()
}

/// What happens to a complete answer.
struct Ending {
    services: Arc<Services>,
    /// The name of the caller's key.
    owner: Option<String>,
    /// The conversation up to the answer.
    items: Items,
    /// How many of them were there before this request.
    earlier: usize,
    source: ResponseSource,
    is_stored: bool,
}

impl Ending {
    /// Collects the conversation of a request.
    ///
    /// # Errors
    /// The request names a response, a conversation or an item that is not stored.
    fn new(
        context: &RequestContext,
        sent: &mut WireResponse,
        id: &str,
    ) -> Result<Ending, ApiError> {
        let services = Arc::clone(&context.services);
        let owner = context.caller.key().map(str::to_owned);
        let source = sent.source.clone();
        let mut items = services.responses.of(owner.as_deref()).before(&source)?;
        let earlier = items.len();
        let input = std::mem::take(&mut sent.input);
        let input = resolved_items(&services, owner.as_deref(), &items, (input, id))?;
        items.extend(input);
        Ok(Ending { services, owner, items, earlier, source, is_stored: sent.is_stored })
    }

    fn store(self, answer: &ResponseAnswer) {
        let responses = || self.services.responses.of(self.owner.as_deref());
        let answer = answer.without_loading();
        let input = self.items.len();
        let mut items = self.items;
        items.extend(answer.items().iter().cloned().map(Arc::new));
        if let ResponseSource::Conversation(id) = &self.source {
            let added = items[self.earlier..].to_vec();
            // The conversation may have been deleted meanwhile: the answer is sent all the same.
            responses().append(id, added).ok();
        }
        if self.is_stored {
            let (bytes, answer) = (answer.to_json().len(), Arc::new(answer));
            let id = answer.id().to_owned();
            responses().insert(&id, items, StoredKind::Response { answer, bytes, input });
        }
    }
}

/// Items of a request: references become the items that they name, and all have an id. `earlier` are those that the request
/// continues. They may be of responses that are not stored themselves.
fn resolved_items(
    services: &Services,
    owner: Option<&str>,
    earlier: &[Arc<ResponseItem>],
    (input, id): (Vec<InputEntry>, &str),
) -> Result<Items, ApiError> {
    let settle = |(number, entry): (usize, InputEntry)| match entry {
        InputEntry::Reference(id) => match earlier.iter().find(|item| item.id() == id) {
            Some(item) => Ok(Arc::clone(item)),
            None => services.responses.of(owner).find_item(&id),
        },
        InputEntry::Item(mut item) => {
            item.set_default_id(&format!("{id}_i{number}"));
            Ok(Arc::new(item))
        }
    };
    input.into_iter().enumerate().map(settle).collect()
}

/// The events of a response, which is stored at their end.
struct ResponseFormat {
    answer: ResponseAnswer,
    ending: Option<Ending>,
}

impl ChatFormat for ResponseFormat {
    fn event(&mut self, choice: u32, event: ChatEvent) -> String {
        self.answer.event(choice, event)
    }

    fn loading(&mut self, said: String) -> String {
        self.answer.loading(&said)
    }

    fn end(&mut self) -> String {
        if let Some(ending) = self.ending.take() {
            ending.store(&self.answer);
        }
        self.answer.end()
    }

    fn failed(&mut self, error: &ApiError) -> String {
        self.answer.failed(&error.body())
    }

    fn names(&self) -> FieldNames {
        NAMES
    }

    fn keep_alive(&self) -> Option<&'static str> {
        Some(KEEP_ALIVE)
    }
}

/// A model of this hob reads the prompt and counts its tokens. For other servers, hob estimates them.
async fn input_tokens(request: Request) -> Result<Response, ApiError> {
    let Intake { context, guards, body: mut sent } = read_request(request, parse_response).await?;
    let resolved = context.resolve::<Chat>(sent.model.take())?;
    let items = Ending::new(&context, &mut sent, &new_id())?.items;
    let request = sent.chat_request(items.iter().map(|item| &**item))?;
    let about = |error: ApiError| error.about(NAMES);
    check(&resolved.model, &request).map_err(about)?;
    if resolved.model.lifecycle.is_none() {
        let tokens = prompt_tokens_guess(&request.prompt);
        return Ok(json(estimated_input_tokens(u32::try_from(tokens).unwrap_or(u32::MAX))));
    }
    let asked = (vec![without_answer(request)], ChatDelivery::Whole);
    let start = start(context, guards, resolved, asked);
    let (mut answer, mut tokens) = (start.start().await.map_err(about)?, 0);
    let count = |_, event| {
        if let ChatEvent::Done(completion) = event {
            tokens = completion.usage.prompt_tokens;
        }
    };
    answer.collect(count).await?;
    Ok(json(hob_wire::input_tokens(tokens)))
}

/// A request with the same prompt, for an answer of no tokens.
fn without_answer(request: ChatRequest) -> ChatRequest {
    let mut prompt = request.prompt;
    if let Prompt::Chat(conversation) = &mut prompt
        && conversation.tool_choice != ToolChoice::None
    {
        // A call that is required needs tokens.
        conversation.tool_choice = ToolChoice::Auto;
    }
    ChatRequest { prompt, tokens_max: Some(0), output: OutputFormat::Text, ..request }
}

/// What this caller has stored.
fn own_responses(context: &RequestContext) -> OwnResponses<'_> {
    context.services.responses.of(context.caller.key())
}

async fn compact(request: Request) -> ApiError {
    let path = request.uri().path().to_owned();
    let instead = "send the conversation again, or the parts of it that still matter";
    ApiError::NotOffered { path, instead }
}

async fn response(
    context: RequestContext,
    NamePath(id): NamePath,
    QueryPairs(pairs): QueryPairs,
) -> Result<Response, ApiError> {
    let view = parse_response_view(&pairs)?;
    let answer = own_responses(&context).response(&id)?;
    Ok(match view {
        ResponseView::Object => json(answer.to_json()),
        ResponseView::Events { after } => {
            (answer_headers(EVENTS), answer.replay(after)).into_response()
        }
    })
}

async fn delete_response(
    context: RequestContext,
    NamePath(id): NamePath,
) -> Result<Response, ApiError> {
    own_responses(&context).delete("response", &id)?;
    Ok(json(response_deleted(&id)))
}

async fn response_input(
    context: RequestContext,
    NamePath(id): NamePath,
    QueryPairs(pairs): QueryPairs,
) -> Result<Response, ApiError> {
    let page = parse_item_page(&pairs)?;
    let items = own_responses(&context).input(&id)?;
    Ok(json(page.of(items.iter().map(|item| &**item))))
}

async fn create_conversation(request: Request) -> Result<Response, ApiError> {
    let (context, sent) = read_command(request, parse_conversation).await?;
    let id = new_id();
    let items = resolved_items(&context.services, context.caller.key(), &[], (sent.items, &id))?;
    let now = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH).unwrap_or_default();
    let (created_unix_s, metadata) = (now.as_secs(), sent.metadata);
    let id = format!("conv_{id}");
    let kind = StoredKind::Conversation { created_unix_s, metadata };
    let mut responses = own_responses(&context);
    responses.insert(&id, items, kind);
    Ok(json(responses.conversation(&id)?))
}

async fn conversation(
    context: RequestContext,
    NamePath(id): NamePath,
) -> Result<Response, ApiError> {
    Ok(json(own_responses(&context).conversation(&id)?))
}

async fn update_conversation(
    NamePath(id): NamePath,
    request: Request,
) -> Result<Response, ApiError> {
    let (context, sent) = read_command(request, parse_conversation).await?;
    let mut responses = own_responses(&context);
    responses.set_metadata(&id, sent.metadata)?;
    Ok(json(responses.conversation(&id)?))
}

async fn delete_conversation(
    context: RequestContext,
    NamePath(id): NamePath,
) -> Result<Response, ApiError> {
    own_responses(&context).delete("conversation", &id)?;
    Ok(json(conversation_deleted(&id)))
}

async fn conversation_items(
    context: RequestContext,
    NamePath(id): NamePath,
    QueryPairs(pairs): QueryPairs,
) -> Result<Response, ApiError> {
    let page = parse_item_page(&pairs)?;
    let source = ResponseSource::Conversation(id);
    let items = own_responses(&context).before(&source)?;
    Ok(json(page.of(items.iter().map(|item| &**item))))
}

async fn add_items(NamePath(id): NamePath, request: Request) -> Result<Response, ApiError> {
    let (context, sent) = read_command(request, parse_conversation_items).await?;
    let key = context.caller.key();
    let items = resolved_items(&context.services, key, &[], (sent, &new_id()))?;
    own_responses(&context).append(&id, items.clone())?;
    let shown: Vec<&ResponseItem> = items.iter().map(|item| &**item).collect();
    Ok(json(response_items(&shown, false)))
}

/// A conversation and one of its items.
type ItemPath = NamePath<(String, String)>;

async fn item(
    context: RequestContext,
    NamePath((id, item)): ItemPath,
) -> Result<Response, ApiError> {
    let source = ResponseSource::Conversation(id);
    let items = own_responses(&context).before(&source)?;
    let found = items.iter().find(|one| one.id() == item);
    let found = found.ok_or(ApiError::NotStored { what: "item", id: item })?;
    Ok(json(found.to_json()))
}

async fn delete_item(
    context: RequestContext,
    NamePath((id, item)): ItemPath,
) -> Result<Response, ApiError> {
    let mut responses = own_responses(&context);
    responses.delete_item(&id, item)?;
    Ok(json(responses.conversation(&id)?))
}
