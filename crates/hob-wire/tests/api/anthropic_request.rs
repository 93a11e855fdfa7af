//! Requests as Anthropic reads them: one whole, and what differs between its models. What is refused or
//! left out is asserted together with what is sent, so that nothing is lost without a name.

mod refused;
mod thinking;

use hob_core::chat::{
    Conversation, Effort, Message, OutputFormat, Prompt, Role, Sampling, Thinking, Tool, ToolChoice,
};
use hob_core::{ChatRequest, JsonText};
use hob_wire::{UnsupportedField, anthropic_drops, anthropic_request};
use serde_json::{Value, json};

use crate::builders::{
    assistant, calling, chat, conversing, image, result, system, tool, tool_call, user,
};

const OLD: &str = "claude-sonnet-4-5";
const MIDDLE: &str = "claude-opus-4-6";
const NEW: &str = "claude-opus-4-8";
const NEWEST: &str = "claude-opus-5-5";
const OTHER: &str = "kimi-k3";

fn with_tool(choice: ToolChoice) -> ChatRequest {
    conversing(Conversation {
        messages: vec![user("Hi")],
        tools: vec![tool("weather", None)],
        tool_choice: choice,
        parallel_tool_calls: true,
        ..Conversation::default()
    })
}

fn sent(request: &ChatRequest, model: &str) -> Value {
    let body = anthropic_request(request, model, &[]).expect(model);
    serde_json::from_str(&body).expect("JSON")
}

fn conversation_of(request: &mut ChatRequest) -> &mut Conversation {
    match &mut request.prompt {
        Prompt::Chat(conversation) => conversation,
        _ => unreachable!("it is a conversation"),
    }
}

/// A field a line, a block a line: what is sent, as a person can read it.
fn laid_out(body: &Value) -> String {
    let mut text = String::new();
    for (name, value) in body.as_object().expect("an object") {
        if name != "messages" {
            text += &format!("{name}: {value}\n");
            continue;
        }
        text += "messages:\n";
        for message in value.as_array().expect("messages") {
            text += &format!("  role: {}\n  content:\n", message["role"]);
            for block in message["content"].as_array().expect("blocks") {
                text += &format!("    {block}\n");
            }
        }
    }
    text
}

#[test]
fn a_conversation_with_pictures_and_two_calls_at_once() {
    let look = Message {
        images: vec![
            image(6, "data:image/png;base64,iVBORw0KGgo="),
            image(10, "https://hob.test/cat.webp"),
        ],
        ..user("Before\nAnd\nbehind")
    };
    let calls = vec![
        tool_call("toolu_1", "weather", r#"{"city":"Oslo","days":2}"#),
        tool_call("call.2:x", "clock", "{}"),
    ];
    let seen = Message {
        images: vec![image(0, "data:image/jpg;charset=x;base64,/9j/")],
        ..result("call.2:x", "12:00")
    };
    let mut request = chat(vec![
        system("Be brief."),
        look,
        assistant("I will look. \n"),
        calling(calls),
        user("Quick!"),
        result("toolu_1", "Rain"),
        seen,
        system("Metric units."),
        user("And?"),
    ]);
    request.stop = vec!["END".to_owned()];
    request.tokens_max = Some(500);
    request.extra = Some(JsonText::parsed(r#"{"metadata":{"user_id":"me"}}"#));
    request.sampling = Sampling { temperature: Some(0.7), top_k: Some(40), ..Sampling::default() };
    let Prompt::Chat(conversation) = &mut request.prompt else { unreachable!() };
    conversation.tools = vec![
        Tool {
            description: Some("Tomorrow's".to_owned()),
            ..tool("weather", Some(r#"{"type":"object","properties":{"city":{"type":"string"}}}"#))
        },
        tool("clock", None),
    ];
    insta::assert_snapshot!(laid_out(&sent(&request, MIDDLE)), @r#"
    model: "claude-opus-4-6"
    max_tokens: 500
    stream: true
    system: "Be brief.\n\nMetric units."
    messages:
      role: "user"
      content:
        {"type":"text","text":"Before"}
        {"type":"image","source":{"type":"base64","media_type":"image/png","data":"iVBORw0KGgo="}}
        {"type":"text","text":"And"}
        {"type":"image","source":{"type":"url","url":"https://hob.test/cat.webp"}}
        {"type":"text","text":"behind"}
      role: "assistant"
      content:
        {"type":"text","text":"I will look."}
        {"type":"tool_use","id":"toolu_1","name":"weather","input":{"city":"Oslo","days":2}}
        {"type":"tool_use","id":"call_2_x","name":"clock","input":{}}
      role: "user"
      content:
        {"type":"tool_result","tool_use_id":"toolu_1","content":"Rain"}
        {"type":"tool_result","tool_use_id":"call_2_x","content":[{"type":"image","source":{"type":"base64","media_type":"image/jpeg","data":"/9j/"}},{"type":"text","text":"12:00"}]}
        {"type":"text","text":"Quick!"}
        {"type":"text","text":"And?"}
    tools: [{"name":"weather","description":"Tomorrow's","input_schema":{"type":"object","properties":{"city":{"type":"string"}}},"eager_input_streaming":true},{"name":"clock","input_schema":{"type":"object"},"eager_input_streaming":true}]
    tool_choice: {"type":"auto","disable_parallel_tool_use":true}
    cache_control: {"type":"ephemeral"}
    temperature: 0.7
    top_k: 40
    stop_sequences: ["END"]
    "#);
    assert_eq!(anthropic_drops(&request, MIDDLE), [""; 0]);
}

#[test]
fn every_conversation_begins_with_the_user_and_says_something() {
    let begin = json!({ "role": "user", "content": [{ "type": "text", "text": "Begin." }] });
    let hi = json!({ "role": "user", "content": [{ "type": "text", "text": "Hi" }] });
    let hello = json!({ "role": "assistant", "content": [{ "type": "text", "text": "Hello" }] });
    let two = [json!({ "type": "text", "text": "Hi" }), json!({ "type": "text", "text": "You?" })];
    for (messages, expected) in [
        (vec![], json!([begin])),
        (vec![system("Be brief.")], json!([begin])),
        (vec![user(" \n")], json!([begin])),
        (vec![assistant("Hello"), user("Hi")], json!([begin, hello, hi])),
        (vec![user("Hi"), assistant("Hello")], json!([hi, hello])),
        (
            vec![user("Hi"), assistant("\n"), user("You?")],
            json!([{ "role": "user", "content": two }]),
        ),
        (vec![Message::new(Role::Tool, "Hi")], json!([hi])),
        (
            vec![user("Hi"), calling(vec![tool_call("a", "f", "{}")]), result("a", "")],
            json!([
                hi,
                { "role": "assistant", "content": [
                    { "type": "tool_use", "id": "a", "name": "f", "input": {} },
                ] },
                { "role": "user", "content": [{ "type": "tool_result", "tool_use_id": "a" }] },
            ]),
        ),
    ] {
        assert_eq!(sent(&chat(messages), NEW)["messages"], expected);
    }
    assert_eq!(sent(&chat(vec![system(" "), user("Hi")]), NEW).get("system"), None);
}

#[test]
fn prompts_with_tools_are_kept_for_the_next_turn() {
    let mut request = with_tool(ToolChoice::Auto);
    let kept = |request: &ChatRequest, model: &str| {
        let body = sent(request, model);
        body.get("cache_control").cloned()
    };
    assert_eq!(kept(&request, NEW), Some(json!({ "type": "ephemeral" })));
    assert_eq!(kept(&request, OTHER), None);
    let refused = anthropic_request(&request, NEW, &["cache_control".to_owned()]).expect("a body");
    assert!(!refused.contains("cache_control"), "{refused}");
    conversation_of(&mut request).tools.clear();
    assert_eq!(kept(&request, NEW), None);
}

#[test]
fn tools_are_offered_or_wanted_or_forbidden() {
    let choices = [
        (ToolChoice::Auto, json!({ "type": "auto" })),
        (ToolChoice::None, json!({ "type": "none" })),
        (ToolChoice::Required, json!({ "type": "any" })),
        (ToolChoice::Named("weather".to_owned()), json!({ "type": "tool", "name": "weather" })),
    ];
    for (choice, mut expected) in choices {
        let mut request = with_tool(choice.clone());
        let body = sent(&request, NEW);
        assert_eq!(body["tool_choice"], expected);
        let mut tool = json!({ "name": "weather", "input_schema": { "type": "object" } });
        assert_eq!(sent(&request, OTHER)["tools"], json!([tool]));
        let without = ["eager_input_streaming".to_owned()];
        let plain = anthropic_request(&request, NEW, &without).expect("a body");
        assert!(plain.contains(&format!(r#""tools":[{tool}]"#)), "{plain}");
        tool["eager_input_streaming"] = json!(true);
        assert_eq!(body["tools"], json!([tool]));
        let Prompt::Chat(conversation) = &mut request.prompt else { unreachable!() };
        conversation.parallel_tool_calls = false;
        if choice != ToolChoice::None {
            expected["disable_parallel_tool_use"] = json!(true);
        }
        assert_eq!(sent(&request, NEW)["tool_choice"], expected);
        conversation_of(&mut request).tools.clear();
        let body = sent(&request, NEWEST);
        assert_eq!((body.get("tools"), body.get("tool_choice")), (None, None));
    }
}
