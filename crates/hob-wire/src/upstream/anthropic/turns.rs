//! A conversation in Anthropic's form: a separate system text, and user and assistant messages that alternate.
//! Each message is a list of blocks. Tool results come first in a user message.

use hob_core::chat::{Image, Message, Role, ToolCall};
use serde_json::{Value, json};

use super::super::UnsupportedField;
use super::super::request::arguments;

/// hob adds this user message if a conversation does not begin with the user. Anthropic rejects an empty conversation
/// and a blank text. Its models are trained on conversations that users begin.
const OPENING: &str = "Begin.";

const IMAGE_UNSUPPORTED: UnsupportedField = UnsupportedField { field: "image_url" };

/// A conversation's messages in Anthropic's form.
#[derive(Debug)]
pub(super) struct Turns {
    pub(super) system: Option<String>,
    pub(super) messages: Vec<Value>,
}

impl Turns {
    /// # Errors
    /// An image in a system or assistant message, or a data URL without base64.
    pub(super) fn of(messages: &[Message]) -> Result<Turns, UnsupportedField> {
        let mut system: Vec<&str> = Vec::new();
        let mut turns: Vec<Turn> = Vec::new();
        for message in messages {
            match message.role {
                Role::System if !message.images.is_empty() => return Err(IMAGE_UNSUPPORTED),
                Role::System => system.extend(non_blank(&message.text)),
                Role::User => turn_of(&mut turns, Speaker::User).blocks.extend(blocks(message)?),
                Role::Tool => add_tool_result(turn_of(&mut turns, Speaker::User), message)?,
                Role::Assistant => {
                    add_assistant_message(turn_of(&mut turns, Speaker::Assistant), message)?
                }
            }
        }
        Ok(Turns {
            system: (!system.is_empty()).then(|| system.join("\n\n")),
            messages: alternating(turns),
        })
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Speaker {
    User,
    Assistant,
}

/// Messages of one speaker, until the other one speaks.
#[derive(Debug)]
struct Turn {
    speaker: Speaker,
    results: Vec<Value>,
    blocks: Vec<Value>,
}

impl Turn {
    fn new(speaker: Speaker) -> Turn {
        Turn { speaker, results: Vec::new(), blocks: Vec::new() }
    }

    fn into_message(self) -> Value {
        let role = match self.speaker {
            Speaker::User => "user",
            Speaker::Assistant => "assistant",
        };
        let content: Vec<Value> = self.results.into_iter().chain(self.blocks).collect();
        json!({ "role": role, "content": content })
    }
}

/// Returns the last turn if it belongs to `speaker`, else a new one. Removes an empty last turn first, so that the turns
/// around it merge.
fn turn_of(turns: &mut Vec<Turn>, speaker: Speaker) -> &mut Turn {
    turns.pop_if(|turn| turn.results.is_empty() && turn.blocks.is_empty());
    let place = match turns.last() {
        Some(last) if last.speaker == speaker => turns.len() - 1,
        _ => {
            turns.push(Turn::new(speaker));
            turns.len() - 1
        }
    };
    &mut turns[place]
}

fn alternating(mut turns: Vec<Turn>) -> Vec<Value> {
    turns.pop_if(|turn| turn.results.is_empty() && turn.blocks.is_empty());
    if turns.first().is_none_or(|turn| turn.speaker == Speaker::Assistant) {
        let mut opening = Turn::new(Speaker::User);
        opening.blocks.push(text(OPENING));
        turns.insert(0, opening);
    }
    turns.into_iter().map(Turn::into_message).collect()
}

fn add_tool_result(turn: &mut Turn, message: &Message) -> Result<(), UnsupportedField> {
    let content = blocks(message)?;
    // Anthropic rejects a tool result without a call id. It becomes plain content.
    let Some(id) = &message.tool_call_id else {
        turn.blocks.extend(content);
        return Ok(());
    };
    let mut result = json!({ "type": "tool_result", "tool_use_id": call_id(id) });
    if !content.is_empty() {
        result["content"] =
            if message.images.is_empty() { json!(message.text) } else { content.into() };
    }
    turn.results.push(result);
    Ok(())
}

fn add_assistant_message(turn: &mut Turn, message: &Message) -> Result<(), UnsupportedField> {
    if !message.images.is_empty() {
        return Err(IMAGE_UNSUPPORTED);
    }
    // If the assistant speaks last, older models continue its text and newer ones reject the request.
    // All reject trailing white space, so hob trims it.
    turn.blocks.extend(non_blank(message.text.trim_end()).map(text));
    turn.blocks.extend(message.tool_calls.iter().map(call));
    Ok(())
}

fn call(call: &ToolCall) -> Value {
    let (id, input) = (call_id(&call.id), arguments(call).unwrap_or_default());
    json!({ "type": "tool_use", "id": id, "name": call.name, "input": input })
}

/// Call ids of other servers may contain characters that Anthropic rejects. They become `_`.
fn call_id(id: &str) -> String {
    let is_allowed = |c: char| c.is_ascii_alphanumeric() || c == '_' || c == '-';
    id.chars().map(|c| if is_allowed(c) { c } else { '_' }).collect()
}

/// Text and images in their original order.
fn blocks(message: &Message) -> Result<Vec<Value>, UnsupportedField> {
    if message.images.is_empty() {
        return Ok(non_blank(&message.text).map(text).collect());
    }
    let between = |from: usize, to: usize| {
        non_blank(message.text.get(from..to).unwrap_or_default().trim_matches('\n')).map(text)
    };
    let mut blocks = Vec::new();
    let mut end = 0;
    for image in &message.images {
        blocks.extend(between(end, image.at));
        blocks.push(image_block(image)?);
        end = image.at;
    }
    blocks.extend(between(end, message.text.len()));
    Ok(blocks)
}

/// The text, unless it is blank: Anthropic rejects a blank text.
fn non_blank(text: &str) -> impl Iterator<Item = &str> {
    (!text.trim().is_empty()).then_some(text).into_iter()
}

fn text(text: &str) -> Value {
    json!({ "type": "text", "text": text })
}

fn image_block(image: &Image) -> Result<Value, UnsupportedField> {
    let source = match image.url.strip_prefix("data:") {
        None => json!({ "type": "url", "url": image.url }),
        Some(data) => {
            let (kind, data) = data.split_once(";base64,").ok_or(IMAGE_UNSUPPORTED)?;
            let media_type = match kind.split(';').next().unwrap_or(kind) {
                "image/jpg" => "image/jpeg",
                media_type => media_type,
            };
            json!({ "type": "base64", "media_type": media_type, "data": data })
        }
    };
    Ok(json!({ "type": "image", "source": source }))
}
