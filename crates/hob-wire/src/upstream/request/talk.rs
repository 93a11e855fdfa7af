//! A conversation as OpenAI's servers read it: messages in parts where there are pictures, and tools.
//! Schemas and arguments go on as the client wrote them, key by key.

use hob_core::chat::{Conversation, Image, Message, Tool, ToolChoice};
use serde_json::{Map, Value, json};

use super::{arguments, parsed};

/// The name of a message's thinking at most servers, such as llama-server, DeepSeek, Kimi and SGLang.
pub(in crate::upstream) const REASONING: &str = "reasoning_content";

pub(super) fn talk(conversation: &Conversation, body: &mut Map<String, Value>) {
    let messages: Vec<Value> = conversation.messages.iter().map(message).collect();
    body.insert("messages".to_owned(), messages.into());
    if conversation.tools.is_empty() {
        return;
    }
    let tools: Vec<Value> = conversation.tools.iter().map(tool_with_strict).collect();
    body.insert("tools".to_owned(), tools.into());
    let choice = match &conversation.tool_choice {
        ToolChoice::Auto => json!("auto"),
        ToolChoice::None => json!("none"),
        ToolChoice::Required => json!("required"),
        ToolChoice::Named(name) => json!({ "type": "function", "function": { "name": name } }),
    };
    body.insert("tool_choice".to_owned(), choice);
    body.insert("parallel_tool_calls".to_owned(), json!(conversation.parallel_tool_calls));
}

/// Removes the thinking of all messages, for a server that refuses it.
pub(super) fn remove_reasoning(body: &mut Map<String, Value>) {
    for message in messages(body) {
        message.shift_remove(REASONING);
    }
}

/// Repeats the thinking of messages under the name that vLLM and OpenRouter give it.
pub(super) fn repeat_reasoning(body: &mut Map<String, Value>) {
    for message in messages(body) {
        if let Some(reasoning) = message.get(REASONING).cloned() {
            message.insert("reasoning".to_owned(), reasoning);
        }
    }
}

/// Gives each call the signature that Google documents for calls of another model, because hob does not keep Gemini's own.
pub(super) fn sign_calls(body: &mut Map<String, Value>) {
    let calls = messages(body).filter_map(|message| message.get_mut("tool_calls"));
    for call in calls.filter_map(Value::as_array_mut).flatten() {
        let signature = json!({ "thought_signature": "skip_thought_signature_validator" });
        call["extra_content"] = json!({ "google": signature });
    }
}

fn messages(body: &mut Map<String, Value>) -> impl Iterator<Item = &mut Map<String, Value>> {
    let messages = body.get_mut("messages").and_then(Value::as_array_mut);
    messages.into_iter().flatten().filter_map(Value::as_object_mut)
}

/// OpenAI's API has `strict`; Ollama's has not.
fn tool_with_strict(described: &Tool) -> Value {
    let mut shape = tool(described);
    if described.strict {
        shape["function"]["strict"] = json!(true);
    }
    shape
}

/// Removes `strict` from all tools, for a server that refuses it.
pub(super) fn remove_strict(body: &mut Map<String, Value>) {
    let tools = body.get_mut("tools").and_then(Value::as_array_mut);
    for tool in tools.into_iter().flatten() {
        if let Some(function) = tool["function"].as_object_mut() {
            function.shift_remove("strict");
        }
    }
}

/// `{"type": "function", "function": {…}}`, of OpenAI's servers and of Ollama.
pub(in crate::upstream) fn tool(tool: &Tool) -> Value {
    let mut function = json!({ "name": tool.name });
    if let Some(description) = &tool.description {
        function["description"] = json!(description);
    }
    if let Some(parameters) = &tool.parameters {
        function["parameters"] = parsed(parameters);
    }
    json!({ "type": "function", "function": function })
}

pub(super) fn message(message: &Message) -> Value {
    let content = if message.images.is_empty() {
        // An assistant that only calls says nothing, and some servers want that to be null.
        let is_silent = message.text.is_empty() && !message.tool_calls.is_empty();
        if is_silent { Value::Null } else { json!(message.text) }
    } else {
        parts(message)
    };
    let mut shape = json!({ "role": message.role.name(), "content": content });
    if let Some(name) = &message.name {
        shape["name"] = json!(name);
    }
    if let Some(reasoning) = &message.reasoning {
        shape[REASONING] = json!(reasoning);
    }
    if let Some(id) = &message.tool_call_id {
        shape["tool_call_id"] = json!(id);
    }
    if !message.tool_calls.is_empty() {
        let calls = message.tool_calls.iter().map(|call| {
            let arguments = arguments(call).map_or("{}", |_| call.arguments.as_str());
            let function = json!({ "name": call.name, "arguments": arguments });
            json!({ "id": call.id, "type": "function", "function": function })
        });
        shape["tool_calls"] = calls.collect();
    }
    shape
}

/// Text and pictures in the order in which they stand. The line break that joined a text to the one
/// before it is left out again.
fn parts(message: &Message) -> Value {
    let mut parts = Vec::new();
    let text = |from: usize, to: usize| {
        let text = message.text.get(from..to).unwrap_or_default();
        let text = if from > 0 { text.strip_prefix('\n').unwrap_or(text) } else { text };
        (!text.is_empty()).then(|| json!({ "type": "text", "text": text }))
    };
    let mut said = 0;
    for image in &message.images {
        parts.extend(text(said, image.at));
        parts.push(picture(image));
        said = image.at;
    }
    parts.extend(text(said, message.text.len()));
    parts.into()
}

fn picture(image: &Image) -> Value {
    let mut shape = json!({ "url": image.url });
    if let Some(detail) = &image.detail {
        shape["detail"] = json!(detail);
    }
    json!({ "type": "image_url", "image_url": shape })
}
