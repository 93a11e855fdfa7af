//! An answer that broke off, handed back so that its server goes on with it: as the conversation's last
//! message, in most dialects, and in some with a word that says so.

use std::borrow::Cow;

use hob_core::ChatRequest;
use hob_core::chat::{Conversation, Message, Role};
use serde_json::{Map, Value, json};

use super::talk::message;
use super::{UnsupportedField, UpstreamDialect};

/// The conversation, and what was said of its answer as its last message.
pub(in crate::upstream) fn with_partial<'a>(
    messages: &'a [Message],
    request: &ChatRequest,
) -> Cow<'a, [Message]> {
    let Some(partial) = &request.partial else { return Cow::Borrowed(messages) };
    Cow::Owned(messages.iter().cloned().chain([partial_message(partial)]).collect())
}

/// llama-server and most servers behind OpenRouter continue a last message of the assistant. vLLM and SGLang
/// close it unless a field says otherwise, and then reject the field that opens a new one. tabbyAPI takes the
/// beginning of the answer in a field of its own. All other servers start a new turn.
pub(super) fn go_on(
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

/// The text of a last message of the assistant's, taken out of the body, for the servers that continue it only
/// when they are asked to ([`go_on`]). Others continue it by themselves, or never do.
pub(super) fn to_continue<'a>(
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
