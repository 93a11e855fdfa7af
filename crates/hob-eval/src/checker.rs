//! The checkers by kind. A checker is a program, never a model; the kind `judged` marks items that no program checks.
//! Users can write checkers in their files of items, so each one is a serde type.

use serde::{Deserialize, Serialize};

use crate::checkers::{
    AbsentExpected, CHOICE_OPTIONS_MAX, ChoiceExpected, CodeTests, Exact, GRID_SIDE_MAX,
    GRID_SYNONYMS_MAX, GridSolution, JsonFields, NeedleExpected, Number, Pattern, PatternError,
    Phrases, TextRule, ToolCallExpected,
};
use crate::judge::OpenQuestion;

/// Version of the checkers, and of how an answer is read. The first change after a release that can change a grade adds 1.
pub const GRADING_VERSION: u32 = 6;

/// How an answer is checked.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(tag = "kind", rename_all = "snake_case")]
pub enum Checker {
    Exact(Exact),
    Number(Number),
    Pattern(Pattern),
    Choice(ChoiceExpected),
    Json(JsonFields),
    Phrases(Phrases),
    Constraints {
        rules: Vec<TextRule>,
    },
    Grid(GridSolution),
    ToolCall(ToolCallExpected),
    Needle(NeedleExpected),
    Absent(AbsentExpected),
    Code(CodeTests),
    /// No program checks the answer: a judge model compares it with another one.
    Judged(OpenQuestion),
}

/// Why a checker could grade no answer, or would grade all alike.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum CheckerError {
    #[error(transparent)]
    Pattern(#[from] PatternError),
    #[error(
        "a choice of {options} options cannot expect number {expected} (expected 2 to {CHOICE_OPTIONS_MAX} options, and one of them, from 0)"
    )]
    Choice { options: usize, expected: usize },
    #[error(
        "the solution is not a grid (expected up to {GRID_SIDE_MAX} houses with a value for each of up to {GRID_SIDE_MAX} attributes, and {GRID_SYNONYMS_MAX} synonyms)"
    )]
    Grid,
    #[error("the checker '{kind}' has nothing to check: '{field}' is empty")]
    Empty { kind: &'static str, field: &'static str },
}

impl Checker {
    /// The name of the checker, as in a user's file of items.
    pub fn kind(&self) -> &'static str {
        match self {
            Checker::Exact(_) => "exact",
            Checker::Number(_) => "number",
            Checker::Pattern(_) => "pattern",
            Checker::Choice(_) => "choice",
            Checker::Json(_) => "json",
            Checker::Phrases(_) => "phrases",
            Checker::Constraints { .. } => "constraints",
            Checker::Grid(_) => "grid",
            Checker::ToolCall(_) => "tool_call",
            Checker::Needle(_) => "needle",
            Checker::Absent(_) => "absent",
            Checker::Code(_) => "code",
            Checker::Judged(_) => "judged",
        }
    }

    /// Whether the answer is code that has to be run.
    pub fn runs_code(&self) -> bool {
        matches!(self, Checker::Code(_))
    }

    /// Whether no program checks the answer.
    pub fn is_open(&self) -> bool {
        matches!(self, Checker::Judged(_))
    }

    /// Checks that the checker can grade.
    ///
    /// # Errors
    /// A pattern is wrong or too large, the expected option or grid is not one, or nothing is expected.
    pub fn validate(&self) -> Result<(), CheckerError> {
        let empty = |field| Err(CheckerError::Empty { kind: self.kind(), field });
        match self {
            Checker::Exact(Exact { expected }) if expected.is_empty() => empty("expected"),
            Checker::Code(CodeTests { tests, .. }) if tests.is_empty() => empty("tests"),
            Checker::Constraints { rules } if rules.is_empty() => empty("rules"),
            Checker::Phrases(phrases) if phrases.is_empty() => empty("required"),
            Checker::Pattern(pattern) => pattern.validate().map_err(CheckerError::from),
            Checker::Phrases(phrases) => phrases.validate().map_err(CheckerError::from),
            Checker::Choice(ChoiceExpected { options, expected, .. })
                if !(2..=CHOICE_OPTIONS_MAX).contains(&options.len())
                    || *expected >= options.len() =>
            {
                Err(CheckerError::Choice { options: options.len(), expected: *expected })
            }
            Checker::Grid(solution) if !solution.is_gradable() => Err(CheckerError::Grid),
            _ => Ok(()),
        }
    }

    /// Whether words that look like a refusal can be the right answer.
    pub(crate) fn takes_refusals(&self) -> bool {
        matches!(self, Checker::Absent(_) | Checker::Phrases(_) | Checker::Pattern(_))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_checker_is_one_line_of_json() {
        let rows = [
            r#"{"kind":"exact","expected":["Lisbon"]}"#,
            r#"{"kind":"number","expected":42.0,"tolerance_absolute":0.0,"tolerance_relative":0.01}"#,
            r#"{"kind":"constraints","rules":[{"rule":"words","count":{"at_most":20}},{"rule":"no_commas"}]}"#,
            r#"{"kind":"phrases","required":["a"],"forbidden":["b"]}"#,
            r#"{"kind":"judged"}"#,
        ];
        for line in rows {
            let checker: Checker = serde_json::from_str(line).expect(line);
            assert_eq!(serde_json::to_string(&checker).expect("JSON"), line);
            assert!(line.starts_with(&format!(r#"{{"kind":"{}""#, checker.kind())), "{line}");
        }
        for line in [r#"{"kind":"exact","expected":[],"x":1}"#, r#"{"kind":"judged","x":1}"#] {
            assert!(serde_json::from_str::<Checker>(line).is_err(), "{line}");
        }
    }
}
