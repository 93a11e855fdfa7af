//! Chat bodies as clients send them, and the request or the error that each gives.
//! What users wrote never appears in an error.

mod refused;
mod surprises;
mod thinking;

use std::time::Duration;

use hob_core::chat::{
    Conversation, Message, OutputFormat, PipelineJob, Prompt, Reading, Sampling, Tool, ToolChoice,
};
use hob_core::{ChatRequest, JsonText, KeepAlive};
use hob_wire::{CallShape, ChatDelivery, UsageChunk, WireChat, WireError, parse_chat};

use crate::builders::{assistant, calling, chat, result, system, tool, tool_call, user};

/// A request that says "Hi", with these fields too.
fn parse(fields: &str) -> Result<WireChat, WireError> {
    parse_chat(body(fields).as_bytes())
}

fn body(fields: &str) -> String {
    let comma = if fields.is_empty() { "" } else { "," };
    format!(r#"{{"messages":[{{"role":"user","content":"Hi"}}]{comma}{fields}}}"#)
}

fn plain() -> WireChat {
    WireChat {
        model: None,
        request: ChatRequest { reading: Reading::Whole, ..chat(vec![user("Hi")]) },
        choices: 1,
        delivery: ChatDelivery::Whole,
        calls: CallShape::ToolCalls,
        ignored: Vec::new(),
        unknown: Vec::new(),
        tells_loading: false,
    }
}

fn conversation(wire: WireChat) -> Conversation {
    let Prompt::Chat(conversation) = wire.request.prompt else {
        unreachable!("chat has messages");
    };
    conversation
}

fn read(fields: &str) -> WireChat {
    parse(fields).expect(fields)
}

fn messages(list: &str) -> Result<Vec<Message>, String> {
    let wire = parse_chat(format!(r#"{{"messages":{list}}}"#).as_bytes());
    wire.map(|wire| conversation(wire).messages).map_err(|error| error.to_string())
}

/// The fields that the header `x-hob-ignored` names.
fn ignored_names(wire: &WireChat) -> Vec<&str> {
    wire.ignored.iter().chain(&wire.unknown).map(String::as_str).collect()
}

#[test]
fn what_is_left_out_or_null_has_its_default() {
    assert_eq!(read(""), plain());
    let nulls = r#""model":null,"n":null,"stream":null,"stream_options":null,"temperature":null,
        "max_tokens":null,"stop":null,"tools":null,"tool_choice":null,"functions":null,
        "response_format":null,"reasoning_effort":null,"logprobs":null,"logit_bias":null,
        "keep_alive":null,"modalities":null,"whatever":null"#;
    assert_eq!(read(nulls), plain());
}

#[test]
fn every_sampling_field_arrives() {
    let fields = r#""model":"smol","temperature":0.5,"top_p":0.9,"top_k":40,"min_p":0.05,
        "repetition_penalty":1.1,"presence_penalty":-2,"frequency_penalty":2,"seed":-7,
        "logit_bias":{"7":-100,"x":1},"ignore_eos":true,"max_tokens":5,"max_completion_tokens":9,"stop":["a","","b"],
        "n":3,"stream":true,"stream_options":{"include_usage":true,"include_obfuscation":true},
        "logprobs":true,"top_logprobs":2,"keep_alive":"5m","user":{"id":1},"store":true,"loading_status":true"#;
    let expected = WireChat {
        model: Some("smol".to_owned()),
        request: ChatRequest {
            sampling: Sampling {
                temperature: Some(0.5),
                top_p: Some(0.9),
                top_k: Some(40),
                min_p: Some(0.05),
                repeat_penalty: Some(1.1),
                presence_penalty: Some(-2.0),
                frequency_penalty: Some(2.0),
                seed: Some((-7i64).cast_unsigned()),
                logit_bias: vec![(7, -100.0)],
                ignore_eos: Some(true),
            },
            tokens_max: Some(9),
            stop: vec!["a".to_owned(), "b".to_owned()],
            logprobs: Some(2),
            keep_alive: Some(KeepAlive::For(Duration::from_secs(300))),
            extra: Some(JsonText::parsed(r#"{"store":true,"user":{"id":1}}"#)),
            job: Some(PipelineJob::Unnamed),
            ..chat(vec![user("Hi")])
        },
        choices: 3,
        delivery: ChatDelivery::Events(UsageChunk::Wanted),
        calls: CallShape::ToolCalls,
        ignored: ["logit_bias.x", "stream_options.include_obfuscation"].map(str::to_owned).to_vec(),
        unknown: ["store", "user"].map(str::to_owned).to_vec(),
        tells_loading: true,
    };
    assert_eq!(read(fields), expected);
}

#[test]
fn a_client_of_pipelines_is_known_by_its_task_or_its_user() {
    for (fields, job, unknown) in [
        (r#""user":{"id":"u"}"#, Some(PipelineJob::Unnamed), vec!["user"]),
        (r#""user":"u""#, None, vec!["user"]),
        (r#""x_hob_task":"chat","x_hob_chat":"c""#, Some(PipelineJob::Chat), Vec::new()),
        (
            r#""user":{},"x_hob_task":"title_generation""#,
            Some(PipelineJob::Background),
            vec!["user"],
        ),
    ] {
        let wire = read(fields);
        assert_eq!(
            (wire.request.job, wire.unknown),
            (job, unknown.into_iter().map(str::to_owned).collect()),
            "{fields}"
        );
    }
}

#[test]
fn a_limit_of_zero_or_below_is_no_limit() {
    for (fields, expected) in [
        (r#""max_tokens":0"#, None),
        (r#""max_completion_tokens":0"#, None),
        (r#""max_tokens":7,"max_completion_tokens":0"#, Some(7)),
        (r#""max_tokens":-1"#, None),
        (r#""max_tokens":7.0"#, Some(7)),
        (r#""max_tokens":7,"max_completion_tokens":-1"#, Some(7)),
        (r#""max_tokens":99999999999"#, Some(u32::MAX)),
    ] {
        assert_eq!(read(fields).request.tokens_max, expected, "{fields}");
    }
    assert_eq!(read(r#""top_k":-1"#).request.sampling.top_k, Some(0));
    assert_eq!(read(r#""repeat_penalty":0"#).request.sampling.repeat_penalty, None);
}

#[test]
fn options_of_a_stream_need_no_stream() {
    assert_eq!(read(r#""stream_options":{"include_usage":true}"#).delivery, ChatDelivery::Whole);
    let unwanted = ChatDelivery::Events(UsageChunk::Unwanted);
    assert_eq!(read(r#""stream":true"#).delivery, unwanted);
}

#[test]
fn alternatives_without_log_probabilities_are_named() {
    let wire = read(r#""top_logprobs":2"#);
    assert_eq!((wire.request.logprobs, ignored_names(&wire)), (None, vec!["top_logprobs"]));
    assert_eq!(read(r#""logprobs":true"#).request.logprobs, Some(0));
}

#[test]
fn roles_are_four_and_contents_are_text() {
    let list = r#"[
        {"role":"developer","content":"Be brief.","name":"boss"},
        {"role":"user","content":[{"type":"text","text":"one"},{"type":"text","text":"two"}]},
        {"role":"assistant","content":[{"type":"refusal","refusal":"no"}],"reasoning_content":"hm"},
        {"role":"assistant","content":null,"tool_calls":[
            {"id":"call_1","type":"function","function":{"name":"f","arguments":" { \"b\": 1, \"a\": [1.5] } "}},
            {"id":"","function":{"name":"g","arguments":{"x":null}}},
            {"function":{"name":"h","arguments":""}},
            {"function":{"name":"i","arguments":"{\"cut"}},
            {"function":{"name":"j","arguments":"[1]"}}]},
        {"role":"tool","tool_call_id":"call_1","content":[{"type":"text","text":"42"}]},
        {"role":"assistant","function_call":{"name":"old"}},
        {"role":"function","name":"old","content":"done"},
        {"role":"tool","content":null}]"#;
    let expected = vec![
        Message { name: Some("boss".to_owned()), ..system("Be brief.") },
        user("one\ntwo"),
        Message { reasoning: Some("hm".to_owned()), ..assistant("no") },
        calling(vec![
            tool_call("call_1", "f", r#"{"b":1,"a":[1.5]}"#),
            tool_call("call00001", "g", r#"{"x":null}"#),
            tool_call("call00002", "h", "{}"),
            tool_call("call00003", "i", "{}"),
            tool_call("call00004", "j", "{}"),
        ]),
        result("call_1", "42"),
        calling(vec![tool_call("call00005", "old", "{}")]),
        Message { name: Some("old".to_owned()), ..result("call00005", "done") },
        result("call00005", ""),
    ];
    assert_eq!(messages(list), Ok(expected));
}

#[test]
fn thinking_is_kept_where_tools_are_offered_or_were_called() {
    let plain = r#"{"role":"user","content":"Hi","reasoning_content":"mine"},
        {"role":"assistant","content":"Hello.","reasoning_content":"greet"},
        {"role":"user","content":"Weather?"}"#;
    let called = r#"{"role":"assistant","reasoning_content":"look","tool_calls":[{"id":"a","function":{"name":"f"}}]},
        {"role":"tool","content":"sun","reasoning_content":"its"},
        {"role":"assistant","content":"Sunny.","reasoning_content":""}"#;
    let thoughts = |body: String| -> Vec<Option<String>> {
        let wire = parse_chat(body.as_bytes()).expect("a conversation");
        conversation(wire).messages.into_iter().map(|message| message.reasoning).collect()
    };
    let said = |text: &str| Some(text.to_owned());
    assert_eq!(thoughts(format!(r#"{{"messages":[{plain}]}}"#)), [None::<String>, None, None]);
    let offered = thoughts(format!(r#"{{"messages":[{plain}],{TOOLS}}}"#));
    assert_eq!(offered, [None, said("greet"), None]);
    let both = thoughts(format!(r#"{{"messages":[{plain},{called}]}}"#));
    assert_eq!(both, [None, said("greet"), None, said("look"), None, said("")]);
}

pub(crate) const TOOLS: &str = r#""tools":[{"type":"function","function":{"name":"weather","description":"For a city",
    "parameters":{"type":"object","properties":{"z":{"type":"string"},"a":{}}},"strict":true}},
    {"type":"function","function":{"name":"time"}}]"#;

fn tools() -> Vec<Tool> {
    let schema = r#"{"type":"object","properties":{"z":{"type":"string"},"a":{}}}"#;
    let description = Some("For a city".to_owned());
    let weather = Tool { description, strict: true, ..tool("weather", Some(schema)) };
    vec![weather, tool("time", None)]
}

#[test]
fn tools_and_choices_arrive() {
    let time = || vec![tools().remove(1)];
    let named = |name: &str| ToolChoice::Named(name.to_owned());
    for (choice, offered, expected) in [
        ("", tools(), ToolChoice::Auto),
        (r#","tool_choice":"auto""#, tools(), ToolChoice::Auto),
        (r#","tool_choice":"none""#, tools(), ToolChoice::None),
        (r#","tool_choice":"required""#, tools(), ToolChoice::Required),
        (
            r#","tool_choice":{"type":"function","function":{"name":"time"}}"#,
            tools(),
            named("time"),
        ),
        (
            r#","tool_choice":{"type":"allowed_tools","allowed_tools":{"mode":"required",
                "tools":[{"type":"function","function":{"name":"time"}}]}}"#,
            time(),
            ToolChoice::Required,
        ),
        (
            r#","tool_choice":{"type":"allowed_tools","allowed_tools":{"mode":"auto",
                "tools":[{"type":"function","name":"time"}]}}"#,
            time(),
            ToolChoice::Auto,
        ),
    ] {
        let wire = read(&format!("{TOOLS}{choice}"));
        assert_eq!((wire.calls, ignored_names(&wire)), (CallShape::ToolCalls, vec![]), "{choice}");
        let talk = conversation(wire);
        assert_eq!((talk.tools, talk.tool_choice), (offered, expected), "{choice}");
        assert!(talk.parallel_tool_calls);
    }
    let single = conversation(read(&format!("{TOOLS},\"parallel_tool_calls\":false")));
    assert!(!single.parallel_tool_calls);
    assert_eq!(conversation(read(r#""tools":[],"tool_choice":"none""#)).tools, []);
}

#[test]
fn functions_are_tools_that_are_answered_as_functions() {
    let functions = r#""functions":[{"name":"time"}]"#;
    for (choice, expected) in [
        ("", ToolChoice::Auto),
        (r#","function_call":"none""#, ToolChoice::None),
        (r#","function_call":{"name":"time"}"#, ToolChoice::Named("time".to_owned())),
    ] {
        let wire = read(&format!("{functions}{choice}"));
        assert_eq!(wire.calls, CallShape::FunctionCall);
        let talk = conversation(wire);
        assert_eq!((talk.tools.len(), talk.tool_choice), (1, expected), "{choice}");
        assert!(!talk.parallel_tool_calls);
    }
    let both = read(&format!("{TOOLS},{functions},\"function_call\":\"none\""));
    assert_eq!(ignored_names(&both), ["functions", "function_call"]);
    let (shape, talk) = (both.calls, conversation(both));
    assert_eq!((shape, talk.tools), (CallShape::ToolCalls, tools()));
}

#[test]
fn outputs_arrive() {
    let schema = |text: &str| OutputFormat::JsonSchema(JsonText::parsed(text));
    for (fields, expected) in [
        (r#""response_format":{"type":"text"}"#, OutputFormat::Text),
        (r#""response_format":{"type":"json_object"}"#, OutputFormat::JsonObject),
        (
            r#""response_format":{"type":"json_object","schema":{"b":1,"a":2}}"#,
            schema(r#"{"b":1,"a":2}"#),
        ),
        (
            r#""response_format":{"type":"json_schema","json_schema":{"name":"x","strict":true,"schema":{"foo":"bar"}}}"#,
            schema(r#"{"foo":"bar"}"#),
        ),
        (
            r#""response_format":{"type":"json_schema","json_schema":{"name":"x"}}"#,
            OutputFormat::JsonObject,
        ),
        (r#""regex":"[0-9]+""#, OutputFormat::Regex("[0-9]+".to_owned())),
        (r#""grammar":"start: /a/""#, OutputFormat::Lark("start: /a/".to_owned())),
        (r#""grammar":"","response_format":{"type":"text"}"#, OutputFormat::Text),
    ] {
        let wire = read(fields);
        assert_eq!((wire.request.output, wire.ignored), (expected, vec![]), "{fields}");
    }
}

#[test]
fn a_schema_is_strict_where_the_request_says_so() {
    for (strict, expected) in
        [(r#","strict":true"#, true), (r#","strict":false"#, false), ("", false)]
    {
        let schema = format!(r#"{{"name":"x","schema":{{"foo":"bar"}}{strict}}}"#);
        let wire =
            read(&format!(r#""response_format":{{"type":"json_schema","json_schema":{schema}}}"#));
        assert_eq!(wire.request.strict, expected, "{strict}");
    }
}

#[test]
fn a_request_can_be_logged_without_its_text() {
    let wire = parse(r#""stop":"a secret","regex":"a secret""#).expect("a request");
    assert!(!format!("{wire:?}").contains("secret"));
}
