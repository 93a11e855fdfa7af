//! A conversation as it grows: what it is sent as, what it is saved as.
//! A question without an answer is taken back: no model's template takes two in a row.

use std::fmt::Write as _;

use hob_core::ChatRequest;
use hob_core::chat::{Conversation, Message, Prompt, Role};
use serde_json::json;

/// The messages, the system's apart because it can be changed on the way.
#[derive(Clone, Default)]
pub(crate) struct Talk {
    pub(crate) system: Option<String>,
    messages: Vec<Message>,
}

impl Talk {
    pub(crate) fn new(system: Option<String>) -> Talk {
        Talk { system, messages: Vec::new() }
    }

    pub(crate) fn ask(&mut self, text: impl Into<String>) {
        self.messages.push(Message::new(Role::User, text));
    }

    /// An answer without a text leaves the question unanswered.
    pub(crate) fn answered(&mut self, text: &str) {
        if text.is_empty() {
            self.take_back();
        } else {
            self.messages.push(Message::new(Role::Assistant, text));
        }
    }

    /// Forgets the last question and whatever was answered to it; the question, if there was one.
    pub(crate) fn take_back(&mut self) -> Option<String> {
        let last = self.messages.iter().rposition(|message| message.role == Role::User)?;
        self.messages.drain(last..).next().map(|message| message.text)
    }

    /// Forgets what was said, but not the system's message.
    pub(crate) fn forget(&mut self) {
        self.messages.clear();
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.messages.is_empty()
    }

    /// The whole conversation, asked as `wish` says.
    pub(crate) fn request(&self, wish: &ChatRequest) -> ChatRequest {
        let messages = self.all().collect();
        let conversation = Conversation { messages, ..Conversation::default() };
        ChatRequest { prompt: Prompt::Chat(conversation), ..wish.clone() }
    }

    /// For reading.
    pub(crate) fn markdown(&self) -> String {
        let mut page = String::new();
        for message in self.all() {
            // Writing to a String cannot fail.
            let _infallible =
                write!(page, "## {}\n\n{}\n\n", message.role.name(), message.text.trim());
        }
        page
    }

    /// For programs: the messages of a request.
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

    fn talk() -> Talk {
        let mut talk = Talk::new(Some("be brief".to_owned()));
        talk.ask("one?");
        talk.answered("1");
        talk.ask("two?");
        talk
    }

    fn said(talk: &Talk) -> Vec<String> {
        talk.all().map(|message| format!("{}: {}", message.role.name(), message.text)).collect()
    }

    #[test]
    fn questions_and_answers_take_turns() {
        let mut talk = talk();
        talk.answered("2");
        let all = ["system: be brief", "user: one?", "assistant: 1", "user: two?", "assistant: 2"];
        assert_eq!(said(&talk), all);
        assert_eq!(talk.take_back().as_deref(), Some("two?"));
        assert_eq!(said(&talk), all[..3]);
        talk.ask("three?");
        talk.answered("");
        assert_eq!(said(&talk), all[..3], "a question without an answer is taken back");
        talk.forget();
        assert_eq!((said(&talk), talk.is_empty()), (vec![all[0].to_owned()], true));
        assert_eq!(talk.take_back(), None);
    }

    #[test]
    fn a_request_holds_it_all_and_the_wish() {
        let wish = ChatRequest { tokens_max: Some(3), ..ChatRequest::default() };
        let request = talk().request(&wish);
        assert_eq!(request.tokens_max, Some(3));
        let Prompt::Chat(conversation) = request.prompt else { panic!("no conversation") };
        assert_eq!(conversation.messages, talk().all().collect::<Vec<_>>());
    }

    #[test]
    fn it_is_saved_for_people_and_for_programs() {
        let page =
            "## system\n\nbe brief\n\n## user\n\none?\n\n## assistant\n\n1\n\n## user\n\ntwo?\n\n";
        assert_eq!(talk().markdown(), page);
        let json: serde_json::Value = serde_json::from_str(&talk().json()).expect("JSON");
        assert_eq!(json["messages"][3], json!({ "role": "user", "content": "two?" }));
    }
}
