//! One of several options: by its letter, or by its own words.
//! The last letter that is stated wins.

use std::sync::LazyLock;

use regex::Regex;
use serde::{Deserialize, Serialize};

use crate::Grade;
use crate::reading::{folded, statements, visible_text};

/// More options have no letters.
pub(crate) const OPTIONS_MAX: usize = 26;

/// `(B)`, `B.`, `B)`, `option B`, `B:`, or a lone letter.
static LETTER: LazyLock<Option<Regex>> = LazyLock::new(|| {
    Regex::new(r"(?:\(([A-Z])\)|\b(?i:option|choice|answer)\s+\(?([A-Z])\b|(?:^|[\s:])([A-Z])(?:[.):,]|\s*$))").ok()
});

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ChoiceExpected {
    pub options: Vec<String>,
    /// From 0.
    pub expected: usize,
}

impl ChoiceExpected {
    /// The question with its options, each with a letter.
    pub fn prompt(&self, question: &str) -> String {
        let option = |(at, text): (usize, &String)| format!("{}. {text}", letter(at));
        let options: Vec<String> = self.options.iter().enumerate().map(option).collect();
        format!("{question}\n\n{}\n\nEnd with one line: Answer: LETTER", options.join("\n"))
    }

    pub(crate) fn grade(&self, content: &str) -> Grade {
        let Some(said) = self.read(content) else {
            return Grade::malformed("no option can be read");
        };
        let why = format!("{} was expected, {} was read", letter(self.expected), letter(said));
        if said == self.expected { Grade::correct(why) } else { Grade::wrong(why) }
    }

    fn read(&self, content: &str) -> Option<usize> {
        let by_letter = |line: &String| {
            let found = LETTER.as_ref()?.captures_iter(line).last()?;
            let letter = found.iter().skip(1).flatten().next()?.as_str().bytes().next()?;
            Some(usize::from(letter - b'A')).filter(|at| *at < self.options.len())
        };
        let statements = statements(content);
        statements.iter().find_map(by_letter).or_else(|| {
            // By its words: the only option that the answer has, or that stands in its statement.
            let text = folded(&visible_text(content));
            let lines = statements.iter().map(|line| folded(line)).chain([text]);
            lines.into_iter().find_map(|line| {
                let has = |option: &String| {
                    let option = folded(option);
                    !option.is_empty() && line.contains(&option)
                };
                let mut said = (0..self.options.len()).filter(|at| has(&self.options[*at]));
                let first = said.next()?;
                said.next().is_none().then_some(first)
            })
        })
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
            ("Answer: C", Verdict::Wrong),
            ("iron", Verdict::Wrong),
            ("iron or neon", Verdict::Malformed),
            ("I do not know", Verdict::Malformed),
            ("Answer: D", Verdict::Malformed),
        ];
        for (text, expected) in rows {
            assert_eq!(choice.grade(text).verdict, expected, "{text}");
        }
        assert!(choice.prompt("Which?").contains("B. neon\n"));
    }
}
