//! How thinking is asked for, model by model, and how long the answer may become with it.
//! A setting that Anthropic lacks is named.

use super::*;

pub(super) fn thinking(effort: Option<Effort>, tokens_max: Option<u32>) -> ChatRequest {
    ChatRequest { thinking: Thinking { effort, tokens_max }, ..chat(vec![user("Hi")]) }
}

/// What is sent of thinking: its shape, the effort and the limit of the answer.
fn planned(request: &ChatRequest, model: &str) -> (Value, Value, u64) {
    let body = sent(request, model);
    let limit = body["max_tokens"].as_u64().expect("always sent");
    (body["thinking"].clone(), body["output_config"]["effort"].clone(), limit)
}

#[test]
fn older_models_get_a_budget() {
    let budget = |tokens: u32| json!({ "type": "enabled", "budget_tokens": tokens });
    let off = json!({ "type": "disabled" });
    for model in [OLD, OTHER] {
        for (effort, tokens_max, shape, limit) in [
            (None, None, Value::Null, 4096),
            (Some(Effort::None), None, off.clone(), 4096),
            (Some(Effort::None), Some(9000), off.clone(), 4096),
            (Some(Effort::High), Some(0), off.clone(), 4096),
            (Some(Effort::Minimal), None, budget(1024), 5120),
            (Some(Effort::Low), None, budget(2048), 6144),
            (Some(Effort::Medium), None, budget(8192), 12_288),
            (Some(Effort::High), None, budget(16_384), 20_480),
            (Some(Effort::XHigh), None, budget(22_000), 26_096),
            (Some(Effort::Max), None, budget(27_000), 31_096),
            (Some(Effort::Low), Some(5000), budget(5000), 9096),
            (None, Some(5000), budget(5000), 9096),
            (None, Some(1), budget(1024), 5120),
        ] {
            let request = thinking(effort, tokens_max);
            assert_eq!(planned(&request, model), (shape, Value::Null, limit), "{effort:?}");
            assert_eq!(anthropic_drops(&request, model), [""; 0]);
        }
    }
}

#[test]
fn a_budget_leaves_room_for_the_answer_or_there_is_none() {
    let off = json!({ "type": "disabled" });
    for (limit, shape) in [
        (100, off.clone()),
        (2047, off),
        (2048, json!({ "type": "enabled", "budget_tokens": 1024 })),
        (9000, json!({ "type": "enabled", "budget_tokens": 7976 })),
        (64_000, json!({ "type": "enabled", "budget_tokens": 8192 })),
    ] {
        let tokens_max = Some(limit);
        let request = ChatRequest { tokens_max, ..thinking(Some(Effort::Medium), None) };
        let is_off = shape["type"] == "disabled";
        assert_eq!(planned(&request, OLD), (shape, Value::Null, u64::from(limit)));
        let unmet = if is_off { &["reasoning_effort"][..] } else { &[] };
        assert_eq!(anthropic_drops(&request, OLD), unmet, "{limit}");
    }
}

#[test]
fn budgets_give_way_to_forced_calls_and_to_turns_that_have_begun() {
    let asked = || calling(vec![tool_call("a", "f", "{}")]);
    let effort = Thinking { effort: Some(Effort::Low), tokens_max: None };
    let forced = ChatRequest { thinking: effort, ..with_tool(ToolChoice::Required) };
    let begun = [
        vec![user("Hi"), asked(), result("a", "1")],
        vec![user("Hi"), asked(), result("a", "1"), user("Go on"), system("Now.")],
        vec![user("Hi"), assistant("Well,")],
    ];
    let begun = begun.map(|messages| ChatRequest { thinking: effort, ..chat(messages) });
    for request in [&forced].into_iter().chain(&begun) {
        assert_eq!(planned(request, OLD).0["type"], "disabled");
        assert_eq!(anthropic_drops(request, OLD), ["reasoning_effort"]);
        assert_eq!(planned(request, MIDDLE).0["type"], "adaptive", "which needs no signatures");
        assert_eq!(anthropic_drops(request, MIDDLE), [""; 0]);
    }
    let ended = vec![user("Hi"), asked(), result("a", "1"), assistant("One."), user("And?")];
    for request in [chat(ended), with_tool(ToolChoice::Auto)] {
        let request = ChatRequest { thinking: effort, ..request };
        assert_eq!(planned(&request, OLD).0["type"], "enabled");
    }
    let limited =
        ChatRequest { thinking: Thinking { effort: None, tokens_max: Some(2000) }, ..forced };
    assert_eq!(anthropic_drops(&limited, OLD), ["thinking_budget_tokens"]);
}

#[test]
fn newer_models_decide_themselves_led_by_an_effort() {
    let adaptive = || json!({ "type": "adaptive", "display": "summarized" });
    for (effort, middle, new, limit) in [
        (Effort::Minimal, "low", "low", 33_024),
        (Effort::Low, "low", "low", 34_048),
        (Effort::Medium, "medium", "medium", 40_192),
        (Effort::High, "high", "high", 48_384),
        (Effort::XHigh, "high", "xhigh", 54_000),
        (Effort::Max, "max", "max", 59_000),
    ] {
        let request = thinking(Some(effort), None);
        assert_eq!(planned(&request, MIDDLE), (adaptive(), json!(middle), limit));
        assert_eq!(planned(&request, NEW), (adaptive(), json!(new), limit));
        let request = ChatRequest { tokens_max: Some(700), ..request };
        assert_eq!(planned(&request, NEW), (adaptive(), json!(new), 700));
        assert_eq!(anthropic_drops(&request, NEW), [""; 0]);
    }
    for (tokens, limit) in [(3000, 35_000), (40_000, 64_000), (63_000, 67_096)] {
        let limited = thinking(None, Some(tokens));
        assert_eq!(planned(&limited, NEW), (adaptive(), Value::Null, limit));
        assert_eq!(anthropic_drops(&limited, NEW), ["thinking_budget_tokens"]);
    }
}

#[test]
fn what_thinks_unasked_is_shown_and_what_can_be_turned_off_is() {
    let adaptive = json!({ "type": "adaptive", "display": "summarized" });
    let unsaid = thinking(None, None);
    assert_eq!(planned(&unsaid, NEW), (Value::Null, Value::Null, 32_000));
    assert_eq!(planned(&unsaid, NEWEST), (adaptive.clone(), Value::Null, 40_192));
    let off = thinking(Some(Effort::None), None);
    for (model, shape, effort, limit, unmet) in [
        (NEW, json!({ "type": "disabled" }), Value::Null, 32_000, &[][..]),
        ("claude-opus-5", json!({ "type": "disabled" }), Value::Null, 32_000, &[]),
        ("claude-sonnet-5-5", json!({ "type": "between_tools" }), Value::Null, 32_000, &[]),
        (NEWEST, adaptive.clone(), json!("low"), 34_048, &["reasoning_effort"]),
        ("claude-fable-5", adaptive, json!("low"), 34_048, &["reasoning_effort"]),
    ] {
        assert_eq!(planned(&off, model), (shape, effort, limit), "{model}");
        assert_eq!(anthropic_drops(&off, model), unmet, "{model}");
    }
}
