//! The conversation of an agent, to which messages are only added.
//! The state is stored at each step, so the JSON of a message is made once and kept.

use std::fmt;
use std::ops::Deref;
use std::sync::Mutex;

use hob_core::chat::Message;
use hob_core::locked;
use serde::ser::Error as _;
use serde::{Deserialize, Deserializer, Serialize, Serializer};
use serde_json::value::{RawValue, to_raw_value};

/// Messages in order. In JSON they are a plain list.
#[derive(Default)]
pub struct FrameMessages {
    list: Vec<Message>,
    /// The first messages of the list, as JSON: those that were already stored.
    stored: Mutex<Vec<Box<RawValue>>>,
}

impl FrameMessages {
    pub(crate) fn push(&mut self, message: Message) {
        self.list.push(message);
    }

    pub(crate) fn extend(&mut self, messages: impl IntoIterator<Item = Message>) {
        self.list.extend(messages);
    }
}

impl From<Vec<Message>> for FrameMessages {
    fn from(list: Vec<Message>) -> FrameMessages {
        FrameMessages { list, stored: Mutex::default() }
    }
}

impl Deref for FrameMessages {
    type Target = [Message];

    fn deref(&self) -> &[Message] {
        &self.list
    }
}

impl Clone for FrameMessages {
    fn clone(&self) -> FrameMessages {
        FrameMessages::from(self.list.clone())
    }
}

impl PartialEq for FrameMessages {
    fn eq(&self, other: &FrameMessages) -> bool {
        self.list == other.list
    }
}

impl fmt::Debug for FrameMessages {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Debug::fmt(&self.list, f)
    }
}

impl Serialize for FrameMessages {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut stored = locked(&self.stored);
        let known = stored.len();
        for message in &self.list[known..] {
            stored.push(to_raw_value(message).map_err(S::Error::custom)?);
        }
        serializer.collect_seq(stored.iter())
    }
}

impl<'de> Deserialize<'de> for FrameMessages {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<FrameMessages, D::Error> {
        Vec::<Message>::deserialize(deserializer).map(FrameMessages::from)
    }
}

#[cfg(test)]
mod tests {
    use hob_core::chat::Role;

    use super::*;

    #[test]
    fn the_stored_form_is_that_of_a_list_also_after_more_messages() {
        let mut messages = FrameMessages::default();
        for text in ["one", "\"two\"\n", "drei: äß", ""] {
            messages.push(Message::new(Role::User, text));
            messages.extend([Message::new(Role::Assistant, text)]);
            let stored = serde_json::to_string(&messages).expect("JSON");
            assert_eq!(stored, serde_json::to_string(&messages[..]).expect("JSON"));
            let read: FrameMessages = serde_json::from_str(&stored).expect("messages");
            assert_eq!(read, messages);
            assert_eq!(read.clone(), messages);
        }
    }
}
