//! What the engine is given: one unit of text as phonemes, with the way back to the user's words.
//! Owned data without lifetimes: it outlives the text that it was read from.

use std::ops::Range;

/// A sentence, or as much of one as the model takes at once.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SpokenUnit {
    /// In misaki's alphabet, with its punctuation; 1 to 510 characters, each one of the model's
    /// 114 symbols, so that every character is one token.
    pub phonemes: String,
    /// In the order they are heard.
    pub words: Vec<SpokenWord>,
    /// Silence to leave behind the unit, in ms.
    pub pause_after_ms: u32,
}

/// Where a word of the user's text went.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SpokenWord {
    /// Bytes of the user's text, counted from the beginning of the request.
    pub span: Range<usize>,
    /// Characters (not bytes) of [`SpokenUnit::phonemes`].
    pub phonemes: Range<usize>,
}
