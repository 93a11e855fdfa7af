//! The forms in which hob renders a conversation, the unchanged one first.
//! Each change avoids a known reason for a template's rejection. No change loses text.

use std::hash::{DefaultHasher, Hash, Hasher};

use serde_json::{Value, json};

/// Changes for templates that reject a conversation.
const CHANGES: [fn(Vec<Value>) -> Vec<Value>; 4] =
    [system_into_user, join_neighbours, with_short_ids, arguments_as_text];

/// All combinations of changes, those with fewer changes first, without combinations that change nothing.
pub(super) fn all(messages: &[Value]) -> impl Iterator<Item = Vec<Value>> {
    let mut sets: Vec<u32> = (0..1 << CHANGES.len()).collect();
    sets.sort_by_key(|set| set.count_ones());
    sets.into_iter().filter_map(move |set| changed(messages, set))
}

/// Writes each text as a list with one part.
pub(super) fn in_parts(messages: Vec<Value>) -> Vec<Value> {
    let in_parts = |mut message: Value| {
        let text = message["content"].take();
        message["content"] = json!([{"type": "text", "text": text}]);
        message
    };
    messages.into_iter().map(in_parts).collect()
}

fn changed(messages: &[Value], set: u32) -> Option<Vec<Value>> {
    let mut messages = messages.to_vec();
    for (at, change) in CHANGES.iter().enumerate() {
        if set & (1 << at) != 0 {
            let before = messages.clone();
            messages = change(messages);
            if messages == before {
                return None;
            }
        }
    }
    Some(messages)
}

/// For templates without a system role (Gemma): puts the system text before the next text of the user.
fn system_into_user(messages: Vec<Value>) -> Vec<Value> {
    let mut out: Vec<Value> = Vec::new();
    let mut is_open = false;
    for mut message in messages {
        let is_system = role(&message) == "system";
        let is_user = role(&message) == "user";
        if is_open && (is_system || is_user) {
            join_to_last(&mut out, &message);
        } else {
            if is_system {
                message["role"] = "user".into();
            }
            out.push(message);
        }
        is_open = is_system;
    }
    out
}

/// For templates whose roles must alternate (Gemma, Mistral).
fn join_neighbours(messages: Vec<Value>) -> Vec<Value> {
    let mut out: Vec<Value> = Vec::new();
    for message in messages {
        let is_plain = |message: &Value| message.get("tool_calls").is_none();
        let joins = |last: &Value| {
            matches!(role(&message), "system" | "user" | "assistant")
                && role(last) == role(&message)
                && is_plain(last)
                && is_plain(&message)
        };
        if out.last().is_some_and(joins) {
            join_to_last(&mut out, &message);
        } else {
            out.push(message);
        }
    }
    out
}

fn join_to_last(out: &mut [Value], message: &Value) {
    if let Some(last) = out.last_mut() {
        last["content"] = format!("{}\n\n{}", text(last), text(message)).into();
    }
}

fn role(message: &Value) -> &str {
    message["role"].as_str().unwrap_or_default()
}

fn text(message: &Value) -> &str {
    message["content"].as_str().unwrap_or_default()
}

/// For templates whose ids must have nine letters and digits (Mistral).
fn with_short_ids(mut messages: Vec<Value>) -> Vec<Value> {
    let rewrite = |id: Option<&mut Value>| {
        if let Some(Value::String(id)) = id {
            *id = short_id(id);
        }
    };
    for message in &mut messages {
        rewrite(message.get_mut("tool_call_id"));
        for call in calls(message) {
            rewrite(call.get_mut("id"));
        }
    }
    messages
}

/// The same id always gets the same nine characters, so calls and results still belong together.
fn short_id(id: &str) -> String {
    if id.len() == 9 && id.bytes().all(|b| b.is_ascii_alphanumeric()) {
        return id.to_owned();
    }
    let mut hasher = DefaultHasher::new();
    id.hash(&mut hasher);
    // Nine hexadecimal digits: the ids of one conversation are few enough for them.
    format!("{:09x}", hasher.finish() >> 28)
}

/// Writes arguments as a JSON string, as in OpenAI's API.
fn arguments_as_text(mut messages: Vec<Value>) -> Vec<Value> {
    for call in messages.iter_mut().flat_map(calls) {
        let arguments = &mut call["function"]["arguments"];
        if arguments.is_object() {
            *arguments = super::python::json(arguments, None).into();
        }
    }
    messages
}

fn calls(message: &mut Value) -> impl Iterator<Item = &mut Value> {
    message.get_mut("tool_calls").and_then(Value::as_array_mut).into_iter().flatten()
}
