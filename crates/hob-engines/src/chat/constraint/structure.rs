//! The text up to the next place where the grammar gives the model a real choice. JSON allows a space after each comma and
//! colon; hob guesses that the answer goes on as it did at the last comma or colon.

use llguidance::Matcher;
use toktrie::TokTrie;

use super::closing::Context;
use super::matching::{allows, consume, undo};
use super::{ConstraintError, Vocabulary};

/// Maximum bytes to look ahead: about as many as one pass of the model checks.
const BYTES_MAX: usize = 96;

/// Whether the answer has spaces after its commas and colons.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Spacing {
    has_spaces: bool,
    /// The last byte was a comma or colon outside of strings.
    is_at_separator: bool,
}

impl Default for Spacing {
    fn default() -> Spacing {
        // Most JSON in the training texts of models has spaces.
        Spacing { has_spaces: true, is_at_separator: false }
    }
}

impl Spacing {
    /// The spacing after this text. `context` is that before the text.
    pub(super) fn after(mut self, mut context: Context, text: &[u8]) -> Spacing {
        for &byte in text {
            if self.is_at_separator {
                self.has_spaces = byte == b' ';
            }
            self.is_at_separator = context.is_outside() && matches!(byte, b',' | b':');
            context = context.after(&[byte]);
        }
        self
    }

    /// The byte that probably follows a comma or colon: a space, or else the quote of a string.
    fn expected(self) -> Option<u8> {
        self.is_at_separator.then_some(if self.has_spaces { b' ' } else { b'"' })
    }
}

/// The bytes that probably come next: those that the grammar forces, and guesses after commas and colons. The matcher does
/// not change.
pub(super) fn ahead(
    matcher: &mut Matcher,
    vocabulary: &Vocabulary,
    mut context: Context,
    mut spacing: Spacing,
) -> Result<Vec<u8>, ConstraintError> {
    let (mut text, mut taken) = (Vec::new(), 0);
    while text.len() < BYTES_MAX && !matcher.is_stopped() {
        let forced = matcher.compute_ff_bytes();
        let plain = forced.iter().take_while(|&&byte| byte != TokTrie::SPECIAL_TOKEN_MARKER);
        let plain = plain.take(BYTES_MAX - text.len());
        let mut next: Vec<u32> = plain.map_while(|&byte| vocabulary.byte_token(byte)).collect();
        if next.is_empty()
            && let Some(guess) = spacing.expected().and_then(|byte| vocabulary.byte_token(byte))
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
            spacing = spacing.after(context, bytes);
            context = context.after(bytes);
            text.extend_from_slice(bytes);
        }
    }
    undo(matcher, taken)?;
    Ok(text)
}
