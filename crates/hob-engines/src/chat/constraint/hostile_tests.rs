//! Grammars that were made to end the compiler's stack, or to keep it busy for minutes. What is over
//! a limit is refused before it is compiled; what is within all limits must be survived.

use hob_core::ModelError;
use hob_core::chat::OutputFormat;
use serde_json::{Map, Value, json};

use super::tests::{constrainer, schema, tool};
use super::{AnswerRules, ConstraintError, client_tests};

fn compiled(output: &OutputFormat) -> Result<(), ConstraintError> {
    let wanted = AnswerRules { output, strict: false, tools: None };
    constrainer().compile(&wanted, 100_000).map(|_| ())
}

/// Rules, each of which names the next.
fn rules(count: usize) -> OutputFormat {
    let each = (1..count).map(|at| format!("r{at}: \"a\" r{}\n", at + 1));
    OutputFormat::Lark(format!("start: r1\n{}r{count}: \"b\"\n", each.collect::<String>()))
}

/// Definitions, each of which is the next and something more.
fn references(count: usize) -> Value {
    let next = |at: usize| json!({ "minLength": 1, "$ref": format!("#/$defs/d{}", at + 1) });
    let mut definitions: Map<String, Value> =
        (1..count).map(|at| (format!("d{at}"), next(at))).collect();
    definitions.insert(format!("d{count}"), json!({ "type": "string" }));
    json!({ "$ref": "#/$defs/d1", "$defs": definitions })
}

fn properties(count: usize) -> Value {
    let each = (0..count).map(|at| (format!("p{at}"), json!({ "type": "string" })));
    json!({ "type": "object", "properties": each.collect::<Map<String, Value>>() })
}

#[test]
fn what_ended_the_worker_is_refused_with_the_number_and_the_limit() {
    for (output, field, what) in [
        (rules(1_000), "grammar", "1001 rules and the limit is 500"),
        (schema(&references(2_000)), "response_format", "2000 references and the limit is 500"),
        (
            schema(&properties(10_000)),
            "response_format",
            "10002 nested schemas and the limit is 4000",
        ),
        (
            OutputFormat::Lark(format!("start: {}\"a\"", "(".repeat(9_000))),
            "grammar",
            "9000 levels of nesting and the limit is 64",
        ),
        (
            OutputFormat::Regex("a?".repeat(45_000)),
            "regex",
            "90000 bytes in a pattern and the limit is 2048",
        ),
    ] {
        let refused = compiled(&output).expect_err(what);
        let told = format!("'{field}' is too large to be enforced: {what}");
        assert_eq!(refused.to_string(), told);
    }
}

#[test]
fn a_grammar_that_nothing_can_begin_is_the_clients_mistake() {
    for lark in ["start: start", "start: a\na: b\nb: a"] {
        let refused = compiled(&OutputFormat::Lark(lark.to_owned())).expect_err(lark);
        let ModelError::InvalidField { reason, .. } = refused.into_model_error("chat") else {
            panic!("{lark}")
        };
        assert!(reason.contains("no text can begin with it"), "{lark}: {reason}");
    }
}

#[test]
fn an_unreadable_grammar_is_answered_with_the_language_that_hob_takes() {
    for (text, expected) in [
        ("root ::= \"a\"", "looks like GBNF, and hob takes Lark"),
        ("start: nothing", "hob takes Lark"),
    ] {
        let refused = compiled(&OutputFormat::Lark(text.to_owned())).expect_err(text).to_string();
        assert!(refused.starts_with("'grammar' cannot be enforced: "), "{refused}");
        assert!(refused.contains(expected), "{refused}");
    }
}

#[test]
fn what_is_within_every_limit_does_not_end_the_stack() {
    for output in [
        rules(499),
        schema(&references(499)),
        schema(&properties(900)),
        OutputFormat::Lark(format!("start: {}\"a\"{}", "(".repeat(64), ")".repeat(64))),
        OutputFormat::Lark(format!("start: %json {}", {
            // A schema within a grammar has no limit of its own but the grammar's.
            let names = (0..2_000).map(|at| (format!("{at}"), json!({})));
            json!({ "type": "object", "properties": names.collect::<Map<String, Value>>() })
        })),
        OutputFormat::Regex("a?".repeat(1_000)),
        OutputFormat::Regex("((a|b){200}){200}".to_owned()),
    ] {
        // Whether an answer can be held to it does not matter here; that this returns does.
        let _ = compiled(&output);
    }
}

#[test]
fn a_tool_that_is_too_large_takes_any_object_unless_it_is_strict() {
    let compiled = |strict| {
        let huge = tool("huge", &properties(10_000), strict);
        client_tests::compiled(&[huge, tool("small", &properties(1), true)])
    };
    assert_eq!(compiled(false).unwrap().ignored(), ["tools.huge.parameters"]);
    let refused = compiled(true).unwrap_err();
    assert!(matches!(refused, ConstraintError::TooLarge { field: "tools", .. }), "{refused}");
}

#[test]
fn a_grammar_is_ready_once_it_was_compiled() {
    let (constrainer, output) = (constrainer(), rules(3));
    let wanted = AnswerRules { output: &output, strict: false, tools: None };
    assert!(constrainer.ready(&wanted, 10).unwrap().is_none());
    constrainer.compile(&wanted, 10).unwrap();
    assert!(constrainer.ready(&wanted, 10).unwrap().unwrap().is_some());
    let free = AnswerRules { output: &OutputFormat::Text, ..wanted };
    assert!(constrainer.ready(&free, 10).unwrap().unwrap().is_none());
}
