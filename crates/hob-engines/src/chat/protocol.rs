//! The messages of a chat worker, beyond those that every worker understands.
//! A request is one message, with its conversation and its pictures.

use std::time::Duration;

use hob_core::ModelError;
use hob_core::chat::{ChatEvent, ChatRequest, Conversation, EmbedRequest, Prompt};
use serde::{Deserialize, Serialize};

use crate::worker::protocol::AnyOrder;

/// To a chat worker, on a new stream.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub enum ChatOrder {
    Chat {
        request: Box<ChatRequest>,
        /// Events that may be sent before more credit is granted.
        credit: u32,
    },
    Embed(EmbedRequest),
}

/// Any order to a chat worker.
pub type AnyChatOrder = AnyOrder<ChatOrder>;

/// From a chat worker, about one stream.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub enum ChatReport {
    /// The prompt fits. `ignored` names keywords of the request's schemas that the answer may violate.
    Accepted {
        ignored: Vec<String>,
    },
    /// The worker compiles the request's grammar. It compiles one at a time, so a worker that dies now
    /// died of this grammar.
    Compiling,
    Compiled,
    Event(ChatEvent),
    Refused(Refusal),
    /// One vector of the answer to [`ChatOrder::Embed`].
    Embedded(Vector),
}

/// Why a request is not begun.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub enum Refusal {
    TooLong { needed: u32, available: u32 },
    NoTemplate,
    Field { field: String, reason: String },
    Busy { retry_after_ms: u64 },
}

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Vector {
    pub values: Vec<f32>,
    pub tokens: u32,
}

/// The request without its texts and pictures.
pub(super) fn constraints_of(request: &ChatRequest) -> ChatRequest {
    let prompt = match &request.prompt {
        Prompt::Chat(conversation) => Prompt::Chat(Conversation {
            tools: conversation.tools.clone(),
            tool_choice: conversation.tool_choice.clone(),
            parallel_tool_calls: conversation.parallel_tool_calls,
            ..Conversation::default()
        }),
        Prompt::Text(_) | Prompt::Tokens(_) | Prompt::Infill { .. } => Prompt::default(),
    };
    let (output, strict) = (request.output.clone(), request.strict);
    ChatRequest { prompt, output, strict, ..ChatRequest::default() }
}

/// Fields that a refusal may name. [`ModelError`] has its fields as static text, so another name becomes `messages`.
const FIELDS: &str = "
    messages prompt input dimensions tools tool_choice response_format regex grammar max_tokens
    suffix";

impl Refusal {
    /// The error that the client of any chat model gets.
    pub fn into_error(self) -> ModelError {
        match self {
            Refusal::TooLong { needed, available } => ModelError::TooLong { needed, available },
            Refusal::NoTemplate => ModelError::NoTemplate,
            Refusal::Field { field, reason } => {
                let known = FIELDS.split_whitespace().find(|known| *known == field);
                ModelError::InvalidField { field: known.unwrap_or("messages"), reason }
            }
            Refusal::Busy { retry_after_ms } => {
                ModelError::Busy { retry_after: Duration::from_millis(retry_after_ms) }
            }
        }
    }
}

#[cfg(test)]
mod tests;
