//! Vocabularies and random answers for the tests, and the cases that have one right result.

use std::collections::BTreeSet;

use hob_core::ModelError;
use hob_core::chat::{JsonText, OutputFormat, Tool, ToolChoice};
use proptest::prelude::RngExt as _;
use proptest::test_runner::{RngAlgorithm, TestRng};
use serde_json::{Value, json};

use super::{
    Accepted, AnswerRules, CallCount, Constrainer, Constraint, ConstraintError, Mask, ToolRules,
    Vocabulary,
};
use crate::chat::dialect::{HERMES, LLAMA3, MISTRAL_NAMED, ToolDialect};
use crate::chat::tokens::Token;

pub(super) const END: u32 = 256;

/// Every byte, the end, and pieces that cross the borders of JSON.
pub(super) fn small_vocabulary() -> Vocabulary {
    vocabulary(
        [
            "\":",
            "\",\"",
            "{\"",
            "\"}",
            "}}",
            "]}",
            "[[",
            "[[[[",
            "{\"a\":{\"",
            "null",
            "true",
            "fal",
            "12",
            "000",
            "0.",
            "e+",
            " \"",
            ", ",
            ": ",
            "\\u00",
            "\\\"",
            "the",
            " and",
            "ing",
            "日本",
            "é",
            "<tool_call>",
            "</tool",
            "_call>\n",
            "add",
            "\"add\":",
        ]
        .map(str::to_owned),
    )
}

/// As many tokens as SmolLM2 has.
pub(super) fn large_vocabulary() -> Vocabulary {
    const SIZE: usize = 49_152;
    let mut random = TestRng::from_seed(RngAlgorithm::ChaCha, &[3; 32]);
    let letters: Vec<char> =
        "etaoinshrdlucmfwypvbgkjqxz  ETAOIN0123456789{}[]\",:.-_\\\néüß日本語".chars().collect();
    let mut pieces = BTreeSet::new();
    while pieces.len() < SIZE - 257 {
        let chars = random.random_range(2..9);
        let piece: String =
            (0..chars).map(|_| letters[random.random_range(0..letters.len())]).collect();
        pieces.insert(piece);
    }
    vocabulary(pieces)
}

fn vocabulary(pieces: impl IntoIterator<Item = String>) -> Vocabulary {
    let pieces = pieces.into_iter().map(text_token);
    let tokens = bytes_and_end().chain(pieces).chain([control("[TOOL_CALLS]")]);
    Vocabulary::new(&tokens.collect::<Vec<Token>>()).unwrap()
}

fn bytes_and_end() -> impl Iterator<Item = Token> {
    let end = Token { ends: true, ..control("<|end|>") };
    (0..=255u8).map(|byte| text_token([byte])).chain([end])
}

fn text_token(bytes: impl Into<Vec<u8>>) -> Token {
    Token { bytes: bytes.into(), ..Token::default() }
}

fn control(name: &str) -> Token {
    Token { control: Some(name.to_owned()), ..Token::default() }
}

/// The answer of a model for which all tokens are equally likely.
pub(super) fn answer(
    constraint: &mut Constraint,
    vocabulary: &Vocabulary,
    budget: u32,
    random: &mut TestRng,
) -> String {
    let mut text = Vec::new();
    let mut left = budget;
    while left > 0 && !constraint.is_complete() {
        let token = match constraint.mask(left).unwrap() {
            Some(mask) => any_of(mask, random),
            None => random.random_range(0..vocabulary.len() as u32),
        };
        match constraint.accept(token, left).unwrap() {
            Accepted::Refused => continue,
            Accepted::Taken if token == END => break,
            Accepted::Taken => text.extend_from_slice(vocabulary.text(token)),
        }
        left -= 1;
    }
    assert!(constraint.may_end().unwrap(), "stopped at {:?}", String::from_utf8_lossy(&text));
    String::from_utf8(text).unwrap()
}

/// One of the allowed tokens, all equally likely.
pub(super) fn any_of(mask: &Mask, random: &mut TestRng) -> u32 {
    let mut skip = random.random_range(0..mask.num_set() as u32);
    for (index, word) in (0u32..).zip(mask.as_slice()) {
        if word.count_ones() <= skip {
            skip -= word.count_ones();
            continue;
        }
        let set = (0..32).filter(|bit| word >> bit & 1 == 1).nth(skip as usize);
        return index * 32 + set.unwrap();
    }
    panic!("no token is allowed");
}

pub(super) fn constrainer() -> Constrainer {
    Constrainer::new(small_vocabulary()).unwrap()
}

pub(super) fn schema(schema: &Value) -> OutputFormat {
    OutputFormat::JsonSchema(JsonText::parsed(schema.to_string()))
}

/// The constraint that makes an answer of at most `tokens_max` tokens fit `output`.
fn compiled(output: &OutputFormat, tokens_max: u32) -> Result<Constraint, ConstraintError> {
    let wanted = AnswerRules { output, strict: true, tools: None };
    constrainer().compile(&wanted, tokens_max).map(Option::unwrap)
}

fn weather(name: &str) -> Tool {
    let parameters = json!({
        "type": "object",
        "properties": { "city": { "type": "string" }, "days": { "type": "integer", "minimum": 1, "maximum": 9 } },
        "required": ["city", "days"]
    });
    tool(name, &parameters, false)
}

pub(super) fn tool(name: &str, schema: &Value, strict: bool) -> Tool {
    let parameters = Some(JsonText::parsed(schema.to_string()));
    Tool { name: name.to_owned(), parameters, strict, ..Tool::default() }
}

/// Accepts `text` in as few tokens as possible.
fn say(constraint: &mut Constraint, text: &str, left: u32) -> Vec<Accepted> {
    let tokens = constraint.vocabulary.tokenize_greedily(text.as_bytes());
    tokens.into_iter().map(|token| constraint.accept(token, left).unwrap()).collect()
}

/// Whether `text` is a whole answer of the schema.
fn takes(value: &Value, text: &str) -> bool {
    let mut constraint = compiled(&schema(value), 100).unwrap();
    let mut tokens = constraint.vocabulary.tokenize_greedily(text.as_bytes()).into_iter();
    tokens.all(|token| constraint.accept(token, 100) == Ok(Accepted::Taken))
        && constraint.may_end().unwrap()
}

/// The end that the constraint itself would take.
fn closed(constraint: &mut Constraint) -> String {
    let mut text = Vec::new();
    while let Some(left @ 1..) = constraint.tokens_to_end() {
        let mask = constraint.mask(left).unwrap().unwrap().clone();
        assert_eq!(mask.num_set(), 1);
        let token = mask.iter().next().unwrap();
        assert_eq!(constraint.accept(token, left), Ok(Accepted::Taken));
        text.extend_from_slice(constraint.vocabulary.text(token));
    }
    String::from_utf8(text).unwrap()
}

#[test]
fn the_shortest_answers_are_short() {
    let shortest = |output: &OutputFormat| closed(&mut compiled(output, 500).unwrap());
    assert_eq!(shortest(&OutputFormat::JsonObject), "{}");
    assert_eq!(shortest(&schema(&json!({ "foo": "bar" }))), "0");
    assert_eq!(shortest(&schema(&json!({ "type": "string", "minLength": 3 }))), r#""@@@""#);
    assert_eq!(shortest(&schema(&json!({ "enum": ["abcdefg", "b"] }))), r#""b""#);
    assert_eq!(shortest(&schema(&json!({ "type": "string", "pattern": "hello" }))), r#""hello""#);
    let required = json!({ "type": "object", "required": ["a", "b"], "properties": { "a": { "type": "integer", "minimum": 20 }, "b": { "type": "array" } } });
    assert_eq!(shortest(&schema(&required)), r#"{"a":20,"b":[]}"#);
    assert_eq!(shortest(&OutputFormat::Regex("[0-9]{2}(-[a-z]+)?".to_owned())), "00");
}

#[test]
fn an_answer_is_closed_when_the_budget_ends() {
    let output = schema(
        &json!({ "type": "object", "properties": { "text": { "type": "string" } }, "required": ["text"] }),
    );
    let mut constraint = compiled(&output, 40).unwrap();
    say(&mut constraint, r#"{"text":"the"#, 40);
    // The quote and the brace are one token.
    assert_eq!(constraint.tokens_to_end(), Some(1));
    assert_eq!(constraint.mask(1).unwrap().map(Mask::num_set), Some(1));
    assert_eq!(constraint.may_end(), Ok(false));
    assert_eq!(closed(&mut constraint), "\"}");
    assert!(constraint.is_complete());
}

#[test]
fn what_could_not_be_closed_is_refused() {
    let mut constraint = compiled(&OutputFormat::JsonObject, 40).unwrap();
    say(&mut constraint, "{", 40);
    // `{"` would need `":0}` and more behind it.
    let quote = u32::from(b'"');
    assert_eq!(constraint.accept(quote, 3), Ok(Accepted::Refused));
    assert!(!constraint.mask(3).unwrap().unwrap().is_allowed(quote));
    assert_eq!(closed(&mut constraint), "}");
}

#[test]
fn a_budget_below_the_shortest_answer_is_refused_with_both_numbers() {
    let output = schema(&json!({ "type": "string", "minLength": 30, "maxLength": 30 }));
    let refused = compiled(&output, 10).unwrap_err();
    let field = "response_format";
    assert_eq!(refused, ConstraintError::Budget { field, needed: 32, available: 10 });
    let ModelError::InvalidField { field, reason } = refused.into_model_error("chat") else {
        panic!()
    };
    assert_eq!(field, "max_tokens");
    assert_eq!(
        reason,
        "does not fit: the shortest answer that 'response_format' allows takes 32 tokens and the answer may have 10"
    );
}

#[test]
fn numbers_are_within_their_bounds_also_when_a_reader_rounds_them() {
    let between = json!({ "type": "number", "exclusiveMinimum": 0, "exclusiveMaximum": 1 });
    let below = json!({ "type": "number", "minimum": -0.25, "exclusiveMaximum": 0 });
    let quarters = json!({ "type": "number", "multipleOf": 0.25 });
    let nanoseconds = json!({ "type": "integer", "minimum": 2_000_000_000_000_000i64 });
    let long_ago = json!({ "type": "integer", "maximum": -2_000_000_000_000_000i64 });
    for (value, text, is_taken) in [
        (&between, "0.5", true),
        (&between, "0.9", true),
        (&between, "0.99999999", true),
        (&between, "0.00000001", true),
        (&between, "0", false),
        (&between, "1", false),
        (&between, "0.99999999999999999999", false),
        (&between, "0.00000000000000000001", false),
        (&below, "-0.25", true),
        (&below, "-0", false),
        (&quarters, "999999999999.75", true),
        (&quarters, "777777777777777.75", false),
        (&nanoseconds, "2000000000000001", true),
        (&nanoseconds, "200000000000000000000000", false),
        (&long_ago, "-2000000000000001", true),
        (&long_ago, "-200000000000000000000000", false),
    ] {
        assert_eq!(takes(value, text), is_taken, "{value}: {text}");
    }
}

#[test]
fn hosts_have_names_that_exist() {
    let host = json!({ "type": "string", "format": "hostname" });
    let label = |chars: usize| format!("\"{}\"", "a".repeat(chars));
    assert!(takes(&host, r#""a-b.example.org""#) && takes(&host, &label(63)));
    assert!(!takes(&host, r#""a--b""#) && !takes(&host, &label(64)));
}

#[test]
fn an_answer_is_not_nested_deeper_than_readers_allow() {
    let mut constraint = compiled(&schema(&json!({ "type": "array" })), 2_000).unwrap();
    let open = u32::from(b'[');
    let mut accepted = (0..200).map(|_| constraint.accept(open, 2_000).unwrap());
    assert_eq!(accepted.position(|accepted| accepted == Accepted::Refused), Some(100));
    assert_eq!(closed(&mut constraint), "]".repeat(100));
}

#[test]
fn what_cannot_be_enforced_is_refused_by_name() {
    let field = "response_format";
    let refused = |value: Value| compiled(&schema(&value), 100).unwrap_err();
    let keyword =
        |path: &str, keyword| ConstraintError::Keyword { field, path: path.to_owned(), keyword };
    assert_eq!(refused(json!({ "not": { "type": "null" } })), keyword("schema", "not"));
    let deep = json!({ "properties": { "a": { "items": { "uniqueItems": true } } } });
    assert_eq!(refused(deep), keyword("schema.properties.a.items", "uniqueItems"));
    // Both members could get the same name.
    let two = json!({ "type": "object", "minProperties": 2 });
    assert_eq!(refused(two), keyword("schema", "minProperties"));
    assert_eq!(refused(json!(false)), ConstraintError::NothingValid { field });
    assert_eq!(refused(json!(3)), ConstraintError::NotASchema { field });
    let overlapping = json!({ "oneOf": [{ "type": "integer" }, { "type": "number" }] });
    assert_eq!(refused(overlapping), keyword("schema", "oneOf"));
    let endless = json!({ "$ref": "#/$defs/a", "$defs": { "a": { "type": "object", "properties": { "a": { "$ref": "#/$defs/a" } }, "required": ["a"] } } });
    assert_eq!(refused(endless), ConstraintError::Schema { field, place: "schema".to_owned() });
    let broken = compiled(&OutputFormat::Lark("start: nothing".to_owned()), 9).unwrap_err();
    assert!(matches!(broken, ConstraintError::Grammar { field: "grammar", .. }), "{broken:?}");
    assert!(compiled(&schema(&json!({ "type": "array", "uniqueItems": false })), 9).is_ok());
}

#[test]
fn refusals_say_who_can_act() {
    let model_error = |value: Value| {
        compiled(&schema(&value), 100).unwrap_err().into_model_error("chat").to_string()
    };
    assert_eq!(
        model_error(json!({ "not": {} })),
        "'response_format' has 'not' at 'schema', which hob cannot enforce; leave it out, or set \"strict\" to false"
    );
    assert_eq!(
        ConstraintError::NotAllowed { token: 3 }.into_model_error("chat"),
        ModelError::EngineFailed {
            engine: "chat",
            detail: "token 3 was not allowed here".to_owned()
        }
    );
}

#[test]
fn what_the_automaton_says_of_itself_never_quotes_the_answer() {
    let error = super::matching::failed("too complex\n<state>\nsecret");
    assert_eq!(error, ConstraintError::Matcher { detail: "too complex".to_owned() });
}

#[test]
fn tokens_that_the_mask_forbids_are_not_taken() {
    let mut constraint = compiled(&OutputFormat::JsonObject, 40).unwrap();
    for token in [u32::from(b'x'), END, 1_000_000] {
        assert_eq!(constraint.accept(token, 40), Err(ConstraintError::NotAllowed { token }));
    }
    say(&mut constraint, "{}", 40);
    assert_eq!(constraint.accept(END, 38), Ok(Accepted::Taken));
    assert_eq!(constraint.accept(END, 37), Err(ConstraintError::NotAllowed { token: END }));
}

#[test]
fn a_vocabulary_needs_an_end_and_single_characters() {
    let refused = |tokens: &[Token]| Vocabulary::new(tokens).unwrap_err();
    assert_eq!(refused(&[text_token("a")]), ConstraintError::NoEndToken);
    let end = Token { ends: true, ..text_token("b") };
    assert_eq!(refused(&[text_token("a"), end]), ConstraintError::NoByteTokens);
}

#[test]
fn tokens_that_are_no_text_are_in_no_string() {
    let mut tokens: Vec<Token> = (0..=255u8).map(|byte| text_token([byte])).collect();
    // An end that is not marked as special, a special token, one without bytes, one too long.
    tokens.push(Token { ends: true, ..text_token("</s>") });
    tokens.extend([control("<pad>"), text_token(""), text_token([b' '; 1_024])]);
    let vocabulary = Vocabulary::new(&tokens).unwrap();
    let constrainer = Constrainer::new(vocabulary).unwrap();
    let output = schema(&json!({ "type": "string" }));
    let wanted = AnswerRules { output: &output, strict: true, tools: None };
    let mut constraint = constrainer.compile(&wanted, 50).unwrap().unwrap();
    assert_eq!(constraint.accept(u32::from(b'"'), 50), Ok(Accepted::Taken));
    let mask = constraint.mask(49).unwrap().unwrap();
    let allowed: Vec<u32> = (END..END + 4).filter(|&token| mask.is_allowed(token)).collect();
    assert_eq!(allowed, Vec::<u32>::new());
    assert!(mask.is_allowed(u32::from(b'x')) && mask.is_allowed(u32::from(b' ')));
}

#[test]
fn a_free_answer_is_held_from_the_trigger_on() {
    let tools = [weather("get_weather"), weather("forecast")];
    let wanted = wanted(&tools, &ToolChoice::Auto, &HERMES);
    for pieces in
        [&["the <tool_call>"][..], &["<to", "ol_", "call>\n{\""], &["x<", "tool_call", ">"]]
    {
        let mut constraint = constrainer().compile(&wanted, 300).unwrap().unwrap();
        assert_eq!(constraint.mask(300).unwrap().map(Mask::num_set), None);
        assert_eq!(constraint.may_end(), Ok(true));
        for piece in pieces {
            assert!(!constraint.holds());
            say(&mut constraint, piece, 300);
        }
        assert!(constraint.holds());
        assert_eq!(constraint.may_end(), Ok(false));
        let rest = closed(&mut constraint);
        let whole = r#"{"name": "forecast", "arguments": {"city":"","days":1}}"#;
        assert!(format!("<tool_call>\n{whole}\n</tool_call>").ends_with(&rest), "{rest}");
        assert_eq!(constraint.may_end(), Ok(true));
    }
}

#[test]
fn a_call_does_not_begin_that_could_not_end() {
    let tools = [weather("get_weather")];
    let wanted = wanted(&tools, &ToolChoice::Auto, &HERMES);
    let mut constraint = constrainer().compile(&wanted, 300).unwrap().unwrap();
    assert_eq!(say(&mut constraint, "<tool_call>", 20), [Accepted::Refused]);
    let trigger = constraint.vocabulary.tokenize_greedily(b"<tool_call>")[0];
    assert!(!constraint.mask(20).unwrap().unwrap().is_allowed(trigger));
    assert_eq!(say(&mut constraint, "the", 20), [Accepted::Taken]);
    assert_eq!(constraint.mask(19).unwrap().map(Mask::num_set), None);
}

#[test]
fn what_follows_a_trigger_in_its_own_token_counts() {
    let pieces = ["<tool_call>\n{\"na", "_call>, no"].map(text_token);
    let tokens: Vec<Token> = bytes_and_end().chain(pieces).collect();
    let vocabulary = Vocabulary::new(&tokens).unwrap();
    let constrainer = Constrainer::new(vocabulary).unwrap();
    let tools = [weather("get_weather")];
    let wanted = wanted(&tools, &ToolChoice::Auto, &HERMES);
    let mut constraint = constrainer.compile(&wanted, 300).unwrap().unwrap();
    assert_eq!(constraint.accept(END + 1, 300), Ok(Accepted::Taken));
    assert!(closed(&mut constraint).starts_with("me\": \"get_weather\""));
    let mut constraint = constrainer.compile(&wanted, 300).unwrap().unwrap();
    say(&mut constraint, "<tool", 300);
    assert_eq!(constraint.accept(END + 2, 300), Ok(Accepted::Refused));
}

#[test]
fn a_trigger_of_the_answers_start_counts_nowhere_else() {
    let tools = [weather("get_weather")];
    let wanted = wanted(&tools, &ToolChoice::Auto, &LLAMA3);
    for (text, holds) in [(r#"{"name""#, true), ("\n {\"name\"", true), (r#"See {"name""#, false)] {
        let mut constraint = constrainer().compile(&wanted, 300).unwrap().unwrap();
        say(&mut constraint, text, 300);
        assert_eq!(constraint.holds(), holds, "{text}");
    }
}

#[test]
fn a_mark_that_is_a_token_is_said_as_one() {
    let tools = [weather("get_weather")];
    let wanted = wanted(&tools, &ToolChoice::Required, &MISTRAL_NAMED);
    let mut constraint = constrainer().compile(&wanted, 300).unwrap().unwrap();
    let mark = constraint.vocabulary.special("[TOOL_CALLS]").unwrap();
    assert_eq!(
        constraint.mask(300).unwrap().map(|mask| (mask.num_set(), mask.is_allowed(mark))),
        Some((1, true))
    );
    assert_eq!(closed(&mut constraint), r#"[TOOL_CALLS]get_weather[ARGS]{"city":"","days":1}"#);
}

#[test]
fn tools_that_are_not_there_cannot_be_named() {
    let tools = [weather("get_weather")];
    let missing = ToolChoice::Named("other".to_owned());
    let refused = constrainer().compile(&wanted(&tools, &missing, &HERMES), 300).unwrap_err();
    assert_eq!(refused, ConstraintError::UnknownTool);
    for (tools, choice) in [(&[][..], ToolChoice::Auto), (&tools[..], ToolChoice::None)] {
        assert!(constrainer().compile(&wanted(tools, &choice, &HERMES), 300).unwrap().is_none());
    }
}

#[test]
fn an_answer_is_of_the_format_or_a_call() {
    let tools = [weather("get_weather")];
    let output = schema(&json!({ "type": "array", "maxItems": 0 }));
    let wanted = AnswerRules { output: &output, ..wanted(&tools, &ToolChoice::Auto, &HERMES) };
    let mut constraint = constrainer().compile(&wanted, 300).unwrap().unwrap();
    assert_eq!(closed(&mut constraint), "[]");
    let mut constraint = constrainer().compile(&wanted, 300).unwrap().unwrap();
    say(&mut constraint, "<tool_call>", 300);
    assert!(closed(&mut constraint).ends_with("\n</tool_call>"));
}

#[test]
fn only_so_many_grammars_stay_compiled() {
    let constrainer = constrainer();
    for length in 0..40 {
        let output = schema(&json!({ "const": length }));
        constrainer
            .compile(&AnswerRules { output: &output, strict: true, tools: None }, 100)
            .unwrap();
    }
    assert_eq!(constrainer.kept_count(), 32);
    let bytes = constrainer.kept_bytes();
    assert!(bytes > 0 && bytes < 32 << 20, "{bytes} bytes");
}

fn wanted<'a>(
    tools: &'a [Tool],
    choice: &'a ToolChoice,
    dialect: &'a ToolDialect,
) -> AnswerRules<'a> {
    let tools = ToolRules { tools, choice, calls: CallCount::Several, dialect };
    AnswerRules { output: &OutputFormat::Text, strict: true, tools: Some(tools) }
}

#[test]
fn the_form_of_an_answer_is_expected_with_the_spaces_that_it_has() {
    let output = schema(&json!({
        "type": "object", "additionalProperties": false, "required": ["city", "days"],
        "properties": { "city": { "type": "string" }, "days": { "type": "integer" } }
    }));
    let mut constraint = compiled(&output, 100).unwrap();
    let expected = |constraint: &mut Constraint| {
        let tokens = constraint.expected(50);
        let text = tokens.iter().flat_map(|&token| constraint.vocabulary.text(token));
        String::from_utf8(text.copied().collect()).unwrap()
    };
    assert_eq!(expected(&mut constraint), r#"{"city": ""#);
    assert_eq!(constraint.expected(2).len(), 2);
    say(&mut constraint, r#"{"city":"R"#, 90);
    assert_eq!(expected(&mut constraint), "", "any letter may come");
    say(&mut constraint, "\"", 90);
    assert_eq!(expected(&mut constraint), r#","days":"#);
    // To look ahead changes nothing.
    assert_eq!(say(&mut constraint, r#", "days": 1"#, 90).last(), Some(&Accepted::Taken));
    assert_eq!(expected(&mut constraint), "");
    let mut free = compiled(&OutputFormat::Regex("[a-z]*".to_owned()), 20).unwrap();
    assert_eq!(expected(&mut free), "");
}

#[test]
fn a_token_is_forced_only_if_there_is_no_other() {
    let output = OutputFormat::Regex("xy[a-c]+-".to_owned());
    let mut constraint = compiled(&output, 20).unwrap();
    let forced = |letter: u8| Ok(Some(u32::from(letter)));
    assert_eq!(constraint.forced_token(20), forced(b'x'));
    say(&mut constraint, "x", 20);
    assert_eq!(constraint.forced_token(19), forced(b'y'));
    say(&mut constraint, "y", 19);
    assert_eq!(constraint.forced_token(18), Ok(None));
    say(&mut constraint, "a", 18);
    assert_eq!(constraint.forced_token(17), Ok(None));
    let shortest = constraint.tokens_to_end().unwrap();
    assert_ne!(constraint.forced_token(shortest), Ok(None), "nothing else ends it in time");
    say(&mut constraint, "-", 17);
    assert_eq!(constraint.forced_token(16), Ok(None), "it is over");
}
