//! What the readers read, and what they do not.

use super::numbers::StatedNumber;
use super::*;

#[test]
fn numbers_are_read_as_people_write_them() {
    let rows: &[(&str, f64, &str)] = &[
        ("42", 42.0, ""),
        ("The answer is 42.", 42.0, ""),
        ("First I got 17, then 42", 42.0, ""),
        ("Answer: 17\nWait, that is wrong.\nAnswer: 42", 42.0, ""),
        ("Answer: 42\n\nI am confident in 100 % of my steps... no other number", 42.0, ""),
        ("**Answer:** **1,234**", 1234.0, ""),
        ("Answer: 1 234", 1234.0, ""),
        ("Answer: 1,234,567.5", 1_234_567.5, ""),
        ("Answer: 1.5", 1.5, ""),
        ("Answer: 1,5", 1.5, ""),
        ("Answer: -7", -7.0, ""),
        ("Answer: −7 °C", -7.0, "°c"),
        ("The result is 2.5e3", 2500.0, ""),
        ("The result is 2.5 × 10^3", 2500.0, ""),
        ("So: 3 + 4 = 7", 7.0, ""),
        ("$3 + 4 = 7$", 7.0, ""),
        ("\\boxed{42}", 42.0, ""),
        ("The answer is \\boxed{42} because 6 × 7", 42.0, ""),
        ("$$\\boxed{\\frac{3}{4}}$$", 0.75, ""),
        ("Answer: 3/4", 0.75, ""),
        ("Answer: .5", 0.5, ""),
        ("Answer: 12 km/h", 12.0, "km/h"),
        ("Answer: 12 %", 12.0, "%"),
        ("Answer: $5.20", 5.2, "$"),
        ("Answer: 1{,}234", 1234.0, ""),
        ("| Answer | 42 |", 42.0, ""),
        ("<think>17</think>42", 42.0, ""),
        ("The final answer is: 42 kWh.", 42.0, "kwh"),
        ("Therefore, x = 42", 42.0, ""),
        ("```\n42\n```", 42.0, ""),
        ("Answer: about 42", 42.0, ""),
        ("Answer: 0,500", 0.5, ""),
    ];
    for (text, value, unit) in rows {
        let expected = StatedNumber { value: *value, unit: (*unit).to_owned() };
        assert_eq!(stated_number(text), Some(expected), "{text}");
    }
}

/// Documented: a person would read these, and hob does not.
#[test]
fn what_is_not_read_is_known() {
    let rows = ["forty-two", "XLII", "The answer is a dozen.", "", "I do not know.", "H2O"];
    for text in rows {
        assert_eq!(stated_number(text), None, "{text}");
    }
    // Two numbers after each other: the last one wins, also where the first was meant.
    assert_eq!(stated_number("Answer: 42 (step 3)").map(|found| found.value), Some(3.0));
}

#[test]
fn json_is_found_between_words() {
    let rows = [
        ("{\"a\": 1}", 1),
        ("Here: ```json\n{\"a\": 1}\n``` and {\"b\": [1, {}]}", 2),
        ("{broken {\"a\": 1}", 1),
        ("none", 0),
        ("[1, 2] and (3)", 1),
    ];
    for (text, count) in rows {
        assert_eq!(json_values(text).len(), count, "{text}");
    }
    assert_eq!(json_values("{\"a\":1} {\"a\":2}")[0]["a"], 2, "the last one comes first");
}

#[test]
fn a_refusal_is_short_and_states_nothing() {
    let rows = [
        ("I'm sorry, but I can't help with that.", true),
        ("Sorry, I cannot answer this question.", true),
        ("I cannot assist with that request.", true),
        ("As an AI, I cannot have opinions.", true),
        ("I can't say for sure, but it is 42.", false),
        ("The text does not say. I am sorry.", false),
        ("I'm sorry to hear that. The answer is 42.", false),
        ("", false),
    ];
    for (text, expected) in rows {
        assert_eq!(declines(text), expected, "{text}");
    }
    let long = format!("I cannot help. {}", "But here is more. ".repeat(40));
    assert!(!declines(&long));
}

#[test]
fn leaked_thoughts_are_found_and_left_out() {
    let rows = [
        ("<think>hm</think>42", Some("hm"), "42"),
        ("hm</think>42", Some("hm"), "42"),
        ("<think>endless", Some("endless"), ""),
        ("Thinking Process:\n1. hm\n\nAnswer: 42", None, "Answer: 42"),
        ("42", None, "42"),
        ("Write `<think>` in backticks.", None, "Write `<think>` in backticks."),
    ];
    for (text, thought, visible) in rows {
        if thought.is_some() {
            assert_eq!(leaked_thought(text), thought, "{text}");
        }
        assert_eq!(without_thoughts(text), visible, "{text}");
    }
}

#[test]
fn texts_are_folded() {
    let rows =
        [("The **Cat**.", "cat"), ("  A  dog ", "dog"), ("“Oslo”!", "oslo"), ("it’s", "it's")];
    for (text, expected) in rows {
        assert_eq!(folded(text), expected, "{text}");
    }
}
