//! Messages, tools, requests and tokens, as the tests of several routes and servers build them.

use hob_core::chat::{
    Conversation, Image, Message, Prompt, Role, TokenLogprob, TokenText, Tool, ToolCall,
};
use hob_core::{ChatRequest, JsonText};

pub(crate) fn system(text: &str) -> Message {
    Message::new(Role::System, text)
}

pub(crate) fn user(text: &str) -> Message {
    Message::new(Role::User, text)
}

pub(crate) fn assistant(text: &str) -> Message {
    Message::new(Role::Assistant, text)
}

/// The answer to the call with this id.
pub(crate) fn result(call: &str, text: &str) -> Message {
    Message { tool_call_id: Some(call.to_owned()), ..Message::new(Role::Tool, text) }
}

pub(crate) fn tool_call(id: &str, name: &str, arguments: &str) -> ToolCall {
    ToolCall { id: id.to_owned(), name: name.to_owned(), arguments: JsonText::parsed(arguments) }
}

/// A message of the assistant that only calls.
pub(crate) fn calling(tool_calls: Vec<ToolCall>) -> Message {
    Message { tool_calls, ..assistant("") }
}

pub(crate) fn image(at: usize, url: &str) -> Image {
    Image { at, url: url.to_owned(), detail: None }
}

pub(crate) fn tool(name: &str, parameters: Option<&str>) -> Tool {
    let parameters = parameters.map(JsonText::parsed);
    Tool { name: name.to_owned(), description: None, parameters, strict: false }
}

pub(crate) fn chat(messages: Vec<Message>) -> ChatRequest {
    conversing(Conversation { messages, ..Conversation::default() })
}

pub(crate) fn conversing(conversation: Conversation) -> ChatRequest {
    ChatRequest { prompt: Prompt::Chat(conversation), ..ChatRequest::default() }
}

pub(crate) fn logprob(token: impl AsRef<[u8]>, logprob: f32, top: &[(&str, f32)]) -> TokenLogprob {
    let text = |bytes: &[u8]| TokenText(bytes.to_vec());
    let top = top.iter().map(|(token, logprob)| (text(token.as_bytes()), *logprob)).collect();
    TokenLogprob { token: text(token.as_ref()), logprob, top }
}
