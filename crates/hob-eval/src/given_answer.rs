//! What a model answered to one item, as far as grading needs it.
//! hob grades the visible content and the tool calls. A thought is not an answer.

use std::fmt;

/// The answer to one item.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Answer {
    /// The visible text, without the thought.
    pub content: String,
    pub tool_calls: Vec<CalledTool>,
    pub end: AnswerEnd,
}

/// A call that the model made.
#[derive(Clone, Debug, PartialEq)]
pub struct CalledTool {
    pub name: String,
    /// The arguments as they arrived. They need not be valid JSON.
    pub arguments: String,
}

impl fmt::Display for CalledTool {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}({})", self.name, self.arguments)
    }
}

/// Why the answer ended.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum AnswerEnd {
    #[default]
    Stop,
    /// The limit on tokens was reached.
    Length,
    ContentFilter,
}
