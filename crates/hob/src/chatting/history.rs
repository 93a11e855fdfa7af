//! A conversation: how it is sent to a model, and how it is saved.
//! A question without an answer is removed, because templates of some models refuse two questions in a row.

use std::fmt::Write as _;

use hob_core::ChatRequest;
use hob_core::chat::{Conversation, Message, Prompt, Role};
use serde_json::json;

/// The messages. The system message is kept apart, because the user can change it.
#[derive(Clone, Default)]
pub(crate) struct ChatHistory {
    pub(crate) system: Option<String>,
    messages: Vec<Message>,
}

impl ChatHistory {
    pub(crate) fn new(system: Option<String>) -> ChatHistory {
        ChatHistory { system, messages: Vec::new() }
    }

    pub(crate) fn ask(&mut self, text: impl Into<String>) {
        self.messages.push(Message::new(Role::User, text));
    }

    /// Adds an answer. An empty answer removes the question.
    pub(crate) fn answered(&mut self, text: &str) {
        if text.is_empty() {
            self.take_back();
        } else {
            self.messages.push(Message::new(Role::Assistant, text));
        }
    }

    /// Removes the last question and its answer. Returns the question, if there was one.
    pub(crate) fn take_back(&mut self) -> Option<String> {
        let last = self.messages.iter().rposition(|message| message.role == Role::User)?;
        self.messages.drain(last..).next().map(|message| message.text)
    }

    /// Removes all messages except the system message.
    pub(crate) fn forget(&mut self) {
        self.messages.clear();
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.messages.is_empty()
    }

    /// The whole conversation as a request with these options.
    pub(crate) fn request(&self, options: &ChatRequest) -> ChatRequest {
        let messages = self.all().collect();
        let conversation = Conversation { messages, ..Conversation::default() };
        ChatRequest { prompt: Prompt::Chat(conversation), ..options.clone() }
    }

    /// The conversation as a Markdown document.
    pub(crate) fn markdown(&self) -> String {
        let mut page = String::new();
        for message in self.all() {
            // Writing to a String cannot fail.
            let _infallible =
                write!(page, "## {}\n\n{}\n\n", message.role.name(), message.text.trim());
        }
        page
    }

    /// The messages as JSON, in the form of a request.
    pub(crate) fn json(&self) -> String {
        let message =
            |message: Message| json!({ "role": message.role.name(), "content": message.text });
        let messages: Vec<_> = self.all().map(message).collect();
        format!("{:#}\n", json!({ "messages": messages }))
    }

    fn all(&self) -> impl Iterator<Item = Message> {
        let system = self.system.as_ref().map(|text| Message::new(Role::System, text));
        system.into_iter().chain(self.messages.iter().cloned())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn history() -> ChatHistory {
        let mut history = ChatHistory::new(Some("be brief".to_owned()));
        history.ask("one?");
        history.answered("1");
        history.ask("two?");
        history
    }

    fn said(history: &ChatHistory) -> Vec<String> {
        history.all().map(|message| format!("{}: {}", message.role.name(), message.text)).collect()
    }

    #[test]
    fn questions_and_answers_take_turns() {
        let mut history = history();
        history.answered("2");
        let all = ["system: be brief", "user: one?", "assistant: 1", "user: two?", "assistant: 2"];
        assert_eq!(said(&history), all);
        assert_eq!(history.take_back().as_deref(), Some("two?"));
        assert_eq!(said(&history), all[..3]);
        history.ask("three?");
        history.answered("");
        assert_eq!(said(&history), all[..3], "a question without an answer is taken back");
        history.forget();
        assert_eq!((said(&history), history.is_empty()), (vec![all[0].to_owned()], true));
        assert_eq!(history.take_back(), None);
    }

    #[test]
    fn a_request_has_all_messages_and_the_options() {
        let options = ChatRequest { tokens_max: Some(3), ..ChatRequest::default() };
        let request = history().request(&options);
        assert_eq!(request.tokens_max, Some(3));
        let Prompt::Chat(conversation) = request.prompt else { panic!("no conversation") };
        assert_eq!(conversation.messages, history().all().collect::<Vec<_>>());
    }

    #[test]
    fn it_is_saved_for_people_and_for_programs() {
        let page =
            "## system\n\nbe brief\n\n## user\n\none?\n\n## assistant\n\n1\n\n## user\n\ntwo?\n\n";
        assert_eq!(history().markdown(), page);
        let json: serde_json::Value = serde_json::from_str(&history().json()).expect("JSON");
        assert_eq!(json["messages"][3], json!({ "role": "user", "content": "two?" }));
    }
}
