//! A conversation whose last message is the assistant's: the model continues that message, as llama-server,
//! vLLM and Ollama have it, instead of starting another one.

use hob_core::chat::{Conversation, Message, Role};

use crate::chat::dialect::{HARMONY, ModelDialect};

/// The text to continue. None for a message that calls tools, which waits for their results, and for a
/// message without another before it, which templates do not render as an empty conversation.
pub(super) fn text(conversation: &Conversation) -> Option<&str> {
    let [_, .., last] = conversation.messages.as_slice() else { return None };
    let Message { role, text, tool_calls, .. } = last;
    (*role == Role::Assistant && tool_calls.is_empty()).then_some(text)
}

/// What opens the answer where `prompt` leaves the channel to the model.
pub(super) fn opening(dialect: &ModelDialect, prompt: &str) -> &'static str {
    let names_no_channel = dialect.tools == HARMONY && prompt.ends_with("<|start|>assistant");
    if names_no_channel { "<|channel|>final<|message|>" } else { "" }
}
