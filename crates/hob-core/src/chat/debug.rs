//! How requests look in logs: names, numbers and lengths, never what users wrote.
//! Equality still compares everything, so a failing test says that texts differ and not which.

use std::fmt::{Debug, Formatter, Result};

use super::{ChatRequest, EmbedInput, Image, Message, OutputFormat, Prompt, Tool};

crate::debug_fields!(
    ChatRequest: prompt, sampling, tokens_max, stop.len(), output, thinking, logprobs, keep_alive, reading,
    partial.is_some(), extra
);

impl Debug for Prompt {
    fn fmt(&self, f: &mut Formatter<'_>) -> Result {
        match self {
            Prompt::Chat(conversation) => f.debug_tuple("Chat").field(conversation).finish(),
            Prompt::Text(text) => write!(f, "Text({} bytes)", text.len()),
            Prompt::Tokens(tokens) => write!(f, "Tokens({})", tokens.len()),
            Prompt::Infill { prefix, suffix } => {
                write!(f, "Infill({} and {} bytes)", prefix.len(), suffix.len())
            }
        }
    }
}

crate::debug_fields!(Message: role, text.len(), tool_calls, tool_call_id, images.len());

impl Debug for Image {
    fn fmt(&self, f: &mut Formatter<'_>) -> Result {
        write!(f, "Image({} bytes at {})", self.url.len(), self.at)
    }
}

crate::debug_fields!(Tool: name, description.is_some(), parameters);

impl Debug for OutputFormat {
    fn fmt(&self, f: &mut Formatter<'_>) -> Result {
        match self {
            OutputFormat::Text => f.write_str("Text"),
            OutputFormat::JsonObject => f.write_str("JsonObject"),
            OutputFormat::JsonSchema(schema) => f.debug_tuple("JsonSchema").field(schema).finish(),
            OutputFormat::Regex(pattern) => write!(f, "Regex({} bytes)", pattern.len()),
            OutputFormat::Lark(grammar) => write!(f, "Lark({} bytes)", grammar.len()),
        }
    }
}

impl Debug for EmbedInput {
    fn fmt(&self, f: &mut Formatter<'_>) -> Result {
        match self {
            EmbedInput::Text(text) => write!(f, "Text({} bytes)", text.len()),
            EmbedInput::Tokens(tokens) => write!(f, "Tokens({})", tokens.len()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::JsonText;
    use crate::chat::{Conversation, EmbedRequest, Role, ToolCall};

    const SECRET: &str = "the blue door";

    fn call() -> ToolCall {
        let arguments = JsonText::parsed(format!("{{\"where\":\"{SECRET}\"}}"));
        ToolCall { id: "call_1".to_owned(), name: "knock".to_owned(), arguments }
    }

    #[test]
    fn a_request_can_be_logged_without_its_texts() {
        let message = Message {
            tool_calls: vec![call()],
            name: Some(SECRET.to_owned()),
            ..Message::new(Role::User, SECRET)
        };
        let tool = Tool {
            name: "knock".to_owned(),
            description: Some(SECRET.to_owned()),
            parameters: None,
            strict: false,
        };
        let conversation =
            Conversation { messages: vec![message], tools: vec![tool], ..Conversation::default() };
        let prompts = [
            Prompt::Chat(conversation),
            Prompt::Text(SECRET.to_owned()),
            Prompt::Infill { prefix: SECRET.to_owned(), suffix: SECRET.to_owned() },
        ];
        let outputs = [
            OutputFormat::JsonSchema(JsonText::parsed(format!("\"{SECRET}\""))),
            OutputFormat::Regex(SECRET.to_owned()),
            OutputFormat::Lark(SECRET.to_owned()),
        ];
        for (prompt, output) in prompts.into_iter().zip(outputs) {
            let stop = vec![SECRET.to_owned()];
            let shown =
                format!("{:?}", ChatRequest { prompt, output, stop, ..ChatRequest::default() });
            assert!(!shown.contains("blue") && shown.contains("13"), "{shown}");
        }
        let inputs = vec![EmbedInput::Text(SECRET.to_owned()), EmbedInput::Tokens(vec![7; 3])];
        let shown = format!("{:?}", EmbedRequest { inputs, ..EmbedRequest::default() });
        assert!(shown.contains("[Text(13 bytes), Tokens(3)]"), "{shown}");
    }
}
