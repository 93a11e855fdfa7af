//! The grade of an answer: what was visible, and what the item's checker says of it.
//! An answer that never came has a verdict of its own.

use crate::checkers::{RunCode, grade_constraints};
use crate::reading::{declines, tail, without_thoughts};
use crate::{Answer, AnswerEnd, Checker, Grade, Item, Verdict};

/// Grades an answer. `sandbox` runs code; without it, code is malformed.
pub fn grade(item: &Item, answer: &Answer, sandbox: Option<&dyn RunCode>) -> Grade {
    let grade = checked(item, answer, sandbox);
    match item.checker.is_open() {
        // Silence and refusals too: an open question counts in no score.
        true => Grade { score: 0.0, verdict: Verdict::Open, ..grade },
        false => grade,
    }
}

fn checked(item: &Item, answer: &Answer, sandbox: Option<&dyn RunCode>) -> Grade {
    let visible = without_thoughts(tail(&answer.content));
    if visible.trim().is_empty() && answer.tool_calls.is_empty() {
        return silent(answer.end);
    }
    if answer.tool_calls.is_empty() && declines(&visible) && !item.checker.takes_refusals() {
        let why = "the model declined to answer".to_owned();
        return Grade { score: 0.0, verdict: Verdict::Refused, why };
    }
    let content = answer.content.as_str();
    match &item.checker {
        Checker::ToolCall(expected) => expected.grade(answer),
        // Only a question about tools needs a call.
        _ if visible.trim().is_empty() => Grade::wrong("a tool was called, and no text was said"),
        Checker::Exact(exact) => exact.grade(content),
        Checker::Number(number) => number.grade(content),
        Checker::Pattern(pattern) => pattern.grade(content),
        Checker::Choice(choice) => choice.grade(content),
        Checker::Json(fields) => fields.grade(content),
        Checker::Phrases(phrases) => phrases.grade(content),
        Checker::Constraints { rules } => grade_constraints(rules, content),
        Checker::Grid(solution) => solution.grade(content),
        Checker::Needle(needle) => needle.grade(content),
        Checker::Absent(absent) => absent.grade(content),
        Checker::Code(tests) => tests.grade(content, sandbox),
        Checker::Judged(_) => Grade::wrong("no program checks the answer to an open question"),
    }
}

fn silent(end: AnswerEnd) -> Grade {
    let (verdict, why) = match end {
        AnswerEnd::Length => (
            Verdict::Budget,
            "no visible answer: all tokens were spent before the first visible one",
        ),
        AnswerEnd::Stop => (Verdict::NoAnswer, "the answer ended without visible text"),
        AnswerEnd::ContentFilter => (Verdict::Refused, "the server withheld the answer"),
    };
    Grade { score: 0.0, verdict, why: why.to_owned() }
}

#[cfg(test)]
mod tests {
    use std::sync::LazyLock;

    use proptest::collection::vec;
    use proptest::prelude::*;

    use super::*;
    use crate::checkers::{CodeOutcome, Number};
    use crate::judge::OpenQuestion;
    use crate::{CalledTool, TaskFamily, own_file};

    /// Says what the program is, so that any text comes back as output.
    #[derive(Debug)]
    struct Echo;

    impl RunCode for Echo {
        fn run(&self, program: &str) -> CodeOutcome {
            CodeOutcome::Ended { stdout: program.to_owned() }
        }
    }

    /// Items with every kind of checker, each with the words of its prompt and of what it expects.
    static ITEMS: LazyLock<Vec<(Item, Vec<String>)>> = LazyLock::new(|| {
        let own = [
            r#"{"prompt":"Which town?","reference":"Lisbon"}"#,
            r#"{"prompt":"How many?","reference":-3.5}"#,
            r#"{"prompt":"Which gas?","choices":["iron","neon"],"answer":1}"#,
            r#"{"prompt":"Advise.","checker":{"kind":"phrases","required":["quant"],"forbidden":["Switched Memory"]}}"#,
            r#"{"prompt":"Match.","checker":{"kind":"pattern","regex":"a+b"}}"#,
        ];
        let own = own_file::parse("own", &own.join("\n")).expect("items");
        let item = |family: TaskFamily| family.item(5, family.usual_size(), 0).expect("an item");
        let all = TaskFamily::ALL.into_iter().map(item).chain(own);
        let with_words = |item: Item| {
            let expected = serde_json::to_string(&item.checker).expect("JSON");
            let text = format!("{} {expected}", item.prompt);
            let words = text.split_inclusive([' ', ',', ':']).map(str::to_owned).collect();
            (item, words)
        };
        all.map(with_words).collect()
    });

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(100))]

        /// Noise, and words that the checkers look for, in any order.
        #[test]
        fn every_checker_grades_any_text(
            pieces in vec((any::<usize>(), "(?s).{0,8}|[\\[\\]{}|`*$<>=#\n-]{0,4}"), 0..30),
        ) {
            for (item, words) in &*ITEMS {
                let content: String = pieces
                    .iter()
                    .map(|(at, noise)| format!("{}{noise}", words[at % words.len()]))
                    .collect();
                let call = CalledTool { name: "f".to_owned(), arguments: content.clone() };
                for tool_calls in [Vec::new(), vec![call]] {
                    let content = content.clone();
                    let answer = Answer { content, tool_calls, ..Answer::default() };
                    let found = grade(item, &answer, Some(&Echo));
                    prop_assert!((0.0..=1.0).contains(&found.score), "{:?} {:?}", found, answer);
                    let is_whole = found.verdict != Verdict::Correct || found.score >= 1.0;
                    prop_assert!(is_whole, "{:?} {:?}", found, answer);
                    let again = grade(item, &answer, Some(&Echo));
                    prop_assert_eq!(&found, &again, "the same twice");
                }
            }
        }
    }

    fn item(checker: Checker) -> Item {
        Item {
            id: "a".to_owned(),
            family: "a".to_owned(),
            size: String::new(),
            system: None,
            prompt: "?".to_owned(),
            tools: Vec::new(),
            schema: None,
            checker,
            max_tokens: 10,
        }
    }

    #[test]
    fn an_answer_that_never_came_is_no_wrong_answer() {
        let answer =
            |content: &str, end| Answer { content: content.to_owned(), end, ..Answer::default() };
        let number = item(Checker::Number(Number::exact(42.0)));
        let rows = [
            (answer("", AnswerEnd::Length), Verdict::Budget),
            (answer("<think>so much", AnswerEnd::Length), Verdict::Budget),
            (answer(" \n", AnswerEnd::Stop), Verdict::NoAnswer),
            (answer("", AnswerEnd::ContentFilter), Verdict::Refused),
            (answer("I'm sorry, but I can't help with that.", AnswerEnd::Stop), Verdict::Refused),
            (answer("42", AnswerEnd::Length), Verdict::Correct),
            (answer("41", AnswerEnd::Stop), Verdict::Wrong),
        ];
        for (answer, expected) in rows {
            assert_eq!(grade(&number, &answer, None).verdict, expected, "{answer:?}");
        }
        let open = item(Checker::Judged(OpenQuestion {}));
        for content in ["", "Because.", "I'm sorry, but I can't help with that."] {
            assert_eq!(
                grade(&open, &answer(content, AnswerEnd::Stop), None).verdict,
                Verdict::Open
            );
        }
        let call = CalledTool { name: "f".to_owned(), arguments: "{}".to_owned() };
        let called = Answer { tool_calls: vec![call], ..Answer::default() };
        assert_eq!(grade(&number, &called, None).verdict, Verdict::Wrong);
    }
}
