//! One line of Ollama's answer, or the whole of it, as it stands on the wire.
//! The reader for clients and the reader for measurements use the same fields.

use serde::Deserialize;
use serde_json::Value;

use crate::upstream::chunk::WireCall;
use crate::upstream::lenient::{Amount, Count, Flag, Maybe, Objects, Text};

#[derive(Debug, Default, Deserialize)]
#[serde(default)]
pub(in crate::upstream) struct Line<'a> {
    #[serde(borrow)]
    pub(in crate::upstream) message: Maybe<WireMessage<'a>>,
    /// This field and the next two are of `/api/generate`.
    #[serde(borrow)]
    pub(in crate::upstream) response: Text<'a>,
    #[serde(borrow)]
    pub(in crate::upstream) thinking: Text<'a>,
    #[serde(borrow)]
    pub(in crate::upstream) tool_calls: Objects<WireCall<'a>>,
    pub(in crate::upstream) logprobs: Option<Value>,
    pub(in crate::upstream) error: Option<Value>,
    /// The HTTP status of an error. Only some versions send it.
    pub(in crate::upstream) status: Count,
    pub(in crate::upstream) done: Flag,
    #[serde(borrow)]
    pub(in crate::upstream) done_reason: Text<'a>,
    // The last line has counts of tokens, and times in nanoseconds.
    pub(in crate::upstream) load_duration: Amount,
    pub(in crate::upstream) prompt_eval_count: Count,
    pub(in crate::upstream) prompt_eval_cached_count: Count,
    pub(in crate::upstream) prompt_eval_duration: Amount,
    pub(in crate::upstream) eval_count: Count,
    pub(in crate::upstream) eval_duration: Amount,
}

#[derive(Debug, Default, Deserialize)]
#[serde(default)]
pub(in crate::upstream) struct WireMessage<'a> {
    #[serde(borrow)]
    pub(in crate::upstream) content: Text<'a>,
    #[serde(borrow)]
    pub(in crate::upstream) thinking: Text<'a>,
    #[serde(borrow)]
    pub(in crate::upstream) tool_calls: Objects<WireCall<'a>>,
}
