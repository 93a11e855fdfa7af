//! Bodies as Ollama's clients send them, and the request or the error
//! that each gives. Texts of users never appear in an error.

use std::time::{Duration, SystemTime};

use hob_core::chat::{
    Completion, Conversation, Effort, EmbedInput, FinishReason, Message, OutputFormat, Prompt,
    Reading, Role, Sampling, Thinking, Timings, Tool, Usage,
};
use hob_core::{ChatEvent, ChatRequest, EmbedRequest, JsonText, KeepAlive};
use hob_wire::{
    OllamaAction, OllamaAnswer, OllamaDelivery, OllamaEmbed, OllamaRequest, OllamaShape, WireError,
    parse_ollama_chat, parse_ollama_embed, parse_ollama_embeddings, parse_ollama_generate,
    parse_ollama_named,
};

use crate::builders::{self, calling, result, system, tool, tool_call};
use crate::rows;

fn conversation(messages: Vec<Message>, tools: Vec<Tool>) -> Prompt {
    let parallel_tool_calls = !tools.is_empty();
    Prompt::Chat(Conversation { messages, tools, parallel_tool_calls, ..Conversation::default() })
}

fn user(text: &str) -> Prompt {
    conversation(vec![Message::new(Role::User, text)], Vec::new())
}

fn asked(prompt: Prompt) -> ChatRequest {
    ChatRequest { prompt, ..ChatRequest::default() }
}

fn answer(prompt: Prompt) -> OllamaAction {
    OllamaAction::Answer(Box::new(asked(prompt)))
}

fn request(action: OllamaAction) -> OllamaRequest {
    let (model, delivery) = (Some("smol".to_owned()), OllamaDelivery::Lines);
    OllamaRequest { model, action, delivery, context_tokens: None, ignored: Vec::new() }
}

fn names(names: &[&str]) -> Vec<String> {
    names.iter().map(|&name| name.to_owned()).collect()
}

/// The request that chatting "Hi" with these further fields makes.
fn chat(fields: &str) -> Result<OllamaRequest, WireError> {
    let body =
        format!(r#"{{"model":"smol","messages":[{{"role":"user","content":"Hi"}}]{fields}}}"#);
    parse_ollama_chat(body.as_bytes())
}

fn chat_request(fields: &str) -> (ChatRequest, Vec<String>) {
    let request = chat(fields).expect(fields);
    match request.action {
        OllamaAction::Answer(asked) => (*asked, request.ignored),
        other => unreachable!("{fields} make no request: {other:?}"),
    }
}

#[test]
fn what_is_left_out_or_null_has_its_default() {
    let expected = request(answer(user("Hi")));
    let nulls = r#","tools":null,"options":null,"format":null,"think":null,"keep_alive":null,
        "stream":null,"x":null"#;
    for fields in ["", r#","tools":[],"options":{},"format":"","stream":true"#, nulls] {
        assert_eq!(chat(fields), Ok(expected.clone()), "{fields}");
    }
    let read_whole = ChatRequest { reading: Reading::Whole, ..asked(user("Hi")) };
    let action = OllamaAction::Answer(Box::new(read_whole));
    let whole = OllamaRequest { action, delivery: OllamaDelivery::Whole, ..expected };
    assert_eq!(chat(r#","stream":false"#), Ok(whole));
}

#[test]
fn options_become_sampling_and_the_rest_is_named() {
    let fields = r#","options":{"temperature":0.5,"top_p":1,"top_k":40,"min_p":0.25,"seed":7,
        "repeat_penalty":1.5,"presence_penalty":-2,"frequency_penalty":0.5,"stop":["a","","b"],
        "num_predict":100,"num_ctx":8192,"mirostat":0},"truncate":false,"shift":true,"x":1"#;
    let sampling = Sampling {
        temperature: Some(0.5),
        top_p: Some(1.0),
        top_k: Some(40),
        min_p: Some(0.25),
        repeat_penalty: Some(1.5),
        presence_penalty: Some(-2.0),
        frequency_penalty: Some(0.5),
        seed: Some(7),
        logit_bias: Vec::new(),
        ignore_eos: None,
    };
    let expected = ChatRequest {
        sampling,
        tokens_max: Some(100),
        stop: names(&["a", "b"]),
        ..asked(user("Hi"))
    };
    let ignored = names(&["options.mirostat", "shift", "x"]);
    assert_eq!(chat_request(fields), (expected, ignored));
    assert_eq!(chat(fields).expect("a request").context_tokens, Some(8192));
}

#[test]
fn what_ollama_writes_for_nothing_means_nothing() {
    for options in [
        r#"{"num_predict":-1}"#,
        r#"{"num_predict":-2}"#,
        r#"{"num_predict":0}"#,
        r#"{"seed":-1}"#,
        r#"{"repeat_penalty":0}"#,
        r#"{"stop":""}"#,
        r#"{"stop":[]}"#,
    ] {
        let fields = format!(r#","options":{options}"#);
        assert_eq!(chat_request(&fields), (asked(user("Hi")), Vec::new()), "{options}");
    }
    let all = Sampling { top_k: Some(0), ..Sampling::default() };
    assert_eq!(chat_request(r#","options":{"top_k":-1}"#).0.sampling, all);
    let large = Sampling { seed: Some(u64::MAX), ..Sampling::default() };
    let seed = r#","options":{"seed":18446744073709551615}"#;
    assert_eq!(chat_request(seed).0.sampling, large, "it is not negative");
    let stop = chat_request(r#","options":{"stop":"END","num_predict":1.0}"#).0;
    assert_eq!((stop.stop, stop.tokens_max), (names(&["END"]), Some(1)));
}

#[test]
fn thinking_format_and_memory_are_read() {
    for (think, effort) in [
        ("true", Effort::Medium),
        ("false", Effort::None),
        (r#""low""#, Effort::Low),
        (r#""medium""#, Effort::Medium),
        (r#""high""#, Effort::High),
        (r#""max""#, Effort::Max),
    ] {
        let expected = Thinking { effort: Some(effort), tokens_max: None };
        let asked = chat_request(&format!(r#","think":{think}"#)).0;
        assert_eq!(asked.thinking, expected, "{think}");
    }
    let schema = r#"{"type":"object","properties":{"b":{},"a":{}}}"#;
    let schema_format = OutputFormat::JsonSchema(JsonText::parsed(schema));
    for (format, expected) in [(r#""json""#, OutputFormat::JsonObject), (schema, schema_format)] {
        let asked = chat_request(&format!(r#","format":{format}"#)).0;
        assert_eq!(asked.output, expected, "{format}");
    }
    let five_minutes = KeepAlive::For(Duration::from_secs(300));
    for (keep_alive, expected) in
        [(r#""300s""#, five_minutes), ("300", five_minutes), ("-1", KeepAlive::Forever)]
    {
        let asked = chat_request(&format!(r#","keep_alive":{keep_alive}"#)).0;
        assert_eq!(asked.keep_alive, Some(expected), "{keep_alive}");
    }
}

#[test]
fn calls_get_ids_and_answers_find_theirs() {
    let body = r#"{"messages":[
        {"role":"system","content":"Be brief."},
        {"role":"user","content":"Weather?","images":[]},
        {"role":"assistant","content":"","thinking":"hm","tool_calls":[
            {"function":{"name":"weather","arguments":{"city":"Rome","at":1}}},
            {"function":{"name":"time","arguments":"{}"}},
            {"id":"own","function":{"name":"time","arguments":"{\"cut"}}]},
        {"role":"tool","content":"12:00","tool_name":"time"},
        {"role":"tool","content":"sun"},
        {"role":"tool","content":"13:00","tool_call_id":"own"},
        {"role":"tool","content":"late","tool_name":"time"}]}"#;
    let tool_calls = vec![
        tool_call("call00000", "weather", r#"{"city":"Rome","at":1}"#),
        tool_call("call00001", "time", "{}"),
        tool_call("own", "time", "{}"),
    ];
    let time = || Some("time".to_owned());
    let messages = vec![
        system("Be brief."),
        builders::user("Weather?"),
        Message { reasoning: Some("hm".to_owned()), ..calling(tool_calls) },
        Message { name: time(), ..result("call00001", "12:00") },
        result("call00000", "sun"),
        result("own", "13:00"),
        Message { name: time(), ..Message::new(Role::Tool, "late") },
    ];
    let action = answer(conversation(messages, Vec::new()));
    let expected = OllamaRequest { model: None, ..request(action) };
    assert_eq!(parse_ollama_chat(body.as_bytes()), Ok(expected));
}

#[test]
fn tools_are_read() {
    let fields = r#","tools":[{"type":"function","function":{"name":"weather","description":"d",
        "parameters":{"type":"object","required":["city"]}}},{"function":{"name":"time"}}]"#;
    let tools = vec![
        Tool {
            description: Some("d".to_owned()),
            ..tool("weather", Some(r#"{"type":"object","required":["city"]}"#))
        },
        tool("time", None),
    ];
    let prompt = conversation(vec![Message::new(Role::User, "Hi")], tools);
    assert_eq!(chat_request(fields), (asked(prompt), Vec::new()));
}

#[test]
fn a_prompt_is_a_conversation_a_text_or_a_gap() {
    let system = vec![Message::new(Role::System, "S"), Message::new(Role::User, "P")];
    let gap = |prefix: &str| Prompt::Infill { prefix: prefix.to_owned(), suffix: "E".to_owned() };
    let raw = Prompt::Text("P".to_owned());
    for (fields, prompt, ignored) in [
        (r#""prompt":"P","system":"","suffix":"","template":"""#, user("P"), &[][..]),
        (r#""prompt":"P","system":"S""#, conversation(system, Vec::new()), &[]),
        (r#""prompt":"P","raw":true"#, raw.clone(), &[]),
        (r#""prompt":"P","raw":true,"system":"S""#, raw, &["system"]),
        (r#""prompt":"P","suffix":"E""#, gap("P"), &[]),
        (r#""suffix":"E","system":"S""#, gap(""), &["system"]),
        (r#""prompt":"P","context":[]"#, user("P"), &[]),
    ] {
        let expected = OllamaRequest { ignored: names(ignored), ..request(answer(prompt)) };
        let body = format!(r#"{{"model":"smol",{fields}}}"#);
        assert_eq!(parse_ollama_generate(body.as_bytes()), Ok(expected), "{fields}");
    }
}

#[test]
fn log_probabilities_are_asked_for_as_at_openai() {
    for (fields, logprobs, ignored) in [
        (r#","logprobs":true"#, Some(0), &[][..]),
        (r#","logprobs":true,"top_logprobs":20"#, Some(20), &[]),
        (r#","logprobs":false,"top_logprobs":2"#, None, &["top_logprobs"]),
    ] {
        let expected = ChatRequest { logprobs, ..asked(user("Hi")) };
        assert_eq!(chat_request(fields), (expected, names(ignored)), "{fields}");
    }
    let refused = chat(r#","logprobs":true,"top_logprobs":21"#).expect_err("too many");
    assert!(refused.to_string().starts_with("'top_logprobs' must be"), "{refused}");
}

#[test]
fn a_context_is_the_conversation_before_the_prompt() {
    let turns = vec![Message::new(Role::System, "S"), Message::new(Role::User, "My name is Anna.")];
    let before = conversation(turns, Vec::new());
    let mut answer_to = OllamaAnswer::new(OllamaShape::Generate, "smol", OllamaDelivery::Whole)
        .remembering(&before);
    let usage = Usage::default();
    let end = Completion { finish: FinishReason::Stop, usage, timings: Timings::default() };
    let said = ChatEvent::Text("Hello, Anna.".to_owned());
    answer_to.take(said, SystemTime::UNIX_EPOCH, Duration::ZERO);
    let last = answer_to.take(ChatEvent::Done(end), SystemTime::UNIX_EPOCH, Duration::ZERO);
    let last: serde_json::Value = serde_json::from_str(&last).expect("JSON");
    let generate = |fields: &str| {
        let body = format!(
            r#"{{"model":"smol","prompt":"Who am I?","context":{}{fields}}}"#,
            last["context"]
        );
        parse_ollama_generate(body.as_bytes()).expect("a request")
    };
    let next = |system: &str| {
        let turns = [
            (Role::System, system),
            (Role::User, "My name is Anna."),
            (Role::Assistant, "Hello, Anna."),
            (Role::User, "Who am I?"),
        ];
        let messages = turns.map(|(role, text)| Message::new(role, text));
        request(answer(conversation(messages.into(), Vec::new())))
    };
    assert_eq!(generate(""), next("S"));
    assert_eq!(generate(r#","system":"T""#), next("T"), "the system message that was named last");
    let raw = request(answer(Prompt::Text("Who am I?".to_owned())));
    let raw = OllamaRequest { ignored: names(&["context"]), ..raw };
    assert_eq!(generate(r#","raw":true"#), raw);
    let foreign = parse_ollama_generate(br#"{"prompt":"Hi","context":[151644,8948]}"#);
    let refused = foreign.expect_err("another server's").to_string();
    assert!(refused.starts_with("'context' is not the context of an answer from hob"), "{refused}");
}

#[test]
fn without_a_prompt_it_is_about_memory() {
    let minute = KeepAlive::For(Duration::from_secs(60));
    for (fields, action) in [
        ("", OllamaAction::Load(None)),
        (r#","prompt":"","messages":[]"#, OllamaAction::Load(None)),
        (r#","keep_alive":"1m""#, OllamaAction::Load(Some(minute))),
        (r#","keep_alive":-1"#, OllamaAction::Load(Some(KeepAlive::Forever))),
        (r#","keep_alive":0"#, OllamaAction::Unload),
        (r#","keep_alive":"0s""#, OllamaAction::Unload),
    ] {
        let body = format!(r#"{{"model":"smol"{fields}}}"#);
        let generate = parse_ollama_generate(body.as_bytes()).map(|request| request.action);
        let chat = parse_ollama_chat(body.as_bytes()).map(|request| request.action);
        assert_eq!((generate, chat), (Ok(action.clone()), Ok(action)), "{fields}");
    }
}

#[test]
fn embeddings_are_asked_for_in_two_ways() {
    let expected = |inputs: &[&str], ignored: &[&str]| OllamaEmbed {
        model: Some("smol".to_owned()),
        request: EmbedRequest {
            inputs: inputs.iter().map(|&text| EmbedInput::Text(text.to_owned())).collect(),
            ..EmbedRequest::default()
        },
        ignored: names(ignored),
    };
    for (fields, expected) in [
        (r#""input":"a""#, expected(&["a"], &[])),
        (r#""input":["a","","b"]"#, expected(&["a", "", "b"], &[])),
        (r#""input":"""#, expected(&[], &[])),
        (r#""truncate":true"#, expected(&[], &["truncate"])),
        (r#""input":"a","truncate":false,"options":{"num_ctx":1},"dimensions":0"#, {
            expected(&["a"], &["options.num_ctx"])
        }),
    ] {
        let body = format!(r#"{{"model":"smol",{fields}}}"#);
        assert_eq!(parse_ollama_embed(body.as_bytes()), Ok(expected), "{fields}");
    }
    let body = br#"{"model":"smol","prompt":"a","input":"b"}"#;
    assert_eq!(parse_ollama_embeddings(body), Ok(expected(&["a"], &["input"])));
    let body = br#"{"input":"a","dimensions":2,"keep_alive":-1}"#;
    let request = parse_ollama_embed(body).expect("a request").request;
    assert_eq!((request.dimensions, request.keep_alive), (Some(2), Some(KeepAlive::Forever)));
}

#[test]
fn models_have_an_old_name_and_a_new_one() {
    for (body, expected) in [
        (r#"{"model":"a"}"#, Some(("a", OllamaDelivery::Lines))),
        (r#"{"name":"a","stream":false,"verbose":true}"#, Some(("a", OllamaDelivery::Whole))),
        (r#"{"name":"a","model":"b"}"#, Some(("b", OllamaDelivery::Lines))),
        (r#"{"name":"","model":""}"#, None),
    ] {
        let named = parse_ollama_named(body.as_bytes());
        let read = named.as_ref().map(|named| (named.model.as_str(), named.delivery));
        assert_eq!(read, expected.ok_or(&WireError::missing("model")), "{body}");
    }
}

#[test]
fn what_is_wrong_is_said_with_its_field() {
    let stops = format!(r#","options":{{"stop":[{}"x"]}}"#, r#""x","#.repeat(16));
    let long = format!(r#","options":{{"stop":"{}"}}"#, "x".repeat(257));
    let efforts = "none, minimal, low, medium, high, xhigh, max";
    let think = format!("'think' must be one of {efforts}, and is 'hard'");
    let table = r#"
        ,"options":[] => 'options' must be an object, and is a list
        ,"options":{"temperature":"1"} => 'options.temperature' must be a number, and is a string
        ,"options":{"temperature":3} => 'options.temperature' must be from 0 to 2, and is 3
        ,"options":{"top_p":-1} => 'options.top_p' must be from 0 to 1, and is -1
        ,"options":{"top_k":0.5} => 'options.top_k' must be a whole number, and is a fraction
        ,"options":{"seed":"x"} => 'options.seed' must be a whole number, and is a string
        ,"options":{"stop":[1]} => 'options.stop[0]' must be a string, and is a number
        ,"format":"xml" => 'format' must be 'json' or a JSON schema, and is another word
        ,"format":[] => 'format' must be a string or an object, and is a list
        ,"think":1 => 'think' must be true or false or a string, and is a number
        ,"stream":"no" => 'stream' must be true or false, and is a string
        ,"tools":{} => 'tools' must be a list, and is an object
        ,"tools":["f"] => 'tools[0]' must be an object, and is a string
        ,"tools":[{}] => 'tools[0].function' is missing
        ,"tools":[{"function":{}}] => 'tools[0].function.name' is missing
        ,"tools":[{"type":"web"}] => 'tools[0].type' must be one of function, and is 'web'
        ,"tools":[{"function":{"name":"f","parameters":[]}}] => 'tools[0].function.parameters' must be an object, and is a list
    "#;
    let limits = [
        (stops.as_str(), "'options.stop' has 17 texts and the limit is 16"),
        (long.as_str(), "'options.stop' has a text of 257 bytes and the limit is 256"),
        (r#","think":"hard""#, think.as_str()),
    ];
    for (fields, expected) in rows(table).chain(limits) {
        assert_eq!(chat(fields).expect_err(fields).to_string(), expected);
    }
}

#[test]
fn what_is_wrong_with_a_message_is_said() {
    let many = vec![r#"{"function":{"name":"f"}}"#; 129].join(",");
    let many = format!(r#"{{"role":"assistant","tool_calls":[{many}]}}"#);
    let roles = "'messages[0].role' must be one of system, user, assistant, tool, and is 'robot'";
    let table = r#"
        "Hi" => 'messages[0]' must be an object, and is a string
        {} => 'messages[0].role' is missing
        {"role":"user","content":[]} => 'messages[0].content' must be a string, and is a list
        {"role":"assistant","tool_calls":{}} => 'messages[0].tool_calls' must be a list, and is an object
        {"role":"assistant","tool_calls":[{}]} => 'messages[0].tool_calls[0].function' is missing
        {"role":"assistant","tool_calls":[{"function":{}}]} => 'messages[0].tool_calls[0].function.name' is missing
    "#;
    let limits = [
        (r#"{"role":"robot"}"#, roles),
        (many.as_str(), "'messages[0].tool_calls' has 129 elements and the limit is 128"),
    ];
    for (message, expected) in rows(table).chain(limits) {
        let body = format!(r#"{{"messages":[{message}]}}"#);
        let error = parse_ollama_chat(body.as_bytes()).expect_err(message);
        assert_eq!(error.to_string(), expected);
    }
}

#[test]
fn what_is_wrong_elsewhere_is_said() {
    let many = format!(r#"{{"input":[{}"x"]}}"#, r#""x","#.repeat(2048));
    let template = "'template' cannot be replaced: hob renders the model's own; set 'raw' to write \
                    all of the prompt yourself";
    let generate = |body: &str| parse_ollama_generate(body.as_bytes()).map(|_| ());
    let embed = |body: &str| parse_ollama_embed(body.as_bytes()).map(|_| ());
    for (got, expected) in [
        (generate(r#"{"template":"{{ .Prompt }}"}"#), template),
        (generate(r#"{"prompt":["p"]}"#), "'prompt' must be a string, and is a list"),
        (embed(r#"{"input":[[1]]}"#), { "'input[0]' must be a string, and is a list" }),
        (embed(&many), "'input' has 2049 texts and the limit is 2048"),
        (embed(r#"{"dimensions":-1}"#), {
            "'dimensions' must be a number of dimensions, and is -1"
        }),
    ] {
        assert_eq!(got.expect_err(expected).to_string(), expected);
    }
}

#[test]
fn a_request_can_be_logged_without_its_text() {
    let generate = parse_ollama_generate(br#"{"prompt":"a secret","system":"a secret"}"#);
    let embed = parse_ollama_embed(br#"{"input":"a secret"}"#);
    let logged = format!("{:?} {:?}", generate.as_ref().map(|r| &r.action), embed);
    assert!(!format!("{generate:?} {logged}").contains("secret"));
}

proptest::proptest! {
    #[test]
    fn any_prompt_arrives_as_it_was_sent(text in ".+") {
        let body = serde_json::json!({ "prompt": text, "raw": true }).to_string();
        let action = parse_ollama_generate(body.as_bytes()).map(|request| request.action);
        proptest::prop_assert_eq!(action, Ok(answer(Prompt::Text(text))));
    }
}
