//! Six families of templates, conversation by conversation, against Python's renderings.
//! What hob changes on purpose has tests of its own.

use hob_core::chat::{Conversation, Effort, JsonText, Message, Role, Thinking, Tool, ToolCall};
use serde_json::Value;

use super::NOW;
use crate::chat::template::{ChatTemplate, SpecialTokens};

const TEMPLATES: [(&str, &str); 6] = [
    ("smollm2", super::SMOLLM2),
    ("qwen3", super::QWEN3),
    ("llama3", include_str!("../testdata/templates/llama3.jinja")),
    ("gemma", super::GEMMA),
    ("mistral-nemo", super::MISTRAL),
    ("deepseek-r1", super::DEEPSEEK),
];

#[test]
fn renderings_are_those_of_python() {
    let cases = parsed(include_str!("../testdata/cases.json"));
    let goldens = parsed(include_str!("../testdata/goldens.json"));
    let mut compared = 0;
    for (name, source) in TEMPLATES {
        let golden = &goldens[name];
        let tokens = SpecialTokens { bos: text(&golden["bos"]), eos: text(&golden["eos"]) };
        let template = ChatTemplate::compile(source, tokens).unwrap();
        for (case, expect) in golden["texts"].as_object().unwrap() {
            let case = cases.as_array().unwrap().iter().find(|c| c["name"] == *case).unwrap();
            let rendered = template.render(&conversation(case), &thinking(case), NOW).unwrap();
            assert_eq!(rendered.text, text(expect), "{name}, {}", case["name"]);
            compared += 1;
        }
    }
    assert_eq!(compared, 50);
}

fn parsed(json: &str) -> Value {
    serde_json::from_str(json).unwrap()
}

fn text(value: &Value) -> String {
    value.as_str().unwrap().to_owned()
}

fn thinking(case: &Value) -> Thinking {
    let named = |effort: &Effort| case["thinking"] == effort.name();
    Thinking { effort: Effort::ALL.into_iter().find(named), tokens_max: None }
}

fn conversation(case: &Value) -> Conversation {
    let tools = parsed(include_str!("../testdata/tools.json"));
    let named = case["tools"].as_array().into_iter().flatten();
    Conversation {
        messages: case["messages"].as_array().unwrap().iter().map(message).collect(),
        tools: named.map(|name| tool(&tools[text(name)]["function"])).collect(),
        ..Conversation::default()
    }
}

fn message(message: &Value) -> Message {
    let roles = [Role::System, Role::User, Role::Assistant, Role::Tool];
    let role = roles.into_iter().find(|role| message["role"] == role.name()).unwrap();
    let calls = message["tool_calls"].as_array().into_iter().flatten();
    Message {
        tool_calls: calls.map(call).collect(),
        tool_call_id: message["tool_call_id"].as_str().map(str::to_owned),
        ..Message::new(role, text(&message["content"]))
    }
}

fn call(call: &Value) -> ToolCall {
    ToolCall {
        id: text(&call["id"]),
        name: text(&call["function"]["name"]),
        arguments: JsonText::parsed(call["function"]["arguments"].to_string()),
    }
}

fn tool(function: &Value) -> Tool {
    Tool {
        name: text(&function["name"]),
        description: Some(text(&function["description"])),
        parameters: Some(JsonText::parsed(function["parameters"].to_string())),
        strict: false,
    }
}
