//! One question, and how its answer is checked.
//! An item is made from a seed by a family, or read from a file of the user's.

use serde_json::Value;

use crate::Checker;

/// One question with its checker.
#[derive(Clone, Debug, PartialEq)]
pub struct Item {
    /// Unique within a run, the same in every run: `logic-grid/3x3/7`.
    pub id: String,
    /// `logic-grid`, or the stem of the user's file.
    pub family: String,
    /// The size within the family: `3x3`, `8000@50%`.
    pub size: String,
    pub system: Option<String>,
    pub prompt: String,
    /// Function definitions as `tools` of `/v1/chat/completions` takes them. Empty: no tools.
    pub tools: Vec<Value>,
    /// A JSON schema for the answer, for runs that enforce schemas.
    pub schema: Option<Value>,
    pub checker: Checker,
    /// Tokens of visible answer that are enough for this item. A budget for thinking comes on top.
    pub max_tokens: u32,
}

impl Item {
    /// An item of a family, without a system prompt, tools and a schema.
    pub(crate) fn new(
        (family, size, index): (&str, &str, u32),
        prompt: String,
        checker: Checker,
        max_tokens: u32,
    ) -> Item {
        Item {
            id: format!("{family}/{size}/{index}"),
            family: family.to_owned(),
            size: size.to_owned(),
            system: None,
            prompt,
            tools: Vec::new(),
            schema: None,
            checker,
            max_tokens,
        }
    }
}
