//! Watches an answer that is free for the text with which tool calls begin.
//! Where tokens are cut does not matter: the text counts, special tokens written out.

use super::Vocabulary;
use super::grammar::{Piece, pieces};
use crate::chat::dialect::{ToolDialect, Trigger, TriggerPosition};

/// What was said of late, and what to look for.
#[derive(Clone, Debug)]
pub(super) struct Watch {
    vocabulary: Vocabulary,
    dialect: ToolDialect,
    /// The end of what was said, no longer than the longest trigger.
    tail: Vec<u8>,
    /// Whether all that was said is white space and `tail`.
    at_start: bool,
}

impl Watch {
    pub(super) fn new(vocabulary: Vocabulary, dialect: ToolDialect) -> Watch {
        Watch { vocabulary, dialect, tail: Vec::new(), at_start: true }
    }

    /// Remembers what was said.
    pub(super) fn take(&mut self, text: &[u8]) {
        self.tail.extend_from_slice(text);
        if self.at_start {
            let white = self.tail.iter().take_while(|byte| byte.is_ascii_whitespace()).count();
            self.tail.drain(..white);
        }
        let longest = self.dialect.triggers.iter().map(|trigger| trigger.text.len()).max();
        let surplus = self.tail.len().saturating_sub(longest.unwrap_or(0));
        self.at_start &= surplus == 0;
        self.tail.drain(..surplus);
    }

    /// The tokens of the block that begins if `text` is said next: what opens it, and what
    /// `text` says beyond that.
    pub(super) fn begun_by(&self, text: &[u8]) -> Option<Vec<u32>> {
        let said = [self.tail.as_slice(), text].concat();
        let found = self.dialect.triggers.iter().filter_map(|trigger| {
            let end = self.end_of(trigger, &said)?;
            // One that had ended before `text` would have begun a block then.
            (end > self.tail.len()).then_some((end, trigger))
        });
        let (end, trigger) = found.min_by_key(|(end, _)| *end)?;
        let mut begun = self.tokens(trigger.opens);
        begun.extend(self.vocabulary.cut(&said[end..]));
        Some(begun)
    }

    fn end_of(&self, trigger: &Trigger, said: &[u8]) -> Option<usize> {
        let text = trigger.text.as_bytes();
        let at = match trigger.position {
            TriggerPosition::Anywhere => {
                said.windows(text.len()).position(|window| window == text)?
            }
            TriggerPosition::AnswerStart if self.at_start => {
                let white = said.iter().take_while(|byte| byte.is_ascii_whitespace()).count();
                said[white..].starts_with(text).then_some(white)?
            }
            TriggerPosition::AnswerStart => return None,
        };
        Some(at + text.len())
    }

    fn tokens(&self, text: &str) -> Vec<u32> {
        let pieces = pieces(&self.vocabulary, &self.dialect, text);
        let tokens = pieces.into_iter().flat_map(|piece| match piece {
            Piece::Text(text) => self.vocabulary.cut(text.as_bytes()),
            Piece::Token(token) => vec![token],
        });
        tokens.collect()
    }
}
