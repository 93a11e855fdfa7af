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
    /// Adds a part, or joins it to the one before it. An empty text adds nothing.
    pub(super) fn push(&mut self, part: AnswerPart) {
        match (self.list.last_mut(), part) {
            (Some(AnswerPart::Text(text)), AnswerPart::Text(more))
            | (Some(AnswerPart::Reasoning(text)), AnswerPart::Reasoning(more))
            | (
                Some(AnswerPart::Arguments { piece: text, .. }),
                AnswerPart::Arguments { piece: more, .. },
            ) => text.push_str(&more),
            (
                _,
                AnswerPart::Text(text)
                | AnswerPart::Reasoning(text)
                | AnswerPart::Arguments { piece: text, .. },
            ) if text.is_empty() => {}
            (_, part) => self.list.push(part),
        }
    }

    pub(super) fn call(&mut self, index: u32, name: &str, arguments: String) {
        self.push(AnswerPart::CallBegins { index, name: name.to_owned() });
        self.push(AnswerPart::Arguments { index, piece: arguments });
    }

    pub(super) fn text(&mut self, more: &str) {
        self.push(AnswerPart::Text(more.to_owned()));
    }

    pub(super) fn reasoning(&mut self, more: &str) {
        self.push(AnswerPart::Reasoning(more.to_owned()));
    }

    pub(super) fn into_list(self) -> Vec<AnswerPart> {
        self.list
    }
}
