//! Calls that a model has written as text, in the form that it was trained with, because its server did not read them.
//! Only names of offered tools count, so that an answer about JSON stays an answer.

use hob_core::chat::{JsonText, ToolCall};
use serde::Deserialize;
use serde_json::{Map, Value};

const OPEN: &str = "<tool_call>";
const CLOSE: &str = "</tool_call>";
const FENCE: &str = "```";

#[derive(Deserialize)]
struct WrittenCall {
    name: String,
    #[serde(default, alias = "parameters")]
    arguments: Map<String, Value>,
}

/// The calls in a text and the text without them. `id` makes ids of calls. `None`: the text is an answer.
pub(super) fn calls_in(
    text: &str,
    is_offered: impl Fn(&str) -> bool,
    id: u64,
) -> Option<(String, Vec<ToolCall>)> {
    let (mut rest, mut written) = (String::new(), Vec::new());
    let mut left = text;
    while let Some((before, after)) = left.split_once(OPEN) {
        // Some models leave out the last end.
        let (call, behind) = after.split_once(CLOSE).unwrap_or((after, ""));
        written.push(call);
        rest += before;
        left = behind;
    }
    rest += left;
    if written.is_empty() {
        written.push(unfenced(text));
        rest.clear();
    }
    let parsed: Option<Vec<WrittenCall>> = written
        .into_iter()
        .map(|call| serde_json::from_str::<WrittenCall>(call.trim()).ok())
        .map(|call| call.filter(|call| is_offered(&call.name)))
        .collect();
    let calls = parsed?.into_iter().enumerate().map(|(at, call)| ToolCall {
        id: format!("text_{id}_{at}"),
        name: call.name,
        arguments: JsonText::parsed(Value::Object(call.arguments).to_string()),
    });
    Some((rest.trim().to_owned(), calls.collect()))
}

/// The text without the fence of Markdown around all of it.
fn unfenced(text: &str) -> &str {
    let text = text.trim();
    let inside = text.strip_prefix(FENCE).and_then(|inside| inside.strip_suffix(FENCE));
    inside.map_or(text, |inside| inside.trim_start_matches("json"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_calls_of_offered_tools_are_calls() {
        let found = |text: &str| {
            let (rest, calls) = calls_in(text, |name| name == "look", 7)?;
            let calls: Vec<String> = calls
                .iter()
                .map(|call| format!("{} {} {}", call.id, call.name, call.arguments.as_str()))
                .collect();
            Some((rest, calls.join(", ")))
        };
        let look = "text_7_0 look {\"command\":\"ls\"}";
        let call = r#"{"name": "look", "arguments": {"command": "ls"}}"#;
        for text in [
            format!("<tool_call>\n{call}\n</tool_call>"),
            format!("<tool_call>{call}"),
            call.to_owned(),
            format!("```json\n{call}\n```"),
            call.replace("arguments", "parameters"),
        ] {
            assert_eq!(found(&text), Some((String::new(), look.to_owned())), "{text}");
        }
        let two = format!("I look. <tool_call>{call}</tool_call><tool_call>{call}</tool_call>");
        let (rest, calls) = found(&two).expect("two calls");
        assert_eq!((rest.as_str(), calls.matches("look {").count()), ("I look.", 2));
        for text in [
            "An answer.",
            "{\"name\": \"Ann\"}",
            "Use <tool_call> for that.",
            r#"{"name": "other", "arguments": {}}"#,
            r#"Call {"name": "look", "arguments": {}} then."#,
        ] {
            assert_eq!(found(text), None, "{text}");
        }
    }
}
