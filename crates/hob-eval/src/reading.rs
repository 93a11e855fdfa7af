//! Reads an answer the way a person does: markup is stripped, and the last statement of an answer wins.
//! Each reader takes time linear in the answer's length. What is not read is pinned in `reading/tests.rs`.

mod choices;
mod json;
mod markup;
pub(crate) mod mention;
mod numbers;
mod refusal;
mod statements;
#[cfg(test)]
mod tests;
mod thought;
mod units;

pub(crate) use choices::{choice, yes_no};
pub(crate) use json::{json_spans, json_values};
pub(crate) use numbers::{StatedNumber, last_number, only_number};
pub(crate) use refusal::declines;
pub(crate) use statements::{AnswerText, folded};
pub(crate) use thought::without_thoughts;
pub use thought::{leaked_thought, shows_a_thought};
pub(crate) use units::{stated_unit, unit_named};

/// Bytes of an answer that are read. The start of a longer answer is skipped: the last statement wins.
const READ_BYTES_MAX: usize = 2 << 20;

/// The last 2 MiB of a text, cut between characters.
pub(crate) fn tail(text: &str) -> &str {
    &text[text.ceil_char_boundary(text.len().saturating_sub(READ_BYTES_MAX))..]
}

/// An answer without thoughts and markup.
pub(crate) fn answer_text(content: &str) -> AnswerText {
    AnswerText::new(&without_thoughts(tail(content)))
}
