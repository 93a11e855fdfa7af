//! Unexpected pieces: a reader never panics, for any bytes of a server.
//! No piece makes a reader fall over, and an answer ends once or not at all.

use hob_core::ChatEvent;
use hob_wire::{OllamaReader, OpenAiReader};
use proptest::prelude::*;
use serde_json::{Value, json};

use super::Read;

/// Fields that readers look into, with anything inside.
fn answer() -> impl Strategy<Value = Value> {
    let leaf = prop_oneof![
        Just(Value::Null),
        any::<bool>().prop_map(Value::from),
        any::<i64>().prop_map(Value::from),
        any::<f64>().prop_map(Value::from),
        "[a<think>/ é]{0,8}".prop_map(Value::from),
    ];
    let name = prop::sample::select(vec![
        "choices",
        "delta",
        "message",
        "content",
        "reasoning",
        "reasoning_details",
        "tool_calls",
        "function",
        "function_call",
        "name",
        "arguments",
        "index",
        "id",
        "finish_reason",
        "logprobs",
        "tokens",
        "usage",
        "completion_tokens",
        "timings",
        "error",
        "object",
        "text",
        "response",
        "thinking",
        "done",
        "done_reason",
        "eval_count",
    ]);
    leaf.prop_recursive(6, 48, 5, move |inner| {
        prop_oneof![
            prop::collection::vec(inner.clone(), 0..4).prop_map(Value::from),
            prop::collection::btree_map(name.clone(), inner, 0..5).prop_map(|fields| json!(fields)),
        ]
    })
}

proptest! {
    #[test]
    fn whatever_is_sent_is_only_read(
        answers in prop::collection::vec(answer(), 0..5),
        text in ".{0,60}",
    ) {
        let pieces: Vec<String> = answers.iter().map(Value::to_string).chain([text]).collect();
        let pieces: Vec<&str> = pieces.iter().map(String::as_str).collect();
        for read in [
            Read::of(OpenAiReader::default(), &pieces),
            Read::of(OllamaReader::default(), &pieces),
        ] {
            let ends = read.events.iter().filter(|event| matches!(event, ChatEvent::Done(_)));
            prop_assert_eq!(ends.count(), usize::from(read.end.is_ok()));
            read.calls();
        }
    }
}
