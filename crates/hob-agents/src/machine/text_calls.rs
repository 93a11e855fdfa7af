//! Calls that a model has written as text, in the form that it was trained with, because its server did not read them.
//! Outside the tags, and in quoted ones, only calls of offered tools count, so that an answer about JSON stays an answer.

use hob_core::chat::{JsonText, ToolCall};
use serde::Deserialize;
use serde_json::Value;

use crate::arguments;

/// The tag before a call.
pub(crate) const OPEN: &str = "<tool_call>";
const CLOSE: &str = "</tool_call>";
const FENCE: &str = "```";
/// Characters of a call that cannot be read, which the model sees again.
const SHOWN_MAX: usize = 200;

#[derive(Deserialize)]
struct WrittenCall {
    name: String,
    #[serde(default, alias = "parameters")]
    arguments: Value,
}

/// The calls in a text, and the rest of the text.
#[derive(Debug, PartialEq)]
pub(super) struct CallsInText {
    /// The text without its calls.
    pub(super) rest: String,
    pub(super) calls: Vec<ToolCall>,
    /// Why a call cannot be read, for the model.
    pub(super) wrong: Option<String>,
}

/// The calls in a text. `id` makes ids of calls. `None`: the text is an answer.
pub(super) fn calls_in(
    text: &str,
    is_offered: impl Fn(&str) -> bool,
    id: u64,
) -> Option<CallsInText> {
    let (mut rest, mut found) = (String::new(), Vec::new());
    let mut left = text;
    while let Some((before, after)) = left.split_once(OPEN) {
        rest += before;
        let (inside, behind, is_closed) = ended(after);
        let call = read(inside);
        let is_quoted = rest.matches(FENCE).count() % 2 == 1 || rest.ends_with('`');
        let is_call = match &call {
            Ok(call) => !is_quoted || is_offered(&call.name),
            Err(_) => !is_quoted && (is_closed || inside.trim_start().starts_with(['{', '[', '<'])),
        };
        if is_call {
            found.push(call);
            left = behind;
        } else {
            rest += OPEN;
            left = after;
        }
    }
    rest += left;
    if found.is_empty() {
        let call = read(unfenced(text)).ok().filter(|call| is_offered(&call.name))?;
        found.push(Ok(call));
        rest.clear();
    }
    if rest.chars().all(|c| c.is_whitespace() || c == '`') {
        rest.clear();
    }
    let wrong = found.iter().find_map(|call| call.as_ref().err().cloned());
    let calls = found.into_iter().filter_map(Result::ok).enumerate();
    let calls = calls.map(|(at, call)| call.finished(format!("text_{id}_{at}"))).collect();
    Some(CallsInText { rest: rest.trim().to_owned(), calls, wrong })
}

impl WrittenCall {
    fn finished(self, id: String) -> ToolCall {
        let arguments = match self.arguments {
            Value::Null => "{}".to_owned(),
            // Some models write the object as a text.
            Value::String(text) => text,
            other => other.to_string(),
        };
        ToolCall { id, name: self.name, arguments: JsonText::parsed(arguments) }
    }
}

/// The inside of a call, the text behind it, and whether it has an end: some models leave it out.
fn ended(after: &str) -> (&str, &str, bool) {
    let next = after.find(OPEN).unwrap_or(after.len());
    match after.find(CLOSE).filter(|close| *close < next) {
        Some(close) => (&after[..close], &after[close + CLOSE.len()..], true),
        None => (&after[..next], &after[next..], false),
    }
}

fn read(text: &str) -> Result<WrittenCall, String> {
    let call = arguments::read(text).and_then(|(value, _)| {
        serde_json::from_value(value).map_err(|error| format!("the call is incomplete: {error}"))
    });
    call.map_err(|reason| {
        let shown: String = text.trim().chars().take(SHOWN_MAX).collect();
        format!("{reason}. The call was: {shown}")
    })
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

    const CALL: &str = r#"{"name": "look", "arguments": {"command": "ls"}}"#;

    fn found(text: &str) -> Option<(String, String, Option<String>)> {
        let CallsInText { rest, calls, wrong } = calls_in(text, |name| name == "look", 7)?;
        let calls: Vec<String> = calls
            .iter()
            .map(|call| format!("{} {} {}", call.id, call.name, call.arguments.as_str()))
            .collect();
        Some((rest, calls.join(", "), wrong))
    }

    #[test]
    fn calls_are_found_in_tags_and_those_of_offered_tools_without_them() {
        let look = "text_7_0 look {\"command\":\"ls\"}";
        for text in [
            format!("<tool_call>\n{CALL}\n</tool_call>"),
            format!("<tool_call>{CALL}"),
            format!("```\n<tool_call>{CALL}</tool_call>\n```"),
            format!("<tool_call>{},}}</tool_call>", CALL.trim_end_matches('}').to_owned() + "}"),
            CALL.to_owned(),
            format!("```json\n{CALL}\n```"),
            CALL.replace("arguments", "parameters"),
            r#"{"name": "look", "arguments": "{\"command\":\"ls\"}"}"#.to_owned(),
        ] {
            assert_eq!(found(&text), Some((String::new(), look.to_owned(), None)), "{text}");
        }
        for two in [
            format!("I look. <tool_call>{CALL}</tool_call><tool_call>{CALL}</tool_call>"),
            format!("I look. <tool_call>{CALL}<tool_call>{CALL}"),
        ] {
            let (rest, calls, wrong) = found(&two).expect("two calls");
            let count = calls.matches("look {").count();
            assert_eq!((rest.as_str(), count, wrong), ("I look.", 2, None));
        }
        for text in [
            "An answer.",
            "{\"name\": \"Ann\"}",
            "Use <tool_call> for that.",
            "Such as `<tool_call>{\"name\": \"other\"}</tool_call>`.",
            "Such as `<tool_call>` and `</tool_call>`.",
            r#"{"name": "other", "arguments": {}}"#,
            r#"Call {"name": "look", "arguments": {}} then."#,
        ] {
            assert_eq!(found(text), None, "{text}");
        }
    }

    #[test]
    fn a_call_that_cannot_be_read_is_no_answer() {
        for (inside, part) in [
            (r#"{"name": "look", "arguments": {"command": "rm"#, "end too early"),
            ("look at it</tool_call>", "not JSON"),
            ("{\"arguments\": {}}</tool_call>", "missing field `name`"),
            ("</tool_call>", "missing field `name`"),
            ("<function=look></function></tool_call>", "The call was: <function=look>"),
        ] {
            let (rest, calls, wrong) = found(&format!("Well. <tool_call>{inside}")).expect(inside);
            assert_eq!((rest.as_str(), calls.as_str()), ("Well.", ""));
            assert!(
                wrong.as_ref().is_some_and(|wrong| wrong.contains(part)),
                "{inside}: {wrong:?}"
            );
        }
        let (_, calls, _) = found("<tool_call>{\"name\": \"gone\"}</tool_call>").expect("a call");
        assert_eq!(calls, "text_7_0 gone {}", "the model reads that there is no such tool");
    }
}
