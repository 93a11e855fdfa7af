//! Checkers of words: a pattern, and phrases that must or must not occur.
//! Patterns are compiled within a size limit, and match in time that grows with the text.

use regex::{Regex, RegexBuilder};
use serde::{Deserialize, Serialize};

use crate::Grade;
use crate::reading::answer_text;

/// Bytes of a compiled pattern.
const PATTERN_BYTES_MAX: usize = 1 << 20;

/// A regular expression that must match the visible answer.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Pattern {
    pub regex: String,
    #[serde(default)]
    pub ignore_case: bool,
}

#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("'{regex}' is not a regular expression that hob takes: {reason}")]
pub struct PatternError {
    regex: String,
    reason: String,
}

fn compiled(regex: &str, ignore_case: bool) -> Result<Regex, PatternError> {
    let built = RegexBuilder::new(regex)
        .size_limit(PATTERN_BYTES_MAX)
        .case_insensitive(ignore_case)
        .multi_line(true)
        .build();
    built.map_err(|error| PatternError { regex: regex.to_owned(), reason: error.to_string() })
}

impl Pattern {
    /// # Errors
    /// The expression is wrong or too large.
    pub fn validate(&self) -> Result<(), PatternError> {
        compiled(&self.regex, self.ignore_case).map(drop)
    }

    pub(crate) fn grade(&self, content: &str) -> Grade {
        match compiled(&self.regex, self.ignore_case) {
            Err(error) => Grade::malformed(error.to_string()),
            Ok(regex) if regex.is_match(answer_text(content).text()) => {
                Grade::correct(format!("it matches '{}'", self.regex))
            }
            Ok(_) => Grade::wrong(format!("it does not match '{}'", self.regex)),
        }
    }
}

/// Things that an answer should say, and traps that it must not fall into; each is a regular expression without case.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct Phrases {
    pub required: Vec<String>,
    pub forbidden: Vec<String>,
}

impl Phrases {
    /// # Errors
    /// An expression is wrong or too large.
    pub fn validate(&self) -> Result<(), PatternError> {
        self.required
            .iter()
            .chain(&self.forbidden)
            .try_for_each(|one| compiled(one, true).map(drop))
    }

    pub(crate) fn grade(&self, content: &str) -> Grade {
        let answer = answer_text(content);
        let text = answer.text();
        let says =
            |phrase: &&String| compiled(phrase, true).is_ok_and(|regex| regex.is_match(text));
        let missing: Vec<&String> = self.required.iter().filter(|phrase| !says(phrase)).collect();
        let share = match self.required.len() {
            0 => 1.0,
            all => (all - missing.len()) as f64 / all as f64,
        };
        if let Some(trap) = self.forbidden.iter().find(says) {
            return Grade::wrong(format!("it says '{trap}', which is a mistake"));
        }
        match missing.first() {
            None => Grade::correct("it says all that is required, and no mistake"),
            Some(first) => Grade::partial(share, format!("it does not say '{first}'")),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Verdict;

    #[test]
    fn patterns_are_checked_before_they_are_used() {
        let pattern = |regex: &str| Pattern { regex: regex.to_owned(), ignore_case: true };
        assert_eq!(pattern("^total: \\d+$").grade("Sum\nTOTAL: 12\n").verdict, Verdict::Correct);
        assert_eq!(pattern("^total$").grade("subtotal").verdict, Verdict::Wrong);
        for wrong in ["(", "a{1000}{1000}{1000}", "(?=x)"] {
            assert!(pattern(wrong).validate().is_err(), "{wrong}");
            assert_eq!(pattern(wrong).grade("x").verdict, Verdict::Malformed);
        }
    }

    #[test]
    fn a_trap_is_wrong_whatever_else_is_said() {
        let phrases = Phrases {
            required: vec!["state space".to_owned(), "Vulkan".to_owned()],
            forbidden: vec!["switched sparse memory".to_owned()],
        };
        let rows = [
            ("SSM is a state space model; use Vulkan.", Verdict::Correct, 1.0),
            ("Use vulkan.", Verdict::Wrong, 0.5),
            ("SSM means Switched Sparse Memory, a state space model. Vulkan.", Verdict::Wrong, 0.0),
        ];
        for (text, verdict, score) in rows {
            let grade = phrases.grade(text);
            assert_eq!((grade.verdict, grade.score), (verdict, score), "{text}");
        }
    }
}
