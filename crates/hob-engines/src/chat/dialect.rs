//! How a model marks its thinking and its tool calls, read off its template's text.
//! Renders nothing and constrains nothing: it names the forms that template, parser and grammar share.

mod block;
mod call;
mod detect;
mod forms;
mod marks;
mod parser;
#[cfg(test)]
mod tests;

pub use forms::{HARMONY, HERMES, LLAMA3, MISTRAL_ARRAY, MISTRAL_NAMED};
pub use parser::{AnswerParser, AnswerPart};

/// One model's way of writing what is not plain text.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Dialect {
    /// None: the model does not think, or not in marks known here.
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
    /// What closes a block that has used up its budget, and makes the answer begin.
    pub forced_close: &'static str,
    /// What makes a block that was only just opened an empty one, and the answer begin.
    pub empty_rest: &'static str,
    /// Marks that may stand, in this order, before the answer; they are no part of it.
    pub before_answer: &'static [&'static str],
    /// Parts of all these that may be one special token of the vocabulary.
    pub marks: &'static [&'static str],
}

/// Who tells the model about tools.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum DescribedBy {
    /// The template, in the model's own form.
    Template,
    /// A system message of ours, because the template knows no tools or calls them in a form that is not JSON.
    SystemMessage,
}

/// How tool calls are written. A block of calls is exactly
/// `begin CALL (between CALL)* end`, where CALL is
/// `call.before_name() NAME call.before_arguments() {…} call.after_arguments()`
/// and `{…}` is a JSON object. A grammar made of these pieces allows nothing that
/// [`AnswerParser`] does not take; the parser also takes other white space and member orders.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ToolDialect {
    /// What shows, in an answer that is free, that a block has begun.
    pub triggers: &'static [Trigger],
    pub begin: &'static str,
    /// None: one call in an answer is all the form allows.
    pub between: Option<&'static str>,
    pub end: &'static str,
    pub call: CallForm,
    /// Parts of `begin`, `between`, `end` and of the call's pieces that may be one (special) token of the
    /// vocabulary; where they are, the model writes that token and not its letters.
    pub marks: &'static [&'static str],
}

/// Text after which a block of calls goes on, and nothing else.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Trigger {
    pub text: &'static str,
    pub position: TriggerPosition,
    /// The end of `text` with which the block itself begins: all of it, or nothing where `text` only
    /// announces a block. Always a prefix of `begin` and the first call.
    pub opens: &'static str,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TriggerPosition {
    Anywhere,
    /// Only where nothing but white space stands before it in the answer (thinking is not the answer).
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
    pub delivery: Delivery,
}

/// When arguments leave the parser.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Delivery {
    /// As they come. Right only where a grammar holds the model to the form: what was given out
    /// cannot be taken back when the JSON turns out to be broken.
    Streamed,
    /// Once the call is complete and is valid JSON; until then it may still be plain text.
    Whole,
}

impl Dialect {
    /// Reads the dialect off the template's source; every source has one.
    pub fn of(template_source: &str) -> Dialect {
        detect::dialect(template_source)
    }

    /// Parts of its texts that may be one special token each: where they are, the token is to be
    /// turned into its text, or the parser does not see it.
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
