//! Templates against what Python's Jinja2 makes of them, and against conversations that they refuse.
//! The goldens are in `testdata`, next to the script that makes them.

mod continued;
mod golden;

use hob_core::chat::{
    Conversation, Effort, JsonText, Message, Role, Thinking, Tool, ToolCall, ToolChoice,
};

use super::{ChatTemplate, Rendered, SpecialTokens, TemplateError};

const SMOLLM2: &str = include_str!("testdata/templates/smollm2.jinja");
const QWEN3: &str = include_str!("testdata/templates/qwen3.jinja");
const MISTRAL: &str = include_str!("testdata/templates/mistral-nemo.jinja");
const DEEPSEEK: &str = include_str!("testdata/templates/deepseek-r1.jinja");
const GEMMA: &str = include_str!("testdata/templates/gemma.jinja");

const NOW: jiff::civil::DateTime = jiff::civil::date(2026, 3, 5).at(14, 7, 9, 0);

fn compile(source: &str) -> ChatTemplate {
    let tokens = SpecialTokens { bos: "<s>".to_owned(), eos: "</s>".to_owned() };
    ChatTemplate::compile(source, tokens).unwrap()
}

fn render(source: &str, conversation: &Conversation) -> Result<Rendered, TemplateError> {
    compile(source).render(conversation, &Thinking::default(), NOW)
}

fn with_effort(effort: Effort) -> Thinking {
    Thinking { effort: Some(effort), tokens_max: None }
}

fn conversation(messages: &[(Role, &str)]) -> Conversation {
    let messages = messages.iter().map(|(role, text)| Message::new(*role, *text)).collect();
    Conversation { messages, ..Conversation::default() }
}

fn hello() -> Conversation {
    conversation(&[(Role::User, "Hello")])
}

fn clock() -> Tool {
    Tool {
        name: "clock".to_owned(),
        description: None,
        parameters: Some(JsonText::parsed(r#"{"type":"object","properties":{}}"#)),
        strict: false,
    }
}

fn calling(arguments: &str, id: &str) -> Conversation {
    let call = ToolCall {
        id: id.to_owned(),
        name: "clock".to_owned(),
        arguments: JsonText::parsed(arguments),
    };
    let mut conversation =
        conversation(&[(Role::User, "When?"), (Role::Assistant, ""), (Role::Tool, "14:07")]);
    conversation.messages[1].tool_calls = vec![call];
    conversation.messages[2].tool_call_id = Some(id.to_owned());
    conversation
}

/// What `source` makes of "Hello".
fn check(source: &str, expect: &str) {
    assert_eq!(render(source, &hello()).unwrap().text, expect, "{source}");
}

fn check_error(source: &str, expect: &TemplateError) {
    assert_eq!(render(source, &hello()).as_ref(), Err(expect), "{source}");
}

#[test]
fn jinja_as_python_has_it() {
    check("{{ messages[0]['content'] }}", "Hello");
    check("  {% if true %}\n  a\n  {% endif %}\nb\n", "  a\nb");
    check("{{ [1, 2.0, 'ä<', none, true] | tojson }}", r#"[1, 2.0, "ä<", null, true]"#);
    check(
        "{{ {'b': [], 'a': {'c': 1}} | tojson(indent=2) }}",
        "{\n  \"b\": [],\n  \"a\": {\n    \"c\": 1\n  }\n}",
    );
    check(
        "{{ [1e16, 1e-5, 1.5e300, 0.0001, 123456.75] | tojson }}",
        "[1e+16, 1e-05, 1.5e+300, 0.0001, 123456.75]",
    );
    check("{{ none }} {{ true }} {{ [1, 'a'] }}", "None True [1, 'a']");
    check("{{ strftime_now('%d %b %Y, %H:%M') }}", "05 Mar 2026, 14:07");
    check("{{ date_string }}", "05 Mar 2026");
    check(
        "{{ 'a,b'.split(',')[-1].upper() }}{{ ' x '.strip() }}{{ 'abc'.startswith('ab') }}",
        "BxTrue",
    );
    check("{% for k, v in {'a': 1}.items() %}{{ k }}{{ v }}{% endfor %}", "a1");
    check(
        "{% set ns = namespace(n=0) %}{% for i in range(9) %}{% if i == 3 %}{% break %}{% endif %}{% set ns.n = ns.n + 1 %}{% endfor %}{{ ns.n }}",
        "3",
    );
    check(
        "{{ 'x' is iterable }} {{ {} is sequence }} {{ 1 is iterable }} {{ none is iterable }}",
        "True True False False",
    );
    check("{{ ['ä🌍\\n'] | tojson(ensure_ascii=true) }}", r#"["\u00e4\ud83c\udf0d\n"]"#);
    check(
        "{{ tools is none }} {{ tools is defined }} {{ enable_thinking is defined }}",
        "True True False",
    );
    check("{% generation %}{{ eos_token }}{%- endgeneration -%}\n!", "</s>!");
    check("{{ add_generation_prompt }} {{ documents }}", "True None");
}

#[test]
fn has_bos_says_whether_the_text_begins_with_the_bos_token() {
    let has_bos = |source| render(source, &hello()).unwrap().has_bos;
    assert_eq!((has_bos("{{ bos_token }}x"), has_bos("x")), (true, false));
    let without = ChatTemplate::compile("x", SpecialTokens::default()).unwrap();
    assert!(!without.render(&hello(), &Thinking::default(), NOW).unwrap().has_bos);
}

#[test]
fn thinking_reaches_the_template_in_all_its_names() {
    let source = "{{ enable_thinking }} {{ thinking }} {{ reasoning_effort }}";
    let text = |source: &str, effort| {
        compile(source).render(&hello(), &with_effort(effort), NOW).unwrap().text
    };
    assert_eq!(text(source, Effort::None), "False False none");
    assert_eq!(text(source, Effort::XHigh), "True True xhigh");
    let harmony = "{# <|channel|>commentary functions. tools #}{{ reasoning_effort }}";
    assert_eq!(text(harmony, Effort::Minimal), "low");
    assert_eq!(text(harmony, Effort::Max), "high");
}

#[test]
fn thinking_before_a_call_reaches_the_template() {
    let mut asked = calling("{}", "call00001");
    asked.messages[1].reasoning = Some("A clock.".to_owned());
    let text = render(QWEN3, &asked).unwrap().text;
    assert!(text.contains("<think>\nA clock.\n</think>\n\n<tool_call>"), "{text}");
    // gpt-oss's name. Its template rejects a message with calls that has both a text and thinking.
    let source = "{# <|channel|>commentary functions. tools #}\
        {{ messages[1].thinking is defined }} {{ messages[1].reasoning_content }}";
    let named = |asked: &Conversation| render(source, asked).unwrap().text;
    assert_eq!(named(&asked), "True A clock.");
    asked.messages[1].text = "I look.".to_owned();
    assert_eq!(named(&asked), "False A clock.");
    asked.messages[1].tool_calls.clear();
    let text = render(QWEN3, &asked).unwrap().text;
    assert!(text.contains("I look.") && !text.contains("A clock."), "{text}");
}

#[test]
fn a_word_of_effort_that_the_template_refuses_is_left_out() {
    let source = "{% if reasoning_effort is defined and reasoning_effort != 'high' %}\
        {{ raise_exception('high or nothing') }}{% endif %}{{ enable_thinking }}{{ reasoning_effort }}";
    let text = |effort| compile(source).render(&hello(), &with_effort(effort), NOW).unwrap().text;
    assert_eq!((text(Effort::None).as_str(), text(Effort::High).as_str()), ("False", "Truehigh"));
}

#[test]
fn a_thinking_block_of_the_prompt_is_closed_if_thinking_is_off() {
    let rendered = |source, effort| compile(source).render(&hello(), &effort, NOW).unwrap();
    let open = rendered(DEEPSEEK, Thinking::default());
    assert_eq!(
        (open.text.as_str(), open.starts_in_thinking),
        ("<s><｜User｜>Hello<｜Assistant｜><think>\n", true)
    );
    let closed = rendered(DEEPSEEK, with_effort(Effort::None));
    assert_eq!(
        (closed.text.as_str(), closed.starts_in_thinking),
        ("<s><｜User｜>Hello<｜Assistant｜><think>\n\n</think>\n\n", false)
    );
    // Qwen's own switch does the same.
    let switched = rendered(QWEN3, with_effort(Effort::None));
    assert!(switched.text.ends_with("<|im_start|>assistant\n<think>\n\n</think>\n\n"));
    assert!(!switched.starts_in_thinking);
    assert!(!rendered(QWEN3, Thinking::default()).starts_in_thinking);
}

#[test]
fn template_arguments_change_switches_and_not_the_conversation() {
    let mut asked = hello();
    asked.template_arguments = Some(JsonText::parsed(
        r#"{"enable_thinking": true, "mood": "dry", "messages": [], "tools": [1], "bos_token": "x"}"#,
    ));
    let source =
        "{{ enable_thinking }} {{ mood }} {{ messages | length }} {{ tools }} {{ bos_token }}";
    let rendered = compile(source).render(&asked, &with_effort(Effort::None), NOW).unwrap();
    assert_eq!(rendered.text, "True dry 1 None <s>");
}

#[test]
fn what_a_template_refuses_is_offered_in_other_forms() {
    let refused = conversation(&[
        (Role::System, "Be kind."),
        (Role::User, "One"),
        (Role::User, "Two"),
        (Role::Assistant, "Three"),
    ]);
    assert_eq!(
        render(GEMMA, &refused).unwrap().text,
        "<s><start_of_turn>user\nBe kind.\n\nOne\n\nTwo<end_of_turn>\n\
         <start_of_turn>model\nThree"
    );
    // Gemma's form is not forced on a template that takes the conversation as it is.
    assert!(
        render(SMOLLM2, &refused)
            .unwrap()
            .text
            .contains("user\nOne<|im_end|>\n<|im_start|>user\nTwo")
    );
}

#[test]
fn ids_become_short_for_a_template_that_requires_nine_characters() {
    let text = render(MISTRAL, &calling("{}", "call_0123456789abcdef")).unwrap().text;
    let id_after = |mark: &str| text.split(mark).nth(1).and_then(|rest| rest.get(..10)).unwrap();
    assert_eq!(id_after(r#""id": ""#), id_after(r#""call_id": ""#));
    assert!(id_after(r#""id": ""#)[..9].bytes().all(|b| b.is_ascii_alphanumeric()));
    let kept = render(MISTRAL, &calling("{}", "abcDEF123")).unwrap().text;
    assert!(kept.contains(r#""id": "abcDEF123""#), "{kept}");
}

#[test]
fn arguments_are_an_object_or_else_text() {
    let asked = calling(r#"{"b":1,"a":"ü"}"#, "1");
    // A template that mentions `tools` counts as one that describes tools itself.
    let begin = "{% set call = messages[1].tool_calls[0].function %}{% if tools %}{% endif %}";
    let object = format!("{begin}{{{{ call.arguments.b }}}}<tool_call>");
    assert_eq!(render(&object, &asked).unwrap().text, "1<tool_call>");
    let text = format!("{begin}{{{{ '<tool_call>' + call.arguments }}}}");
    assert_eq!(render(&text, &asked).unwrap().text, r#"<tool_call>{"b": 1, "a": "ü"}"#);
}

#[test]
fn texts_are_in_parts_for_a_template_that_sees_nothing_else() {
    check(
        "{% for p in messages[0].content %}{% if p.type == 'text' %}{{ p.text }}{% endif %}{% endfor %}",
        "Hello",
    );
}

#[test]
fn tools_are_described_to_a_model_whose_template_knows_none() {
    let mut asked = calling(r#"{"zone":"UTC"}"#, "call_1");
    asked.messages.insert(0, Message::new(Role::System, "Be brief."));
    asked.messages[2].text = "Let me see.".to_owned();
    asked.tools = vec![clock()];
    let expect = "<|im_start|>system\nBe brief.\n\n\
        You can call functions. Their signatures, one JSON object in each line:\n<tools>\n\
        {\"type\": \"function\", \"function\": {\"name\": \"clock\", \"description\": \"\", \
        \"parameters\": {\"type\": \"object\", \"properties\": {}}}}\n</tools>\n\n\
        To call a function, answer with its name and arguments as JSON between <tool_call> and </tool_call>, like this:\n\
        <tool_call>\n{\"name\": \"function\", \"arguments\": {\"argument\": \"value\"}}\n</tool_call>\n\
        You are then given what it returns, between <tool_response> and </tool_response>. \
        If no function is needed, answer without calling one.<|im_end|>\n\
        <|im_start|>user\nWhen?<|im_end|>\n\
        <|im_start|>assistant\nLet me see.\n<tool_call>\n{\"name\": \"clock\", \"arguments\": {\"zone\": \"UTC\"}}\n</tool_call><|im_end|>\n\
        <|im_start|>user\n<tool_response>\n14:07\n</tool_response><|im_end|>\n<|im_start|>assistant\n";
    assert_eq!(render(SMOLLM2, &asked).unwrap().text, expect);
}

#[test]
fn tools_that_must_not_be_called_are_not_described() {
    let mut asked = hello();
    asked.tools = vec![clock()];
    asked.tool_choice = ToolChoice::None;
    for source in [SMOLLM2, QWEN3] {
        assert_eq!(render(source, &asked).unwrap().text, render(source, &hello()).unwrap().text);
    }
    asked.tool_choice = ToolChoice::Auto;
    // No system message to add to: one is made.
    assert!(render(SMOLLM2, &asked).unwrap().text.starts_with("<|im_start|>system\nYou can call"));
    asked.tools[0].parameters = None;
    assert!(
        render(QWEN3, &asked)
            .unwrap()
            .text
            .contains(r#""parameters": {"type": "object", "properties": {}}"#)
    );
}

#[test]
fn each_failure_has_its_error() {
    let refused = |reason: &str| TemplateError::Refused { reason: reason.to_owned() };
    check_error("{{ raise_exception('No.') }}", &refused("No."));
    check_error(
        "{{ raise_exception('I will not have ' ~ messages[0].content) }}",
        &refused("its reason quotes the conversation and is not repeated here"),
    );
    let failed = TemplateError::Failed { line: 2, kind: "undefined value".to_owned() };
    check_error("a\n{{ nothing.at.all }}", &failed);
    check_error(
        "{% for i in range(90000) %}{% for j in range(90000) %}{% endfor %}{% endfor %}",
        &TemplateError::TooManySteps { steps_max: 2_000_000 },
    );
    check_error(
        "{% for i in range(90000) %}{{ 'x' * 1000 }}{% endfor %}",
        &TemplateError::TooLong { bytes_max: 16_777_216 },
    );
}

#[test]
fn a_source_that_is_no_template_is_not_compiled() {
    let error = |source: &str| ChatTemplate::compile(source, SpecialTokens::default()).unwrap_err();
    assert_eq!(
        error("a\n{% if %}"),
        TemplateError::Syntax { line: 2, reason: "unexpected end of block".to_owned() }
    );
    let bytes = (1 << 20) + 1;
    let too_long = TemplateError::SourceTooLong { bytes, bytes_max: 1 << 20 };
    assert_eq!(error(&"x".repeat(bytes)), too_long);
}

#[test]
fn what_should_be_an_object_is_one() {
    let not_an_object = |what| Err(TemplateError::NotAnObject { what });
    let list = || JsonText::parsed("[1]");
    let mut asked = hello();
    asked.template_arguments = Some(list());
    assert_eq!(render(QWEN3, &asked), not_an_object("the template's arguments"));
    asked.template_arguments = None;
    asked.tools = vec![Tool { parameters: Some(list()), ..clock() }];
    assert_eq!(render(QWEN3, &asked), not_an_object("a tool's parameters"));
}

#[test]
fn a_call_whose_arguments_are_no_object_does_not_end_a_conversation() {
    for wrong in ["", "[1]", "{\"cut"] {
        assert_eq!(render(QWEN3, &calling(wrong, "1")), render(QWEN3, &calling("{}", "1")));
    }
}

#[test]
fn a_template_cannot_reach_outside() {
    for source in ["{% include 'x' %}", "{% import '/etc/passwd' as p %}", "{% extends 'y' %}"] {
        let rendered = ChatTemplate::compile(source, SpecialTokens::default())
            .and_then(|template| template.render(&hello(), &Thinking::default(), NOW));
        assert!(matches!(rendered, Err(TemplateError::Failed { .. })), "{source}: {rendered:?}");
    }
}

#[test]
fn logs_hold_no_text() {
    let template = compile(SMOLLM2);
    let secret = conversation(&[(Role::User, "xyzzy")]);
    let rendered = template.render(&secret, &Thinking::default(), NOW).unwrap();
    assert!(rendered.text.contains("xyzzy"));
    assert!(!format!("{rendered:?} {template:?}").contains("xyzzy"));
}
