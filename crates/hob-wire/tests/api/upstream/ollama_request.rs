//! Request bodies for Ollama, and requests that Ollama does not support.
//! The bodies were checked against the source code of Ollama.

use std::time::Duration;

use hob_core::chat::{
    Conversation, Effort, Message, OutputFormat, Prompt, Role, Sampling, Thinking, Tool, ToolChoice,
};
use hob_core::{ChatRequest, JsonText, KeepAlive};
use hob_wire::{UnsupportedField, ollama_path, ollama_request};
use serde_json::{Value, json};

use super::openai_request::{everything, hi};
use crate::builders::{
    assistant, calling, chat, conversing, image, result, system, tool, tool_call, user,
};

fn described(name: &str) -> Tool {
    let schema = r#"{"type":"object","properties":{"b":{},"a":{}}}"#;
    Tool { description: Some("Says it.".to_owned()), ..tool(name, Some(schema)) }
}

fn sent(request: &ChatRequest) -> Value {
    let body = ollama_request(request, "qwen3:4b", None).expect("a request that Ollama supports");
    serde_json::from_str(&body).expect("JSON")
}

#[test]
fn every_field_that_is_set_is_sent() {
    let images = vec![image(0, "data:image/png;base64,iVBORw0K"), image(0, "DATA:;BASE64,R0lG")];
    let messages = vec![
        system("Be brief."),
        Message { images, ..user("Weather?") },
        calling(vec![tool_call("call_1", "weather", r#"{"city":"Rome"}"#)]),
        result("call_1", "Sun."),
    ];
    let tools = vec![described("weather")];
    let conversation = Conversation { messages, tools, ..Conversation::default() };
    let request = ChatRequest {
        prompt: Prompt::Chat(conversation),
        sampling: Sampling {
            logit_bias: Vec::new(),
            ignore_eos: Some(false),
            ..everything().sampling
        },
        thinking: Thinking { effort: Some(Effort::High), tokens_max: None },
        extra: Some(JsonText::parsed(r#"{"unheard":"of"}"#)),
        ..everything()
    };
    assert_eq!(ollama_path(&request), "api/chat");
    insta::assert_snapshot!(ollama_request(&request, "qwen3:4b", Some(16384)).expect("sendable"), @r#"{"model":"qwen3:4b","messages":[{"role":"system","content":"Be brief."},{"role":"user","content":"Weather?","images":["iVBORw0K","R0lG"]},{"role":"assistant","content":"","tool_calls":[{"id":"call_1","function":{"index":0,"name":"weather","arguments":{"city":"Rome"}}}]},{"role":"tool","content":"Sun.","tool_name":"weather","tool_call_id":"call_1"}],"tools":[{"type":"function","function":{"name":"weather","description":"Says it.","parameters":{"type":"object","properties":{"b":{},"a":{}}}}}],"stream":true,"truncate":false,"shift":false,"think":"high","format":{"type":"object","z":1,"a":2},"logprobs":true,"top_logprobs":2,"keep_alive":300,"options":{"num_ctx":16384,"num_predict":100,"temperature":0.7,"top_p":0.95,"top_k":40,"min_p":0.05,"repeat_penalty":1.1,"presence_penalty":-0.5,"frequency_penalty":0.25,"seed":7,"stop":["END"]}}"#);
}

#[test]
fn thinking_goes_back() {
    let thought = Message { reasoning: Some("So.".to_owned()), ..assistant("Hello.") };
    let request = chat(vec![thought, user("Hi")]);
    let messages = &sent(&request)["messages"];
    assert_eq!((&messages[0]["thinking"], &messages[1]["thinking"]), (&json!("So."), &Value::Null));
}

#[test]
fn fields_that_are_not_set_are_left_out() {
    insta::assert_snapshot!(ollama_request(&hi(), "qwen3:4b", None).expect("sendable"), @r#"{"model":"qwen3:4b","messages":[{"role":"user","content":"Hi"}],"stream":true,"truncate":false,"shift":false}"#);
}

#[test]
fn text_completion_and_infill_use_the_generate_route() {
    let text = ChatRequest { prompt: Prompt::Text("Once".to_owned()), ..ChatRequest::default() };
    let (prefix, suffix) = ("fn ".to_owned(), "() {}".to_owned());
    let gap = ChatRequest { prompt: Prompt::Infill { prefix, suffix }, ..ChatRequest::default() };
    for request in [&text, &gap] {
        assert_eq!(ollama_path(request), "api/generate");
    }
    let expected = json!({"model": "qwen3:4b", "prompt": "Once", "raw": true, "stream": true,
        "truncate": false, "shift": false, "think": false});
    assert_eq!(sent(&text), expected);
    let expected = json!({"model": "qwen3:4b", "prompt": "fn ", "suffix": "() {}", "stream": true,
        "truncate": false, "shift": false});
    assert_eq!(sent(&gap), expected);
}

#[test]
fn the_thinking_effort_is_mapped_to_the_levels_of_the_model() {
    use Effort::{High, Low, Max, Medium, Minimal, None, XHigh};
    for (effort, others, gpt_oss) in [
        (None, json!(false), "low"),
        (Minimal, json!("low"), "low"),
        (Low, json!("low"), "low"),
        (Medium, json!(true), "medium"),
        (High, json!("high"), "high"),
        (XHigh, json!("max"), "high"),
        (Max, json!("max"), "high"),
    ] {
        let thinking = Thinking { effort: Some(effort), tokens_max: Option::None };
        let request = ChatRequest { thinking, ..hi() };
        for (model, expected) in [
            ("qwen3:4b", &others),
            ("gpt-oss:20b", &json!(gpt_oss)),
            ("me/GPT-OSS", &json!(gpt_oss)),
        ] {
            let body = ollama_request(&request, model, Option::None).expect("sendable");
            let body: Value = serde_json::from_str(&body).expect("JSON");
            assert_eq!(&body["think"], expected, "{model} {effort:?}");
        }
    }
    assert_eq!(sent(&hi()).get("think"), Option::None);
}

#[test]
fn output_format_keep_alive_and_seed_are_sent() {
    let json_object = ChatRequest { output: OutputFormat::JsonObject, ..hi() };
    assert_eq!(sent(&json_object)["format"], json!("json"));
    for (keep_alive, expected) in [
        (KeepAlive::Forever, json!(-1)),
        (KeepAlive::For(Duration::ZERO), json!(0)),
        (KeepAlive::For(Duration::from_millis(1500)), json!(1.5)),
    ] {
        let request = ChatRequest { keep_alive: Some(keep_alive), ..hi() };
        assert_eq!(sent(&request)["keep_alive"], expected);
    }
    let seeded = Sampling { seed: Some((-3i64).cast_unsigned()), ..Sampling::default() };
    let request = ChatRequest { sampling: seeded, ..hi() };
    assert_eq!(sent(&request)["options"], json!({ "seed": -3 }));
}

#[test]
fn tools_are_left_out_if_the_choice_is_none() {
    let with = |tool_choice| {
        let (messages, tools) = (vec![user("Hi")], vec![described("say")]);
        conversing(Conversation { messages, tools, tool_choice, ..Conversation::default() })
    };
    assert_eq!(sent(&with(ToolChoice::None)).get("tools"), None);
    let offered = json!([{"type": "function", "function": {"name": "say",
        "description": "Says it.", "parameters": {"type": "object", "properties": {"b": {}, "a": {}}}}}]);
    assert_eq!(sent(&with(ToolChoice::Auto))["tools"], offered);
    for choice in [ToolChoice::Required, ToolChoice::Named("say".to_owned())] {
        let refused = ollama_request(&with(choice.clone()), "m", None);
        assert_eq!(refused, Err(UnsupportedField { field: "tool_choice" }));
        let without = Conversation { tool_choice: choice, ..Conversation::default() };
        assert!(
            ollama_request(&conversing(without), "m", None).is_ok(),
            "there is nothing to choose"
        );
    }
}

#[test]
fn a_tool_result_has_the_name_of_its_function() {
    let body = sent(&chat(vec![
        calling(vec![tool_call("a", "add", "{}"), tool_call("b", "mul", "{}")]),
        result("b", "7"),
        Message { name: Some("sum".to_owned()), ..result("a", "7") },
        result("z", "7"),
        Message::new(Role::Tool, "7"),
    ]));
    let names: Vec<&Value> = (1..5).map(|at| &body["messages"][at]["tool_name"]).collect();
    assert_eq!(names, [&json!("mul"), &json!("sum"), &Value::Null, &Value::Null]);
}

#[test]
fn unsupported_fields_are_refused() {
    let picture =
        |url: &str| chat(vec![Message { images: vec![image(0, url)], ..user("What is it?") }]);
    let biased = Sampling { logit_bias: vec![(7, 1.0)], ..Sampling::default() };
    let endless = Sampling { ignore_eos: Some(true), ..Sampling::default() };
    for (request, field) in [
        (picture("https://example.org/cat.png"), "messages"),
        (picture("data:image/svg+xml,<svg/>"), "messages"),
        (picture(""), "messages"),
        (ChatRequest { sampling: biased, ..hi() }, "logit_bias"),
        (ChatRequest { sampling: endless, ..hi() }, "ignore_eos"),
        (ChatRequest { output: OutputFormat::Regex("a".to_owned()), ..hi() }, "regex"),
        (ChatRequest { output: OutputFormat::Lark("a".to_owned()), ..hi() }, "grammar"),
        (ChatRequest { prompt: Prompt::Tokens(vec![1]), ..hi() }, "prompt"),
    ] {
        assert_eq!(
            ollama_request(&request, "m", None),
            Err(UnsupportedField { field }),
            "{request:?}"
        );
    }
}
