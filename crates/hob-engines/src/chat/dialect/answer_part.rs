//! The parts into which an answer is split, in order: thinking, text and tool calls.
//! Neighbours of one kind are joined, so a caller gets few of them.

/// A part of an answer.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum AnswerPart {
    Reasoning(String),
    Text(String),
    /// Calls are numbered from 0.
    CallBegins {
        index: u32,
        name: String,
    },
    /// More of the arguments of the call that began last.
    Arguments {
        index: u32,
        piece: String,
    },
}

/// Parts of one push. Neighbours of one kind are joined.
#[derive(Debug, Default)]
pub(super) struct AnswerParts {
    list: Vec<AnswerPart>,
}

impl AnswerParts {
    pub(super) fn call_begins(&mut self, index: u32, name: &str) {
        self.list.push(AnswerPart::CallBegins { index, name: name.to_owned() });
    }

    pub(super) fn arguments(&mut self, index: u32, more: &str) {
        match self.list.last_mut() {
            Some(AnswerPart::Arguments { piece, .. }) => piece.push_str(more),
            _ if more.is_empty() => {}
            _ => self.list.push(AnswerPart::Arguments { index, piece: more.to_owned() }),
        }
    }

    pub(super) fn text(&mut self, more: &str) {
        match self.list.last_mut() {
            Some(AnswerPart::Text(text)) => text.push_str(more),
            _ if more.is_empty() => {}
            _ => self.list.push(AnswerPart::Text(more.to_owned())),
        }
    }

    pub(super) fn reasoning(&mut self, more: &str) {
        match self.list.last_mut() {
            Some(AnswerPart::Reasoning(text)) => text.push_str(more),
            _ if more.is_empty() => {}
            _ => self.list.push(AnswerPart::Reasoning(more.to_owned())),
        }
    }

    pub(super) fn into_list(self) -> Vec<AnswerPart> {
        self.list
    }
}
