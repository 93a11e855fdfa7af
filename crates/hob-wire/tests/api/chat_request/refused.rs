//! Bodies that become no request, and the sentence that says why.
//! The field is named, the element of a list by its number, and the text never repeated.

use hob_wire::parse_chat;
use serde_json::{Value, json};

use super::{TOOLS, messages, parse};
use crate::rows;

/// Lists of messages, and what is said of them.
const MESSAGES: &str = r#"
null => 'messages' is missing
[] => 'messages' is empty
{} => 'messages' must be a list, and is an object
[7] => 'messages[0]' must be an object, and is a number
[{"content":"x"}] => 'messages[0].role' is missing
[{"role":"king","content":"x"}] => 'messages[0].role' must be one of system, developer, user, assistant, tool, function, and is 'king'
[{"role":"user","content":"x"},{"role":"user"}] => 'messages[1].content' is missing
[{"role":"user","content":7}] => 'messages[0].content' must be a string or a list, and is a number
[{"role":"user","content":[{"type":"image_url","image_url":{"url":"secret"}}]}] => 'messages[0].content[0].image_url' must be an address that begins with data:, https: or http:
[{"role":"user","content":[{"type":"input_audio","input_audio":{}}]}] => 'messages[0].content[0].type' is 'input_audio', and models here take text and pictures
[{"role":"user","content":[{"type":"smell"}]}] => 'messages[0].content[0].type' must be 'text', 'image_url' or 'refusal'
[{"role":"user","content":[{"text":"x"}]}] => 'messages[0].content[0].type' is missing
[{"role":"user","content":[{"type":"text"}]}] => 'messages[0].content[0].text' is missing
[{"role":"user","content":["x"]}] => 'messages[0].content[0]' must be an object, and is a string
[{"role":"assistant","tool_calls":[{}]}] => 'messages[0].tool_calls[0].function' is missing
[{"role":"assistant","tool_calls":[{"function":{"name":""}}]}] => 'messages[0].tool_calls[0].function.name' is missing
[{"role":"assistant","tool_calls":[{"type":"custom"}]}] => 'messages[0].tool_calls[0].type' must be one of function, and is 'custom'
[{"role":"assistant","tool_calls":[{"function":{"name":"f","arguments":[1]}}]}] => 'messages[0].tool_calls[0].function.arguments' must be a string or an object, and is a list
"#;

#[test]
fn messages_that_no_model_can_read_are_refused_by_number() {
    let many = format!("[{}]", vec![r#"{"role":"user","content":""}"#; 10_001].join(","));
    let calls = vec![r#"{"function":{"name":"f"}}"#; 129].join(",");
    let calls = format!(r#"[{{"role":"assistant","tool_calls":[{calls}]}}]"#);
    let limits = [
        (many.as_str(), "'messages' has 10001 messages and the limit is 10000"),
        (calls.as_str(), "'messages[0].tool_calls' has 129 calls and the limit is 128"),
    ];
    for (list, expected) in rows(MESSAGES).chain(limits) {
        assert_eq!(messages(list), Err(expected.to_owned()), "{list:.80}");
        let error = parse_chat(format!(r#"{{"messages":{list}}}"#).as_bytes()).expect_err(list);
        assert!(error.field().is_some_and(|field| field.starts_with("messages")));
    }
}

/// Fields, and what is said of them.
const FIELDS: &str = r#"
"model":7 => 'model' must be a string, and is a number
"n":0 => 'n' must be from 1 to 8, and is 0
"n":9 => 'n' must be from 1 to 8, and is 9
"n":1.5 => 'n' must be a whole number, and is a fraction
"stream":"yes" => 'stream' must be true or false, and is a string
"stream_options":[] => 'stream_options' must be an object, and is a list
"stream_options":{"include_usage":1} => 'stream_options.include_usage' must be true or false, and is a number
"temperature":2.1 => 'temperature' must be from 0 to 2, and is 2.1
"temperature":"1" => 'temperature' must be a number, and is a string
"top_p":-0.1 => 'top_p' must be from 0 to 1, and is -0.1
"min_p":2 => 'min_p' must be from 0 to 1, and is 2
"repeat_penalty":11 => 'repeat_penalty' must be from 0 to 10, and is 11
"presence_penalty":3 => 'presence_penalty' must be from -2 to 2, and is 3
"frequency_penalty":-3 => 'frequency_penalty' must be from -2 to 2, and is -3
"seed":"x" => 'seed' must be a whole number, and is a string
"seed":1.5 => 'seed' must be a whole number, and is a fraction
"seed":18446744073709551616 => 'seed' must be a whole number from -9223372036854775808 to 18446744073709551615
"seed":-1e300 => 'seed' must be a whole number from -9223372036854775808 to 18446744073709551615
"max_tokens":"x" => 'max_tokens' must be a whole number, and is a string
"logprobs":2 => 'logprobs' must be true or false, and is a number
"top_logprobs":21 => 'top_logprobs' must be from 0 to 20, and is 21
"logit_bias":[] => 'logit_bias' must be an object, and is a list
"logit_bias":{"1":"x"} => 'logit_bias.1' must be a number, and is a string
"logit_bias":{"1":101} => 'logit_bias' must be from -100 to 100, and is 101
"stop":7 => 'stop' must be a string or a list, and is a number
"stop":[7] => 'stop[0]' must be a string, and is a number
"modalities":["text","audio"] => 'modalities' can only be 'text': chat models here write; /v1/audio/speech reads aloud
"modalities":[1] => 'modalities[0]' must be a string, and is a number
"keep_alive":true => 'keep_alive' must be a number or a string, and is a boolean
"reasoning_effort":"huge" => 'reasoning_effort' must be one of none, minimal, low, medium, high, xhigh, max, and is 'huge'
"think":"huge" => 'think' must be one of none, minimal, low, medium, high, xhigh, max, and is 'huge'
"think":1 => 'think' must be true or false or a string, and is a number
"thinking":1 => 'thinking' must be true or false or an object, and is a number
"chat_template_kwargs":1 => 'chat_template_kwargs' must be an object, and is a number
"response_format":"json" => 'response_format' must be an object, and is a string
"response_format":{} => 'response_format' must have a 'type'
"response_format":{"type":"xml"} => 'response_format.type' must be one of text, json_object, json_schema, and is 'xml'
"response_format":{"type":"json_schema"} => 'response_format' is of type 'json_schema' and has none
"response_format":{"type":"json_schema","json_schema":{"schema":7}} => 'response_format.json_schema.schema' must be true or false or an object, and is a number
"response_format":{"type":"json_object"},"regex":"a" => 'regex' cannot be combined with 'response_format': an answer follows one of them
"regex":"a","grammar":"b" => 'grammar' cannot be combined with 'regex': an answer follows one of them
"tools":{} => 'tools' must be a list, and is an object
"tools":[7] => 'tools[0]' must be an object, and is a number
"tools":[{}] => 'tools[0].function' is missing
"tools":[{"function":{}}] => 'tools[0].function.name' is missing
"tools":[{"type":"web_search"}] => 'tools[0].type' must be one of function, and is 'web_search'
"tools":[{"function":{"name":"f","parameters":[]}}] => 'tools[0].function.parameters' must be an object, and is a list
"tools":[{"function":{"name":"f","description":7}}] => 'tools[0].function.description' must be a string, and is a number
"functions":[{}] => 'functions[0].name' is missing
"tool_choice":"required" => 'tool_choice' wants a call, and there is no tool to call
"#;

fn check(fields: &str, expected: &str) {
    let error = parse(fields).expect_err(fields);
    assert_eq!(error.to_string(), expected, "{fields:.80}");
    assert!(error.field().is_some());
}

#[test]
fn what_is_wrong_is_said_with_field_and_accepted_values() {
    for (fields, expected) in rows(FIELDS) {
        check(fields, expected);
    }
}

#[test]
fn what_is_too_much_is_said_with_its_limit() {
    let biases: serde_json::Map<String, Value> =
        (0..1025).map(|token: u32| (token.to_string(), json!(1))).collect();
    for (field, value, expected) in [
        ("stop", json!(vec!["x"; 17]), "'stop' has 17 texts and the limit is 16"),
        ("stop", json!("x".repeat(257)), "'stop' has a text of 257 bytes and the limit is 256"),
        ("logit_bias", json!(biases), "'logit_bias' has 1025 tokens and the limit is 1024"),
        (
            "tools",
            json!(vec![json!({"function": {"name": "f"}}); 129]),
            "'tools' has 129 tools and the limit is 128",
        ),
        (
            "functions",
            json!(vec![json!({"name": "f"}); 129]),
            "'functions' has 129 tools and the limit is 128",
        ),
        ("model", json!("x".repeat(257)), "'model' has 257 characters and the limit is 256"),
    ] {
        check(&format!("\"{field}\":{value}"), expected);
    }
}

#[test]
fn choices_that_choose_nothing() {
    let wanted = "must be 'none', 'auto', 'required' or an object that names a function";
    for (choice, expected) in [
        (json!("maybe"), format!("'tool_choice' {wanted}, and is another word")),
        (json!(7), "'tool_choice' must be a string or an object, and is a number".to_owned()),
        (json!({"type": "function"}), format!("'tool_choice' {wanted}, and names none")),
        (
            json!({"function": {"name": "dance"}}),
            "'tool_choice' names 'dance', which is not among the tools".to_owned(),
        ),
        (json!({"type": "allowed_tools"}), "'tool_choice.allowed_tools' is missing".to_owned()),
        (
            json!({"type": "allowed_tools", "allowed_tools": {"tools": [{"name": "dance"}]}}),
            "'tool_choice' names 'dance', which is not among the tools".to_owned(),
        ),
    ] {
        check(&format!("{TOOLS},\"tool_choice\":{choice}"), &expected);
    }
    check(
        r#""functions":[{"name":"f"}],"function_call":{"name":"g"}"#,
        "'function_call' names 'g', which is not among the tools",
    );
}
