//! A model's tokens: their bytes, which of them end an answer, and text to tokens.
//! Read once from the vocabulary when the model is loaded, and shared by all threads.

use std::collections::HashMap;

use hob_core::is_full_stop;
use serde::{Deserialize, Serialize};

/// Turns texts into tokens of one vocabulary.
pub trait Tokenizer: Send + Sync {
    fn tokenize(&self, text: &str, beginning: Beginning, special: Special) -> Vec<u32>;
}

/// What stands before a text.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Beginning {
    /// The token that begins every text of this model, if it has one.
    Marked,
    /// Nothing: the text continues another one, or contains that token itself.
    Bare,
}

/// How the name of a special token in the text is tokenised.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Special {
    /// The name becomes the special token.
    Meant,
    /// The name becomes ordinary letters, because the author of the text must not inject special tokens.
    Letters,
}

/// One token of the vocabulary.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Token {
    /// The text of the token in an answer; empty for a token that is never shown.
    pub bytes: Vec<u8>,
    /// The name of a control token.
    pub control: Option<String>,
    /// Whether it ends an answer.
    pub ends: bool,
}

#[derive(Clone)]
pub struct TokenTable {
    tokens: Vec<Token>,
    controls: HashMap<String, u32>,
    turn_ends: Vec<u32>,
    eos: u32,
}

hob_core::debug_fields!(TokenTable: tokens.len());

impl TokenTable {
    /// `eos` is the usual one of the tokens that end an answer.
    pub fn new(tokens: Vec<Token>, eos: u32) -> TokenTable {
        let named = tokens.iter().zip(0..);
        let controls = named
            .filter_map(|(token, id)| token.control.as_ref().map(|name| (name.clone(), id)))
            .collect();
        let ends_turn = |token: &Token| token.ends || is_sentence_mark(&token.bytes);
        let turn_ends = tokens.iter().zip(0..).filter(|(token, _)| ends_turn(token));
        let turn_ends = turn_ends.map(|(_, id)| id).collect();
        TokenTable { tokens, controls, turn_ends, eos }
    }

    pub fn count(&self) -> usize {
        self.tokens.len()
    }

    pub fn eos(&self) -> u32 {
        self.eos
    }

    pub fn all(&self) -> &[Token] {
        &self.tokens
    }

    pub fn contains(&self, id: u32) -> bool {
        (id as usize) < self.tokens.len()
    }

    /// What the token adds to an answer.
    pub fn bytes(&self, id: u32) -> &[u8] {
        self.tokens.get(id as usize).map_or(&[], |token| &token.bytes)
    }

    pub fn ends(&self, id: u32) -> bool {
        self.tokens.get(id as usize).is_some_and(|token| token.ends)
    }

    /// All tokens that end an answer.
    pub fn end_tokens(&self) -> impl Iterator<Item = u32> + '_ {
        (0..).zip(&self.tokens).filter(|(_, token)| token.ends).map(|(id, _)| id)
    }

    /// The tokens before which a text is complete: those that end an answer, and those that are only a sentence mark.
    pub fn turn_ends(&self) -> &[u32] {
        &self.turn_ends
    }

    /// The control token of this name.
    pub fn control(&self, name: &str) -> Option<u32> {
        self.controls.get(name).copied()
    }

    /// Makes the control tokens of these names part of the text of answers. They are a dialect's marks.
    pub fn show<'m>(&mut self, marks: impl IntoIterator<Item = &'m str>) {
        for mark in marks {
            if let Some(id) = self.control(mark) {
                self.tokens[id as usize].bytes = mark.as_bytes().to_vec();
            }
        }
    }
}

/// Spaces around it do not count: in French, one stands before a question mark.
fn is_sentence_mark(bytes: &[u8]) -> bool {
    let text = str::from_utf8(bytes).unwrap_or_default();
    let mut characters = text.trim().chars();
    let first = characters.next().filter(|_| characters.next().is_none());
    first.is_some_and(|c| matches!(c, '.' | '?' | '!') || is_full_stop(c))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn marks_of_a_dialect_are_shown_and_other_controls_are_not() {
        let control = |name: &str| Token { control: Some(name.to_owned()), ..Token::default() };
        let letter = Token { bytes: b"a".to_vec(), ..Token::default() };
        let end = Token { ends: true, ..control("</s>") };
        let mut tokens = TokenTable::new(vec![letter, control("[TOOL_CALLS]"), end], 2);
        tokens.show(["[TOOL_CALLS]", "<think>"]);
        assert_eq!(
            (tokens.bytes(0), tokens.bytes(1), tokens.bytes(2)),
            (&b"a"[..], &b"[TOOL_CALLS]"[..], &b""[..])
        );
        assert!(tokens.ends(2) && !tokens.ends(1) && !tokens.ends(9));
        assert!(tokens.contains(2) && !tokens.contains(3));
        assert_eq!((tokens.count(), tokens.eos(), tokens.control("</s>")), (3, 2, Some(2)));
        assert_eq!(tokens.bytes(9), b"");
    }

    #[test]
    fn a_turn_ends_before_an_end_and_before_a_lone_sentence_mark() {
        let text = |text: &str| Token { bytes: text.into(), ..Token::default() };
        let end = Token { ends: true, ..Token::default() };
        let texts = [".", "?", "...", "a", "。", ",", "؟", "", " ?", " "].map(text);
        let tokens = TokenTable::new(texts.into_iter().chain([end]).collect(), 10);
        assert_eq!(tokens.turn_ends(), [0, 1, 4, 6, 8, 10]);
    }
}
