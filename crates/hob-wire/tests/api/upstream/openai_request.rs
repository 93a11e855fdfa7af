//! Requests in each dialect of OpenAI's protocol, as they leave.
//! One request in all dialects shows where they part.

use std::time::Duration;

use hob_core::chat::{
    Conversation, Effort, Image, Message, OutputFormat, Prompt, Role, Sampling, Thinking, Tool,
    ToolChoice,
};
use hob_core::{ChatRequest, JsonText, KeepAlive};
use hob_wire::{
    CALL_SIGNATURE, UnsupportedField, UpstreamDialect, anthropic_request, ollama_request,
    parse_chat, upstream_path, upstream_request,
};
use serde_json::{Value, json};

use crate::builders::{
    assistant, calling, chat, conversing, image, result, system, tool, tool_call, user,
};

use UpstreamDialect::{Hob, LlamaServer, OpenAi, OpenRouter, Tabby, Vllm};

const ALL: [UpstreamDialect; 6] = [OpenAi, Hob, LlamaServer, Vllm, Tabby, OpenRouter];

pub(super) fn hi() -> ChatRequest {
    chat(vec![user("Hi")])
}

fn sent(request: &ChatRequest, dialect: UpstreamDialect) -> Value {
    let body = upstream_request(request, "m", dialect, &[]).expect("there are words for it");
    serde_json::from_str(&body).expect("JSON")
}

/// The fields that thinking adds to the request [`hi`].
fn switched(thinking: Thinking, dialect: UpstreamDialect) -> Value {
    let plain = sent(&hi(), dialect);
    let mut body = sent(&ChatRequest { thinking, ..hi() }, dialect);
    let fields = body.as_object_mut().expect("an object");
    fields.retain(|name, value| plain.get(name) != Some(value));
    body
}

fn effort(effort: Effort) -> Thinking {
    Thinking { effort: Some(effort), tokens_max: None }
}

/// A request in which each field is set.
pub(super) fn everything() -> ChatRequest {
    let picture =
        Image { detail: Some("low".to_owned()), ..image(6, "https://example.org/sky.png") };
    let messages = vec![
        system("Be brief."),
        Message {
            images: vec![picture],
            name: Some("Ann".to_owned()),
            ..user("Look:\n\nWeather?\n")
        },
        calling(vec![tool_call("call_1", "weather", r#"{"city":"Rome"}"#)]),
        result("call_1", "Sun."),
    ];
    let weather = Tool {
        description: Some("The weather of a city.".to_owned()),
        ..tool("weather", Some(r#"{"type":"object","properties":{"b":{},"a":{}}}"#))
    };
    ChatRequest {
        prompt: Prompt::Chat(Conversation {
            messages,
            tools: vec![weather, tool("now", None)],
            tool_choice: ToolChoice::Named("weather".to_owned()),
            parallel_tool_calls: true,
            template_arguments: Some(JsonText::parsed(r#"{"today":"Sunday"}"#)),
        }),
        sampling: Sampling {
            temperature: Some(0.7),
            top_p: Some(0.95),
            top_k: Some(40),
            min_p: Some(0.05),
            repeat_penalty: Some(1.1),
            presence_penalty: Some(-0.5),
            frequency_penalty: Some(0.25),
            seed: Some(7),
            logit_bias: vec![(7, -100.0), (9, 0.5)],
            ignore_eos: Some(true),
        },
        tokens_max: Some(100),
        stop: vec!["END".to_owned()],
        output: OutputFormat::JsonSchema(JsonText::parsed(r#"{"type":"object","z":1,"a":2}"#)),
        thinking: Thinking { effort: Some(Effort::High), tokens_max: Some(2000) },
        logprobs: Some(2),
        keep_alive: Some(KeepAlive::For(Duration::from_secs(300))),
        extra: Some(JsonText::parsed(r#"{"prompt_cache_key":"k","stream":false,"model":"x"}"#)),
        ..ChatRequest::default()
    }
}

#[test]
fn everything_that_is_set_is_sent_to_openai() {
    insta::assert_snapshot!(upstream_request(&everything(), "gpt-5.4", OpenAi, &[]).expect("sendable"), @r#"{"prompt_cache_key":"k","stream":true,"model":"gpt-5.4","stream_options":{"include_usage":true},"max_completion_tokens":100,"stop":["END"],"logprobs":true,"top_logprobs":2,"temperature":0.7,"top_p":0.95,"presence_penalty":-0.5,"frequency_penalty":0.25,"seed":7,"top_k":40,"min_p":0.05,"ignore_eos":true,"repetition_penalty":1.1,"logit_bias":{"7":-100.0,"9":0.5},"response_format":{"type":"json_schema","json_schema":{"name":"answer","strict":true,"schema":{"type":"object","z":1,"a":2}}},"messages":[{"role":"system","content":"Be brief."},{"role":"user","content":[{"type":"text","text":"Look:\n"},{"type":"image_url","image_url":{"url":"https://example.org/sky.png","detail":"low"}},{"type":"text","text":"Weather?\n"}],"name":"Ann"},{"role":"assistant","content":null,"tool_calls":[{"id":"call_1","type":"function","function":{"name":"weather","arguments":"{\"city\":\"Rome\"}"}}]},{"role":"tool","content":"Sun.","tool_call_id":"call_1"}],"tools":[{"type":"function","function":{"name":"weather","description":"The weather of a city.","parameters":{"type":"object","properties":{"b":{},"a":{}}}}},{"type":"function","function":{"name":"now"}}],"tool_choice":{"type":"function","function":{"name":"weather"}},"parallel_tool_calls":true,"reasoning_effort":"high","chat_template_kwargs":{"today":"Sunday"}}"#);
}

/// What a dialect says otherwise than OpenAI.
#[test]
fn every_other_dialect_says_some_of_it_in_its_own_words() {
    let openai = sent(&everything(), OpenAi);
    let differences = ALL[1..].iter().map(|&dialect| {
        let body = sent(&everything(), dialect);
        let openai = openai.as_object().expect("an object");
        let fields = body.as_object().expect("an object");
        let left_out: Vec<&String> =
            openai.keys().filter(|name| !fields.contains_key(*name)).collect();
        let own: serde_json::Map<String, Value> = fields
            .iter()
            .filter(|(name, value)| openai.get(*name) != Some(value))
            .map(|(name, value)| (name.clone(), value.clone()))
            .collect();
        format!("{dialect:?} without {left_out:?}: {}", Value::Object(own))
    });
    insta::assert_snapshot!(differences.collect::<Vec<_>>().join("\n"), @r#"
            Hob without ["prompt_cache_key", "max_completion_tokens", "repetition_penalty"]: {"max_tokens":100,"keep_alive":300,"repeat_penalty":1.1,"response_format":{"type":"json_schema","json_schema":{"name":"answer","strict":false,"schema":{"type":"object","z":1,"a":2}}},"thinking_budget_tokens":2000}
            LlamaServer without ["max_completion_tokens", "repetition_penalty"]: {"max_tokens":100,"repeat_penalty":1.1,"thinking_budget_tokens":2000,"chat_template_kwargs":{"today":"Sunday","enable_thinking":true}}
            Vllm without ["max_completion_tokens", "reasoning_effort"]: {"max_tokens":100,"chat_template_kwargs":{"today":"Sunday","enable_thinking":true,"thinking":true}}
            Tabby without ["max_completion_tokens", "reasoning_effort", "chat_template_kwargs"]: {"max_tokens":100,"template_vars":{"today":"Sunday","enable_thinking":true}}
            OpenRouter without ["max_completion_tokens", "reasoning_effort"]: {"max_tokens":100,"reasoning":{"max_tokens":2000}}
            "#);
}

#[test]
fn little_is_said_where_little_was_asked() {
    for dialect in ALL {
        let expected = json!({"model": "m", "stream": true, "stream_options": {"include_usage": true},
            "messages": [{"role": "user", "content": "Hi"}]});
        assert_eq!(sent(&hi(), dialect), expected, "{dialect:?}");
    }
}

#[test]
fn thinking_is_switched_in_each_server_s_words() {
    for efforts in Effort::ALL {
        let word = efforts.name();
        let is_on = efforts != Effort::None;
        for (dialect, expected) in [
            (OpenAi, json!({ "reasoning_effort": word })),
            (Hob, json!({ "reasoning_effort": word })),
            (
                LlamaServer,
                json!({ "reasoning_effort": word, "chat_template_kwargs": {"enable_thinking": is_on} }),
            ),
            (
                Vllm,
                json!({ "chat_template_kwargs": {"enable_thinking": is_on, "thinking": is_on} }),
            ),
            (Tabby, json!({ "template_vars": {"enable_thinking": is_on} })),
            (OpenRouter, json!({ "reasoning": {"effort": word} })),
        ] {
            assert_eq!(switched(effort(efforts), dialect), expected, "{dialect:?} {word}");
        }
    }
}

#[test]
fn a_budget_of_thinking_is_said_to_whom_it_means_something() {
    let budget = |tokens, effort| Thinking { effort, tokens_max: Some(tokens) };
    for (dialect, thinking, expected) in [
        (OpenAi, budget(64, None), json!({})),
        (Hob, budget(64, None), json!({ "thinking_budget_tokens": 64 })),
        (LlamaServer, budget(64, None), json!({ "thinking_budget_tokens": 64 })),
        (Vllm, budget(64, None), json!({})),
        (Tabby, budget(64, None), json!({})),
        (OpenRouter, budget(64, None), json!({ "reasoning": {"max_tokens": 64} })),
        (OpenRouter, budget(64, Some(Effort::Low)), json!({ "reasoning": {"max_tokens": 64} })),
        (OpenRouter, budget(64, Some(Effort::None)), json!({ "reasoning": {"effort": "none"} })),
        (OpenRouter, budget(0, None), json!({ "reasoning": {"effort": "none"} })),
    ] {
        assert_eq!(switched(thinking, dialect), expected, "{dialect:?}");
    }
}

/// The end of the user's text that Qwen3 gets from a server of that dialect.
fn heard(model: &str, dialect: UpstreamDialect, thinking: Thinking, text: &str) -> Value {
    let messages = vec![user(text), assistant("Yes?"), Message::new(Role::Tool, "7")];
    let request = ChatRequest { thinking, ..chat(messages) };
    let body = upstream_request(&request, model, dialect, &[]).expect("sendable");
    let body: Value = serde_json::from_str(&body).expect("JSON");
    body["messages"][0]["content"].clone()
}

#[test]
fn a_first_qwen3_is_told_in_the_text_where_nothing_else_is_known() {
    let off = effort(Effort::None);
    for model in ["qwen3", "Qwen/Qwen3-4B", "qwen3:4b", "qwen3-30b-a3b", "Qwen3-0.6B-Q8_0.gguf"] {
        assert_eq!(heard(model, OpenAi, off, "Hi"), json!("Hi /no_think"), "{model}");
    }
    for model in [
        "gpt-5.4",
        "qwen3.5-4b",
        "qwen3-4b-instruct-2507",
        "qwen3-coder-30b",
        "qwen3-vl-8b",
        "qwen30",
        "qwen2.5-7b",
        "my-qwen3",
    ] {
        assert_eq!(heard(model, OpenAi, off, "Hi"), json!("Hi"), "{model}");
    }
    for dialect in [Hob, LlamaServer, Vllm, Tabby, OpenRouter] {
        assert_eq!(heard("qwen3-4b", dialect, off, "Hi"), json!("Hi"), "{dialect:?}");
    }
    for (thinking, said) in [
        (effort(Effort::Low), "Hi"),
        (Thinking::default(), "Hi"),
        (off, "Hi /no_think"),
        (off, "Hi /no_think\n"),
    ] {
        assert_eq!(heard("qwen3-4b", OpenAi, thinking, said), json!(said));
    }
    let seen = Message { images: vec![image(2, "data:,")], ..user("Hi") };
    let request = ChatRequest { thinking: off, ..chat(vec![seen]) };
    let body = upstream_request(&request, "qwen3-4b", OpenAi, &[]).expect("sendable");
    assert!(body.contains(r#"{"type":"text","text":"/no_think"}]"#), "{body}");
}

#[test]
fn thinking_goes_back_unless_the_server_refuses_that() {
    let thought = Message { reasoning: Some("So.".to_owned()), ..assistant("Hello.") };
    let request = chat(vec![thought, user("Hi")]);
    let thoughts = |dialect, without: &[String]| {
        let body = upstream_request(&request, "m", dialect, without).expect("a body");
        let body: Value = serde_json::from_str(&body).expect("JSON");
        ["reasoning_content", "reasoning"].map(|name| body["messages"][0][name].clone())
    };
    for dialect in ALL {
        let is_repeated = matches!(dialect, Vllm | OpenRouter);
        let again = if is_repeated { json!("So.") } else { Value::Null };
        assert_eq!(thoughts(dialect, &[]), [json!("So."), again], "{dialect:?}");
    }
    for refused in ["reasoning_content", "messages.1.assistant.reasoning_content"] {
        assert_eq!(thoughts(Vllm, &[refused.to_owned()]), [Value::Null, Value::Null]);
    }
}

#[test]
fn calls_are_signed_for_a_server_that_misses_signatures() {
    let signature = |without: &[String]| {
        let body = upstream_request(&everything(), "m", OpenAi, without).expect("a body");
        let body: Value = serde_json::from_str(&body).expect("JSON");
        body["messages"][2]["tool_calls"][0]["extra_content"].clone()
    };
    let dummy = json!({"google": {"thought_signature": "skip_thought_signature_validator"}});
    assert_eq!(signature(&[]), Value::Null);
    assert_eq!(signature(&[CALL_SIGNATURE.to_owned()]), dummy);
}

#[test]
fn arguments_that_are_no_object_leave_as_an_empty_one() {
    for wrong in ["", "{\"cut", "[1]", "null"] {
        let called = calling(vec![tool_call("a", "now", wrong)]);
        let request = chat(vec![user("Time?"), called, result("a", "Wrong.")]);
        for dialect in ALL {
            let called = &sent(&request, dialect)["messages"][1]["tool_calls"][0];
            assert_eq!(called["function"]["arguments"], json!("{}"), "{dialect:?} {wrong}");
        }
        let read = |body: Result<String, UnsupportedField>| -> Value {
            serde_json::from_str(&body.expect("a body")).expect("JSON")
        };
        let ollama = read(ollama_request(&request, "m", None));
        let called = &ollama["messages"][1]["tool_calls"][0];
        assert_eq!(called["function"]["arguments"], json!({}), "{wrong}");
        let claude = read(anthropic_request(&request, "claude-opus-4-8", &[]));
        assert_eq!(claude["messages"][1]["content"][0]["input"], json!({}), "{wrong}");
    }
}

#[test]
fn pictures_stand_where_they_stood() {
    let picture = |at: usize| image(at, &format!("data:{at}"));
    let shown =
        |at: usize| json!({"type": "image_url", "image_url": {"url": format!("data:{at}")}});
    let part = |text: &str| json!({"type": "text", "text": text});
    for (text, at, expected) in [
        ("", vec![0], json!([shown(0)])),
        ("Look", vec![4], json!([part("Look"), shown(4)])),
        ("Look", vec![0], json!([shown(0), part("Look")])),
        ("A\nB", vec![1], json!([part("A"), shown(1), part("B")])),
        ("A\n\n B\n", vec![1, 1], json!([part("A"), shown(1), shown(1), part("\n B\n")])),
        ("A\nB\nC", vec![1, 3], json!([part("A"), shown(1), part("B"), shown(3), part("C")])),
        ("é", vec![1], json!([shown(1)])),
    ] {
        let images = at.into_iter().map(picture).collect();
        let request = chat(vec![Message { images, ..user(text) }]);
        assert_eq!(sent(&request, OpenAi)["messages"][0]["content"], expected, "{text:?}");
    }
}

#[test]
fn fields_that_hob_does_not_know_go_on_and_win_over_nothing() {
    let extra = Some(JsonText::parsed(r#"{"model":"x","stream":false,"verbosity":"low","n":2}"#));
    let request = ChatRequest { extra, ..hi() };
    for dialect in ALL {
        let body = sent(&request, dialect);
        let is_hob = dialect == Hob;
        assert_eq!(body["verbosity"], if is_hob { Value::Null } else { json!("low") });
        assert_eq!((&body["model"], &body["stream"]), (&json!("m"), &json!(true)), "{dialect:?}");
    }
}

#[test]
fn texts_tokens_and_gaps_go_to_completions() {
    let of = |prompt| ChatRequest { prompt, logprobs: Some(3), tokens_max: Some(9), ..hi() };
    let (prefix, suffix) = ("a".to_owned(), "c".to_owned());
    for (prompt, prefix, suffix) in [
        (Prompt::Text("Once".to_owned()), json!("Once"), Value::Null),
        (Prompt::Tokens(vec![1, 2]), json!([1, 2]), Value::Null),
        (Prompt::Infill { prefix, suffix }, json!("a"), json!("c")),
    ] {
        let request = of(prompt);
        assert_eq!(upstream_path(&request), "completions");
        let body = sent(&request, OpenAi);
        assert_eq!((&body["prompt"], &body["suffix"]), (&prefix, &suffix));
        let rest = (&body["logprobs"], &body["max_tokens"], body.get("messages"));
        assert_eq!(rest, (&json!(3), &json!(9), None));
    }
    assert_eq!(upstream_path(&hi()), "chat/completions");
}

#[test]
fn another_hob_hears_that_a_text_has_no_limit() {
    let text = || ChatRequest { prompt: Prompt::Text("Once".to_owned()), ..hi() };
    for (request, dialect, expected) in [
        (text(), Hob, json!(-1)),
        (ChatRequest { tokens_max: Some(0), ..text() }, Hob, json!(0)),
        (text(), LlamaServer, Value::Null),
        (hi(), Hob, Value::Null),
    ] {
        assert_eq!(sent(&request, dialect)["max_tokens"], expected, "{dialect:?}");
    }
}

#[test]
fn what_an_answer_must_look_like_is_said_or_refused() {
    let regex = || OutputFormat::Regex("[a-z]+".to_owned());
    for (output, dialect, field, expected) in [
        (OutputFormat::JsonObject, OpenAi, "response_format", json!({"type": "json_object"})),
        (regex(), Hob, "regex", json!("[a-z]+")),
        (regex(), Vllm, "structured_outputs", json!({"regex": "[a-z]+"})),
        (regex(), Vllm, "regex", json!("[a-z]+")),
    ] {
        let request = ChatRequest { output, ..hi() };
        assert_eq!(sent(&request, dialect)[field], expected, "{dialect:?}");
    }
    for dialect in [OpenAi, LlamaServer, Tabby, OpenRouter] {
        let request = ChatRequest { output: regex(), ..hi() };
        assert_eq!(
            upstream_request(&request, "m", dialect, &[]),
            Err(UnsupportedField { field: "regex" }),
            "{dialect:?}"
        );
    }
    for dialect in [OpenAi, LlamaServer, Vllm, Tabby, OpenRouter] {
        let request = ChatRequest { output: OutputFormat::Lark("a".to_owned()), ..hi() };
        assert_eq!(
            upstream_request(&request, "m", dialect, &[]),
            Err(UnsupportedField { field: "grammar" }),
            "{dialect:?}"
        );
    }
}

#[test]
fn another_hob_reads_the_form_of_an_answer_that_was_requested() {
    let schema = || OutputFormat::JsonSchema(JsonText::parsed(r#"{"type":"object"}"#));
    for (output, strict) in [
        (OutputFormat::JsonObject, false),
        (schema(), false),
        (schema(), true),
        (OutputFormat::Regex("[a-z]+".to_owned()), false),
        (OutputFormat::Lark("start: /[a-z]+/".to_owned()), false),
    ] {
        let request = ChatRequest { output, strict, ..hi() };
        let body = upstream_request(&request, "m", Hob, &[]).expect("there are words for it");
        let read = parse_chat(body.as_bytes()).expect("a request").request;
        assert_eq!((read.output, read.strict), (request.output, strict));
    }
}

#[test]
fn tools_are_offered_with_what_may_be_done_with_them() {
    let with = |tool_choice| {
        let (messages, tools) = (vec![user("Hi")], vec![tool("say", None)]);
        conversing(Conversation { messages, tools, tool_choice, ..Conversation::default() })
    };
    let named = json!({"type": "function", "function": {"name": "say"}});
    for (choice, expected) in [
        (ToolChoice::Auto, json!("auto")),
        (ToolChoice::None, json!("none")),
        (ToolChoice::Required, json!("required")),
        (ToolChoice::Named("say".to_owned()), named.clone()),
    ] {
        let body = sent(&with(choice), OpenAi);
        assert_eq!((&body["tool_choice"], &body["tools"]), (&expected, &json!([named])));
    }
}

#[test]
fn a_negative_seed_stays_one() {
    let sampling = Sampling { seed: Some((-1i64).cast_unsigned()), ..Sampling::default() };
    assert_eq!(sent(&ChatRequest { sampling, ..hi() }, OpenAi)["seed"], json!(-1));
}

#[test]
fn a_strict_tool_stays_strict_unless_the_server_refuses_that() {
    let tools = vec![Tool { strict: true, ..tool("f", None) }, tool("f", None)];
    let messages = vec![user("Hi")];
    let request = conversing(Conversation { messages, tools, ..Conversation::default() });
    let stricts = |without: &[String]| {
        let body = upstream_request(&request, "m", OpenAi, without).expect("a body");
        let body: Value = serde_json::from_str(&body).expect("JSON");
        [0, 1].map(|at| body["tools"][at]["function"]["strict"].clone())
    };
    assert_eq!(stricts(&[]), [json!(true), Value::Null]);
    for refused in ["strict", "tools[0].function.strict"] {
        assert_eq!(stricts(&[refused.to_owned()]), [Value::Null, Value::Null], "{refused}");
    }
}

#[test]
fn the_text_of_echoed_tokens_is_requested_from_servers_that_have_it() {
    for (dialect, prompt, echo, expected) in [
        (OpenAi, Prompt::Tokens(vec![1]), true, json!(true)),
        (Hob, Prompt::Tokens(vec![1]), true, json!(true)),
        (Vllm, Prompt::Tokens(vec![1]), true, json!(true)),
        (LlamaServer, Prompt::Tokens(vec![1]), true, Value::Null),
        (Hob, Prompt::Tokens(vec![1]), false, Value::Null),
        (Hob, Prompt::Text("Once".to_owned()), true, Value::Null),
    ] {
        let request = ChatRequest { prompt, echo, ..ChatRequest::default() };
        assert_eq!(sent(&request, dialect)["echo"], expected, "{dialect:?} {echo}");
    }
}
