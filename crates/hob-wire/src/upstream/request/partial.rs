//! An answer that broke off, sent back so that its server continues it: in most dialects as the conversation's last
//! message, in some with a field that asks for it.

use std::borrow::Cow;

use hob_core::ChatRequest;
use hob_core::chat::{Conversation, Message, Role};
use serde_json::{Map, Value, json};

use super::talk::message;
use super::{UnsupportedField, UpstreamDialect};

/// The conversation, with the begun answer as its last message.
pub(in crate::upstream) fn with_partial<'a>(
    messages: &'a [Message],
    request: &ChatRequest,
) -> Cow<'a, [Message]> {
    let Some(partial) = &request.partial else { return Cow::Borrowed(messages) };
    Cow::Owned(messages.iter().cloned().chain([partial_message(partial)]).collect())
}

/// Adds the begun answer to a body. llama-server and most servers behind OpenRouter continue a last message
/// of the assistant. vLLM and SGLang close it unless a field says otherwise, and then reject the field that
/// opens a new one. tabbyAPI takes the beginning of the answer in a field of its own. All other servers
/// start a new turn.
pub(super) fn add_partial(
    partial: &str,
    dialect: UpstreamDialect,
    body: &mut Map<String, Value>,
) -> Result<(), UnsupportedField> {
    let last = match dialect {
        UpstreamDialect::LlamaServer | UpstreamDialect::OpenRouter => {
            Some(partial_message(partial))
        }
        UpstreamDialect::Vllm => {
            body.insert("continue_final_message".to_owned(), json!(true));
            body.insert("add_generation_prompt".to_owned(), json!(false));
            Some(partial_message(partial))
        }
        UpstreamDialect::Tabby => {
            body.insert("response_prefix".to_owned(), json!(partial));
            None
        }
        UpstreamDialect::OpenAi | UpstreamDialect::Hob => {
            return Err(UnsupportedField { field: "messages" });
        }
    };
    if let (Some(last), Some(Value::Array(messages))) = (last, body.get_mut("messages")) {
        messages.push(message(&last));
    }
    Ok(())
}

/// Takes a last message of the assistant's out of the body and returns its text, for the servers that continue it only
/// when they are asked to ([`add_partial`]). Others continue it by themselves, or never do. A message that is the only one
/// stays, because no conversation may be empty.
pub(super) fn take_last_answer<'a>(
    conversation: &'a Conversation,
    dialect: UpstreamDialect,
    body: &mut Map<String, Value>,
) -> Option<&'a str> {
    let [_, .., last] = conversation.messages.as_slice() else { return None };
    let is_begun =
        last.role == Role::Assistant && last.tool_calls.is_empty() && !last.text.is_empty();
    if !is_begun || !matches!(dialect, UpstreamDialect::Vllm | UpstreamDialect::Tabby) {
        return None;
    }
    body.get_mut("messages")?.as_array_mut()?.pop()?;
    Some(&last.text)
}

fn partial_message(partial: &str) -> Message {
    Message::new(Role::Assistant, partial)
}
