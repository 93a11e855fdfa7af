//! Answers that broke off, as each kind of server is asked to go on with them; and who is not asked at all.
//! Facts: the servers' own sources and guides, as they stood in October 2026.

use hob_core::ChatRequest;
use hob_core::chat::{Effort, Thinking};
use hob_wire::{
    UnsupportedField, UpstreamDialect, anthropic_continues, anthropic_request, ollama_request,
    upstream_request,
};
use serde_json::{Value, json};

use crate::builders::{assistant, chat, user};

use UpstreamDialect::{Hob, LlamaServer, OpenAi, OpenRouter, Tabby, Vllm};

fn broken(partial: &str) -> ChatRequest {
    ChatRequest { partial: Some(partial.to_owned()), ..chat(vec![user("Hi")]) }
}

fn parsed(body: &str) -> Value {
    serde_json::from_str(body).expect("JSON")
}

#[test]
fn each_dialect_has_its_own_way_to_go_on_or_none() {
    let user = json!({ "role": "user", "content": "Hi" });
    let with_last = json!([user, { "role": "assistant", "content": "Hel" }]);
    for (dialect, messages, words) in [
        (LlamaServer, &with_last, json!([null, null, null])),
        (OpenRouter, &with_last, json!([null, null, null])),
        (Vllm, &with_last, json!([true, false, null])),
        (Tabby, &json!([user]), json!([null, null, "Hel"])),
    ] {
        let body = upstream_request(&broken("Hel"), "m", dialect, &[]).expect("it goes on");
        let body = parsed(&body);
        let sent = ["continue_final_message", "add_generation_prompt", "response_prefix"];
        assert_eq!(&body["messages"], messages, "{dialect:?}");
        assert_eq!(json!(sent.map(|name| &body[name])), words, "{dialect:?}");
    }
    for dialect in [OpenAi, Hob] {
        let refused = upstream_request(&broken("Hel"), "m", dialect, &[]);
        assert_eq!(refused, Err(UnsupportedField { field: "messages" }), "{dialect:?}");
    }
}

#[test]
fn a_last_message_of_the_assistant_s_is_continued_by_servers_that_want_to_be_told() {
    let begun = |text: &str| chat(vec![user("Hi"), assistant(text)]);
    for dialect in [Vllm, Tabby] {
        let body = upstream_request(&begun("Hel"), "m", dialect, &[]).expect("it goes on");
        let partial = upstream_request(&broken("Hel"), "m", dialect, &[]).expect("it goes on");
        assert_eq!(parsed(&body), parsed(&partial), "{dialect:?}");
    }
    for (dialect, text) in
        [(LlamaServer, "Hel"), (OpenRouter, "Hel"), (OpenAi, "Hel"), (Hob, "Hel"), (Vllm, "")]
    {
        let body = parsed(&upstream_request(&begun(text), "m", dialect, &[]).expect("it is sent"));
        let last = json!({ "role": "assistant", "content": text });
        assert_eq!(
            (&body["messages"][1], &body["continue_final_message"]),
            (&last, &Value::Null),
            "{dialect:?}"
        );
    }
}

#[test]
fn ollama_and_anthropic_see_it_as_the_last_message() {
    let ollama = parsed(&ollama_request(&broken("Hel"), "m", None).expect("it goes on"));
    assert_eq!(ollama["messages"][1], json!({ "role": "assistant", "content": "Hel" }));
    let anthropic = anthropic_request(&broken("Hel"), "claude-sonnet-4-5", &[]);
    let anthropic = anthropic.expect("it goes on");
    let text = json!([{ "type": "text", "text": "Hel" }]);
    let last = json!({ "role": "assistant", "content": text });
    assert_eq!(parsed(&anthropic)["messages"][1], last);
}

#[test]
fn anthropic_s_newer_models_and_those_that_think_are_not_asked_to_go_on() {
    let thinking = Thinking { effort: Some(Effort::High), tokens_max: None };
    let thinks = ChatRequest { thinking, ..broken("Hel") };
    for (model, request, goes_on) in [
        ("claude-sonnet-4-5", broken("Hel"), true),
        ("claude-opus-4-1", broken("Hel"), true),
        ("kimi-k3", broken("Hel"), true),
        ("claude-sonnet-4-5", broken("Hel "), false),
        ("claude-sonnet-4-5", broken("Hel\n"), false),
        ("claude-sonnet-4-5", thinks, false),
        ("claude-opus-4-6", broken("Hel"), false),
        ("claude-opus-5", broken("Hel"), false),
        ("claude-mythos-preview", broken("Hel"), false),
    ] {
        assert_eq!(anthropic_continues(&request, model), goes_on, "{model} {request:?}");
    }
}
