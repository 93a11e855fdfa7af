//! Compares two models on one text, token by token. The text is cut as by llama.cpp's `llama-perplexity`.
//! The second half of each piece is scored, so that each scored token has enough context.

use std::path::Path;

use super::QuantizeError;
use super::raw::{RawContext, RawModel, TensorView, WatchTensors, start};

/// A token of the text, with what both models expected in its place.
#[derive(Debug)]
pub struct ScoredToken<'a> {
    pub token: u32,
    /// Logits over the vocabulary.
    pub reference: &'a [f32],
    pub other: &'a [f32],
}

/// Number of tokens that are done, and of all tokens.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TokenCount {
    pub done: usize,
    pub all: usize,
}

/// Two models of the same vocabulary, and a text.
#[derive(Debug)]
pub struct TextPair<'a> {
    pub reference: &'a Path,
    pub other: &'a Path,
    pub text: &'a str,
    /// Tokens of a piece.
    pub context_tokens: usize,
    pub pieces_max: usize,
    pub threads: usize,
}

/// Watches nothing.
enum Nothing {}

impl WatchTensors for Nothing {
    fn wants(&self, _: &TensorView<'_>) -> bool {
        false
    }

    fn see(&mut self, _: &TensorView<'_>) {}
}

impl TextPair<'_> {
    /// Calls `see` with each scored token, and `progress` after each piece.
    ///
    /// # Errors
    /// A model cannot be loaded, the vocabularies differ, or the text is shorter than two pieces.
    pub fn score(
        &self,
        mut see: impl FnMut(ScoredToken<'_>),
        mut progress: impl FnMut(TokenCount),
    ) -> Result<(), QuantizeError> {
        let _backend = start()?;
        let reference = RawModel::load(self.reference)?;
        let other = RawModel::load(self.other)?;
        let (one, two) = (reference.vocab_size(), other.vocab_size());
        if one != two {
            return Err(QuantizeError::Vocabularies { one, other: two });
        }
        let (tokens, size) = (reference.tokenize(self.text), self.context_tokens);
        check_length(&tokens, size)?;
        let context = |model| RawContext::new::<Nothing>(model, size, self.threads, None);
        let (mut reference_context, mut other_context) = (context(&reference)?, context(&other)?);
        let first = size / 2;
        let all = size * self.pieces_max.min(tokens.len() / size);
        for (number, piece) in tokens[..all].chunks_exact(size).enumerate() {
            let mut inputs = piece.to_vec();
            if let Some(bos) = reference.bos_token() {
                inputs[0] = bos;
            }
            let expected = reference_context.compute(&inputs, first)?;
            let got = other_context.compute(&inputs, first)?;
            let rows = expected.chunks_exact(one).zip(got.chunks_exact(one));
            // The row of a token is what is expected after it.
            for ((reference, other), token) in rows.zip(&piece[first + 1..]) {
                let token = token.unsigned_abs();
                see(ScoredToken { token, reference, other });
            }
            progress(TokenCount { done: (number + 1) * size, all });
        }
        Ok(())
    }
}

/// Checks that a text is long enough for [`TextPair::score`], without the weights of the model.
///
/// # Errors
/// The model's vocabulary cannot be loaded, or the text is shorter than two pieces.
pub fn check_text(model: &Path, text: &str, context_tokens: usize) -> Result<(), QuantizeError> {
    let _backend = start()?;
    check_length(&RawModel::load_vocabulary(model)?.tokenize(text), context_tokens)
}

fn check_length(tokens: &[i32], context_tokens: usize) -> Result<(), QuantizeError> {
    let needed = 2 * context_tokens;
    match tokens.len() {
        tokens if tokens < needed => Err(QuantizeError::ShortText { tokens, needed }),
        _ => Ok(()),
    }
}
