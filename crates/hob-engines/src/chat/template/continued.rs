//! A conversation whose last message is the assistant's: the model continues that message, as llama-server,
//! vLLM and Ollama have it, instead of starting another one.

use hob_core::chat::{Conversation, Message, Role};

use crate::chat::dialect::{HARMONY, ModelDialect};

/// The text to continue. `None` for a message that calls tools, because it waits for their results. Also `None` for the only
/// message, because many templates cannot render the empty conversation before it.
pub(super) fn text(conversation: &Conversation) -> Option<&str> {
    let [_, .., last] = conversation.messages.as_slice() else { return None };
    let Message { role, text, tool_calls, .. } = last;
    (*role == Role::Assistant && tool_calls.is_empty()).then_some(text)
}

/// The text that begins an answer, if `prompt` ends before the name of its channel.
pub(super) fn opening(dialect: &ModelDialect, prompt: &str) -> &'static str {
    let names_no_channel = dialect.tools == HARMONY && prompt.ends_with("<|start|>assistant");
    if names_no_channel { "<|channel|>final<|message|>" } else { "" }
}
