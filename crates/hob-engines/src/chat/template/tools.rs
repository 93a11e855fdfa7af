//! Tools for a model whose template has none: a system message describes them. Earlier calls and results become text, in
//! the form that the answer parser reads.

use serde_json::{Value, json};

use super::python;

/// Returns the conversation with tools, calls and results as text.
pub(super) fn written_out(messages: Vec<Value>, tools: &[Value]) -> Vec<Value> {
    let mut messages: Vec<Value> = messages.into_iter().map(in_words).collect();
    if tools.is_empty() {
        return messages;
    }
    let description = description(tools);
    match messages.first_mut() {
        Some(first) if first["role"] == "system" => {
            let system = first["content"].as_str().unwrap_or_default();
            first["content"] = format!("{system}\n\n{description}").into();
        }
        _ => messages.insert(0, json!({"role": "system", "content": description})),
    }
    messages
}

fn description(tools: &[Value]) -> String {
    let list: Vec<String> = tools.iter().map(|tool| python::json(tool, None)).collect();
    format!(
        "You can call functions. Their signatures, one JSON object in each line:\n\
         <tools>\n{}\n</tools>\n\n\
         To call a function, answer with its name and arguments as JSON between <tool_call> and </tool_call>, like this:\n\
         <tool_call>\n{{\"name\": \"function\", \"arguments\": {{\"argument\": \"value\"}}}}\n</tool_call>\n\
         You are then given what it returns, between <tool_response> and </tool_response>. \
         If no function is needed, answer without calling one.",
        list.join("\n")
    )
}

fn in_words(message: Value) -> Value {
    let text = message["content"].as_str().unwrap_or_default();
    if message["role"] == "tool" {
        let text = format!("<tool_response>\n{text}\n</tool_response>");
        return json!({"role": "user", "content": text});
    }
    let Some(calls) = message.get("tool_calls").and_then(Value::as_array) else { return message };
    let said = (!text.is_empty()).then(|| text.to_owned());
    let parts: Vec<String> = said.into_iter().chain(calls.iter().map(call)).collect();
    json!({"role": message["role"], "content": parts.join("\n")})
}

fn call(call: &Value) -> String {
    let function = python::json(&call["function"], None);
    format!("<tool_call>\n{function}\n</tool_call>")
}
