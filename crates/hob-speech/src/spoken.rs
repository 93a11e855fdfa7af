//! The engine's input: one unit of text as phonemes, with the positions of the user's words.
//! Owned data without lifetimes, because it outlives the text that it was read from.

use std::ops::Range;

/// A sentence, or the part of one that the model accepts in one go. A unit without phonemes is a pause that the user wrote
/// where no sentence takes it: at the beginning of the text, or at its end.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SpokenUnit {
    /// In misaki's alphabet, with its punctuation: at most 510 characters. Each is one of the model's 114 symbols, so
    /// each character is one token.
    pub phonemes: String,
    /// In the order they are heard.
    pub words: Vec<SpokenWord>,
    /// Silence after the unit, in ms.
    pub pause_after_ms: u32,
}

/// The position of one word of the user's text in the unit.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SpokenWord {
    /// Bytes of the user's text, counted from the beginning of the request.
    pub span: Range<usize>,
    /// Characters (not bytes) of [`SpokenUnit::phonemes`].
    pub phonemes: Range<usize>,
}
