//! Messages as OpenAI's clients write them: six roles, contents in three forms, calls and answers.
//! Thinking is kept where there are tools: some models refuse a call without the thinking that led to it.

use hob_core::JsonText;
use hob_core::chat::{Image, Message, Role, Tool, ToolCall};
use schemars::JsonSchema;
use serde::{Deserialize, Deserializer};
use serde_json::{Map, Value};

use crate::WireError;
use crate::request_value::{Either, JsonKind, Name, each};

pub(crate) const MESSAGES_MAX: usize = 10_000;

/// Calls in one message.
pub(crate) const CALLS_MAX: usize = 128;

/// A message of a conversation.
#[derive(Deserialize, JsonSchema)]
pub(super) struct ChatMessage {
    role: ChatRole,
    /// A text, or a list of parts. Only messages of the assistant and of tools may leave it out.
    content: Option<Either<String, Vec<ContentPart>>>,
    name: Option<Name>,
    /// What the assistant thought. It counts where tools are offered or were called.
    reasoning_content: Option<String>,
    /// Calls that the assistant made, at most 128.
    tool_calls: Option<Vec<MessageCall>>,
    /// A call as it was before there were tools.
    function_call: Option<FunctionCall>,
    /// For a message of a tool: the call that it answers. Default: the last call.
    tool_call_id: Option<Name>,
}

#[derive(Clone, Copy, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
#[schemars(inline)]
enum ChatRole {
    System,
    Developer,
    User,
    Assistant,
    Tool,
    Function,
}

/// A part of a message: text or a picture.
#[derive(Deserialize, JsonSchema)]
struct ContentPart {
    /// `text`, `refusal` or `image_url`.
    r#type: String,
    text: Option<String>,
    refusal: Option<String>,
    /// An address that begins with `data:`, `https:` or `http:`.
    image_url: Option<Either<String, ImageUrl>>,
}

/// The address of a picture.
#[derive(Deserialize, JsonSchema)]
struct ImageUrl {
    url: String,
    detail: Option<Name>,
}

impl JsonKind for ImageUrl {}

/// A call of a tool.
#[derive(Deserialize, JsonSchema)]
struct MessageCall {
    #[expect(dead_code, reason = "only checked: it is always 'function'")]
    r#type: Option<FunctionType>,
    id: Option<Name>,
    function: FunctionCall,
}

/// The only kind of tool.
#[derive(Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
#[schemars(inline)]
pub(super) enum FunctionType {
    Function,
}

/// A call of a function.
#[derive(Deserialize, JsonSchema)]
pub(crate) struct FunctionCall {
    pub(crate) name: Name,
    /// A JSON object, or a string that holds one. A string that holds none counts as `{}`.
    #[serde(default, deserialize_with = "arguments")]
    #[schemars(with = "Option<Arguments>")]
    pub(crate) arguments: Option<JsonText>,
}

type Arguments = Either<String, Map<String, Value>>;

/// An object inside a string, as OpenAI writes it, or an object, as others do. A string that holds none, such as a call that
/// was cut, becomes an empty object: clients repeat it in each later request, and most servers refuse it.
pub(crate) fn arguments<'de, D: Deserializer<'de>>(value: D) -> Result<Option<JsonText>, D::Error> {
    let object = match Option::<Arguments>::deserialize(value)? {
        Some(Either::First(text)) => serde_json::from_str(&text).unwrap_or_default(),
        Some(Either::Second(object)) => object,
        None => Map::new(),
    };
    Ok(Some(JsonText::parsed(Value::Object(object).to_string())))
}

impl FunctionCall {
    pub(crate) fn into_arguments(self) -> JsonText {
        self.arguments.unwrap_or_else(|| JsonText::parsed("{}"))
    }
}

pub(super) fn messages(sent: Vec<ChatMessage>) -> Result<Vec<Message>, WireError> {
    const FIELD: &str = "messages";
    if sent.is_empty() {
        return Err(WireError::invalid(FIELD, "is empty"));
    }
    let mut calls = Calls::default();
    each(FIELD, sent, ("messages", MESSAGES_MAX), |message| calls.message(message))
}

/// Drops the thinking of a conversation without tools and calls: later turns do not need it, and some servers refuse it.
/// Where tools are offered, DeepSeek refuses a conversation in which the thinking of any turn is missing.
pub(crate) fn with_needed_thinking(mut messages: Vec<Message>, tools: &[Tool]) -> Vec<Message> {
    if tools.is_empty() && messages.iter().all(|message| message.tool_calls.is_empty()) {
        messages.iter_mut().for_each(|message| message.reasoning = None);
    }
    messages
}

/// Numbers calls without an id, and remembers the last call for an answer that names none.
#[derive(Default)]
struct Calls {
    count: usize,
    last: Option<String>,
}

impl Calls {
    fn message(&mut self, sent: ChatMessage) -> Result<Message, WireError> {
        let role = match sent.role {
            ChatRole::System | ChatRole::Developer => Role::System,
            ChatRole::User => Role::User,
            ChatRole::Assistant => Role::Assistant,
            ChatRole::Tool | ChatRole::Function => Role::Tool,
        };
        let tool_calls = match role {
            Role::Assistant => self.calls(sent.tool_calls, sent.function_call)?,
            Role::System | Role::User | Role::Tool => Vec::new(),
        };
        let tool_call_id = match role {
            Role::Tool => sent.tool_call_id.map(|id| id.0).or_else(|| self.last.clone()),
            Role::System | Role::User | Role::Assistant => None,
        };
        let Content { text, images } = content(sent.content, role)?;
        let name = sent.name.map(|name| name.0);
        let reasoning = sent.reasoning_content.filter(|_| role == Role::Assistant);
        Ok(Message { role, text, name, reasoning, tool_calls, tool_call_id, images })
    }

    fn calls(
        &mut self,
        sent: Option<Vec<MessageCall>>,
        function: Option<FunctionCall>,
    ) -> Result<Vec<ToolCall>, WireError> {
        let call = |MessageCall { id, function, .. }| {
            self.call(id, function).map_err(|error| error.within("function"))
        };
        let sent = sent.unwrap_or_default();
        let mut calls = each("tool_calls", sent, ("calls", CALLS_MAX), call)?;
        if let Some(function) = function {
            let call = self.call(None, function);
            calls.push(call.map_err(|error| error.within("function_call"))?);
        }
        Ok(calls)
    }

    fn call(&mut self, id: Option<Name>, function: FunctionCall) -> Result<ToolCall, WireError> {
        let name = function.name.0.clone();
        if name.is_empty() {
            return Err(WireError::missing("name"));
        }
        // Nine letters and digits, which is what the strictest templates take.
        let id = id.map(|id| id.0).filter(|id| !id.is_empty());
        let id = id.unwrap_or_else(|| format!("call{:05}", self.count));
        self.count += 1;
        self.last = Some(id.clone());
        Ok(ToolCall { id, name, arguments: function.into_arguments() })
    }
}

/// A message with calls, or of a tool that returns nothing, may have no content.
fn content(
    sent: Option<Either<String, Vec<ContentPart>>>,
    role: Role,
) -> Result<Content, WireError> {
    let mut content = Content::default();
    match sent {
        None if matches!(role, Role::Assistant | Role::Tool) => {}
        None => return Err(WireError::missing("content")),
        Some(Either::First(text)) => content.text = text,
        Some(Either::Second(parts)) => {
            for (index, part) in parts.into_iter().enumerate() {
                let added = content.part(part);
                added.map_err(|error| error.within(&format!("content[{index}]")))?;
            }
        }
    }
    Ok(content)
}

#[derive(Default)]
struct Content {
    text: String,
    images: Vec<Image>,
}

impl Content {
    /// Texts are lines of one text.
    fn part(&mut self, part: ContentPart) -> Result<(), WireError> {
        let (field, text) = match part.r#type.as_str() {
            "image_url" => {
                self.images.push(image(self.text.len(), part.image_url)?);
                return Ok(());
            }
            "text" => ("text", part.text),
            "refusal" => ("refusal", part.refusal),
            kind @ ("input_audio" | "video_url" | "file") => {
                let reason = format!("is '{kind}', and models here take text and pictures");
                return Err(WireError::invalid("type", reason));
            }
            _ => {
                let reason = "must be 'text', 'image_url' or 'refusal'";
                return Err(WireError::invalid("type", reason));
            }
        };
        if !self.text.is_empty() {
            self.text.push('\n');
        }
        self.text += &text.ok_or_else(|| WireError::missing(field))?;
        Ok(())
    }
}

/// `{"url", "detail"}`, or the address alone, as older clients write it.
fn image(at: usize, sent: Option<Either<String, ImageUrl>>) -> Result<Image, WireError> {
    const FIELD: &str = "image_url";
    let (url, detail) = match sent {
        None => return Err(WireError::missing(FIELD)),
        Some(Either::First(url)) => (url, None),
        Some(Either::Second(ImageUrl { url, detail })) => (url, detail.map(|detail| detail.0)),
    };
    if !["data:", "https://", "http://"].iter().any(|scheme| url.starts_with(scheme)) {
        let reason = "must be an address that begins with data:, https: or http:";
        return Err(WireError::invalid(FIELD, reason));
    }
    Ok(Image { at, url, detail })
}
