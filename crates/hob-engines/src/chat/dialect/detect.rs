//! Detects the dialect from the marks in a template's source.
//! It deliberately ignores the model's name and architecture.

use super::forms::{
    GEMMA_THOUGHT, HARMONY, HARMONY_ANALYSIS, HERMES, LLAMA3, MISTRAL_ARRAY, MISTRAL_NAMED,
    MISTRAL_THINK, SEED_THINK, THINK,
};
use super::{DescribedBy, ModelDialect, ThinkingMarks, ToolDialect};

/// Marks in a source, and the thinking that they show. The first match counts, so longer marks come before marks that they
/// contain.
const THINKING: [(&str, ThinkingMarks); 6] = [
    ("<|channel|>analysis", HARMONY_ANALYSIS),
    ("<|channel>", GEMMA_THOUGHT),
    ("[THINK]", MISTRAL_THINK),
    ("<seed:think>", SEED_THINK),
    ("<think>", THINK),
    ("</think>", THINK),
];

/// Marks of other forms that also use `<tool_call>`: arguments in XML, or a list of calls in one mark.
const NOT_HERMES: [&str; 4] = ["<function=", "<arg_key>", "<invoke", "<tool_calls>"];

pub(super) fn dialect(source: &str) -> ModelDialect {
    let thinking = THINKING.iter().find(|(mark, _)| source.contains(mark)).map(|(_, marks)| *marks);
    let (tools, described_by) = match native_tools(source) {
        Some(tools) => (tools, DescribedBy::Template),
        None => (HERMES, DescribedBy::SystemMessage),
    };
    ModelDialect { thinking, tools, described_by }
}

fn native_tools(source: &str) -> Option<ToolDialect> {
    let has = |mark: &str| source.contains(mark);
    if !has_identifier(source, "tools") {
        None
    } else if has("[TOOL_CALLS]") {
        Some(if has("[ARGS]") { MISTRAL_NAMED } else { MISTRAL_ARRAY })
    } else if has("<|channel|>commentary") && has("functions.") {
        Some(HARMONY)
    } else if has("<tool_call>") && has("arguments") && !NOT_HERMES.iter().any(|mark| has(mark)) {
        Some(HERMES)
    } else if has(r#""parameters": "#) && (has("<|start_header_id|>") || has("<|python_tag|>")) {
        Some(LLAMA3)
    } else {
        None
    }
}

/// `name` as a whole identifier: `xml_tools` is not `tools`.
fn has_identifier(source: &str, name: &str) -> bool {
    let continues = |c: char| c.is_alphanumeric() || c == '_';
    source.match_indices(name).any(|(at, _)| {
        let before = source[..at].chars().next_back();
        let after = source[at + name.len()..].chars().next();
        !before.is_some_and(continues) && !after.is_some_and(continues)
    })
}
