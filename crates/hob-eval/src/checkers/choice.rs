//! One of several options: by its letter, or by its own words.
//! The last letter that is stated wins.

use serde::{Deserialize, Serialize};

use crate::Grade;
use crate::reading::{answer_text, choice};

/// More options have no letters.
pub(crate) const OPTIONS_MAX: usize = 26;

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ChoiceExpected {
    /// Without its options, for scoring by log-probability. Empty: the prompt of the item.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub question: String,
    pub options: Vec<String>,
    /// From 0.
    pub expected: usize,
}

impl ChoiceExpected {
    /// The question with its options, each with a letter.
    pub fn prompt(&self) -> String {
        let option = |(at, text): (usize, &String)| format!("{}. {text}", letter(at));
        let options: Vec<String> = self.options.iter().enumerate().map(option).collect();
        format!("{}\n\n{}\n\nEnd with one line: Answer: LETTER", self.question, options.join("\n"))
    }

    pub(crate) fn grade(&self, content: &str) -> Grade {
        let Some(said) = choice(&answer_text(content), &self.options) else {
            return Grade::malformed("no option can be read");
        };
        let why = format!("{} was expected, {} was read", letter(self.expected), letter(said));
        if said == self.expected { Grade::correct(why) } else { Grade::wrong(why) }
    }
}

fn letter(at: usize) -> char {
    u8::try_from(at)
        .ok()
        .filter(|at| usize::from(*at) < OPTIONS_MAX)
        .map_or('?', |at| char::from(b'A' + at))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Verdict;

    #[test]
    fn letters_and_words_are_read() {
        let choice = ChoiceExpected {
            question: "Which?".to_owned(),
            options: ["iron", "neon", "chlorine"].map(str::to_owned).to_vec(),
            expected: 1,
        };
        let rows = [
            ("B", Verdict::Correct),
            ("**B**", Verdict::Correct),
            ("Answer: B", Verdict::Correct),
            ("The answer is (B).", Verdict::Correct),
            ("B. neon", Verdict::Correct),
            ("A is a metal, so option B.", Verdict::Correct),
            ("It is neon.", Verdict::Correct),
            ("\\boxed{B}", Verdict::Correct),
            ("Answer: A\nNo. Answer: B", Verdict::Correct),
            ("The best choice is B because it is a gas.", Verdict::Correct),
            ("Answer: C", Verdict::Wrong),
            ("iron", Verdict::Wrong),
            ("iron or neon", Verdict::Malformed),
            ("I do not know", Verdict::Malformed),
            ("Answer: D", Verdict::Malformed),
        ];
        for (text, expected) in rows {
            assert_eq!(choice.grade(text).verdict, expected, "{text}");
        }
        assert!(choice.prompt().contains("B. neon\n"));
    }
}
