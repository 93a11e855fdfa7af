//! Tables of answers and what is read in them. One table pins what is not read, and the guide shows it.
//! Each row is an answer as models write it.

use std::time::Instant;

use super::*;

/// Answers and the number that a person reads in them.
const NUMBERS: &[(&str, f64)] = &[
    ("42", 42.0),
    ("42.", 42.0),
    ("**42**", 42.0),
    ("The answer is 42.", 42.0),
    ("The answer is **42**.", 42.0),
    ("The **final answer** is: `42`", 42.0),
    ("**Answer:** 42", 42.0),
    ("**Answer**: 42", 42.0),
    ("Answer: **42** (because 6 × 7 = 42 and 7 × 6 = 42)", 42.0),
    ("- **Final answer:** 42\n- Checked in 3 ways", 42.0),
    ("### Final Answer\n\n42", 42.0),
    ("## Answer\n**42 apples** in 3 boxes", 42.0),
    ("> Answer: 42", 42.0),
    ("```\n42\n```", 42.0),
    ("```text\nAnswer: 42\n```\nI used 2 steps.", 42.0),
    (r"\boxed{42}", 42.0),
    (r"$\boxed{42}$", 42.0),
    (r"$$\boxed{\text{42 km}}$$", 42.0),
    (r"The result is \[ \boxed{1{,}234} \] after 5 steps.", 1234.0),
    (r"$\boxed{1\,234\,567}$", 1_234_567.0),
    (r"\boxed{\frac{3}{4}}", 0.75),
    (r"$\boxed{1\frac{1}{2}}$", 1.5),
    (r"\(\boxed{-7}\)", -7.0),
    (r"\boxed{41} is wrong, so \boxed{42}", 42.0),
    (r"\boxed{3.2 \times 10^{5}}", 320_000.0),
    ("| Step | Value |\n|---|---|\n| 1 | 6 |\n| Answer | 42 |", 42.0),
    ("| Step | Result |\n|------|--------|\n| add | 17 |\n| double | 34 |", 34.0),
    ("| **Total** | **1,234** |", 1234.0),
    ("Step 1: 20 + 1 = 21\nStep 2: 21 × 2 = 42", 42.0),
    ("First 20, then 21, and so it comes to 42.", 42.0),
    ("17 + 25 = 42 (I checked it 2 times)", 42.0),
    ("There are 42 crates.\n\nLet me know if you want all 5 steps!", 42.0),
    ("Answer: 41\n\nWait, that is wrong.\n\nAnswer: 42", 42.0),
    ("The answer is 41. No, I forgot one. The answer is 42.", 42.0),
    ("Answer: 41\nActually, it's 42.", 42.0),
    ("Answer: 41. Correction: 42", 42.0),
    ("The answer is not 41. It comes to 42.", 42.0),
    ("The answer is NOT 41. It comes to 42.", 42.0),
    ("The answer to the question is 42, which is 6 × 7.", 42.0),
    ("Answer: 6 × 7 = 42", 42.0),
    ("Answer (in km): 42", 42.0),
    ("So the final answer would be 42 km after 3 legs.", 42.0),
    ("{\"answer\": 42, \"steps\": 3}", 42.0),
    ("1. Add 5\n2. Double\n3. Get 42", 42.0),
    ("Total: 42", 42.0),
    ("Answer: 1,234,567.89", 1_234_567.89),
    ("Answer: 1 234 567", 1_234_567.0),
    ("Answer: 1\u{202f}234,5", 1234.5),
    ("Answer: 1.234,56", 1234.56),
    ("Answer: 1.234.567", 1_234_567.0),
    ("Answer: 1'234.5", 1234.5),
    ("Answer: 3,5", 3.5),
    ("Answer: 0,125", 0.125),
    ("Answer: 1,234", 1234.0),
    ("Answer: 1.234", 1.234),
    ("Answer: .5", 0.5),
    ("Answer: 3/4", 0.75),
    ("Answer: 1 3/4 cups", 1.75),
    ("Answer: 2½", 2.5),
    ("Answer: 6.02e23", 6.02e23),
    ("Answer: 6.02 × 10²³", 6.02e23),
    ("Answer: 1.5 x 10^-3", 1.5e-3),
    ("Answer: 3.2 million", 3_200_000.0),
    ("Answer: 3 Millions of people", 3_000_000.0),
    ("Answer: 3,5 Millionen", 3_500_000.0),
    ("Answer: 3 Billionen", 3e12),
    ("Answer: 2,5 Milliarden Euro", 2.5e9),
    ("Answer: 2 milliards d'euros", 2e9),
    ("Answer: 40 Tausend", 40_000.0),
    ("Answer: 8 tusen kronor", 8_000.0),
    ("Answer: 9 tusind", 9_000.0),
    ("Answer: 1 miljon kronor", 1e6),
    ("Answer: 3,5 miljoner", 3_500_000.0),
    ("Answer: 1 miljard", 1e9),
    ("Answer: 8 miljarder", 8e9),
    ("Answer: 1 biljon", 1e12),
    ("Answer: 2 biljoner", 2e12),
    ("Answer: 42 millionaires", 42.0),
    ("Answer: 3 Milliardenbeträge", 3.0),
    ("Answer: 5 thousandths", 5.0),
    ("Answer: −7", -7.0),
    ("Answer: -7", -7.0),
    ("Answer: –7 °C", -7.0),
    ("Answer: -$5", -5.0),
    ("10-3 = 7", 7.0),
    ("Answer: $1,299.50", 1299.5),
    ("Answer: $42$", 42.0),
    ("It costs $5 and then $6.", 6.0),
    ("Answer: 12.5%", 12.5),
    ("Answer: 42km", 42.0),
    ("Answer: about 42", 42.0),
    ("Answer: 42\n\nI am sure of 100 % of my steps", 42.0),
    ("Therefore, x = 42", 42.0),
];

fn number(text: &str) -> Option<f64> {
    last_number(&AnswerText::new(text)).map(|number| number.value)
}

/// A number and its unit.
fn measure(text: &str) -> (Option<f64>, Option<&'static str>) {
    let read = last_number(&AnswerText::new(text));
    let unit = read.as_ref().and_then(stated_unit);
    (read.map(|number| number.value), unit)
}

#[test]
fn reads_the_number_that_a_person_reads() {
    for (text, expected) in NUMBERS {
        let read = number(text);
        let near = read.is_some_and(|read| (read - expected).abs() <= 1e-9 * expected.abs());
        assert!(near, "{text:?}: expected {expected}, read {read:?}");
    }
}

#[test]
fn reads_units_and_leaves_words_alone() {
    let rows = [
        ("Answer: 42 km", Some("km")),
        ("Answer: 42 kilometres.", Some("km")),
        (r"\boxed{42\ \text{km}}", Some("km")),
        (r"\boxed{42} km", Some("km")),
        ("Answer: 42 km/h", Some("km/h")),
        ("Answer: 42 kilometers per hour", Some("km/h")),
        ("Answer: 42 minutes", Some("min")),
        ("Answer: 42 m", Some("m")),
        ("Answer: 42 MW", Some("MW")),
        ("Answer: 42 kilowatt-hours", Some("kWh")),
        ("Answer: 42°C", Some("°C")),
        (r"$\boxed{42^\circ\text{C}}$", Some("°C")),
        ("Answer: $42", Some("USD")),
        ("Answer: 42 €", Some("EUR")),
        ("Answer: 42%", Some("%")),
        ("Answer: 42 is right", None),
        ("Answer: 42 in 3 steps", None),
        ("Answer: 42 in", Some("in")),
        ("Answer: 42 men", None),
        ("Answer: 42", None),
    ];
    for (text, unit) in rows {
        assert_eq!(measure(text), (Some(42.0), unit), "{text:?}");
    }
}

#[test]
fn text_without_a_number_has_none() {
    for text in ["", "none", "Q4 is smaller", "v1.2.3", "H2O", "∞", "x2"] {
        assert_eq!(number(text), None, "{text:?}");
    }
}

#[test]
fn reads_choices() {
    let options = ["Paris", "the red dog", "Rome", "A dog"].map(str::to_owned);
    let rows = [
        ("B", Some(1)),
        ("(B)", Some(1)),
        ("B.", Some(1)),
        ("b)", Some(1)),
        ("**B**", Some(1)),
        ("**B) the red dog**", Some(1)),
        ("Answer: B", Some(1)),
        ("The answer is (B).", Some(1)),
        ("The correct option is **B**", Some(1)),
        ("The best choice is B because it is red.", Some(1)),
        (r"$\boxed{B}$", Some(1)),
        (r"\boxed{\text{B}}", Some(1)),
        ("Answer: A\n\nWait, no.\n\nAnswer: C", Some(2)),
        ("I go for option C here.", Some(2)),
        ("Answer: option C", Some(2)),
        ("B: the red dog", Some(1)),
        ("Rome", Some(2)),
        ("It must be Rome, of course.", Some(2)),
        ("Answer: A dog", Some(3)),
        ("The answer is the red dog.", Some(1)),
        ("| Answer | C |", Some(2)),
        ("Both Paris and Rome are possible", None),
        ("Answer: A, B", None),
        ("Answer: A, and B", None),
        ("Answer: [A, B]", None),
        ("(A) and (C)", None),
        ("(B), and A is wrong", Some(1)),
        ("A, B and D are possible, so I take option C", Some(2)),
        ("A, B is wrong", Some(0)),
        ("A nice question", None),
        ("Answer: F", None),
        ("I do not know.", None),
    ];
    for (text, expected) in rows {
        assert_eq!(choice(&AnswerText::new(text), &options), expected, "{text:?}");
    }
}

#[test]
fn reads_yes_and_no() {
    let rows = [
        ("Yes", Some(true)),
        ("**No**, it does not.", Some(false)),
        ("Yes, because it fits.", Some(true)),
        ("Let me see.\nAnswer: no", Some(false)),
        ("It looks like yes.\n\n**Answer:** No.", Some(false)),
        (r"\boxed{\text{Yes}}", Some(true)),
        ("The answer is true.", Some(true)),
        ("Perhaps.", None),
        ("Notes follow", None),
    ];
    for (text, expected) in rows {
        assert_eq!(yes_no(&AnswerText::new(text)), expected, "{text:?}");
    }
}

#[test]
fn reads_json_in_fences_and_between_sentences() {
    let rows = [
        (r#"{"a": 1}"#, Some(r#"{"a":1}"#)),
        ("```json\n{\"a\": 1}\n```", Some(r#"{"a":1}"#)),
        (r#"Here it is: {"a": [1, 2]} as you asked."#, Some(r#"{"a":[1,2]}"#)),
        (r#"Not {this}, but {"a": "}"} it is."#, Some(r#"{"a":"}"}"#)),
        (r#"{"a": 1} Correction: {"a": 2}"#, Some(r#"{"a":2}"#)),
        (r#"{ "x": {"a": 3}"#, Some(r#"{"a":3}"#)),
        ("{'a': 1}", None),
        ("{\"a\": 1,}", None),
        ("no JSON", None),
    ];
    for (text, expected) in rows {
        let read = json_values(text).pop().map(|value| value.to_string());
        assert_eq!(read.as_deref(), expected, "{text:?}");
    }
}

#[test]
fn only_an_answer_that_declines_as_a_whole_is_a_refusal() {
    let refusals = [
        "I can't help with that.",
        "I'm sorry, but I cannot assist with this request.",
        "I’m sorry, but I can’t provide that information.",
        "Sorry, I am unable to answer this question.",
        "Unfortunately, I cannot fulfill this request.",
        "As an AI language model, I cannot provide opinions on this.",
        "I must decline to answer.",
        "As an AI, I cannot have opinions.",
        "**I won't help with that.**",
    ];
    for text in refusals {
        assert!(declines(text), "{text:?}");
    }
    let answers = [
        "I'm sorry for the mistake. The answer is Paris.",
        "I cannot help but notice that the answer is Paris.",
        "Sorry, my mistake: it is 42.",
        "I can't provide the exact figure. However, it is near Paris.",
        "The text says: I can't help with that.",
        "I cannot determine this from the text.",
        "Paris",
        "",
    ];
    for text in answers {
        assert!(!declines(text), "{text:?}");
    }
    assert!(!declines(&format!("I can't help with that. {}", "But look at it. ".repeat(100))));
}

#[test]
fn a_leaked_thought_is_found_and_removed() {
    let rows = [
        ("<think>5 or 6?</think>6", Some("5 or 6?"), "6"),
        ("<think>\n\n</think>\n\n6", Some(""), "\n\n6"),
        ("5 or 6?\n</think>\n6", Some("5 or 6?"), "\n6"),
        ("<think>5 or 6? it never ends", Some("5 or 6? it never ends"), ""),
        ("6 <THINKING>5?</THINKING> or so", Some("5?"), "6  or so"),
        ("<think>a</think>5<think>b</think>6", Some("a"), "56"),
        (
            "Thinking Process:\n\n1. Read.\n\nFinal answer: 6",
            Some("Thinking Process:\n\n1. Read."),
            "Final answer: 6",
        ),
        ("**Thinking Process:** 1. Read it", Some("**Thinking Process:** 1. Read it"), ""),
        (
            "Here's a thinking process:\n1. Read.\n</think>\n6",
            Some("Here's a thinking process:\n1. Read."),
            "\n6",
        ),
        ("6", None, "6"),
        ("The tag `<think>` opens a thought", None, "The tag `<think>` opens a thought"),
    ];
    for (text, thought, rest) in rows {
        assert_eq!(leaked_thought(text), thought, "{text:?}");
        assert_eq!(without_thoughts(text), rest, "{text:?}");
    }
}

#[test]
fn a_thought_without_marks_is_known_by_its_first_words() {
    let rows = [
        ("Okay, the user asks for 17 plus 25.", true),
        ("Hmm, so the user wants one word.", true),
        ("We need to answer with one word.", true),
        ("Let me think about this.", true),
        ("<think>5?</think>6", true),
        ("The user interface is slow.", false),
        ("Okay, here is the story.", false),
        ("42", false),
        ("", false),
    ];
    for (text, expected) in rows {
        assert_eq!(shows_a_thought(text), expected, "{text:?}");
    }
}

/// An answer, what a person reads in it, what hob reads, and why. Each row is a limit, and the guide shows it.
const UNREAD: &[(&str, &str, Option<f64>, &str)] = &[
    ("The answer is forty-two.", "42", None, "a number in words"),
    ("The answer is 41... no, 42.", "42", Some(41.0), "a correction within a sentence"),
    ("The answer is 40 to 44.", "40 to 44", Some(40.0), "a range: its lower end is read"),
    (
        "There are 42 crates.\nThat took 3 steps.",
        "42",
        Some(3.0),
        "a closing remark with a number, where no statement is marked",
    ),
    (
        "Answer: 42 km = 42000 m",
        "42 km",
        Some(42000.0),
        "one quantity in two units: the one behind the last equals sign is read",
    ),
    ("Answer: 12:30", "half past twelve", Some(12.0), "a time of day"),
    ("Answer: 2 h 30 min", "2.5 h", Some(2.0), "a span in two units"),
    (r"\boxed{\frac34}", "0.75", None, "a fraction without braces"),
    (r"\boxed{\sqrt{16}}", "4", Some(16.0), "a root"),
    ("Answer: 12,34,567", "1234567", Some(12.0), "groups of two digits, as in India"),
    (
        "Answer: 100 200 300",
        "three numbers",
        Some(100_200_300.0),
        "three-digit numbers with spaces between them read as one number",
    ),
    (
        "Answer: 1,234 (one and a bit)",
        "1.234",
        Some(1234.0),
        "three digits behind a comma are a group",
    ),
    ("Answer: 0x2A", "42", Some(0.0), "a hexadecimal number"),
];

const GUIDE: &str = include_str!("../../../../docs/guides/evaluating.md");

#[test]
fn what_is_not_read() {
    for (text, _, read, why) in UNREAD {
        assert_eq!(number(text), *read, "{text:?}: {why}");
    }
}

/// The rows of the guide are these, so that it says what is true. The failure prints the table to copy.
#[test]
fn the_guide_lists_what_is_not_read() {
    let row = |(text, person, read, why): &(&str, &str, Option<f64>, &str)| {
        let read = read.map_or("nothing".to_owned(), |read| read.to_string());
        format!("| `{}` | {person} | {read} | {why} |\n", text.replace('\n', " ↵ "))
    };
    let rows: String = UNREAD.iter().map(row).collect();
    let table =
        format!("| answer | a person reads | hob reads | reason |\n|---|---|---|---|\n{rows}");
    assert!(GUIDE.contains(&table), "docs/guides/evaluating.md needs this table:\n{table}");
}

/// Enough to notice a time that grows with the square of the length: it would be minutes.
const GARBAGE_BYTES: usize = 128 << 10;
const GARBAGE_S_MAX: u64 = 60;

#[test]
fn garbage_is_read_in_linear_time() {
    let seeds = [
        "{",
        "[",
        "[1,",
        "{\"a\":",
        "$",
        "$a ",
        "*",
        "\\boxed{",
        "\\frac{",
        "<think>",
        "</think>",
        "Answer: ",
        "answer is ",
        "1,",
        "1 ",
        "1½",
        "1²",
        "9",
        "|",
        "`",
        "\n- ",
        "[\",",
        "(",
        "=1",
        "é",
    ];
    let started = Instant::now();
    for seed in seeds {
        let garbage = seed.repeat(GARBAGE_BYTES / seed.len());
        leaked_thought(&garbage);
        let visible = without_thoughts(&garbage);
        let answer = AnswerText::new(tail(&visible));
        last_number(&answer);
        choice(&answer, &["Paris".to_owned()]);
        yes_no(&answer);
        json_values(tail(&visible));
        declines(&visible);
    }
    assert!(started.elapsed().as_secs() < GARBAGE_S_MAX, "{:?}", started.elapsed());
}

#[test]
fn the_tail_is_cut_between_characters() {
    let long = "é".repeat(READ_BYTES_MAX);
    let tail = tail(&format!("x{long}y")).to_owned();
    assert!(tail.len() <= READ_BYTES_MAX && tail.ends_with("éy") && tail.starts_with('é'));
}
