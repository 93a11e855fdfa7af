//! Schemas as clients really send them, with keywords that no grammar enforces: without `strict` the
//! request is answered, and what the answer is not held to is named.

use hob_core::chat::{OutputFormat, Tool, ToolChoice};
use proptest::test_runner::{RngAlgorithm, TestRng};
use serde_json::{Value, json};

use super::tests::{self, answer, constrainer, small_vocabulary, tool};
use super::{AnswerRules, CallCount, Constraint, ConstraintError, ToolRules};
use crate::chat::dialect::HERMES;

/// Name, arguments, and the keywords that are left out.
fn tools() -> Vec<(String, Value, Vec<String>)> {
    let all: Vec<Value> = serde_json::from_str(include_str!("client_schemas.json")).unwrap();
    let text = |value: &Value| value.as_str().unwrap().to_owned();
    let each = all.iter().map(|tool| {
        let left_out = tool["left_out"].as_array().unwrap().iter().map(text).collect();
        (text(&tool["name"]), tool["parameters"].clone(), left_out)
    });
    each.collect()
}

pub(super) fn compiled(tools: &[Tool]) -> Result<Constraint, ConstraintError> {
    let (choice, calls, dialect) = (&ToolChoice::Required, CallCount::One, &HERMES);
    let tools = Some(ToolRules { tools, choice, calls, dialect });
    let wanted = AnswerRules { output: &OutputFormat::Text, strict: false, tools };
    constrainer().compile(&wanted, 400).map(Option::unwrap)
}

#[test]
fn what_cannot_be_enforced_is_left_out_and_named() {
    let vocabulary = small_vocabulary();
    let mut random = TestRng::from_seed(RngAlgorithm::ChaCha, &[5; 32]);
    for (name, schema, ignored) in tools() {
        let mut constraint = compiled(&[tool(&name, &schema, false)])
            .unwrap_or_else(|error| panic!("{name}: {error}"));
        let expected: Vec<String> =
            ignored.iter().map(|keyword| format!("tools.{name}.{keyword}")).collect();
        assert_eq!(constraint.ignored(), expected, "{name}");
        let said = answer(&mut constraint, &vocabulary, 400, &mut random);
        let call = said.strip_prefix(HERMES.begin).and_then(|said| said.strip_suffix(HERMES.end));
        let call: Value = serde_json::from_str(call.unwrap()).unwrap();
        assert!(call["name"] == name && call["arguments"].is_object(), "{said}");
    }
}

#[test]
fn one_odd_tool_does_not_refuse_the_others() {
    let odd: Vec<Tool> =
        tools().iter().map(|(name, schema, _)| tool(name, schema, false)).collect();
    let constraint = compiled(&odd).unwrap();
    assert!(constraint.ignored().contains(&"tools.overlapping_one_of.oneOf".to_owned()));
    assert!(constraint.ignored().contains(&"tools.endless.parameters".to_owned()));
}

#[test]
fn with_strict_the_request_is_refused_with_the_path_in_our_own_words() {
    for (name, schema, ignored) in tools() {
        let Some(keyword) = ignored.first() else { continue };
        let told = compiled(&[tool(&name, &schema, true)]).expect_err(&name).to_string();
        match keyword.as_str() {
            "parameters" => assert_eq!(
                told,
                "'tools' has a schema at 'endless.parameters' that hob cannot enforce"
            ),
            keyword => {
                assert!(
                    told.starts_with(&format!("'tools' has '{keyword}' at '{name}.parameters")),
                    "{told}"
                );
                assert!(told.ends_with("leave it out, or set \"strict\" to false"), "{told}");
            }
        }
    }
}

#[test]
fn a_schema_without_a_value_is_refused_with_its_keyword_and_path() {
    let object = |name: &str, member: Value| json!({ "type": "object", "properties": { name: member }, "required": [name] });
    let definitions = json!({ "low": { "type": "integer", "minimum": 5, "maximum": 1 } });
    let mut of_definition = object("n", json!({ "$ref": "#/$defs/low" }));
    of_definition["$defs"] = definitions;
    let impossible = json!({ "allOf": [{ "type": "string" }, { "type": "integer" }] });
    let list = json!({ "type": "array", "minItems": 1, "items": impossible });
    for (schema, keyword, path) in [
        (
            object("name", json!({ "type": "string", "minLength": 5, "maxLength": 1 })),
            "minLength",
            ".properties.name",
        ),
        (
            object("n", json!({ "type": "integer", "minimum": 5, "maximum": 1 })),
            "minimum",
            ".properties.n",
        ),
        (of_definition, "minimum", ".$defs.low"),
        (object("x", impossible.clone()), "allOf", ".properties.x"),
        (object("all", list), "allOf", ".properties.all.items"),
        (object("kind", json!({ "type": "integer", "enum": ["a"] })), "enum", ".properties.kind"),
    ] {
        let output = tests::schema(&schema);
        let wanted = AnswerRules { output: &output, strict: false, tools: None };
        let answer = format!("has '{keyword}' at 'schema{path}', for which hob finds no value");
        let refused = constrainer().compile(&wanted, 400).unwrap_err().to_string();
        assert_eq!(refused, format!("'response_format' {answer}"));
        let refused = compiled(&[tool("act", &schema, true)]).unwrap_err().to_string();
        assert_eq!(refused, format!("'tools' {}", answer.replacen("schema", "act.parameters", 1)));
    }
}

#[test]
fn an_output_schema_without_strict_is_held_to_the_rest() {
    let constrainer = constrainer();
    for (keyword, schema) in [
        ("uniqueItems", json!({ "items": { "type": "integer" }, "uniqueItems": true })),
        // Only the compiler finds out that one value may fit both.
        ("oneOf", json!({ "oneOf": [{ "type": "integer" }, { "type": "number" }] })),
    ] {
        let output = tests::schema(&schema);
        let wanted = AnswerRules { output: &output, strict: false, tools: None };
        let constraint = constrainer.compile(&wanted, 100).unwrap().unwrap();
        assert_eq!(constraint.ignored(), [format!("response_format.{keyword}")]);
        // The relaxed grammar, which is cached, is not that of a strict schema.
        let wanted = AnswerRules { strict: true, ..wanted };
        let refused = constrainer.compile(&wanted, 100).unwrap_err().to_string();
        assert!(refused.contains(&format!("'{keyword}' at 'schema'")), "{refused}");
    }
}
