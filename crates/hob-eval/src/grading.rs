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
    use super::*;
    use crate::CalledTool;
    use crate::checkers::Number;
    use crate::judge::OpenQuestion;

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
