//! Checks a short answer in words against the texts that are right.
//! Case, articles, punctuation at the ends and spaces do not count.

use serde::{Deserialize, Serialize};

use crate::Grade;
use crate::reading::mention::shortened;
use crate::reading::{answer_text, folded, yes_no};

/// Maximum words of a last line that counts as an answer without a marker.
const LOOSE_WORDS_MAX: usize = 30;

/// One of these texts is the answer.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Exact {
    pub expected: Vec<String>,
}

impl Exact {
    pub(crate) fn grade(&self, content: &str) -> Grade {
        let answer = answer_text(content);
        let expected: Vec<String> = self.expected.iter().map(|text| folded(text)).collect();
        let wanted = self.expected.join("' or '");
        let why = |read: &str| format!("expected '{wanted}', read '{}'", shortened(read));
        let right = |read: &str| Grade::correct(why(read));
        let wrong = |read: &str| Grade::wrong(why(read));
        if expected.iter().all(|text| matches!(text.as_str(), "yes" | "no")) {
            return match yes_no(&answer) {
                Some(read) if expected.iter().any(|text| (text == "yes") == read) => {
                    right(if read { "yes" } else { "no" })
                }
                Some(read) => wrong(if read { "yes" } else { "no" }),
                None => Grade::malformed(format!("expected '{wanted}', read neither yes nor no")),
            };
        }
        let is = |read: &str| equal(read, &expected);
        let whole = answer.text();
        if is(whole) {
            return right(whole);
        }
        if let Some(stated) = answer.stated().first() {
            return if is(stated) { right(stated) } else { wrong(stated) };
        }
        let line = answer.last_line();
        if is(line) || expected.iter().any(|text| opens_or_ends(&folded(line), text)) {
            return right(line);
        }
        if line.split_whitespace().nth(LOOSE_WORDS_MAX).is_some() {
            let why = "the text states no answer: its last line is a long sentence";
            return Grade::malformed(format!("expected '{wanted}', and {why}"));
        }
        wrong(line)
    }
}

/// Whether a statement is one of the texts, as a whole or up to a comma, a reason or an addition.
fn equal(statement: &str, expected: &[String]) -> bool {
    let statement = folded(statement);
    let statement = ["it is ", "it's ", "this is ", "that is ", "that's "]
        .iter()
        .find_map(|start| statement.strip_prefix(start))
        .unwrap_or(&statement);
    let ends = [", ", ". ", "; ", " (", " - ", " because ", " since ", " which "];
    let cuts = ends.iter().filter_map(|end| statement.find(end));
    cuts.chain([statement.len()]).any(|end| expected.contains(&folded(&statement[..end])))
}

/// Whether a sentence opens or ends with the text, and has no word that negates it or offers a choice.
fn opens_or_ends(line: &str, text: &str) -> bool {
    let turned = line.split_whitespace().any(|word| {
        matches!(word, "not" | "never" | "or" | "neither" | "nor") || word.ends_with("n't")
    });
    let ends = line.strip_suffix(text).is_some_and(|before| before.ends_with(' '));
    let verbs = [" is ", " was ", " are "];
    let opens = line
        .strip_prefix(text)
        .is_some_and(|after| verbs.iter().any(|verb| after.starts_with(verb)));
    !text.is_empty() && !turned && (ends || opens)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Verdict;

    #[test]
    fn texts_are_compared_as_a_person_would() {
        let rows = [
            ("Lisbon", Verdict::Correct),
            ("The answer is **Lisbon**.", Verdict::Correct),
            ("The answer is Lisbon, the capital of Portugal.", Verdict::Correct),
            ("The capital of Portugal is Lisbon.", Verdict::Correct),
            ("It used to be Coimbra.\nAnswer: lisbon", Verdict::Correct),
            ("\\boxed{\\text{Lisbon}}", Verdict::Correct),
            ("Porto", Verdict::Wrong),
            ("It is not Lisbon.", Verdict::Wrong),
            ("Porto or Lisbon", Verdict::Wrong),
            ("Answer: Lisbon\nNo, wait.\nAnswer: Porto", Verdict::Wrong),
            ("NotLisbon", Verdict::Wrong),
        ];
        for (text, expected) in rows {
            let exact = Exact { expected: vec!["Lisbon".to_owned()] };
            let grade = exact.grade(text);
            assert_eq!(grade.verdict, expected, "{text}: {}", grade.why);
        }
        let sign = Exact { expected: vec!["<".to_owned()] };
        for (text, expected) in [
            ("<", Verdict::Correct),
            ("`<`", Verdict::Correct),
            ("Answer: <", Verdict::Correct),
            ("The right sign is \"<\".\nAnswer: \"<\".", Verdict::Correct),
            ("=", Verdict::Wrong),
            ("Answer: >", Verdict::Wrong),
        ] {
            assert_eq!(sign.grade(text).verdict, expected, "{text}");
        }
        let yes = Exact { expected: vec!["yes".to_owned()] };
        assert_eq!(yes.grade("Yes, it does.").verdict, Verdict::Correct);
        assert_eq!(yes.grade("No.").verdict, Verdict::Wrong);
    }
}
