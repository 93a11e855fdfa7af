//! The text up to the next place where the grammar gives the model a real choice. JSON allows a space after each comma and
//! colon; hob guesses that the answer goes on as it did at the last comma or colon.

use llguidance::Matcher;

use super::matching::{allows, consume, forced, undo};
use super::{ConstraintError, Vocabulary};
use crate::chat::json_context::JsonContext;

/// Maximum bytes to look ahead: about as many as one pass of the model checks.
const BYTES_MAX: usize = 96;

/// The bytes that probably come next: those that the grammar forces, and guesses after commas and colons. The matcher does
/// not change.
pub(super) fn ahead(
    matcher: &mut Matcher,
    vocabulary: &Vocabulary,
    mut context: JsonContext,
) -> Result<Vec<u8>, ConstraintError> {
    let (mut text, mut taken) = (Vec::new(), 0);
    while text.len() < BYTES_MAX && !matcher.is_stopped() {
        let mut next = forced(matcher, vocabulary);
        next.truncate(BYTES_MAX - text.len());
        if next.is_empty()
            && let Some(guess) = context.expected().and_then(|byte| vocabulary.byte_token(byte))
            && allows(matcher, &[guess])?
        {
            next.push(guess);
        }
        if next.is_empty() {
            break;
        }
        consume(matcher, &next)?;
        taken += next.len();
        for &token in &next {
            let bytes = vocabulary.text(token);
            context = context.after(bytes);
            text.extend_from_slice(bytes);
        }
    }
    undo(matcher, taken)?;
    Ok(text)
}
