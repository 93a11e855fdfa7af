//! The checkers by kind. A checker is a program, never a model.
//! Checkers can be written in a file of the user's, so each one is a serde type.

use serde::{Deserialize, Serialize};

use crate::checkers::{
    AbsentExpected, ChoiceExpected, CodeTests, Exact, GridSolution, JsonFields, NeedleExpected,
    Number, Pattern, PatternError, Phrases, TextRule, ToolCallExpected,
};
use crate::judge::OpenQuestion;

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

impl Checker {
    /// Whether the answer is code that has to be run.
    pub fn runs_code(&self) -> bool {
        matches!(self, Checker::Code(_))
    }

    /// Whether no program checks the answer.
    pub fn is_open(&self) -> bool {
        matches!(self, Checker::Judged(_))
    }

    /// # Errors
    /// A pattern is wrong or too large.
    pub fn validate(&self) -> Result<(), PatternError> {
        match self {
            Checker::Pattern(pattern) => pattern.validate(),
            Checker::Phrases(phrases) => phrases.validate(),
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
        }
        for line in [r#"{"kind":"exact","expected":[],"x":1}"#, r#"{"kind":"judged","x":1}"#] {
            assert!(serde_json::from_str::<Checker>(line).is_err(), "{line}");
        }
    }
}
