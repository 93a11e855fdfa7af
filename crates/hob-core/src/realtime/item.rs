//! One item of a conversation: a message, a call of a tool, or the result of one.
//! Items have an order, and ids that the client may choose.

use std::fmt;

use crate::chat::Role;

/// An item, with an id that is unique in its conversation.
#[derive(Clone, PartialEq)]
pub struct RealtimeItem {
    pub id: String,
    pub status: ItemStatus,
    pub body: ItemBody,
    /// What the model thought before it made this. Only models read it.
    pub reasoning: Option<String>,
}

crate::debug_fields!(RealtimeItem: id, status, body);

crate::enum_table! {
    #[derive(Clone, Copy, Debug, PartialEq, Eq)]
    pub enum ItemStatus: name {
        InProgress = "in_progress",
        Completed = "completed",
        /// Cut off.
        Incomplete = "incomplete",
    }
}

#[derive(Clone, PartialEq)]
pub enum ItemBody {
    /// A role other than [`Role::Tool`].
    Message { role: Role, content: Vec<ItemContent> },
    /// The model calls a tool of the client. Arguments may be incomplete while the item is in progress.
    Call { call_id: String, name: String, arguments: String },
    /// What the tool returned.
    CallOutput { call_id: String, output: String },
}

/// A piece of a message.
#[derive(Clone, PartialEq)]
pub enum ItemContent {
    /// Written by the user or the system.
    InputText(String),
    /// Spoken by the user. `transcript` is `None` until it is known.
    InputAudio { transcript: Option<String> },
    /// An `http:`, `https:` or `data:` address of an image.
    InputImage { url: String, detail: Option<String> },
    /// Written by the model.
    OutputText(String),
    /// Spoken by the model.
    OutputAudio { transcript: String },
}

impl RealtimeItem {
    /// The text of all contents, as a chat model reads it.
    pub fn text(&self) -> String {
        match &self.body {
            ItemBody::Message { content, .. } => {
                let texts = content.iter().filter_map(ItemContent::text);
                texts.collect::<Vec<_>>().join("\n")
            }
            ItemBody::Call { arguments, .. } => arguments.clone(),
            ItemBody::CallOutput { output, .. } => output.clone(),
        }
    }
}

impl ItemContent {
    /// What was written or said, where it is known.
    pub fn text(&self) -> Option<&str> {
        match self {
            ItemContent::InputText(text) | ItemContent::OutputText(text) => Some(text),
            ItemContent::InputAudio { transcript } => transcript.as_deref(),
            ItemContent::OutputAudio { transcript } => Some(transcript),
            ItemContent::InputImage { .. } => None,
        }
    }
}

/// Keeps what was said out of logs.
impl fmt::Debug for ItemBody {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            ItemBody::Message { role, content } => {
                write!(f, "Message({}, {content:?})", role.name())
            }
            ItemBody::Call { name, .. } => write!(f, "Call({name})"),
            ItemBody::CallOutput { output, .. } => write!(f, "CallOutput({} bytes)", output.len()),
        }
    }
}

/// Keeps what was said out of logs.
impl fmt::Debug for ItemContent {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (kind, text) = match self {
            ItemContent::InputText(_) => ("InputText", self.text()),
            ItemContent::InputAudio { .. } => ("InputAudio", self.text()),
            ItemContent::InputImage { url, .. } => ("InputImage", Some(url.as_str())),
            ItemContent::OutputText(_) => ("OutputText", self.text()),
            ItemContent::OutputAudio { .. } => ("OutputAudio", self.text()),
        };
        write!(f, "{kind}({} bytes)", text.map_or(0, str::len))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_log_has_the_bytes_of_a_content_and_not_the_content() {
        let url = "data:image/png;base64,AAAA".to_owned();
        let image = ItemContent::InputImage { url, detail: None };
        let rows = [
            (ItemContent::InputText("secret".to_owned()), "InputText(6 bytes)"),
            (ItemContent::InputAudio { transcript: None }, "InputAudio(0 bytes)"),
            (image, "InputImage(26 bytes)"),
        ];
        for (content, expected) in rows {
            assert_eq!(format!("{content:?}"), expected);
        }
    }
}
