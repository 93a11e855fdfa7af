//! Tests of the tool use family and its checker.
//! Answers are tables: what a model might send, and the grade a user expects.

use std::collections::BTreeSet;

use proptest::prelude::*;
use serde_json::{Value, json};

use super::*;
use crate::{Answer, CalledTool, Verdict};

fn called(name: &str, arguments: &str) -> Answer {
    let call = CalledTool { name: name.to_owned(), arguments: arguments.to_owned() };
    Answer { tool_calls: vec![call], ..Answer::default() }
}

fn said(content: &str) -> Answer {
    Answer { content: content.to_owned(), ..Answer::default() }
}

fn expected(item: &Item) -> &ToolCallExpected {
    match &item.checker {
        Checker::ToolCall(expected) => expected,
        other => panic!("{other:?}"),
    }
}

fn all_items() -> impl Iterator<Item = crate::Item> {
    SIZES.iter().flat_map(|size| (0..60).filter_map(move |index| item(7, size, index)))
}

#[test]
fn the_reference_call_is_right_and_the_offered_tools_hold_it() {
    for item in all_items() {
        let names: BTreeSet<&str> =
            item.tools.iter().filter_map(|tool| tool["function"]["name"].as_str()).collect();
        assert_eq!(names.len(), item.tools.len());
        assert_eq!(item.tools.len().to_string(), item.size);
        let expected = expected(&item);
        let Some(call) = &expected.call else {
            let reply = said(&format!("That is {}.", expected.reply[0]));
            assert_eq!(expected.grade(&reply).verdict, Verdict::Correct, "{}", item.prompt);
            let unneeded = expected.grade(&called(names.first().unwrap(), "{}"));
            assert_eq!((unneeded.verdict, unneeded.score), (Verdict::Wrong, 0.0));
            continue;
        };
        assert!(names.contains(call.name.as_str()), "{names:?}");
        let given = call.arguments.to_string();
        let grade = expected.grade(&called(&call.name, &given));
        assert_eq!(grade.verdict, Verdict::Correct, "{}", grade.why);
        for name in call.arguments.as_object().unwrap().keys() {
            let mut arguments = call.arguments.clone();
            arguments[name] = json!("something else");
            let grade = expected.grade(&called(&call.name, &arguments.to_string()));
            assert!(grade.verdict == Verdict::Wrong && (0.5..1.0).contains(&grade.score));
        }
    }
}

#[test]
fn arguments_follow_the_offered_schema() {
    for item in all_items() {
        let Some(call) = &expected(&item).call else { continue };
        let tool = item.tools.iter().find(|tool| tool["function"]["name"] == call.name.as_str());
        let schema = &tool.unwrap()["function"]["parameters"];
        assert!(fits(&call.arguments, schema), "{} {schema}", call.arguments);
    }
}

fn fits(value: &Value, schema: &Value) -> bool {
    let chosen = |choices: &Vec<Value>| choices.contains(value);
    match schema["type"].as_str() {
        Some("string") => value.is_string() && schema["enum"].as_array().is_none_or(chosen),
        Some("integer") => value.is_i64(),
        Some("number") => value.is_number(),
        Some("boolean") => value.is_boolean(),
        Some("array") => value.as_array().unwrap().iter().all(|one| fits(one, &schema["items"])),
        _ => {
            let (given, known) = (value.as_object().unwrap(), &schema["properties"]);
            let required = schema["required"].as_array().unwrap();
            required.iter().all(|name| given.contains_key(name.as_str().unwrap()))
                && given.iter().all(|(name, one)| fits(one, &known[name]))
        }
    }
}

#[test]
fn calls_are_compared_as_values() {
    let checker = ToolCallExpected {
        call: Some(ExpectedCall {
            name: "book".to_owned(),
            arguments: json!({"city": "Malmö", "days": 2, "class": "first", "who": [{"a": 1, "b": "x"}]}),
        }),
        reply: vec![],
        defaults: json!({"quiet": false}).as_object().unwrap().clone(),
        exact: vec!["class".to_owned()],
    };
    let right = r#"{"who":[{"b":"X","a":1.0}],"class":"first","days":2.0,"city":" malmö "}"#;
    let cases = [
        (right.to_owned(), Verdict::Correct, 1.0),
        (right.replace('{', "{ "), Verdict::Correct, 1.0),
        (right.replacen('{', r#"{"quiet":false,"#, 1), Verdict::Correct, 1.0),
        (right.replacen('{', r#"{"note":null,"#, 1), Verdict::Correct, 1.0),
        (right.replacen('{', r#"{"quiet":true,"#, 1), Verdict::Wrong, 0.9),
        (right.replace("first", "First"), Verdict::Wrong, 0.875),
        (right.replace("2.0", "\"2\""), Verdict::Wrong, 0.875),
        (r#"{"city":"Malmö"}"#.to_owned(), Verdict::Wrong, 0.625),
        (String::new(), Verdict::Wrong, 0.5),
        ("[]".to_owned(), Verdict::Malformed, 0.0),
        (right[1..].to_owned(), Verdict::Malformed, 0.0),
    ];
    for (arguments, verdict, score) in cases {
        let grade = checker.grade(&called("book", &arguments));
        assert_eq!((grade.verdict, grade.score), (verdict, score), "{arguments}: {}", grade.why);
    }
    assert_eq!(checker.grade(&called("cook", right)).score, 0.0);
    let mut twice = called("book", right);
    twice.tool_calls.push(twice.tool_calls[0].clone());
    assert_eq!(checker.grade(&twice).verdict, Verdict::Wrong);
    let texts = [
        ("I would need to book that.", Verdict::Wrong),
        ("<tool_call>{\"name\": \"book\"}</tool_call>", Verdict::Malformed),
        ("{\"name\": \"book\", \"arguments\": {}}", Verdict::Malformed),
        ("book(city='Malmö')", Verdict::Malformed),
        ("functions.book({})", Verdict::Malformed),
        ("I call book: {\"days\": 2}", Verdict::Malformed),
        ("I call book:\n```json\n{\"days\": 2}\n```", Verdict::Malformed),
        ("{\"book\": \"Malmö\"}", Verdict::Malformed),
        ("I cannot use book, because (as you know) it is broken.", Verdict::Wrong),
        ("I cannot use \"book\", because (as you know) it is broken.", Verdict::Wrong),
        ("Use rebook(city) or my_book(city).", Verdict::Wrong),
    ];
    for (text, verdict) in texts {
        assert_eq!(checker.grade(&said(text)).verdict, verdict, "{text}");
    }
}

#[test]
fn integers_above_53_bits_are_compared_exactly() {
    let checker = |days: Value| {
        let arguments = json!({"days": days});
        let call = Some(ExpectedCall { name: "book".to_owned(), arguments });
        ToolCallExpected { call, ..ToolCallExpected::default() }
    };
    let verdict = |days: Value, given: &str| {
        checker(days).grade(&called("book", &format!(r#"{{"days":{given}}}"#))).verdict
    };
    let large = || json!(9_007_199_254_740_993_u64);
    assert_eq!(verdict(large(), "9007199254740993"), Verdict::Correct);
    assert_eq!(verdict(large(), "9007199254740992"), Verdict::Wrong);
    assert_eq!(verdict(json!(-9_007_199_254_740_993_i64), "-9007199254740992"), Verdict::Wrong);
    assert_eq!(verdict(json!(9_007_199_254_740_992_u64), "9007199254740992.0"), Verdict::Correct);
}

#[test]
fn a_quarter_of_the_items_needs_no_call_and_all_items_differ() {
    for size in SIZES {
        let items: Vec<_> = (0..100).filter_map(|index| item(3, size, index)).collect();
        assert_eq!(items.iter().filter(|item| expected(item).call.is_none()).count(), 25);
        assert_eq!(items, (0..100).filter_map(|index| item(3, size, index)).collect::<Vec<_>>());
        let prompts: BTreeSet<&str> = items.iter().map(|item| item.prompt.as_str()).collect();
        assert!(prompts.len() > 90, "{}", prompts.len());
    }
    for size in ["", "0", "-1", "1000", "4 ", "many"] {
        assert_eq!(item(1, size, 0), None, "{size}");
    }
}

proptest! {
    #[test]
    fn no_answer_breaks_the_checker(content in ".{0,80}", name in ".{0,9}", arguments in r#"[\[\]{}:,"a0-9 e-]{0,60}"#) {
        for index in 0..4 {
            let item = item(1, "4", index).unwrap();
            let mut answer = called(&name, &arguments);
            answer.content = content.clone();
            prop_assert_ne!(expected(&item).grade(&answer).verdict, Verdict::Correct);
            answer.tool_calls.clear();
            expected(&item).grade(&answer);
        }
    }
}
