//! `POST /v1/responses`: from a body to what a model can take. Its answers are in `responses/response_object.rs`.
//! A request may continue a stored response or conversation. The server finds their items by the ids that it reads here.

mod conversation;
mod item;
mod lookup;
mod response_object;

use std::collections::BTreeMap;

use hob_core::chat::{Conversation, Effort, OutputFormat, Prompt, Tool, ToolChoice};
use hob_core::{ChatRequest, KeepAlive};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value, json};

use self::item::{InputItem, messages};
use crate::WireError;
use crate::chat::{
    ChatDelivery, Choice, FlatFormat, FunctionField, MESSAGES_MAX, SamplingFields, UsageChunk,
    flat_format, flat_tools, thinking, with_needed_thinking,
};
use crate::fields::Fields;
use crate::keep_alive::{KeepAliveField, keep_alive};
use crate::request_value::{
    Either, JsonKind, Name, RequestValue, check_count, count_within, each, token_limit,
};
use crate::word::Word;

pub(crate) use conversation::{
    ConversationFields, ConversationItemFields, DeletedObject, ItemListFields, ResponseItemList,
    ShownConversation,
};
pub use conversation::{
    ItemOrder, ItemPage, WireConversation, conversation, conversation_deleted, parse_conversation,
    parse_conversation_items, parse_item_page, response_deleted, response_items, run_deleted,
};
pub use item::{InputEntry, ResponseItem};
pub(crate) use lookup::{InputTokenCount, ResponseViewFields};
pub use lookup::{ResponseView, estimated_input_tokens, input_tokens, parse_response_view};
pub use response_object::ResponseAnswer;
pub(crate) use response_object::{ResponseEvent, ResponseObject};

/// Metadata of a response or of a conversation: OpenAI's limits.
const METADATA_MAX: usize = 16;
const METADATA_NAME_CHARS_MAX: usize = 64;
const METADATA_CHARS_MAX: usize = 512;

/// The type of the only tools that a model can call here.
const FUNCTION: &str = "function";

/// Includes log probabilities in an answer.
const LOGPROBS: &str = "message.output_text.logprobs";

/// A parsed request. Its names are not yet checked against a model.
pub struct WireResponse {
    /// `None`: the default chat model.
    pub model: Option<String>,
    pub source: ResponseSource,
    pub input: Vec<InputEntry>,
    pub delivery: ChatDelivery,
    /// Whether later requests may continue this one.
    pub is_stored: bool,
    /// Repeated by the answer.
    pub settings: ResponseSettings,
    /// Parameters without effect, to be named in `x-hob-ignored`.
    pub ignored: Vec<String>,
    /// Parameters that hob does not know.
    pub unknown: Vec<String>,
    /// `loading_status`: while the model is being loaded, the stream says so in its thinking.
    pub tells_loading: bool,
    /// Without messages.
    request: ChatRequest,
    conversation: Conversation,
}

/// What a request continues.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ResponseSource {
    Nothing,
    /// By id.
    Response(String),
    /// By id. The input and the answer become items of it.
    Conversation(String),
}

hob_core::debug_fields!(WireResponse: model);

/// The fields of `POST /v1/responses` that no other route shares.
#[derive(Deserialize, JsonSchema)]
pub(crate) struct ResponseFields {
    /// An alias, a model of `/v1/models`, or `UPSTREAM/MODEL`. Default: the default chat model.
    model: Option<Name>,
    /// A text of the user, or at most 10,000 items.
    input: Option<Either<String, Vec<InputItem>>>,
    /// A system message for this answer alone: later requests do not inherit it.
    instructions: Option<String>,
    /// The id of a stored response. Its conversation comes before the input.
    previous_response_id: Option<Name>,
    /// The id of a conversation. Its items come before the input, and the input and the answer are added to it.
    conversation: Option<Either<Name, ConversationRef>>,
    /// `false` does not store the response. Default: `true`.
    store: Option<bool>,
    /// `true` sends server-sent events. Default: `false`.
    stream: Option<bool>,
    /// Accepted, and without effect: hob answers while the client is connected.
    background: Option<bool>,
    /// Output tokens. Absent, zero or below: no limit.
    #[serde(default, deserialize_with = "token_limit")]
    max_output_tokens: Option<u32>,
    /// Up to 16 names of 64 characters, each with a text of 512 characters. Answers repeat them.
    metadata: Option<BTreeMap<String, String>>,
    /// The form of the answer.
    #[schemars(with = "Option<ResponseText>")]
    text: Option<Map<String, Value>>,
    /// Functions that the model may call, at most 128. Next to functions, other tools have no effect.
    #[schemars(with = "Option<Vec<ResponseTool>>")]
    tools: Option<Vec<Map<String, Value>>>,
    /// `none`, `auto`, `required`, a function, or `allowed_tools`. Default: `auto`.
    #[schemars(with = "Option<Choice>")]
    tool_choice: Option<Value>,
    /// `false` allows one call in an answer. Default: `true`.
    parallel_tool_calls: Option<bool>,
    /// Likeliest alternatives of each token, 0 to 20.
    #[serde(default, deserialize_with = "count_within::<_, 0, 20>")]
    #[schemars(range(min = 0, max = 20))]
    top_logprobs: Option<u32>,
    /// `message.output_text.logprobs` adds the log probability of each token. Other values have no effect.
    include: Option<Vec<String>>,
    /// How long the model stays in memory after the answer: seconds, or a duration such as `5m`. Below zero: for ever.
    #[serde(default, deserialize_with = "keep_alive")]
    #[schemars(with = "Option<KeepAliveField>")]
    keep_alive: Option<KeepAlive>,
    /// `true`: while the model is loading, the stream says so as thinking that is not stored. Default: `false`.
    loading_status: Option<bool>,
}

/// A conversation.
#[derive(Clone, Deserialize, JsonSchema, Serialize)]
pub(crate) struct ConversationRef {
    id: Name,
}

impl JsonKind for ConversationRef {}

/// The form of an answer.
#[derive(Deserialize, JsonSchema)]
struct ResponseText {
    format: Option<FlatFormat>,
}

/// A function that the model may call.
#[derive(Deserialize, JsonSchema)]
struct ResponseTool {
    /// Always `function`: hob runs no tools of its own here.
    #[expect(dead_code, reason = "checked before, for a better error")]
    r#type: Name,
    #[serde(flatten)]
    #[expect(dead_code, reason = "read from the object itself")]
    function: FunctionField,
}

/// What an answer repeats of its request.
#[derive(Clone, JsonSchema, Serialize)]
pub struct ResponseSettings {
    background: bool,
    conversation: Option<ConversationRef>,
    instructions: Option<String>,
    max_output_tokens: Option<u32>,
    metadata: BTreeMap<String, String>,
    parallel_tool_calls: bool,
    previous_response_id: Option<String>,
    reasoning: ShownReasoning,
    store: bool,
    temperature: Option<f32>,
    text: Map<String, Value>,
    /// As the request has it, or `auto`.
    #[schemars(with = "Either<String, Map<String, Value>>")]
    tool_choice: Value,
    tools: Vec<Map<String, Value>>,
    top_logprobs: u32,
    top_p: Option<f32>,
    truncation: &'static str,
}

/// How much the model is to think.
#[derive(Clone, Copy, JsonSchema, Serialize)]
struct ShownReasoning {
    effort: Option<Word<Effort>>,
    /// hob makes none.
    summary: Option<()>,
}

hob_core::debug_fields!(ResponseSettings: store);

/// # Errors
/// [`WireError`], naming the field and what it takes.
pub fn parse_response(body: &[u8]) -> Result<WireResponse, WireError> {
    let mut fields = Fields::parse(body)?;
    let mut ignored = Vec::new();
    let mut sent: ResponseFields = fields.read()?;
    let sent_input = sent.input.take();
    let is_missing = sent_input.is_none();
    let input = entries(sent_input)?;
    let source = source(sent.previous_response_id.take(), sent.conversation.take())?;
    if input.is_empty() && source == ResponseSource::Nothing {
        let empty =
            || WireError::invalid("input", "is empty: it takes a text, or at least one item");
        return Err(if is_missing { WireError::missing("input") } else { empty() });
    }
    let tools = sent.tools.as_deref().unwrap_or_default();
    let (tools, tool_choice) = functions(tools, sent.tool_choice.as_ref(), &mut ignored)?;
    let (output, strict) = form(sent.text.as_ref(), &mut ignored)?;
    let new = messages(None, items_of(&input))?;
    let (thinking, template_arguments) = thinking(fields.read()?, &new, &mut ignored)?;
    let mut sampling: SamplingFields = fields.read()?;
    let delivery = match sent.stream {
        Some(true) => ChatDelivery::Events(UsageChunk::Unwanted),
        Some(false) | None => ChatDelivery::Whole,
    };
    let request = ChatRequest {
        sampling: sampling.sampling(&mut ignored)?,
        tokens_max: sent.max_output_tokens,
        stop: sampling.stop()?,
        output,
        strict,
        thinking,
        logprobs: sent.logprobs(&mut ignored),
        keep_alive: sent.keep_alive,
        reading: delivery.reading(),
        ..ChatRequest::default()
    };
    if sent.background == Some(true) {
        ignored.push("background".to_owned());
    }
    Ok(WireResponse {
        model: sent.model.take().map(|name| name.0),
        input,
        delivery,
        is_stored: sent.store.unwrap_or(true),
        ignored,
        unknown: fields.into_unknown(),
        tells_loading: sent.loading_status.unwrap_or(false),
        conversation: Conversation {
            messages: Vec::new(),
            tools,
            tool_choice,
            parallel_tool_calls: sent.parallel_tool_calls.unwrap_or(true),
            template_arguments,
        },
        settings: ResponseSettings::new(sent, &source, &request)?,
        source,
        request,
    })
}

impl WireResponse {
    /// The request with its whole conversation: the instructions, then `items`, which end with the input.
    ///
    /// # Errors
    /// The conversation has too many items, or an item with too many calls.
    pub fn chat_request<'a>(
        &mut self,
        items: impl ExactSizeIterator<Item = &'a ResponseItem>,
    ) -> Result<ChatRequest, WireError> {
        if items.len() > MESSAGES_MAX {
            let reason = format!(
                "and the conversation before it have {} items, and the limit is {MESSAGES_MAX}",
                items.len()
            );
            return Err(WireError::invalid("input", reason));
        }
        let mut conversation = std::mem::take(&mut self.conversation);
        let messages = messages(self.settings.instructions.as_deref(), items)?;
        conversation.messages = with_needed_thinking(messages, &conversation.tools);
        let request = std::mem::take(&mut self.request);
        Ok(ChatRequest { prompt: Prompt::Chat(conversation), ..request })
    }
}

impl ResponseFields {
    /// Alternatives of each token, if log probabilities are wanted.
    fn logprobs(&self, ignored: &mut Vec<String>) -> Option<u8> {
        let include = self.include.iter().flatten();
        let (wanted, others): (Vec<_>, Vec<_>) = include.partition(|name| *name == LOGPROBS);
        ignored.extend(others.iter().map(|name| format!("include.{name}")));
        let top = self.top_logprobs.filter(|top| *top > 0);
        (top.is_some() || !wanted.is_empty()).then_some(top.unwrap_or(0) as u8)
    }
}

impl ResponseSettings {
    fn new(
        sent: ResponseFields,
        source: &ResponseSource,
        request: &ChatRequest,
    ) -> Result<ResponseSettings, WireError> {
        let (previous, conversation) = match source {
            ResponseSource::Nothing => (None, None),
            ResponseSource::Response(id) => (Some(id.clone()), None),
            ResponseSource::Conversation(id) => {
                (None, Some(ConversationRef { id: Name(id.clone()) }))
            }
        };
        let mut text = sent.text.unwrap_or_default();
        text.entry("format").or_insert_with(|| json!({ "type": "text" }));
        let tools = sent.tools.unwrap_or_default().into_iter();
        Ok(ResponseSettings {
            background: false,
            conversation,
            instructions: sent.instructions,
            max_output_tokens: sent.max_output_tokens,
            metadata: checked_metadata(sent.metadata)?,
            parallel_tool_calls: sent.parallel_tool_calls.unwrap_or(true),
            previous_response_id: previous,
            reasoning: ShownReasoning { effort: request.thinking.effort.map(Word), summary: None },
            store: sent.store.unwrap_or(true),
            temperature: request.sampling.temperature,
            text,
            tool_choice: sent.tool_choice.unwrap_or_else(|| json!("auto")),
            tools: tools.filter(is_function).map(shown_tool).collect(),
            top_logprobs: sent.top_logprobs.unwrap_or(0),
            top_p: request.sampling.top_p,
            truncation: "disabled",
        })
    }
}

/// A text is a message of the user.
fn entries(sent: Option<Either<String, Vec<InputItem>>>) -> Result<Vec<InputEntry>, WireError> {
    match sent {
        None => Ok(Vec::new()),
        Some(Either::First(text)) => Ok(vec![InputEntry::Item(ResponseItem::user(text))]),
        Some(Either::Second(items)) => read_items("input", items),
    }
}

/// Items of the list `field`.
fn read_items(field: &str, items: Vec<InputItem>) -> Result<Vec<InputEntry>, WireError> {
    each(field, items, ("items", MESSAGES_MAX), InputItem::entry)
}

fn items_of(entries: &[InputEntry]) -> impl Iterator<Item = &ResponseItem> {
    entries.iter().filter_map(|entry| match entry {
        InputEntry::Item(item) => Some(item),
        InputEntry::Reference(_) => None,
    })
}

fn source(
    previous: Option<Name>,
    conversation: Option<Either<Name, ConversationRef>>,
) -> Result<ResponseSource, WireError> {
    let conversation = conversation.map(|sent| match sent {
        Either::First(id) | Either::Second(ConversationRef { id }) => id.0,
    });
    match (previous, conversation) {
        (Some(_), Some(_)) => {
            let reason =
                "cannot be combined with 'previous_response_id': both say what comes before";
            Err(WireError::invalid("conversation", reason))
        }
        (Some(previous), None) => Ok(ResponseSource::Response(previous.0)),
        (None, Some(conversation)) => Ok(ResponseSource::Conversation(conversation)),
        (None, None) => Ok(ResponseSource::Nothing),
    }
}

fn functions(
    tools: &[Map<String, Value>],
    choice: Option<&Value>,
    ignored: &mut Vec<String>,
) -> Result<(Vec<Tool>, ToolChoice), WireError> {
    let has_functions = tools.iter().any(is_function);
    let read = |(index, tool): (usize, &Map<String, Value>)| {
        let function = match kind_of(tool) {
            FUNCTION => FunctionField::deserialize(RequestValue(Value::Object(tool.clone()))),
            // Codex lists tools of OpenAI's servers next to its functions, and works without them.
            other if has_functions => {
                ignored.push(format!("tools.{other}"));
                return None;
            }
            other => {
                let other: String = other.chars().take(32).collect();
                let reason = format!(
                    "is '{other}', and hob runs no such tool: offer functions, or ask a team, whose agents have tools"
                );
                Err(WireError::invalid("type", reason))
            }
        };
        Some(function.map_err(|error| error.within(&format!("tools[{index}]"))))
    };
    let functions = tools.iter().enumerate().filter_map(read);
    let choice = choice.cloned().map(|choice| {
        let choice = Choice::deserialize(RequestValue(choice));
        choice.map_err(|error| error.within("tool_choice"))
    });
    flat_tools(functions.collect::<Result<_, _>>()?, choice.transpose()?)
}

fn kind_of(tool: &Map<String, Value>) -> &str {
    tool.get("type").and_then(Value::as_str).unwrap_or(FUNCTION)
}

fn is_function(tool: &Map<String, Value>) -> bool {
    kind_of(tool) == FUNCTION
}

/// The form of the answer, and whether its schema is to be enforced whole.
fn form(
    text: Option<&Map<String, Value>>,
    ignored: &mut Vec<String>,
) -> Result<(OutputFormat, bool), WireError> {
    let mut fields = Fields::of(text.cloned().unwrap_or_default());
    let sent: ResponseText = fields.read().map_err(|error| error.within("text"))?;
    ignored.extend(fields.into_unknown().iter().map(|name| format!("text.{name}")));
    let Some(format) = sent.format else { return Ok((OutputFormat::Text, false)) };
    flat_format(format).map_err(|error| error.within("text.format"))
}

/// A tool as answers repeat it. OpenAI's clients need each of these members.
fn shown_tool(mut tool: Map<String, Value>) -> Map<String, Value> {
    for (name, value) in [
        ("type", json!(FUNCTION)),
        ("description", Value::Null),
        ("parameters", Value::Null),
        ("strict", json!(false)),
    ] {
        tool.entry(name).or_insert(value);
    }
    tool
}

fn checked_metadata(
    sent: Option<BTreeMap<String, String>>,
) -> Result<BTreeMap<String, String>, WireError> {
    let sent = sent.unwrap_or_default();
    let chars = |text: &str| text.chars().count();
    check_count("metadata", sent.len(), ("names", METADATA_MAX))?;
    let reason = if sent.keys().any(|name| chars(name) > METADATA_NAME_CHARS_MAX) {
        format!("has a name of more than {METADATA_NAME_CHARS_MAX} characters")
    } else if sent.values().any(|text| chars(text) > METADATA_CHARS_MAX) {
        format!("has a text of more than {METADATA_CHARS_MAX} characters")
    } else {
        return Ok(sent);
    };
    Err(WireError::invalid("metadata", reason))
}
