//! Chat answers, byte for byte as clients read them.
//! One set of events in both forms, so that what a stream says and what an answer says cannot differ.

use hob_core::ChatEvent;
use hob_core::chat::{
    BudgetUnit, Completion, FinishReason, SpentBudget, StatusProgress, Timings, Usage,
};
use hob_wire::{
    AnswerChunks, AnswerHead, CallShape, ChatAnswer, ChatChunks, CollectedAnswer, UsageChunk,
};
use serde_json::{Value, json};

use crate::builders::logprob;
use crate::{arguments, call, text, thought};

pub(crate) fn head() -> AnswerHead {
    AnswerHead {
        id: "1".to_owned(),
        created_unix_s: 1_793_491_200,
        model: "smol \"x\"".to_owned(),
        fingerprint: "hob-test",
    }
}

fn done(finish: FinishReason) -> ChatEvent {
    let timings =
        Timings { queue_ms: 1.5, prompt_ms: 20.0, predicted_ms: 40.0, ..Timings::default() };
    done_in(finish, timings)
}

fn done_in(finish: FinishReason, timings: Timings) -> ChatEvent {
    let usage =
        Usage { prompt_tokens: 50, cached_tokens: 10, completion_tokens: 8, reasoning_tokens: 3 };
    ChatEvent::Done(Completion { finish, usage, timings })
}

fn whole(events: &[ChatEvent], shape: CallShape) -> String {
    let mut answer = ChatAnswer::new(head(), 1, shape);
    events.iter().for_each(|event| answer.add(0, event.clone()));
    answer.to_json()
}

fn whole_value(events: &[ChatEvent], shape: CallShape) -> Value {
    serde_json::from_str(&whole(events, shape)).expect("JSON")
}

fn streamed(events: &[ChatEvent], shape: CallShape, usage: UsageChunk) -> String {
    let mut chunks = ChatChunks::new(head(), 1, shape, usage);
    let pieces = events.iter().map(|event| chunks.event(0, event.clone()));
    let said: String = pieces.collect();
    said + &chunks.end()
}

/// Takes the usage out of a stream: its own chunk, and the empty field of all others.
pub(crate) fn without_usage(stream: &str) -> String {
    let chunks = stream.split_inclusive("\n\n").filter(|chunk| !chunk.contains(r#""choices":[]"#));
    chunks.map(|chunk| chunk.replace(r#","usage":null"#, "")).collect()
}

/// Fields that every chunk repeats are shown in one test only.
fn without_head(stream: &str) -> String {
    let head = r#"{"id":"chatcmpl-1","object":"chat.completion.chunk","created":1793491200,"model":"smol \"x\"","system_fingerprint":"hob-test","choices":["#;
    stream.replace(head, "{…")
}

#[test]
fn an_answer_with_thoughts_and_text() {
    let events = [thought("Hm"), thought("."), text("Hel"), text("lo"), done(FinishReason::Stop)];
    insta::assert_snapshot!(whole(&events, CallShape::ToolCalls), @r#"{"id":"chatcmpl-1","object":"chat.completion","created":1793491200,"model":"smol \"x\"","choices":[{"index":0,"message":{"role":"assistant","content":"Hello","refusal":null,"reasoning_content":"Hm."},"logprobs":null,"finish_reason":"stop"}],"usage":{"prompt_tokens":50,"completion_tokens":8,"total_tokens":58,"prompt_tokens_details":{"cached_tokens":10},"completion_tokens_details":{"reasoning_tokens":3}},"system_fingerprint":"hob-test","timings":{"cache_n":10,"prompt_n":40,"prompt_ms":20.0,"prompt_per_token_ms":0.5,"prompt_per_second":2000.0,"predicted_n":8,"predicted_ms":40.0,"predicted_per_token_ms":5.0,"predicted_per_second":200.0,"load_ms":0.0,"queue_ms":1.5}}"#);
    insta::assert_snapshot!(streamed(&events, CallShape::ToolCalls, UsageChunk::Wanted), @r#"
    data: {"id":"chatcmpl-1","object":"chat.completion.chunk","created":1793491200,"model":"smol \"x\"","system_fingerprint":"hob-test","choices":[{"index":0,"delta":{"role":"assistant","content":""},"logprobs":null,"finish_reason":null}],"usage":null}

    data: {"id":"chatcmpl-1","object":"chat.completion.chunk","created":1793491200,"model":"smol \"x\"","system_fingerprint":"hob-test","choices":[{"index":0,"delta":{"reasoning_content":"Hm"},"logprobs":null,"finish_reason":null}],"usage":null}

    data: {"id":"chatcmpl-1","object":"chat.completion.chunk","created":1793491200,"model":"smol \"x\"","system_fingerprint":"hob-test","choices":[{"index":0,"delta":{"reasoning_content":"."},"logprobs":null,"finish_reason":null}],"usage":null}

    data: {"id":"chatcmpl-1","object":"chat.completion.chunk","created":1793491200,"model":"smol \"x\"","system_fingerprint":"hob-test","choices":[{"index":0,"delta":{"content":"Hel"},"logprobs":null,"finish_reason":null}],"usage":null}

    data: {"id":"chatcmpl-1","object":"chat.completion.chunk","created":1793491200,"model":"smol \"x\"","system_fingerprint":"hob-test","choices":[{"index":0,"delta":{"content":"lo"},"logprobs":null,"finish_reason":null}],"usage":null}

    data: {"id":"chatcmpl-1","object":"chat.completion.chunk","created":1793491200,"model":"smol \"x\"","system_fingerprint":"hob-test","choices":[{"index":0,"delta":{},"logprobs":null,"finish_reason":"stop"}],"timings":{"cache_n":10,"prompt_n":40,"prompt_ms":20.0,"prompt_per_token_ms":0.5,"prompt_per_second":2000.0,"predicted_n":8,"predicted_ms":40.0,"predicted_per_token_ms":5.0,"predicted_per_second":200.0,"load_ms":0.0,"queue_ms":1.5},"usage":null}

    data: {"id":"chatcmpl-1","object":"chat.completion.chunk","created":1793491200,"model":"smol \"x\"","system_fingerprint":"hob-test","choices":[],"usage":{"prompt_tokens":50,"completion_tokens":8,"total_tokens":58,"prompt_tokens_details":{"cached_tokens":10},"completion_tokens_details":{"reasoning_tokens":3}}}

    data: [DONE]
    "#);
    let wanted = streamed(&events, CallShape::ToolCalls, UsageChunk::Wanted);
    let unwanted = streamed(&events, CallShape::ToolCalls, UsageChunk::Unwanted);
    assert_eq!(unwanted, without_usage(&wanted));
}

fn calls() -> Vec<ChatEvent> {
    vec![
        call(0, "call_a", "weather"),
        arguments(0, r#"{"city""#),
        arguments(0, r#":"Bern"}"#),
        call(1, "call_b", "time"),
        arguments(1, ""),
        done(FinishReason::ToolCalls),
    ]
}

#[test]
fn an_answer_with_calls() {
    insta::assert_snapshot!(whole(&calls(), CallShape::ToolCalls), @r#"{"id":"chatcmpl-1","object":"chat.completion","created":1793491200,"model":"smol \"x\"","choices":[{"index":0,"message":{"role":"assistant","content":null,"refusal":null,"tool_calls":[{"id":"call_a","type":"function","function":{"name":"weather","arguments":"{\"city\":\"Bern\"}"}},{"id":"call_b","type":"function","function":{"name":"time","arguments":"{}"}}]},"logprobs":null,"finish_reason":"tool_calls"}],"usage":{"prompt_tokens":50,"completion_tokens":8,"total_tokens":58,"prompt_tokens_details":{"cached_tokens":10},"completion_tokens_details":{"reasoning_tokens":3}},"system_fingerprint":"hob-test","timings":{"cache_n":10,"prompt_n":40,"prompt_ms":20.0,"prompt_per_token_ms":0.5,"prompt_per_second":2000.0,"predicted_n":8,"predicted_ms":40.0,"predicted_per_token_ms":5.0,"predicted_per_second":200.0,"load_ms":0.0,"queue_ms":1.5}}"#);
    insta::assert_snapshot!(without_head(&streamed(&calls(), CallShape::ToolCalls, UsageChunk::Unwanted)), @r#"
    data: {…{"index":0,"delta":{"role":"assistant","content":""},"logprobs":null,"finish_reason":null}]}

    data: {…{"index":0,"delta":{"tool_calls":[{"index":0,"id":"call_a","type":"function","function":{"name":"weather","arguments":""}}]},"logprobs":null,"finish_reason":null}]}

    data: {…{"index":0,"delta":{"tool_calls":[{"index":0,"function":{"arguments":"{\"city\""}}]},"logprobs":null,"finish_reason":null}]}

    data: {…{"index":0,"delta":{"tool_calls":[{"index":0,"function":{"arguments":":\"Bern\"}"}}]},"logprobs":null,"finish_reason":null}]}

    data: {…{"index":0,"delta":{"tool_calls":[{"index":1,"id":"call_b","type":"function","function":{"name":"time","arguments":""}}]},"logprobs":null,"finish_reason":null}]}

    data: {…{"index":0,"delta":{"tool_calls":[{"index":1,"function":{"arguments":"{}"}}]},"logprobs":null,"finish_reason":null}]}

    data: {…{"index":0,"delta":{},"logprobs":null,"finish_reason":"tool_calls"}],"timings":{"cache_n":10,"prompt_n":40,"prompt_ms":20.0,"prompt_per_token_ms":0.5,"prompt_per_second":2000.0,"predicted_n":8,"predicted_ms":40.0,"predicted_per_token_ms":5.0,"predicted_per_second":200.0,"load_ms":0.0,"queue_ms":1.5}}

    data: [DONE]
    "#);
}

#[test]
fn calls_as_they_were_before_there_were_tools() {
    insta::assert_snapshot!(whole(&calls(), CallShape::FunctionCall), @r#"{"id":"chatcmpl-1","object":"chat.completion","created":1793491200,"model":"smol \"x\"","choices":[{"index":0,"message":{"role":"assistant","content":null,"refusal":null,"function_call":{"name":"weather","arguments":"{\"city\":\"Bern\"}"}},"logprobs":null,"finish_reason":"function_call"}],"usage":{"prompt_tokens":50,"completion_tokens":8,"total_tokens":58,"prompt_tokens_details":{"cached_tokens":10},"completion_tokens_details":{"reasoning_tokens":3}},"system_fingerprint":"hob-test","timings":{"cache_n":10,"prompt_n":40,"prompt_ms":20.0,"prompt_per_token_ms":0.5,"prompt_per_second":2000.0,"predicted_n":8,"predicted_ms":40.0,"predicted_per_token_ms":5.0,"predicted_per_second":200.0,"load_ms":0.0,"queue_ms":1.5}}"#);
    insta::assert_snapshot!(without_head(&streamed(&calls(), CallShape::FunctionCall, UsageChunk::Unwanted)), @r#"
    data: {…{"index":0,"delta":{"role":"assistant","content":""},"logprobs":null,"finish_reason":null}]}

    data: {…{"index":0,"delta":{"function_call":{"name":"weather","arguments":""}},"logprobs":null,"finish_reason":null}]}

    data: {…{"index":0,"delta":{"function_call":{"arguments":"{\"city\""}},"logprobs":null,"finish_reason":null}]}

    data: {…{"index":0,"delta":{"function_call":{"arguments":":\"Bern\"}"}},"logprobs":null,"finish_reason":null}]}

    data: {…{"index":0,"delta":{},"logprobs":null,"finish_reason":"function_call"}],"timings":{"cache_n":10,"prompt_n":40,"prompt_ms":20.0,"prompt_per_token_ms":0.5,"prompt_per_second":2000.0,"predicted_n":8,"predicted_ms":40.0,"predicted_per_token_ms":5.0,"predicted_per_second":200.0,"load_ms":0.0,"queue_ms":1.5}}

    data: [DONE]
    "#);
}

#[test]
fn an_answer_with_log_probabilities() {
    let events = [
        ChatEvent::Logprobs(vec![logprob(b"Hi", -0.5, &[("Hi", -0.5), ("Yo", -1.25)])]),
        text("Hi"),
        // Half of a character: its text comes later, its probability is not lost.
        ChatEvent::Logprobs(vec![logprob(b"\xc3", f32::NEG_INFINITY, &[])]),
        text(""),
        ChatEvent::Logprobs(vec![logprob(b"\xa9", -0.25, &[])]),
        done(FinishReason::Length),
    ];
    insta::assert_snapshot!(whole(&events, CallShape::ToolCalls), @r#"{"id":"chatcmpl-1","object":"chat.completion","created":1793491200,"model":"smol \"x\"","choices":[{"index":0,"message":{"role":"assistant","content":"Hi","refusal":null},"logprobs":{"content":[{"token":"Hi","logprob":-0.5,"bytes":[72,105],"top_logprobs":[{"token":"Hi","logprob":-0.5,"bytes":[72,105]},{"token":"Yo","logprob":-1.25,"bytes":[89,111]}]},{"token":"�","logprob":-9999.0,"bytes":[195],"top_logprobs":[]},{"token":"�","logprob":-0.25,"bytes":[169],"top_logprobs":[]}],"refusal":null},"finish_reason":"length"}],"usage":{"prompt_tokens":50,"completion_tokens":8,"total_tokens":58,"prompt_tokens_details":{"cached_tokens":10},"completion_tokens_details":{"reasoning_tokens":3}},"system_fingerprint":"hob-test","timings":{"cache_n":10,"prompt_n":40,"prompt_ms":20.0,"prompt_per_token_ms":0.5,"prompt_per_second":2000.0,"predicted_n":8,"predicted_ms":40.0,"predicted_per_token_ms":5.0,"predicted_per_second":200.0,"load_ms":0.0,"queue_ms":1.5}}"#);
    insta::assert_snapshot!(without_head(&streamed(&events, CallShape::ToolCalls, UsageChunk::Unwanted)), @r#"
    data: {…{"index":0,"delta":{"role":"assistant","content":""},"logprobs":null,"finish_reason":null}]}

    data: {…{"index":0,"delta":{"content":"Hi"},"logprobs":{"content":[{"token":"Hi","logprob":-0.5,"bytes":[72,105],"top_logprobs":[{"token":"Hi","logprob":-0.5,"bytes":[72,105]},{"token":"Yo","logprob":-1.25,"bytes":[89,111]}]}],"refusal":null},"finish_reason":null}]}

    data: {…{"index":0,"delta":{"content":""},"logprobs":{"content":[{"token":"�","logprob":-9999.0,"bytes":[195],"top_logprobs":[]}],"refusal":null},"finish_reason":null}]}

    data: {…{"index":0,"delta":{},"logprobs":{"content":[{"token":"�","logprob":-0.25,"bytes":[169],"top_logprobs":[]}],"refusal":null},"finish_reason":"length"}],"timings":{"cache_n":10,"prompt_n":40,"prompt_ms":20.0,"prompt_per_token_ms":0.5,"prompt_per_second":2000.0,"predicted_n":8,"predicted_ms":40.0,"predicted_per_token_ms":5.0,"predicted_per_second":200.0,"load_ms":0.0,"queue_ms":1.5}}

    data: [DONE]
    "#);
}

#[test]
fn a_spent_budget_of_a_team_is_marked() {
    let spent = SpentBudget { unit: BudgetUnit::Turns, limit: 40, used: 40 };
    let events = [text("Half."), done(FinishReason::BudgetSpent(spent))];
    let part = r#""finish_reason":"stop","hob":{"budget":{"unit":"turns","limit":40,"used":40}}}"#;
    let answer = whole(&events, CallShape::ToolCalls);
    assert!(answer.contains(part), "{answer}");
    let chunks = streamed(&events, CallShape::ToolCalls, UsageChunk::Unwanted);
    assert!(chunks.contains(part), "{chunks}");
}

#[test]
fn a_budget_spent_on_thinking_is_marked() {
    let events = [thought("So…"), done(FinishReason::Length)];
    insta::assert_snapshot!(whole(&events, CallShape::ToolCalls), @r#"{"id":"chatcmpl-1","object":"chat.completion","created":1793491200,"model":"smol \"x\"","choices":[{"index":0,"message":{"role":"assistant","content":"","refusal":null,"reasoning_content":"So…"},"logprobs":null,"finish_reason":"length","hob":{"note":"thinking_used_the_whole_budget"}}],"usage":{"prompt_tokens":50,"completion_tokens":8,"total_tokens":58,"prompt_tokens_details":{"cached_tokens":10},"completion_tokens_details":{"reasoning_tokens":3}},"system_fingerprint":"hob-test","timings":{"cache_n":10,"prompt_n":40,"prompt_ms":20.0,"prompt_per_token_ms":0.5,"prompt_per_second":2000.0,"predicted_n":8,"predicted_ms":40.0,"predicted_per_token_ms":5.0,"predicted_per_second":200.0,"load_ms":0.0,"queue_ms":1.5}}"#);
    insta::assert_snapshot!(without_head(&streamed(&events, CallShape::ToolCalls, UsageChunk::Unwanted)), @r#"
    data: {…{"index":0,"delta":{"role":"assistant","content":""},"logprobs":null,"finish_reason":null}]}

    data: {…{"index":0,"delta":{"reasoning_content":"So…"},"logprobs":null,"finish_reason":null}]}

    data: {…{"index":0,"delta":{},"logprobs":null,"finish_reason":"length","hob":{"note":"thinking_used_the_whole_budget"}}],"timings":{"cache_n":10,"prompt_n":40,"prompt_ms":20.0,"prompt_per_token_ms":0.5,"prompt_per_second":2000.0,"predicted_n":8,"predicted_ms":40.0,"predicted_per_token_ms":5.0,"predicted_per_second":200.0,"load_ms":0.0,"queue_ms":1.5}}

    data: [DONE]
    "#);
    for said in [text("x"), call(0, "call_a", "f")] {
        let events = [thought("So…"), said, done(FinishReason::Length)];
        assert!(!whole(&events, CallShape::ToolCalls).contains("budget"));
        assert!(!streamed(&events, CallShape::ToolCalls, UsageChunk::Unwanted).contains("budget"));
    }
}

/// For each way to end: what the model said of it, whether it called, what clients get.
#[test]
fn ends_have_openais_names() {
    let (tools, function) = (CallShape::ToolCalls, CallShape::FunctionCall);
    for (finish, calls, shape, expected) in [
        (FinishReason::Stop, false, tools, "stop"),
        (FinishReason::Length, false, tools, "length"),
        (FinishReason::Stop, true, tools, "tool_calls"),
        (FinishReason::ToolCalls, true, tools, "tool_calls"),
        (FinishReason::Length, true, tools, "length"),
        (FinishReason::ToolCalls, true, function, "function_call"),
    ] {
        let mut events = vec![text("x")];
        if calls {
            events.push(call(0, "call_a", "f"));
        }
        events.push(done(finish));
        let answer = whole_value(&events, shape);
        assert_eq!(answer["choices"][0]["finish_reason"], expected);
        assert_eq!(answer["choices"][0]["message"]["content"], "x");
        let stream = streamed(&events, shape, UsageChunk::Unwanted);
        assert!(stream.contains(&format!(r#""finish_reason":"{expected}""#)), "{stream}");
    }
}

#[test]
fn an_answer_that_says_nothing_is_a_string_too() {
    let answer = whole_value(&[done(FinishReason::Stop)], CallShape::ToolCalls);
    let expected = json!({
        "index": 0,
        "message": {"role": "assistant", "content": "", "refusal": null},
        "logprobs": null,
        "finish_reason": "stop",
    });
    assert_eq!(answer["choices"][0], expected);
}

#[test]
fn choices_share_a_prompt_and_add_their_tokens_up() {
    let mut answer = ChatAnswer::new(head(), 2, CallShape::ToolCalls);
    let mut chunks = ChatChunks::new(head(), 2, CallShape::ToolCalls, UsageChunk::Wanted);
    let mut stream = String::new();
    for (choice, event) in [
        (1, text("b")),
        (0, text("a")),
        (1, done(FinishReason::Stop)),
        (0, done(FinishReason::Length)),
        (7, text("nobody's")),
    ] {
        answer.add(choice, event.clone());
        stream += &chunks.event(choice, event);
    }
    stream += &chunks.end();
    let whole: Value = serde_json::from_str(&answer.to_json()).expect("JSON");
    let texts = [0, 1].map(|choice| whole["choices"][choice]["message"]["content"].clone());
    assert_eq!(texts, ["a", "b"]);
    let usage = json!({
        "prompt_tokens": 50, "completion_tokens": 16, "total_tokens": 66,
        "prompt_tokens_details": {"cached_tokens": 10},
        "completion_tokens_details": {"reasoning_tokens": 6},
    });
    assert_eq!(whole["usage"], usage);
    let chunks: Vec<Value> = stream
        .split_terminator("\n\n")
        .filter_map(|event| serde_json::from_str(event.strip_prefix("data: ")?).ok())
        .collect();
    assert_eq!(chunks.last().map(|chunk| &chunk["usage"]), Some(&usage));
    let timed = chunks.iter().filter(|chunk| chunk.get("timings").is_some()).count();
    let roles = chunks.iter().filter(|c| c["choices"][0]["delta"].get("role").is_some()).count();
    assert_eq!((timed, roles), (1, 2));
    assert_eq!(answer.queue_ms(), 1.5);
}

#[test]
fn times_that_were_too_short_to_measure_are_no_speeds() {
    let (finish, usage) = (FinishReason::Stop, Usage::default());
    let timings = Timings { queue_ms: 0.1, ..Timings::default() };
    let without_tokens = ChatEvent::Done(Completion { finish, usage, timings });
    for done in [without_tokens, done_in(finish, timings)] {
        let answer = whole_value(&[done], CallShape::ToolCalls);
        let speeds = ["prompt_per_second", "predicted_per_second", "predicted_per_token_ms"];
        assert!(speeds.iter().all(|speed| answer["timings"][speed] == 0.0), "{answer}");
    }
}

#[test]
fn guessed_tokens_are_counted_under_llama_server_s_names() {
    let timings = Timings { draft_tokens: 9, accepted_tokens: 0, ..Timings::default() };
    let answer = whole_value(&[done_in(FinishReason::Stop, timings)], CallShape::ToolCalls);
    let counts = ["draft_n", "draft_n_accepted"].map(|name| answer["timings"][name].as_u64());
    assert_eq!(counts, [Some(9), Some(0)]);
}

#[test]
fn times_that_a_server_did_not_say_are_absent() {
    let events = [text("Hi"), done_in(FinishReason::Stop, Timings::default())];
    let answer = whole(&events, CallShape::ToolCalls);
    let stream = streamed(&events, CallShape::ToolCalls, UsageChunk::Wanted);
    assert!(!answer.contains("timings") && !stream.contains("timings"), "{answer}\n{stream}");
}

#[test]
fn answers_can_be_logged_without_their_text() {
    let mut answer = ChatAnswer::new(head(), 1, CallShape::ToolCalls);
    let mut chunks = ChatChunks::new(head(), 1, CallShape::ToolCalls, UsageChunk::Unwanted);
    answer.add(0, text("a secret"));
    chunks.event(0, text("a secret"));
    assert!(!format!("{answer:?}{chunks:?}").contains("secret"));
}

proptest::proptest! {
    /// What a stream's pieces say together is what the answer says.
    #[test]
    fn a_stream_says_what_the_answer_says(
        pieces in proptest::collection::vec((proptest::bool::ANY, ".{0,12}"), 0..8),
    ) {
        let mut events: Vec<ChatEvent> = pieces
            .into_iter()
            .map(|(is_thought, piece)| if is_thought { thought(&piece) } else { text(&piece) })
            .collect();
        events.push(done(FinishReason::Stop));
        let whole = whole_value(&events, CallShape::ToolCalls);
        let message = &whole["choices"][0]["message"];
        let stream = streamed(&events, CallShape::ToolCalls, UsageChunk::Unwanted);
        let (mut said, mut thought) = (String::new(), String::new());
        for event in stream.split_terminator("\n\n") {
            let data = event.strip_prefix("data: ").expect("data");
            if data == "[DONE]" { break; }
            let chunk: Value = serde_json::from_str(data).expect("JSON");
            let delta = &chunk["choices"][0]["delta"];
            said += delta["content"].as_str().unwrap_or_default();
            thought += delta["reasoning_content"].as_str().unwrap_or_default();
        }
        proptest::prop_assert_eq!(message["content"].as_str(), Some(said.as_str()));
        proptest::prop_assert_eq!(message["reasoning_content"].as_str().unwrap_or_default(), thought);
        proptest::prop_assert!(stream.ends_with("data: [DONE]\n\n"));
    }
}

#[test]
fn a_status_is_an_event_of_its_own_before_the_role() {
    let status = |text: &str, progress| ChatEvent::Status { text: text.to_owned(), progress };
    let events = [
        status("lead -> coder", StatusProgress::Running),
        text("Hi"),
        status("completed", StatusProgress::Done),
        done(FinishReason::Stop),
    ];
    let said = streamed(&events, CallShape::ToolCalls, UsageChunk::Unwanted);
    let lines: Vec<Value> = said
        .lines()
        .filter_map(|line| serde_json::from_str(line.strip_prefix("data: ")?).ok())
        .collect();
    let shown = |description: &str, done: bool| json!({ "event": { "type": "status", "data": { "description": description, "done": done } } });
    assert_eq!(lines[0], shown("lead -> coder", false));
    assert_eq!(lines[1]["choices"][0]["delta"]["role"], "assistant");
    assert_eq!(lines[3], shown("completed", true));
    let plain = events.into_iter().filter(|event| !matches!(event, ChatEvent::Status { .. }));
    let plain: Vec<ChatEvent> = plain.collect();
    let others =
        said.lines().filter(|line| !line.contains("\"event\"")).filter(|line| !line.is_empty());
    let expected = streamed(&plain, CallShape::ToolCalls, UsageChunk::Unwanted);
    assert!(others.eq(expected.lines().filter(|line| !line.is_empty())), "{said}");
}

#[test]
fn how_likely_a_question_is_complete_is_not_shown() {
    let judged = [ChatEvent::TurnEnd { probability: 0.5 }, text("Hi"), done(FinishReason::Stop)];
    let (shape, usage) = (CallShape::ToolCalls, UsageChunk::Wanted);
    assert_eq!(whole(&judged, shape), whole(&judged[1..], shape));
    assert_eq!(streamed(&judged, shape, usage), streamed(&judged[1..], shape, usage));
    assert_eq!(ChatChunks::new(head(), 1, shape, usage).event(0, judged[0].clone()), "");
}
