//! What OpenAI's answers have in common, whichever of its routes they leave by.
//! The server writes either kind without knowing which it has.

use std::fmt;

use hob_core::ChatEvent;

use crate::chat::AnswerHead;

/// An answer that is collected before it is sent.
pub trait CollectedAnswer {
    /// Events of a choice that nobody asked for are nobody's.
    fn add(&mut self, choice: u32, event: ChatEvent);

    /// How long the request waited for its turn, once the answer is complete.
    fn queue_ms(&self) -> f64;

    fn to_json(&self) -> String;
}

/// An answer that is sent as server-sent events.
pub trait AnswerChunks {
    /// The chunks that say this event; none for what says nothing, or nothing yet.
    fn event(&mut self, choice: u32, event: ChatEvent) -> String;

    /// After the last event of an answer that is complete.
    fn end(&mut self) -> String;
}

/// Says how much there is of an answer, never what: answers do not belong in logs.
pub(crate) fn debug_size(
    f: &mut fmt::Formatter<'_>,
    name: &str,
    head: &AnswerHead,
    choices: usize,
) -> fmt::Result {
    f.debug_struct(name).field("head", head).field("choices", &choices).finish_non_exhaustive()
}
