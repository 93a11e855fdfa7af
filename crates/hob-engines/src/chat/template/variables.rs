//! The variables of a template, with the names and forms of Hugging Face's `apply_chat_template`.
//! The request's template arguments may add variables and change switches, but not the conversation.

use hob_core::chat::{Conversation, Effort, Message, Role, Thinking, Tool, ToolCall, ToolChoice};
use serde_json::{Map, Value, json};

use super::{TemplateError, object};
use crate::chat::dialect::{DescribedBy, HARMONY, ModelDialect};

/// All variables except the messages.
pub(super) fn of(
    conversation: &Conversation,
    thinking: &Thinking,
    dialect: &ModelDialect,
) -> Result<Map<String, Value>, TemplateError> {
    let mut variables = Map::new();
    if let Some(effort) = thinking.effort {
        let thinks = effort != Effort::None;
        variables.insert("enable_thinking".to_owned(), thinks.into());
        variables.insert("thinking".to_owned(), thinks.into());
        variables.insert("reasoning_effort".to_owned(), effort_name(effort, dialect).into());
    }
    if let Some(arguments) = &conversation.template_arguments {
        variables.extend(object(arguments, "the template's arguments")?);
    }
    let described = dialect.described_by == DescribedBy::Template;
    let tools = if described { tools(conversation)? } else { Vec::new() };
    // `None` instead of an empty list, because templates test `tools is not none`.
    let tools = if tools.is_empty() { Value::Null } else { Value::from(tools) };
    variables.insert("tools".to_owned(), tools);
    variables.insert("documents".to_owned(), Value::Null);
    variables.insert("add_generation_prompt".to_owned(), true.into());
    Ok(variables)
}

/// Tools in OpenAI's form. Empty if the model must not call any.
pub(super) fn tools(conversation: &Conversation) -> Result<Vec<Value>, TemplateError> {
    match conversation.tool_choice {
        ToolChoice::None => Ok(Vec::new()),
        _ => conversation.tools.iter().map(tool).collect(),
    }
}

/// The thinking of a turn without calls is left out: some templates would repeat it in each later prompt.
pub(super) fn messages(conversation: &Conversation) -> Vec<Value> {
    let turns = conversation.messages.split_inclusive(|message| message.role == Role::User);
    let written = turns.flat_map(|turn| {
        let has_calls = turn.iter().any(|message| !message.tool_calls.is_empty());
        turn.iter().map(move |one| message(one, has_calls))
    });
    written.collect()
}

/// gpt-oss was trained with three words for the effort. Its template copies any other word.
fn effort_name(effort: Effort, dialect: &ModelDialect) -> &'static str {
    if dialect.tools != HARMONY {
        return effort.name();
    }
    match effort {
        Effort::None | Effort::Minimal | Effort::Low => "low",
        Effort::Medium => "medium",
        Effort::High | Effort::XHigh | Effort::Max => "high",
    }
}

/// Always adds a description, because templates use it without a test.
fn tool(tool: &Tool) -> Result<Value, TemplateError> {
    let parameters = match &tool.parameters {
        Some(schema) => Value::Object(object(schema, "a tool's parameters")?),
        None => json!({"type": "object", "properties": {}}),
    };
    Ok(json!({"type": "function", "function": {
        "name": tool.name,
        "description": tool.description.as_deref().unwrap_or_default(),
        "parameters": parameters,
    }}))
}

/// Leaves out members without a value, because templates test `'tool_calls' in message`.
fn message(message: &Message, shows_thinking: bool) -> Value {
    let mut members = Map::new();
    members.insert("role".to_owned(), message.role.name().into());
    members.insert("content".to_owned(), message.text.clone().into());
    if let Some(name) = &message.name {
        members.insert("name".to_owned(), name.clone().into());
    }
    if let Some(reasoning) = message.reasoning.as_ref().filter(|_| shows_thinking) {
        members.insert("reasoning_content".to_owned(), reasoning.clone().into());
        // gpt-oss has another name, and rejects a message with calls that has a text, too.
        if message.text.is_empty() {
            members.insert("thinking".to_owned(), reasoning.clone().into());
        }
    }
    if !message.tool_calls.is_empty() {
        members.insert("tool_calls".to_owned(), message.tool_calls.iter().map(call).collect());
    }
    if let Some(id) = &message.tool_call_id {
        members.insert("tool_call_id".to_owned(), id.clone().into());
    }
    Value::Object(members)
}

/// Arguments that are no object, such as those of an answer that was cut, are left out.
fn call(call: &ToolCall) -> Value {
    let arguments: Map<String, Value> =
        serde_json::from_str(call.arguments.as_str()).unwrap_or_default();
    json!({"id": call.id, "type": "function", "function": {
        "name": call.name,
        "arguments": arguments,
    }})
}
