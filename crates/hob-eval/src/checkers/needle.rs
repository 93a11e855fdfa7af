//! The value of a fact in a long text, between facts that look alike.
//! The last sentence that names a value counts.

use serde::{Deserialize, Serialize};

use crate::Grade;
use crate::reading::mention::{last_statement, names, plain, says, shortened};
use crate::reading::{tail, without_thoughts};

/// The right value, and the values of the facts that look alike.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct NeedleExpected {
    pub expected: String,
    pub others: Vec<String>,
}

impl NeedleExpected {
    /// The last sentence that names a value must name the right one, and no other.
    pub(crate) fn grade(&self, content: &str) -> Grade {
        let text = plain(&without_thoughts(tail(content)));
        let values: Vec<&str> =
            [&self.expected].into_iter().chain(&self.others).map(String::as_str).collect();
        let Some(statement) = last_statement(&text, &values) else {
            let why =
                format!("'{}' was expected, '{}' was read", self.expected, shortened(content));
            return Grade::wrong(why);
        };
        let is_right = says(statement, &self.expected);
        match self.others.iter().find(|other| names(statement, other) && says(statement, other)) {
            Some(other) => {
                Grade::wrong(format!("'{}' was expected, '{other}' was said", self.expected))
            }
            None if is_right => {
                Grade::correct(format!("'{}' was expected and said", self.expected))
            }
            None => Grade::wrong(format!("'{}' was expected and not said", self.expected)),
        }
    }
}
