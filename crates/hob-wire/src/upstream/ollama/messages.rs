//! A conversation as Ollama reads it: arguments are objects, pictures are bare base64 next to the text,
//! and an answer to a call names the function.

use hob_core::chat::{Message, Role};
use serde_json::{Value, json};

use crate::upstream::UnsupportedField;
use crate::upstream::request::arguments;

/// The messages in Ollama's form.
///
/// # Errors
/// An image is given by URL; Ollama does not fetch images.
pub(super) fn messages(conversation: &[Message]) -> Result<Vec<Value>, UnsupportedField> {
    let write = |(place, one): (usize, &Message)| message(one, &conversation[..place]);
    conversation.iter().enumerate().map(write).collect()
}

fn message(message: &Message, before: &[Message]) -> Result<Value, UnsupportedField> {
    let mut shape = json!({ "role": message.role.name(), "content": message.text });
    if !message.images.is_empty() {
        let images = message.images.iter().map(|image| bare(&image.url));
        let images: Option<Vec<&str>> = images.collect();
        shape["images"] = json!(images.ok_or(UnsupportedField { field: "messages" })?);
    }
    if let Some(reasoning) = &message.reasoning {
        shape["thinking"] = json!(reasoning);
    }
    if !message.tool_calls.is_empty() {
        let calls = message.tool_calls.iter().enumerate().map(|(index, call)| {
            let arguments = arguments(call).unwrap_or_default();
            let function = json!({ "index": index, "name": call.name, "arguments": arguments });
            json!({ "id": call.id, "function": function })
        });
        shape["tool_calls"] = calls.collect();
    }
    if message.role == Role::Tool {
        if let Some(name) = message.name.as_deref().or_else(|| called(message, before)) {
            shape["tool_name"] = json!(name);
        }
        if let Some(id) = &message.tool_call_id {
            shape["tool_call_id"] = json!(id);
        }
    }
    Ok(shape)
}

/// The bytes of a `data:` address, still in base64.
fn bare(url: &str) -> Option<&str> {
    let (head, bytes) = url.split_once(',')?;
    let is_data = head.get(..5)?.eq_ignore_ascii_case("data:");
    (is_data && head.to_ascii_lowercase().ends_with(";base64")).then_some(bytes)
}

/// The function that a tool's message answers. OpenAI's clients send only the id of the call.
fn called<'a>(answer: &Message, before: &'a [Message]) -> Option<&'a str> {
    let id = answer.tool_call_id.as_deref()?;
    let mut calls = before.iter().rev().flat_map(|message| &message.tool_calls);
    calls.find(|call| call.id == id).map(|call| call.name.as_str())
}
