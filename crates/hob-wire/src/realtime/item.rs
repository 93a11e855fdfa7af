//! Items of a conversation as JSON. Clients of the older dialect write and read `text` and `audio` where GA has
//! `output_text` and `output_audio`.

use hob_core::JsonText;
use hob_core::chat::Role;
use hob_core::realtime::{ItemBody, ItemContent, ItemStatus, RealtimeItem};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::RealtimeDialect;
use crate::WireError;
use crate::chat::arguments;
use crate::request_value::{JsonKind, Name, each};

/// Parts of one message.
const PARTS_MAX: usize = 128;

/// An item of a conversation: a message, a call of a tool, or the result of one.
#[derive(Clone, Debug, Deserialize, JsonSchema)]
pub(crate) struct SentItem {
    /// Default: the server makes one.
    id: Option<Name>,
    r#type: ItemType,
    /// For a message.
    role: Option<ItemRole>,
    /// For a message: its parts, at most 128.
    content: Option<Vec<SentPart>>,
    /// For a call and its result: the id that joins them.
    call_id: Option<Name>,
    /// For a call: the function.
    name: Option<Name>,
    /// For a call: a JSON object as text.
    #[serde(default, deserialize_with = "arguments")]
    #[schemars(with = "Option<String>")]
    arguments: Option<JsonText>,
    /// For the result of a call.
    output: Option<String>,
}

#[derive(Clone, Copy, Debug, Deserialize, JsonSchema, PartialEq, Eq)]
#[serde(rename_all = "snake_case")]
#[schemars(inline)]
enum ItemType {
    Message,
    FunctionCall,
    FunctionCallOutput,
}

#[derive(Clone, Copy, Debug, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
#[schemars(inline)]
enum ItemRole {
    System,
    User,
    Assistant,
}

/// A part of a message.
#[derive(Clone, Debug, Deserialize, JsonSchema)]
struct SentPart {
    r#type: PartType,
    /// For `input_text` and `output_text`.
    text: Option<String>,
    /// For `input_audio` and `output_audio`: what was said. hob transcribes only sound of the input buffer.
    transcript: Option<String>,
    /// Sound in base64, which needs its `transcript`: hob does not hear it.
    audio: Option<String>,
    /// For `input_image`: an address that begins with `data:`, `https:` or `http:`.
    image_url: Option<String>,
    /// For `input_image`: `auto`, `low` or `high`.
    detail: Option<Name>,
}

/// `text` and `audio` are `output_text` and `output_audio` in the older dialect.
#[derive(Clone, Copy, Debug, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
#[schemars(inline)]
enum PartType {
    InputText,
    InputAudio,
    InputImage,
    OutputText,
    OutputAudio,
    Text,
    Audio,
}

impl JsonKind for SentItem {}

impl SentItem {
    /// An item without an id gets an empty one, which the session replaces.
    ///
    /// # Errors
    /// A field that its type needs is missing.
    pub(super) fn item(self) -> Result<RealtimeItem, WireError> {
        let needed = |field: Option<Name>, name: &str| {
            field.map(|name| name.0).ok_or_else(|| WireError::missing(name))
        };
        let body = match self.r#type {
            ItemType::Message => message(self.role, self.content.unwrap_or_default())?,
            ItemType::FunctionCall => ItemBody::Call {
                call_id: needed(self.call_id, "call_id")?,
                name: needed(self.name, "name")?,
                arguments: self.arguments.map_or("{}".to_owned(), |sent| sent.as_str().to_owned()),
            },
            ItemType::FunctionCallOutput => ItemBody::CallOutput {
                call_id: needed(self.call_id, "call_id")?,
                output: self.output.ok_or_else(|| WireError::missing("output"))?,
            },
        };
        let id = self.id.map(|id| id.0).unwrap_or_default();
        Ok(RealtimeItem { id, status: ItemStatus::Completed, body, reasoning: None })
    }
}

fn message(role: Option<ItemRole>, sent: Vec<SentPart>) -> Result<ItemBody, WireError> {
    let role = match role.ok_or_else(|| WireError::missing("role"))? {
        ItemRole::System => Role::System,
        ItemRole::User => Role::User,
        ItemRole::Assistant => Role::Assistant,
    };
    let content = each("content", sent, ("parts", PARTS_MAX), |part| part.content(role))?;
    Ok(ItemBody::Message { role, content })
}

impl SentPart {
    fn content(self, role: Role) -> Result<ItemContent, WireError> {
        let needed = |field: Option<String>, name| field.ok_or_else(|| WireError::missing(name));
        match (self.r#type, role) {
            (PartType::OutputText | PartType::Text, Role::Assistant) => {
                Ok(ItemContent::OutputText(needed(self.text, "text")?))
            }
            (PartType::OutputAudio | PartType::Audio, Role::Assistant) => {
                let transcript = needed(self.transcript, "transcript")?;
                Ok(ItemContent::OutputAudio { transcript })
            }
            (PartType::InputText | PartType::Text, Role::User | Role::System) => {
                Ok(ItemContent::InputText(needed(self.text, "text")?))
            }
            (PartType::InputAudio, Role::User)
                if self.transcript.is_none() && self.audio.is_some() =>
            {
                let reason =
                    "is not heard here: use input_audio_buffer.append, or add its transcript";
                Err(WireError::invalid("audio", reason))
            }
            (PartType::InputAudio, Role::User) => {
                let transcript = Some(needed(self.transcript, "transcript")?);
                Ok(ItemContent::InputAudio { transcript })
            }
            (PartType::InputImage, Role::User) => {
                let url = needed(self.image_url, "image_url")?;
                if !["data:", "https:", "http:"].iter().any(|scheme| url.starts_with(scheme)) {
                    let reason = "must begin with 'data:', 'https:' or 'http:'";
                    return Err(WireError::invalid("image_url", reason));
                }
                Ok(ItemContent::InputImage { url, detail: self.detail.map(|detail| detail.0) })
            }
            _ => {
                let reason = format!("cannot be part of a message of the {}", role.name());
                Err(WireError::invalid("type", reason))
            }
        }
    }
}

/// An item as the server writes it.
#[derive(Clone, Debug, Default, JsonSchema, Serialize)]
pub(crate) struct ShownItem {
    id: String,
    object: &'static str,
    /// `message`, `function_call` or `function_call_output`.
    r#type: &'static str,
    /// `in_progress`, `completed` or `incomplete`.
    status: &'static str,
    #[serde(skip_serializing_if = "Option::is_none")]
    role: Option<&'static str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    content: Option<Vec<ShownPart>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    call_id: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    name: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    arguments: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    output: Option<String>,
}

/// A part of a message, without its sound.
#[derive(Clone, Debug, Default, JsonSchema, Serialize)]
struct ShownPart {
    r#type: &'static str,
    #[serde(skip_serializing_if = "Option::is_none")]
    text: Option<String>,
    /// What was said; null until it is known.
    #[serde(skip_serializing_if = "Option::is_none")]
    transcript: Option<Option<String>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    image_url: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    detail: Option<String>,
}

impl ShownItem {
    pub(super) fn of(item: RealtimeItem, dialect: RealtimeDialect) -> ShownItem {
        let mut shown = ShownItem {
            id: item.id,
            object: "realtime.item",
            r#type: "message",
            status: item.status.name(),
            ..ShownItem::default()
        };
        match item.body {
            ItemBody::Message { role, content } => {
                shown.role = Some(role.name());
                let part = |content| ShownPart::of(content, dialect);
                shown.content = Some(content.into_iter().map(part).collect());
            }
            ItemBody::Call { call_id, name, arguments } => {
                shown.r#type = "function_call";
                (shown.call_id, shown.name) = (Some(call_id), Some(name));
                shown.arguments = Some(arguments);
            }
            ItemBody::CallOutput { call_id, output } => {
                shown.r#type = "function_call_output";
                (shown.call_id, shown.output) = (Some(call_id), Some(output));
            }
        }
        shown
    }
}

impl ShownPart {
    fn of(content: ItemContent, dialect: RealtimeDialect) -> ShownPart {
        let (text, audio) = match dialect {
            RealtimeDialect::Ga => ("output_text", "output_audio"),
            RealtimeDialect::Beta => ("text", "audio"),
        };
        let part = |r#type| ShownPart { r#type, ..ShownPart::default() };
        match content {
            ItemContent::InputText(said) => ShownPart { text: Some(said), ..part("input_text") },
            ItemContent::InputAudio { transcript } => {
                ShownPart { transcript: Some(transcript), ..part("input_audio") }
            }
            ItemContent::InputImage { url, detail } => {
                ShownPart { image_url: Some(url), detail, ..part("input_image") }
            }
            ItemContent::OutputText(said) => ShownPart { text: Some(said), ..part(text) },
            ItemContent::OutputAudio { transcript } => {
                ShownPart { transcript: Some(Some(transcript)), ..part(audio) }
            }
        }
    }
}
