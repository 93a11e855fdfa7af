//! What answers of OpenAI's chat and completions routes have in common.
//! The server writes either kind without knowing which it has.

use hob_core::ChatEvent;

/// What every piece of an answer repeats.
#[derive(Clone, PartialEq, Eq)]
pub struct AnswerHead {
    /// Unique among answers; the wire puts its own prefix before it.
    pub id: String,
    pub created_unix_s: u64,
    /// The requested name.
    pub model: String,
    /// The engine, in a version that changes when answers might change.
    pub fingerprint: &'static str,
}

hob_core::debug_fields!(AnswerHead: id, model);

/// An answer that is collected before it is sent.
pub trait CollectedAnswer {
    /// Ignores an event of a choice that was not requested.
    fn add(&mut self, choice: u32, event: ChatEvent);

    /// How long the request waited for its turn, once the answer is complete.
    fn queue_ms(&self) -> f64;

    fn to_json(&self) -> String;
}

/// An answer that is sent as server-sent events.
pub trait AnswerChunks {
    /// The chunks for this event. Some events have none.
    fn event(&mut self, choice: u32, event: ChatEvent) -> String;

    /// After the last event of an answer that is complete.
    fn end(&mut self) -> String;
}
