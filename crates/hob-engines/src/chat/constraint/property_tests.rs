//! A model that says anything it may: every answer is valid, whatever the budget.
//! The judge is a JSON Schema validator that shares no code with the grammars.

use hob_core::chat::{JsonText, OutputFormat};
use proptest::prelude::RngExt as _;
use proptest::test_runner::{RngAlgorithm, TestRng};
use serde_json::Value;

use super::tests::{answer, large_vocabulary, small_vocabulary};
use super::{AnswerRules, Constrainer, ConstraintError, Vocabulary};

/// Kinds of schemas that clients send.
pub(super) fn schemas() -> serde_json::Map<String, Value> {
    serde_json::from_str(include_str!("property_schemas.json")).unwrap()
}

/// All schemas with one vocabulary, `answers` for each.
fn check(vocabulary: Vocabulary, answers: usize) {
    let constrainer = Constrainer::new(vocabulary.clone()).unwrap();
    let mut random = TestRng::from_seed(RngAlgorithm::ChaCha, &[7; 32]);
    for (name, schema) in schemas() {
        let judge = jsonschema::options().should_validate_formats(true).build(&schema).unwrap();
        let output = OutputFormat::JsonSchema(JsonText::parsed(schema.to_string()));
        let wanted = AnswerRules { output: &output, strict: true, tools: None };
        let least = match constrainer.compile(&wanted, 0) {
            Err(ConstraintError::Budget { needed, .. }) => needed,
            other => panic!("{name}: {other:?}"),
        };
        for _ in 0..answers {
            let budget = least + random.random_range(0..80);
            let mut constraint = constrainer.compile(&wanted, budget).unwrap().unwrap();
            let text = answer(&mut constraint, &vocabulary, budget, &mut random);
            let value: Value = serde_json::from_str(&text)
                .unwrap_or_else(|error| panic!("{name}, {budget} tokens: {error} in {text:?}"));
            assert!(judge.is_valid(&value), "{name}, {budget} tokens: {text}");
        }
    }
}

#[test]
fn every_answer_is_valid_with_a_small_vocabulary() {
    check(small_vocabulary(), 20);
}

#[test]
fn every_answer_is_valid_with_a_large_vocabulary() {
    check(large_vocabulary(), 6);
}
