//! Items of a conversation in the Responses API: messages, thinking, calls of functions and their results.
//! Items of a request become items as OpenAI shows them, and these become messages for a model.

use hob_core::chat::{Image, Message, Role, TokenLogprob, ToolCall};
use hob_core::{ChatEvent, JsonText};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize, Serializer};

use crate::WireError;
use crate::chat::{CALLS_MAX, ChosenToken, arguments, chosen};
use crate::error::json;
use crate::request_value::{Either, Name, each};
use crate::word::{Word, named};

const KINDS: [&str; 5] =
    ["message", "function_call", "function_call_output", "reasoning", "item_reference"];

/// Parts of one item.
const PARTS_MAX: usize = 1_000;

/// An item of a request. `type` decides which other fields count.
#[derive(Deserialize, JsonSchema)]
pub(crate) struct InputItem {
    /// Default: hob makes one.
    id: Option<Name>,
    /// `message`, `function_call`, `function_call_output`, `reasoning` or `item_reference`. Default: `message`.
    r#type: Option<Name>,
    /// For a message.
    role: Option<Word<InputRole>>,
    /// For a message and for thinking: a text, or a list of parts.
    content: Option<Either<String, Vec<InputPart>>>,
    /// For a call and its result: the id that joins them.
    call_id: Option<Name>,
    /// For a call: the function.
    name: Option<Name>,
    /// For a call: a JSON object as text.
    #[serde(default, deserialize_with = "arguments")]
    #[schemars(with = "Option<String>")]
    arguments: Option<JsonText>,
    /// For the result of a call: a text, or a list of parts.
    output: Option<Either<String, Vec<InputPart>>>,
}

hob_core::enum_table! {
    #[derive(Clone, Copy)]
    enum InputRole: name {
        System = "system",
        Developer = "developer",
        User = "user",
        Assistant = "assistant",
    }
}

named!(InputRole);

/// A part of an item: text or a picture.
#[derive(Deserialize, JsonSchema)]
struct InputPart {
    /// `input_text`, `output_text`, `refusal`, `reasoning_text` or `input_image`.
    r#type: Name,
    text: Option<String>,
    refusal: Option<String>,
    /// For `input_image`: an address that begins with `data:`, `https:` or `http:`.
    image_url: Option<String>,
    detail: Option<Name>,
}

/// An item of a request, or the id of one that hob stores.
#[derive(Debug)]
pub enum InputEntry {
    Item(ResponseItem),
    Reference(String),
}

/// An item of a conversation.
#[derive(Clone, JsonSchema, Serialize)]
pub struct ResponseItem {
    /// hob gives an item without an id one of its own.
    pub(super) id: String,
    /// `in_progress`, `completed` or `incomplete`.
    pub(super) status: &'static str,
    #[serde(flatten)]
    pub(super) body: ResponseItemBody,
}

#[derive(Clone, JsonSchema, Serialize)]
#[serde(tag = "type", rename_all = "snake_case")]
pub(super) enum ResponseItemBody {
    Message {
        /// `system`, `developer`, `user` or `assistant`.
        role: &'static str,
        content: Vec<ResponsePart>,
    },
    /// What the model thought. It counts where functions are offered or were called.
    Reasoning {
        /// hob makes none.
        summary: [(); 0],
        content: Vec<ResponsePart>,
    },
    FunctionCall {
        call_id: String,
        name: String,
        /// A JSON object.
        arguments: String,
    },
    FunctionCallOutput {
        call_id: String,
        /// What the tool returned.
        output: Either<String, Vec<ResponsePart>>,
    },
}

/// A part of an item.
#[derive(Clone, JsonSchema, Serialize)]
#[serde(tag = "type", rename_all = "snake_case")]
pub(super) enum ResponsePart {
    InputText {
        text: String,
    },
    InputImage {
        image_url: String,
        detail: String,
    },
    OutputText {
        text: String,
        annotations: [(); 0],
        #[serde(serialize_with = "all_chosen")]
        #[schemars(with = "Vec<ChosenToken>")]
        logprobs: Vec<TokenLogprob>,
    },
    Refusal {
        refusal: String,
    },
    ReasoningText {
        text: String,
    },
}

fn all_chosen<S: Serializer>(tokens: &[TokenLogprob], to: S) -> Result<S::Ok, S::Error> {
    to.collect_seq(tokens.iter().map(chosen))
}

hob_core::debug_fields!(ResponseItem: id);

impl InputItem {
    /// # Errors
    /// The type is unknown here, or a field that it needs is missing.
    pub(super) fn entry(self) -> Result<InputEntry, WireError> {
        let needed = |field: Option<Name>, name: &str| {
            field.map(|name| name.0).ok_or_else(|| WireError::missing(name))
        };
        let id = self.id.map(|id| id.0).unwrap_or_default();
        let kind = self.r#type.map_or_else(|| "message".to_owned(), |kind| kind.0);
        let body = match kind.as_str() {
            "message" => message(self.role, self.content)?,
            "function_call" => ResponseItemBody::FunctionCall {
                call_id: needed(self.call_id, "call_id")?,
                name: needed(self.name, "name")?,
                arguments: self.arguments.map_or("{}".to_owned(), |sent| sent.as_str().to_owned()),
            },
            "function_call_output" => ResponseItemBody::FunctionCallOutput {
                call_id: needed(self.call_id, "call_id")?,
                output: match self.output.ok_or_else(|| WireError::missing("output"))? {
                    Either::First(text) => Either::First(text),
                    Either::Second(sent) => Either::Second(parts("output", sent)?),
                },
            },
            "reasoning" => ResponseItemBody::Reasoning {
                summary: [],
                content: match self.content {
                    Some(Either::Second(sent)) => parts("content", sent)?,
                    Some(Either::First(_)) | None => Vec::new(),
                },
            },
            "item_reference" if id.is_empty() => return Err(WireError::missing("id")),
            "item_reference" => return Ok(InputEntry::Reference(id)),
            other => return Err(WireError::not_one_of("type", other, &KINDS)),
        };
        Ok(InputEntry::Item(ResponseItem { id, status: "completed", body }))
    }
}

fn message(
    role: Option<Word<InputRole>>,
    content: Option<Either<String, Vec<InputPart>>>,
) -> Result<ResponseItemBody, WireError> {
    let Word(role) = role.ok_or_else(|| WireError::missing("role"))?;
    let role = role.name();
    let content = match content.ok_or_else(|| WireError::missing("content"))? {
        Either::First(text) if role == "assistant" => vec![ResponsePart::output_text(text)],
        Either::First(text) => vec![ResponsePart::InputText { text }],
        Either::Second(sent) => parts("content", sent)?,
    };
    Ok(ResponseItemBody::Message { role, content })
}

fn parts(field: &str, sent: Vec<InputPart>) -> Result<Vec<ResponsePart>, WireError> {
    each(field, sent, ("parts", PARTS_MAX), InputPart::part)
}

impl InputPart {
    fn part(self) -> Result<ResponsePart, WireError> {
        const KINDS: [&str; 5] =
            ["input_text", "output_text", "refusal", "reasoning_text", "input_image"];
        let text = |text: Option<String>| text.ok_or_else(|| WireError::missing("text"));
        match self.r#type.0.as_str() {
            "input_text" => Ok(ResponsePart::InputText { text: text(self.text)? }),
            "output_text" => Ok(ResponsePart::output_text(text(self.text)?)),
            "reasoning_text" => Ok(ResponsePart::ReasoningText { text: text(self.text)? }),
            "refusal" => {
                let refusal = self.refusal.ok_or_else(|| WireError::missing("refusal"))?;
                Ok(ResponsePart::Refusal { refusal })
            }
            "input_image" => {
                let image_url = self.image_url.ok_or_else(|| {
                    WireError::invalid("image_url", "is missing: hob stores no files")
                })?;
                if !["data:", "https://", "http://"].iter().any(|way| image_url.starts_with(way)) {
                    let reason = "must be an address that begins with data:, https: or http:";
                    return Err(WireError::invalid("image_url", reason));
                }
                let detail = self.detail.map_or_else(|| "auto".to_owned(), |detail| detail.0);
                Ok(ResponsePart::InputImage { image_url, detail })
            }
            other => Err(WireError::not_one_of("type", other, &KINDS)),
        }
    }
}

impl ResponsePart {
    pub(super) fn output_text(text: String) -> ResponsePart {
        ResponsePart::OutputText { text, annotations: [], logprobs: Vec::new() }
    }

    /// None for parts that cannot have log probabilities.
    pub(super) fn logprobs(&self) -> Option<Vec<ChosenToken<'_>>> {
        match self {
            ResponsePart::OutputText { logprobs, .. } => {
                Some(logprobs.iter().map(chosen).collect())
            }
            _ => None,
        }
    }

    /// The text of an answer, with the probabilities of its tokens before it.
    fn events(&self) -> Vec<ChatEvent> {
        let tokens = match self {
            ResponsePart::OutputText { logprobs, .. } if !logprobs.is_empty() => Some(logprobs),
            _ => None,
        };
        let tokens = tokens.map(|tokens| ChatEvent::Logprobs(tokens.clone()));
        let text = self.text().map(|text| ChatEvent::Text(text.to_owned()));
        tokens.into_iter().chain(text).collect()
    }

    pub(super) fn text(&self) -> Option<&str> {
        match self {
            ResponsePart::InputText { text }
            | ResponsePart::OutputText { text, .. }
            | ResponsePart::ReasoningText { text } => Some(text),
            ResponsePart::Refusal { refusal } => Some(refusal),
            ResponsePart::InputImage { .. } => None,
        }
    }
}

impl ResponseItem {
    /// A message of the user, without an id.
    pub(super) fn user(text: String) -> ResponseItem {
        let content = vec![ResponsePart::InputText { text }];
        let body = ResponseItemBody::Message { role: "user", content };
        ResponseItem { id: String::new(), status: "completed", body }
    }

    pub fn id(&self) -> &str {
        &self.id
    }

    /// Gives an item without an id one that ends in `suffix`, after the prefix of its type.
    pub fn set_default_id(&mut self, suffix: &str) {
        if self.id.is_empty() {
            let prefix = match self.body {
                ResponseItemBody::Message { .. } => "msg",
                ResponseItemBody::Reasoning { .. } => "rs",
                ResponseItemBody::FunctionCall { .. } => "fc",
                ResponseItemBody::FunctionCallOutput { .. } => "fco",
            };
            self.id = format!("{prefix}_{suffix}");
        }
    }

    /// Bytes that the item takes, about.
    pub fn bytes(&self) -> usize {
        const OVERHEAD_BYTES: usize = 128;
        let parts = |parts: &[ResponsePart]| parts.iter().map(ResponsePart::bytes).sum::<usize>();
        OVERHEAD_BYTES
            + match &self.body {
                ResponseItemBody::Message { content, .. }
                | ResponseItemBody::Reasoning { content, .. } => parts(content),
                ResponseItemBody::FunctionCall { name, arguments, .. } => {
                    name.len() + arguments.len()
                }
                ResponseItemBody::FunctionCallOutput { output: Either::First(text), .. } => {
                    text.len()
                }
                ResponseItemBody::FunctionCallOutput { output: Either::Second(sent), .. } => {
                    parts(sent)
                }
            }
    }

    pub fn to_json(&self) -> String {
        json(self)
    }

    /// The events that make this item of an answer, each text in one piece. `call` is the number of the next call.
    pub(super) fn events(&self, call: &mut u32) -> Vec<ChatEvent> {
        match &self.body {
            ResponseItemBody::Message { content, .. } => {
                content.iter().flat_map(ResponsePart::events).collect()
            }
            ResponseItemBody::Reasoning { content, .. } => {
                let texts = content.iter().filter_map(ResponsePart::text);
                texts.map(|text| ChatEvent::Reasoning(text.to_owned())).collect()
            }
            ResponseItemBody::FunctionCall { call_id, name, arguments } => {
                let index = *call;
                *call += 1;
                let begin = ChatEvent::ToolCall { index, id: call_id.clone(), name: name.clone() };
                vec![begin, ChatEvent::ToolArguments { index, piece: arguments.clone() }]
            }
            ResponseItemBody::FunctionCallOutput { .. } => Vec::new(),
        }
    }

    fn content_mut(&mut self) -> Option<&mut Vec<ResponsePart>> {
        match &mut self.body {
            ResponseItemBody::Message { content, .. }
            | ResponseItemBody::Reasoning { content, .. } => Some(content),
            ResponseItemBody::FunctionCall { .. } | ResponseItemBody::FunctionCallOutput { .. } => {
                None
            }
        }
    }

    pub(super) fn push_part(&mut self, part: ResponsePart) {
        self.content_mut().into_iter().for_each(|content| content.push(part.clone()));
    }

    /// The first part of a message or of thinking.
    pub(super) fn part(&self) -> Option<&ResponsePart> {
        match &self.body {
            ResponseItemBody::Message { content, .. }
            | ResponseItemBody::Reasoning { content, .. } => content.first(),
            ResponseItemBody::FunctionCall { .. } | ResponseItemBody::FunctionCallOutput { .. } => {
                None
            }
        }
    }

    /// The text that is being written, and the log probabilities of a message's tokens.
    pub(super) fn text_mut(&mut self) -> Option<(&mut String, Option<&mut Vec<TokenLogprob>>)> {
        match self.content_mut()?.first_mut()? {
            ResponsePart::OutputText { text, logprobs, .. } => Some((text, Some(logprobs))),
            ResponsePart::ReasoningText { text } => Some((text, None)),
            _ => None,
        }
    }

    pub(super) fn is_message(&self) -> bool {
        matches!(self.body, ResponseItemBody::Message { .. })
    }

    /// The function and the arguments of a call.
    pub(super) fn call(&self) -> Option<(&str, &str)> {
        match &self.body {
            ResponseItemBody::FunctionCall { name, arguments, .. } => Some((name, arguments)),
            _ => None,
        }
    }
}

impl ResponsePart {
    fn bytes(&self) -> usize {
        const OVERHEAD_BYTES: usize = 64;
        OVERHEAD_BYTES
            + match self {
                ResponsePart::InputImage { image_url, .. } => image_url.len(),
                ResponsePart::OutputText { text, logprobs, .. } => {
                    let each =
                        |token: &TokenLogprob| OVERHEAD_BYTES + token.top.len() * OVERHEAD_BYTES;
                    text.len() + logprobs.iter().map(each).sum::<usize>()
                }
                other => other.text().map_or(0, str::len),
            }
    }
}

/// The conversation as a model takes it. Calls join the message before them, and thinking the message after it.
///
/// # Errors
/// One message has more calls than a request may have.
pub(super) fn messages<'a>(
    instructions: Option<&str>,
    items: impl IntoIterator<Item = &'a ResponseItem>,
) -> Result<Vec<Message>, WireError> {
    let mut messages: Vec<Message> = Vec::new();
    messages.extend(instructions.map(|text| Message::new(Role::System, text)));
    let mut reasoning: Option<String> = None;
    for item in items {
        match &item.body {
            ResponseItemBody::Message { role, content } => {
                let role = match *role {
                    "user" => Role::User,
                    "assistant" => Role::Assistant,
                    _ => Role::System,
                };
                let reasoning = reasoning.take().filter(|_| role == Role::Assistant);
                messages.push(Message { reasoning, ..joined(role, content) });
            }
            ResponseItemBody::Reasoning { content, .. } => {
                let text = joined(Role::Assistant, content).text;
                reasoning = (!text.is_empty()).then_some(text);
            }
            ResponseItemBody::FunctionCall { call_id, name, arguments } => {
                if messages.last().is_none_or(|last| last.role != Role::Assistant) {
                    messages.push(Message::new(Role::Assistant, ""));
                }
                if let (Some(last), Some(more)) = (messages.last_mut(), reasoning.take()) {
                    let before = last.reasoning.take().map(|before| before + "\n");
                    last.reasoning = Some(before.unwrap_or_default() + &more);
                }
                let arguments = JsonText::parsed(arguments.as_str());
                let call = ToolCall { id: call_id.clone(), name: name.clone(), arguments };
                let calls = messages.last_mut().map(|last| &mut last.tool_calls);
                if calls.as_ref().is_some_and(|calls| calls.len() == CALLS_MAX) {
                    let reason = format!("has more than {CALLS_MAX} calls in a row");
                    return Err(WireError::invalid("input", reason));
                }
                calls.into_iter().for_each(|calls| calls.push(call.clone()));
            }
            ResponseItemBody::FunctionCallOutput { call_id, output } => {
                let message = match output {
                    Either::First(text) => Message::new(Role::Tool, text.as_str()),
                    Either::Second(parts) => joined(Role::Tool, parts),
                };
                messages.push(Message { tool_call_id: Some(call_id.clone()), ..message });
            }
        }
    }
    Ok(messages)
}

/// Texts are lines of one text, with the pictures between them.
fn joined(role: Role, parts: &[ResponsePart]) -> Message {
    let mut message = Message::new(role, "");
    for part in parts {
        match part {
            ResponsePart::InputImage { image_url, detail } => message.images.push(Image {
                at: message.text.len(),
                url: image_url.clone(),
                detail: Some(detail.clone()),
            }),
            other => {
                if !message.text.is_empty() {
                    message.text.push('\n');
                }
                message.text += other.text().unwrap_or_default();
            }
        }
    }
    message
}
