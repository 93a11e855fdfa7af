//! The operations on a grammar's automaton, with hob's errors.
//! An automaton that failed once fails permanently, so callers [`consume`] only tokens that may come next.

use llguidance::Matcher;
use toktrie::TokTrie;

use super::{ConstraintError, Vocabulary};

/// Whether the answer may end here.
pub(super) fn is_complete(matcher: &mut Matcher) -> Result<bool, ConstraintError> {
    Ok(matcher.is_stopped() && !matcher.is_error() || matcher.is_accepting().map_err(failed)?)
}

/// Whether `tokens` may come next, and the answer may end after them. `end` is the token that ends an answer.
pub(super) fn ends_with(
    matcher: &mut Matcher,
    tokens: &[u32],
    end: u32,
) -> Result<bool, ConstraintError> {
    if tokens.is_empty() {
        return is_complete(matcher);
    }
    let mut whole = tokens.to_vec();
    whole.push(end);
    allows(matcher, &whole)
}

pub(super) fn allows(matcher: &mut Matcher, tokens: &[u32]) -> Result<bool, ConstraintError> {
    Ok(matcher.validate_tokens(tokens).map_err(failed)? == tokens.len())
}

pub(super) fn consume(matcher: &mut Matcher, tokens: &[u32]) -> Result<(), ConstraintError> {
    matcher.consume_tokens(tokens).map_err(failed)
}

/// Takes back the last tokens: `tokens` is their number.
pub(super) fn undo(matcher: &mut Matcher, tokens: usize) -> Result<(), ConstraintError> {
    matcher.rollback(tokens).map_err(failed)
}

/// The bytes that must come now, as tokens.
pub(super) fn forced(matcher: &mut Matcher, vocabulary: &Vocabulary) -> Vec<u32> {
    let bytes = matcher.compute_ff_bytes();
    let plain = bytes.iter().take_while(|&&byte| byte != TokTrie::SPECIAL_TOKEN_MARKER);
    plain.map_while(|&byte| vocabulary.byte_token(byte)).collect()
}

pub(super) fn failed(error: impl std::fmt::Display) -> ConstraintError {
    ConstraintError::Matcher { detail: first_line(error) }
}

/// The first line of llguidance's message, shortened. The lines after it may quote the grammar or the answer.
pub(super) fn first_line(error: impl std::fmt::Display) -> String {
    error.to_string().lines().next().unwrap_or_default().chars().take(160).collect()
}
