//! What a request wants of its answer: a format, and which tools it may call.
//! `source.rs` reads its schemas, and `grammar.rs` writes its grammar.

use hob_core::chat::{OutputFormat, Tool, ToolChoice};

use crate::chat::dialect::ToolDialect;

/// The format that a request asks for.
#[derive(Clone, Copy, Debug)]
pub struct AnswerRules<'a> {
    pub output: &'a OutputFormat,
    /// Rejects a schema of `output` that cannot be enforced completely.
    pub strict: bool,
    /// `None` if the answer may not call a tool.
    pub tools: Option<ToolRules<'a>>,
}

impl AnswerRules<'_> {
    /// The field of the request that the grammar comes from.
    pub fn field(&self) -> &'static str {
        match (self.output, &self.tools) {
            (OutputFormat::Text, Some(_)) => "tools",
            (output, _) => output.field(),
        }
    }

    /// Whether each schema must be enforced completely: that of the output, then those of the tools.
    pub(super) fn strictness(&self) -> Vec<bool> {
        let tools = self.tools.iter().flat_map(|rules| rules.tools);
        std::iter::once(self.strict).chain(tools.map(|tool| tool.strict)).collect()
    }
}

/// The tool calls that an answer may contain.
#[derive(Clone, Copy, Debug)]
pub struct ToolRules<'a> {
    pub tools: &'a [Tool],
    pub choice: &'a ToolChoice,
    pub calls: CallCount,
    pub dialect: &'a ToolDialect,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum CallCount {
    One,
    Several,
}
