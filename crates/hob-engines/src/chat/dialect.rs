//! How a model marks thinking and tool calls, detected from the text of its template.
//! Template, parser and grammar share these forms.

mod answer_part;
mod block;
mod call;
mod detect;
mod forms;
mod marks;
mod parser;
#[cfg(test)]
mod tests;

pub use answer_part::AnswerPart;
pub(crate) use forms::TOOL_DIALECTS;
pub use forms::{HARMONY, HERMES, LLAMA3, MISTRAL_ARRAY, MISTRAL_NAMED};
pub(super) use marks::begun_len;
pub use parser::AnswerParser;

/// How one model writes thinking and tool calls.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ModelDialect {
    /// `None` if the model does not think, or uses unknown marks.
    pub thinking: Option<ThinkingMarks>,
    pub tools: ToolDialect,
    /// Whether the template itself describes tools.
    pub described_by: DescribedBy,
}

/// Where a thinking block begins and ends.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ThinkingMarks {
    pub open: &'static str,
    pub close: &'static str,
    /// Text that closes a block at its token limit and begins the answer.
    pub forced_close: &'static str,
    /// Text that closes a block just after its opening mark and begins the answer.
    pub empty_rest: &'static str,
    /// Marks that may precede the answer, in this order. They are not part of it.
    pub before_answer: &'static [&'static str],
    /// Parts of these texts that may be special tokens of the vocabulary.
    pub marks: &'static [&'static str],
}

/// What describes the tools to the model.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum DescribedBy {
    /// The template, in the model's own form.
    Template,
    /// A system message that hob adds, because the template has no tools or calls them in a form that is not JSON.
    SystemMessage,
}

/// How tool calls are written. A block of calls is exactly
/// `begin CALL (between CALL)* end`, where CALL is
/// `call.before_name() NAME call.before_arguments() {…} call.after_arguments()`
/// and `{…}` is a JSON object. [`AnswerParser`] accepts everything that a grammar of these pieces allows, and also other
/// white space and member orders.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ToolDialect {
    /// Texts that begin a block in a free answer.
    pub triggers: &'static [Trigger],
    pub begin: &'static str,
    /// `None` if the form allows only one call in an answer.
    pub between: Option<&'static str>,
    pub end: &'static str,
    pub call: CallForm,
    /// Parts of `begin`, `between`, `end` and of the call that may be special tokens. If they are, the model writes the token
    /// and not its letters.
    pub marks: &'static [&'static str],
}

/// Text that is always followed by the rest of a block of calls.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Trigger {
    pub text: &'static str,
    pub position: TriggerPosition,
    /// The end of `text` that is part of the block: all of it, or nothing if `text` only announces a block. Always a prefix
    /// of `begin` and the first call.
    pub opens: &'static str,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TriggerPosition {
    Anywhere,
    /// Only at the start of the answer, after white space. Thinking is not part of the answer.
    AnswerStart,
}

/// How one call is written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum CallForm {
    /// `{"name": "NAME", "arguments": {…}}`
    Object { arguments_key: &'static str },
    /// `NAME[ARGS]{…}`
    Named { separator: &'static str },
}

/// The functions that may be called.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ToolsOffered {
    pub names: Vec<String>,
    pub delivery: ArgumentDelivery,
}

/// When the parser returns arguments.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ArgumentDelivery {
    /// Arguments are returned as they arrive. Only for answers that a grammar constrains, because returned arguments cannot be
    /// taken back if the JSON turns out to be invalid.
    Streamed,
    /// When the call is complete and valid JSON. Until then it may still be plain text.
    Whole,
}

impl ModelDialect {
    /// Detects the dialect from the template's source. Every source has one.
    pub fn of(template_source: &str) -> ModelDialect {
        detect::dialect(template_source)
    }

    /// Parts of its texts that may be special tokens. Such tokens must be turned into text for the parser.
    pub fn marks(&self) -> impl Iterator<Item = &'static str> {
        let thinking = self.thinking.map_or::<&[&str], _>(&[], |marks| marks.marks);
        thinking.iter().chain(self.tools.marks).copied()
    }
}

impl CallForm {
    pub fn before_name(&self) -> &'static str {
        match self {
            CallForm::Object { .. } => r#"{"name": ""#,
            CallForm::Named { .. } => "",
        }
    }

    pub fn before_arguments(&self) -> String {
        match self {
            CallForm::Object { arguments_key } => format!(r#"", "{arguments_key}": "#),
            CallForm::Named { separator } => (*separator).to_owned(),
        }
    }

    pub fn after_arguments(&self) -> &'static str {
        match self {
            CallForm::Object { .. } => "}",
            CallForm::Named { .. } => "",
        }
    }
}
