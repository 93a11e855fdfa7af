//! Ways to say how much to think, and the one setting that they lead to.

use hob_core::JsonText;
use hob_core::chat::{Effort, Thinking};
use hob_wire::parse_chat;
use serde_json::json;

use super::{conversation, ignored_names, read};

#[test]
fn every_way_to_speak_of_thinking_leads_to_one_setting() {
    let set = |effort, tokens_max| Thinking { effort, tokens_max };
    let effort = |effort| set(Some(effort), None);
    for (fields, expected) in [
        (r#""reasoning_effort":"none""#, effort(Effort::None)),
        (r#""reasoning_effort":"xhigh""#, effort(Effort::XHigh)),
        (r#""reasoning":{"effort":"low"}"#, effort(Effort::Low)),
        (r#""reasoning":{"enabled":false}"#, effort(Effort::None)),
        (r#""reasoning":{"max_tokens":100}"#, set(None, Some(100))),
        (r#""think":false"#, effort(Effort::None)),
        (r#""think":true"#, effort(Effort::Medium)),
        (r#""think":"high""#, effort(Effort::High)),
        (r#""chat_template_kwargs":{"enable_thinking":false}"#, effort(Effort::None)),
        (r#""chat_template_kwargs":{"thinking":true}"#, effort(Effort::Medium)),
        (r#""chat_template_kwargs":{"reasoning_effort":"max"}"#, effort(Effort::Max)),
        (
            r#""chat_template_kwargs":{"enable_thinking":true,"reasoning_effort":"high"}"#,
            effort(Effort::High),
        ),
        (
            r#""chat_template_kwargs":{"enable_thinking":false,"reasoning_effort":"high"}"#,
            effort(Effort::None),
        ),
        (r#""thinking":{"type":"disabled"}"#, effort(Effort::None)),
        (
            r#""thinking":{"type":"enabled","budget_tokens":64}"#,
            set(Some(Effort::Medium), Some(64)),
        ),
        (r#""thinking":false"#, effort(Effort::None)),
        (r#""thinking_budget_tokens":0"#, set(None, Some(0))),
        (r#""thinking_budget_tokens":-1"#, set(None, None)),
        (r#""reasoning_effort":"high","think":false"#, effort(Effort::High)),
    ] {
        let wire = read(fields);
        assert_eq!((wire.request.thinking, ignored_names(&wire)), (expected, vec![]), "{fields}");
        assert_eq!(conversation(wire).template_arguments, None, "{fields}");
    }
    assert_eq!(ignored_names(&read(r#""reasoning":{"exclude":true}"#)), ["reasoning.exclude"]);
}

#[test]
fn other_variables_of_a_template_pass_through() {
    let wire = read(
        r#""chat_template_kwargs":{"zone":"UTC","enable_thinking":true,"thinking":"a lot","date":1}"#,
    );
    assert_eq!(wire.request.thinking.effort, Some(Effort::Medium));
    let left = JsonText::parsed(r#"{"zone":"UTC","thinking":"a lot","date":1}"#);
    assert_eq!(conversation(wire).template_arguments, Some(left));
}

#[test]
fn words_in_the_text_are_the_last_to_be_heard() {
    let thinking = |text: &str, fields: &str| {
        let body = format!(
            r#"{{"messages":[{{"role":"user","content":"old /think"}},{{"role":"user","content":{}}},
            {{"role":"assistant","content":"x /think"}}]{fields}}}"#,
            json!(text)
        );
        let wire = parse_chat(body.as_bytes()).expect("a request");
        let effort = wire.request.thinking.effort;
        assert_eq!(conversation(wire).messages[1].text, text, "the text stays as it was");
        effort
    };
    assert_eq!(thinking("Sum it. /no_think", ""), Some(Effort::None));
    assert_eq!(thinking("Sum it.\n/think \n", ""), Some(Effort::Medium));
    assert_eq!(thinking("/no_think Sum it.", ""), None);
    assert_eq!(thinking("and/no_think", ""), None);
    assert_eq!(thinking("", ""), None);
    assert_eq!(thinking("Sum it. /no_think", r#","think":true"#), Some(Effort::Medium));
}
