//! Looks for the text that begins tool calls, in an answer that is free until then.
//! It compares text, with special tokens written out, so token boundaries do not matter.

use super::Vocabulary;
use super::grammar::{Piece, pieces};
use crate::chat::dialect::{ToolDialect, Trigger, TriggerPosition};

/// The end of the answer so far, and the triggers to look for.
#[derive(Clone, Debug)]
pub(super) struct TriggerWatch {
    vocabulary: Vocabulary,
    dialect: ToolDialect,
    /// The end of the text, at most as long as the longest trigger.
    tail: Vec<u8>,
    /// Whether the text before `tail` is only white space.
    at_start: bool,
}

impl TriggerWatch {
    pub(super) fn new(vocabulary: Vocabulary, dialect: ToolDialect) -> TriggerWatch {
        TriggerWatch { vocabulary, dialect, tail: Vec::new(), at_start: true }
    }

    /// Adds text to the answer.
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

    /// The first tokens of the block that begins if `text` comes next: the opening mark, and the rest of `text` after it.
    pub(super) fn begun_by(&self, text: &[u8]) -> Option<Vec<u32>> {
        let said = [self.tail.as_slice(), text].concat();
        let found = self.dialect.triggers.iter().filter_map(|trigger| {
            let end = self.end_of(trigger, &said)?;
            // A trigger that ended before `text` would have begun a block earlier.
            (end > self.tail.len()).then_some((end, trigger))
        });
        let (end, trigger) = found.min_by_key(|(end, _)| *end)?;
        let mut begun = self.tokens(trigger.opens);
        begun.extend(self.vocabulary.tokenize_greedily(&said[end..]));
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
            Piece::Text(text) => self.vocabulary.tokenize_greedily(text.as_bytes()),
            Piece::Token(token) => vec![token],
        });
        tokens.collect()
    }
}
