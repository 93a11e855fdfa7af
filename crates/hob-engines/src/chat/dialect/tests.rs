//! Dialects of known templates, and answers in them cut anywhere.
//! Expectations are whole lists of pieces; neighbours of one kind are joined first.

mod properties;

use super::answer_part::AnswerParts;
use super::{
    AnswerParser, AnswerPart, ArgumentDelivery, DescribedBy, HARMONY, HERMES, LLAMA3,
    MISTRAL_ARRAY, MISTRAL_NAMED, ModelDialect, ToolDialect, ToolsOffered, forms,
};

const QWEN3: &str = include_str!("../template/testdata/templates/qwen3.jinja");
const LLAMA: &str = include_str!("../template/testdata/templates/llama3.jinja");
const SMOLLM2: &str = include_str!("../template/testdata/templates/smollm2.jinja");
const MISTRAL: &str = include_str!("../template/testdata/templates/mistral-nemo.jinja");
const DEEPSEEK: &str = include_str!("../template/testdata/templates/deepseek-r1.jinja");

/// Everything that occurs, for parsing.
fn dialect(tools: ToolDialect) -> ModelDialect {
    let thinking = if tools == HARMONY { forms::HARMONY_ANALYSIS } else { forms::THINK };
    ModelDialect { thinking: Some(thinking), tools, described_by: DescribedBy::Template }
}

fn offered(delivery: ArgumentDelivery) -> Option<ToolsOffered> {
    Some(ToolsOffered { names: vec!["clock".to_owned(), "weather".to_owned()], delivery })
}

fn reasoning(text: &str) -> AnswerPart {
    AnswerPart::Reasoning(text.to_owned())
}

fn text(text: &str) -> AnswerPart {
    AnswerPart::Text(text.to_owned())
}

fn call(index: u32, name: &str, arguments: &str) -> [AnswerPart; 2] {
    [
        AnswerPart::CallBegins { index, name: name.to_owned() },
        AnswerPart::Arguments { index, piece: arguments.to_owned() },
    ]
}

fn parsed(
    mut parser: AnswerParser,
    pushes: impl IntoIterator<Item = impl AsRef<str>>,
) -> Vec<AnswerPart> {
    let mut pieces: Vec<AnswerPart> =
        pushes.into_iter().flat_map(|push| parser.push(push.as_ref())).collect();
    pieces.extend(parser.finish());
    let mut joined = AnswerParts::default();
    pieces.into_iter().for_each(|piece| joined.push(piece));
    joined.into_list()
}

/// An answer gives the same parts in one piece and letter by letter, with arguments streamed and whole.
fn check_with(
    dialect: ModelDialect,
    starts_in_thinking: bool,
    answer: &str,
    expect: &[AnswerPart],
) {
    for delivery in [ArgumentDelivery::Whole, ArgumentDelivery::Streamed] {
        let parser = || AnswerParser::new(&dialect, starts_in_thinking, offered(delivery));
        assert_eq!(parsed(parser(), [answer]), expect, "{delivery:?}, in one piece: {answer}");
        let letters = answer.chars().map(|c| c.to_string());
        assert_eq!(parsed(parser(), letters), expect, "{delivery:?}, by letters: {answer}");
    }
}

fn check(tools: ToolDialect, answer: &str, expect: &[AnswerPart]) {
    check_with(dialect(tools), false, answer, expect);
}

#[test]
fn dialects_are_read_off_templates() {
    let of = |source: &str| {
        let dialect = ModelDialect::of(source);
        (dialect.thinking.map(|marks| marks.open), dialect.tools, dialect.described_by)
    };
    let own = DescribedBy::Template;
    let ours = DescribedBy::SystemMessage;
    assert_eq!(of(QWEN3), (Some("<think>"), HERMES, own));
    assert_eq!(of(LLAMA), (None, LLAMA3, own));
    assert_eq!(of(SMOLLM2), (None, HERMES, ours));
    assert_eq!(of(MISTRAL), (None, MISTRAL_ARRAY, own));
    assert_eq!(of(DEEPSEEK), (Some("<think>"), HERMES, ours));
    assert_eq!(of("tools [TOOL_CALLS] [ARGS] [THINK]"), (Some("[THINK]"), MISTRAL_NAMED, own));
    assert_eq!(
        of("tools <|channel|>analysis <|channel|>commentary functions."),
        (Some("<|channel|>analysis<|message|>"), HARMONY, own)
    );
    assert_eq!(of("tools <|channel>thought"), (Some("<|channel>thought"), HERMES, ours));
    assert_eq!(of("<seed:think>"), (Some("<seed:think>"), HERMES, ours));
    // Arguments in XML, or tools under another name: described by us.
    assert_eq!(of("tools <tool_call> arguments <function="), (None, HERMES, ours));
    assert_eq!(of("xml_tools <tool_call> arguments"), (None, HERMES, ours));
    assert_eq!(of(""), (None, HERMES, ours));
}

#[test]
fn a_grammar_of_the_pieces_writes_what_the_parser_reads() {
    for tools in [HERMES, LLAMA3, MISTRAL_ARRAY, MISTRAL_NAMED, HARMONY] {
        let one = |name: &str, arguments: &str| {
            let form = tools.call;
            let before = form.before_arguments();
            format!("{}{name}{before}{arguments}{}", form.before_name(), form.after_arguments())
        };
        let first = one("weather", r#"{"city": "Zürich \"}\" {"}"#);
        let mut block = format!("{}{first}", tools.begin);
        let mut expect = call(0, "weather", r#"{"city": "Zürich \"}\" {"}"#).to_vec();
        if let Some(between) = tools.between {
            block += &format!("{between}{}", one("clock", "{}"));
            expect.extend(call(1, "clock", "{}"));
        }
        block += tools.end;
        check(tools, &block, &expect);
        let opens = |form: &super::Trigger| block.starts_with(form.opens);
        assert!(tools.triggers.iter().all(opens), "{tools:?}");
    }
}

#[test]
fn thinking_is_separated_from_the_answer() {
    let think = |answer: &str, expect: &[AnswerPart]| check(HERMES, answer, expect);
    think("<think>\nHm.\n\nYes.\n</think>\n\nNo.", &[reasoning("Hm.\n\nYes."), text("No.")]);
    think("\n<think></think>\n\nNo.\n", &[text("No.\n")]);
    think("No <think>this</think> is text.", &[text("No <think>this</think> is text.")]);
    think("<think>never </think closed", &[reasoning("never </think closed")]);
    think("<thin", &[text("<thin")]);
    think(" \n", &[text(" \n")]);
    think("", &[]);
    check_with(dialect(HERMES), true, "Hm.</think>No.", &[reasoning("Hm."), text("No.")]);
    let plain = ModelDialect { thinking: None, ..dialect(HERMES) };
    check_with(plain, false, "<think>Hm.</think>", &[text("<think>Hm.</think>")]);
}

#[test]
fn gpt_oss_names_its_channels() {
    check(
        HARMONY,
        "<|channel|>analysis<|message|>Hm.<|end|><|start|>assistant<|channel|>final<|message|>No.",
        &[reasoning("Hm."), text("No.")],
    );
    check(HARMONY, "<|channel|>final<|message|>No.", &[text("No.")]);
    let [begins, arguments] = call(0, "clock", "{}");
    check(
        HARMONY,
        "<|channel|>analysis<|message|>Hm.<|end|><|start|>assistant<|channel|>commentary to=functions.clock <|constrain|>json<|message|>{}",
        &[reasoning("Hm."), begins.clone(), arguments.clone()],
    );
    check(
        HARMONY,
        "<|channel|>commentary to=functions.clock <|constrain|>json<|message|>{}",
        &[begins, arguments],
    );
}

#[test]
fn calls_come_out_of_the_text_around_them() {
    let [begins, arguments] = call(0, "clock", r#"{"zone": [1, "]"]}"#);
    let [second, empty] = call(1, "weather", "{}");
    check(
        HERMES,
        "<think>Hm.</think>\n\nLet me see.\n\
         <tool_call>\n{\"name\": \"clock\", \"arguments\": {\"zone\": [1, \"]\"]}}\n</tool_call>\n\
         <tool_call>{\"name\":\"weather\",\"arguments\":{}}</tool_call>\n",
        &[reasoning("Hm."), text("Let me see."), begins, arguments, second, empty],
    );
}

#[test]
fn other_spellings_of_a_call_are_taken() {
    let taken = |tools, answer: &str, arguments: &str| {
        check(tools, answer, &call(0, "clock", arguments));
    };
    taken(
        HERMES,
        r#"<tool_call>{"arguments": {"a": 1}, "name": "clock"}</tool_call>"#,
        r#"{"a": 1}"#,
    );
    taken(HERMES, r#"<tool_call>{"name": "clock"}</tool_call>"#, "{}");
    taken(HERMES, r#"<tool_call>{"id": 7, "name": "clock", "parameters": {}}"#, "{}");
    taken(
        HERMES,
        r#"<tool_call>{"name": "cl\u006fck", "arguments": "{\"a\": 1}"}</tool"#,
        r#"{"a": 1}"#,
    );
    taken(LLAMA3, r#" {"name": "clock", "parameters": {"a": 1}}"#, r#"{"a": 1}"#);
    taken(LLAMA3, r#"<|python_tag|>{"name": "clock", "parameters": {}}"#, "{}");
    taken(LLAMA3, r#"<|python_tag|>{"type": "function", "name": "clock", "arguments": {}}"#, "{}");
    taken(
        MISTRAL_ARRAY,
        r#"[TOOL_CALLS] [ {"name": "clock", "arguments": {}, "id": "abc"} ]"#,
        "{}",
    );
    taken(MISTRAL_NAMED, r#"[TOOL_CALLS]clock[ARGS] {"a": {"b": 1}}"#, r#"{"a": {"b": 1}}"#);
}

#[test]
fn what_is_no_call_is_text_to_the_last_letter() {
    let kept = |tools, answer: &str| check(tools, answer, &[text(answer)]);
    kept(HERMES, " Use <tool_call> to call.");
    kept(HERMES, "\n<tool_call>\n{\"name\": \"stranger\", \"arguments\": {}}\n</tool_call>");
    kept(HERMES, "<tool_call>{\"name\": clock}</tool_call>");
    kept(HERMES, "<tool_call>{\"arguments\": {}}</tool_call>");
    kept(HERMES, "<tool_call>{\"name\": \"clock\", \"arguments\": [1]}</tool_call>");
    kept(HERMES, "<tool_call>{\"arguments\": \"{oops\", \"name\": \"clock\"}</tool_call>");
    kept(HERMES, "<tool_call>{\"name\": \"clo");
    kept(HERMES, "a <tool_c");
    kept(LLAMA3, r#"{"name": "Bob", "age": 3}"#);
    kept(LLAMA3, r#"So: {"name": "clock", "parameters": {}}"#);
    kept(MISTRAL_ARRAY, "[TOOL_CALLS] none");
    kept(MISTRAL_NAMED, "[TOOL_CALLS]stranger[ARGS]{}");
    kept(MISTRAL_NAMED, "[TOOL_CALLS]clock[ARGS]1");
}

#[test]
fn a_broken_call_does_not_hide_the_next() {
    let [begins, arguments] = call(0, "clock", "{}");
    check(
        HERMES,
        "<tool_call>\n<tool_call>{\"name\": \"clock\", \"arguments\": {}}</tool_call> Done.",
        &[text("<tool_call>\n"), begins.clone(), arguments.clone(), text(" Done.")],
    );
    check(
        MISTRAL_ARRAY,
        r#"[TOOL_CALLS][{"name": "clock", "arguments": {}}, {"name": 1}]"#,
        &[begins, arguments, text(r#", {"name": 1}]"#)],
    );
}

#[test]
fn broken_arguments_are_text_when_they_are_checked_first() {
    for answer in [
        r#"<tool_call>{"name": "clock", "arguments": {"a": }}</tool_call>"#,
        r#"<tool_call>{"name": "clock", "arguments": {"a": 1"#,
        r#"<tool_call>{"name": "clock", "arguments": {"a": 1], "b": 2}}"#,
    ] {
        let parser = AnswerParser::new(&dialect(HERMES), false, offered(ArgumentDelivery::Whole));
        assert_eq!(parsed(parser, [answer]), [text(answer)]);
    }
}

#[test]
fn arguments_that_are_cut_off_were_given_out_as_far_as_they_came() {
    let cut = |answer: &str| {
        let parser =
            AnswerParser::new(&dialect(HERMES), false, offered(ArgumentDelivery::Streamed));
        parsed(parser, [answer])
    };
    let arguments = r#"{"a": "b"#;
    assert_eq!(
        cut(&format!(r#"<tool_call>{{"name": "clock", "arguments": {arguments}"#)),
        call(0, "clock", arguments)
    );
    // The envelope is broken behind the arguments: they stand, and the rest is text.
    let [begins, whole] = call(0, "clock", "{}");
    assert_eq!(
        cut(r#"<tool_call>{"name": "clock", "arguments": {} oops"#),
        [begins, whole, text(" oops")]
    );
}

#[test]
fn pieces_leave_as_soon_as_they_are_certain() {
    let mut parser = AnswerParser::new(&dialect(HERMES), true, offered(ArgumentDelivery::Streamed));
    let mut pushed = |text: &str| parser.push(text);
    assert_eq!(pushed("Hm"), [reasoning("Hm")]);
    assert_eq!(pushed(". <"), [reasoning(".")]);
    assert_eq!(pushed("b>"), [reasoning(" <b>")]);
    assert_eq!(pushed("\n</think>\n"), []);
    assert_eq!(pushed("\nYes"), [text("Yes")]);
    assert_eq!(pushed("\n"), []);
    assert_eq!(pushed("<tool"), []);
    assert_eq!(pushed("box>"), [text("\n<toolbox>")]);
    assert_eq!(pushed("<tool_call>{\"name\": \"clock\", \"arg"), []);
    assert_eq!(pushed("uments\": "), []);
    assert_eq!(pushed("{\"a"), call(0, "clock", "{\"a"));
    assert_eq!(pushed("\": 1"), [AnswerPart::Arguments { index: 0, piece: "\": 1".to_owned() }]);
    assert_eq!(
        pushed("}}\n</tool_call>"),
        [AnswerPart::Arguments { index: 0, piece: "}".to_owned() }]
    );
}

#[test]
fn without_tools_nothing_is_held_for_them() {
    let mut parser = AnswerParser::new(&dialect(HERMES), false, None);
    assert_eq!(parser.push("A <tool_call>"), [text("A <tool_call>")]);
    assert_eq!(parser.push("\n"), [text("\n")]);
    let none = ToolsOffered { names: Vec::new(), delivery: ArgumentDelivery::Whole };
    let mut parser = AnswerParser::new(&dialect(LLAMA3), false, Some(none));
    assert_eq!(parser.push("{"), [text("{")]);
}

#[test]
fn the_parser_says_whether_the_model_thinks() {
    let mut parser = AnswerParser::new(&dialect(HERMES), false, offered(ArgumentDelivery::Whole));
    let mut at = |text: &str| {
        parser.push(text);
        parser.is_thinking()
    };
    assert!(at("<think>secret"));
    assert!(!at("</think>"));
    assert!(!at("<tool_call>"));
    assert!(!format!("{parser:?}").contains("secret"));
}

#[test]
fn marks_are_all_that_special_tokens_may_write() {
    let marks = |dialect: ModelDialect| dialect.marks().collect::<Vec<_>>();
    assert_eq!(marks(dialect(HERMES)), ["<think>", "</think>", "<tool_call>", "</tool_call>"]);
    assert_eq!(marks(ModelDialect::of(MISTRAL)), ["[TOOL_CALLS]"]);
    // What is left of a channel's opening without its marks is ordinary text.
    let harmony = marks(dialect(HARMONY));
    let opening = forms::HARMONY_ANALYSIS.forced_close;
    let rest = harmony.iter().fold(opening.to_owned(), |text, mark| text.replace(mark, " "));
    assert_eq!(rest, "  assistant final ");
}
