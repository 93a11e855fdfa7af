//! Messages as Ollama writes them. A call's arguments are an object there, and calls have
//! no ids of their own: hob numbers them, so that templates which want ids have some.

use std::collections::VecDeque;

use hob_core::chat::{Message, Role, ToolCall};
use schemars::JsonSchema;
use serde::Deserialize;

use super::images::images;
use crate::WireError;
use crate::chat::{CALLS_MAX, FunctionCall, MESSAGES_MAX};
use crate::request_value::{Name, each};
use crate::word::Word;

/// A message of Ollama's `/api/chat`.
#[derive(Deserialize, JsonSchema)]
pub(crate) struct OllamaMessage {
    role: Word<Role>,
    content: Option<String>,
    /// What the assistant thought. It counts where tools are offered or were called.
    thinking: Option<String>,
    /// Pictures in base64, at most 256.
    images: Option<Vec<String>>,
    /// Calls that the assistant made, at most 128.
    tool_calls: Option<Vec<OllamaMessageCall>>,
    /// For a message of a tool: the function that it answers.
    tool_name: Option<Name>,
    /// For a message of a tool: the call that it answers.
    tool_call_id: Option<Name>,
}

/// A call in a message of Ollama's.
#[derive(Deserialize, JsonSchema)]
struct OllamaMessageCall {
    id: Option<Name>,
    function: FunctionCall,
}

/// Calls that may still be answered; older ones are given up, so that each answer is found quickly.
const OPEN_MAX: usize = 1024;

/// None: the field is missing, or empty.
pub(super) fn messages(
    sent: Option<Vec<OllamaMessage>>,
) -> Result<Option<Vec<Message>>, WireError> {
    let mut calls = Calls::default();
    let most = ("elements", MESSAGES_MAX);
    let read = |sent| message(sent, &mut calls);
    let messages = each("messages", sent.unwrap_or_default(), most, read)?;
    Ok((!messages.is_empty()).then_some(messages))
}

fn message(sent: OllamaMessage, calls: &mut Calls) -> Result<Message, WireError> {
    let Word(role) = sent.role;
    let mut message = Message::new(role, sent.content.unwrap_or_default());
    message.images = images(sent.images, message.text.len())?;
    match role {
        Role::Assistant => {
            message.reasoning = sent.thinking;
            let sent = sent.tool_calls.unwrap_or_default();
            let most = ("elements", CALLS_MAX);
            message.tool_calls = each("tool_calls", sent, most, |call| calls.call(call))?;
        }
        Role::Tool => {
            message.name = sent.tool_name.map(|name| name.0);
            let id = sent.tool_call_id.map(|id| id.0);
            message.tool_call_id = calls.answered(id, message.name.as_deref());
        }
        Role::System | Role::User => {}
    }
    Ok(message)
}

/// The calls of a conversation so far.
#[derive(Default)]
struct Calls {
    count: usize,
    /// Id and function, in the order of the calls; at most [`OPEN_MAX`].
    unanswered: VecDeque<(String, String)>,
}

impl Calls {
    fn call(&mut self, sent: OllamaMessageCall) -> Result<ToolCall, WireError> {
        let OllamaMessageCall { id, function } = sent;
        let name = function.name.0.clone();
        let id = id.map(|id| id.0).filter(|id| !id.is_empty()).unwrap_or_else(|| self.next_id());
        self.count += 1;
        self.unanswered.push_back((id.clone(), name.clone()));
        if self.unanswered.len() > OPEN_MAX {
            self.unanswered.pop_front();
        }
        Ok(ToolCall { id, name, arguments: function.into_arguments() })
    }

    /// Nine letters and digits, which is what the strictest templates take.
    fn next_id(&self) -> String {
        format!("call{:05}", self.count)
    }

    /// Which call an answer belongs to: the one it names, the oldest open one of that function,
    /// or the oldest.
    fn answered(&mut self, id: Option<String>, function: Option<&str>) -> Option<String> {
        let open = &mut self.unanswered;
        let place = match (&id, function) {
            (Some(id), _) => open.iter().position(|(open, _)| open == id),
            (None, Some(function)) => open.iter().position(|(_, open)| open == function),
            (None, None) => Some(0),
        };
        let found = place.and_then(|place| open.remove(place));
        id.or(found.map(|(id, _)| id))
    }
}
