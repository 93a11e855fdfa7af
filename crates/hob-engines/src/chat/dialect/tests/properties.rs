//! Random answers: tags of thinking and tool calls, whole calls, and other text, in any order.
//! The result does not depend on how the answer is split.

use proptest::prelude::*;

use super::{
    AnswerParser, AnswerPart, ArgumentDelivery, HARMONY, HERMES, LLAMA3, MISTRAL_ARRAY,
    MISTRAL_NAMED, ModelDialect, ToolDialect, dialect, offered, parsed,
};

const FRAGMENTS: [&str; 30] = [
    "<think>",
    "</think>",
    "<tool_call>",
    "</tool_call>",
    "\n",
    "  ",
    "ä€🌍",
    "text",
    "<",
    "{",
    "}",
    "[",
    "]",
    "\"",
    "\\",
    ",",
    ":",
    r#"{"name": "clock", "arguments": {"a": "}\"<tool_call>"}}"#,
    r#"{"name": "clock", "parameters": {"#,
    r#"{"name": "stranger""#,
    r#"{"arguments": {}, "name": "weather"}"#,
    r#""name""#,
    "[TOOL_CALLS]",
    "[ARGS]",
    "clock",
    "<|python_tag|>",
    "<|channel|>analysis<|message|>",
    "<|channel|>final<|message|>",
    "<|channel|>commentary to=functions.",
    "<|end|><|start|>assistant",
];

fn tools() -> impl Strategy<Value = ToolDialect> {
    prop::sample::select(vec![HERMES, LLAMA3, MISTRAL_ARRAY, MISTRAL_NAMED, HARMONY])
}

fn delivery() -> impl Strategy<Value = ArgumentDelivery> {
    prop::sample::select(vec![ArgumentDelivery::Whole, ArgumentDelivery::Streamed])
}

fn answer() -> impl Strategy<Value = String> {
    prop::collection::vec(prop::sample::select(FRAGMENTS.to_vec()), 0..12).prop_map(|f| f.concat())
}

/// The text in as many parts as there are cuts, and one more.
fn cut(text: &str, cuts: &[prop::sample::Index]) -> Vec<String> {
    let letters: Vec<char> = text.chars().collect();
    let mut at: Vec<usize> = cuts.iter().map(|cut| cut.index(letters.len() + 1)).collect();
    at.extend([0, letters.len()]);
    at.sort_unstable();
    at.windows(2).map(|ends| letters[ends[0]..ends[1]].iter().collect()).collect()
}

proptest! {
    #[test]
    fn where_the_answer_is_cut_does_not_matter(
        tools in tools(), delivery in delivery(), starts_in_thinking: bool, answer in answer(),
        cuts in prop::collection::vec(any::<prop::sample::Index>(), 0..8),
    ) {
        let parser = || AnswerParser::new(&dialect(tools), starts_in_thinking, offered(delivery));
        prop_assert_eq!(parsed(parser(), cut(&answer, &cuts)), parsed(parser(), [&answer]));
    }

    #[test]
    fn without_a_call_nothing_is_lost(tools in tools(), delivery in delivery(), answer in answer()) {
        let plain = ModelDialect { thinking: None, ..dialect(tools) };
        let pieces = parsed(AnswerParser::new(&plain, false, offered(delivery)), [&answer]);
        let calls = pieces.iter().any(|piece| matches!(piece, AnswerPart::CallBegins { .. }));
        let expect = if answer.is_empty() { vec![] } else { vec![AnswerPart::Text(answer)] };
        prop_assert!(calls || pieces == expect, "{:?}", pieces);
    }

    #[test]
    fn calls_delivered_whole_have_valid_json_arguments(tools in tools(), answer in answer()) {
        let pieces = parsed(AnswerParser::new(&dialect(tools), false, offered(ArgumentDelivery::Whole)), [&answer]);
        let mut calls = 0;
        for (at, piece) in pieces.iter().enumerate() {
            let AnswerPart::CallBegins { index, name } = piece else { continue };
            prop_assert_eq!(*index, calls);
            prop_assert!(name == "clock" || name == "weather");
            let Some(AnswerPart::Arguments { index, piece }) = pieces.get(at + 1) else {
                return Err(TestCaseError::fail("a call without arguments"));
            };
            prop_assert_eq!(*index, calls);
            prop_assert!(serde_json::from_str::<serde_json::Map<_, _>>(piece).is_ok());
            calls += 1;
        }
    }

    #[test]
    fn arbitrary_text_does_not_panic(answer: String, starts_in_thinking: bool) {
        let parser = AnswerParser::new(&dialect(HERMES), starts_in_thinking, offered(ArgumentDelivery::Streamed));
        parsed(parser, [answer]);
    }
}
