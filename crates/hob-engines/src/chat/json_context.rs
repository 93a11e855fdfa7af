//! Where the next byte of a JSON text is: within a string or outside, how deep, and after which signs.
//! It is not a parser: it only separates strings from the text around them.

/// Whether the next byte is within a JSON string.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) enum Quoting {
    #[default]
    Outside,
    Inside,
    /// After a backslash.
    Escaped,
}

impl Quoting {
    fn after(self, byte: u8) -> Quoting {
        match (self, byte) {
            (Quoting::Outside, b'"') | (Quoting::Escaped, _) => Quoting::Inside,
            (Quoting::Inside, b'"') | (Quoting::Outside, _) => Quoting::Outside,
            (Quoting::Inside, b'\\') => Quoting::Escaped,
            (Quoting::Inside, _) => Quoting::Inside,
        }
    }
}

/// The context of the next byte.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct JsonContext {
    pub(super) quoting: Quoting,
    /// The last byte that is not a space. The search for an end recognises a position of the grammar by this byte and by the
    /// bytes that may follow.
    pub(super) last: u8,
    /// Open lists and objects.
    pub(super) depth: u32,
    /// The last byte was a comma or colon outside of strings.
    is_at_separator: bool,
    /// No space came after the last such comma or colon. Most JSON in the training texts of models has spaces.
    is_dense: bool,
}

impl JsonContext {
    /// Whether the next byte is not within a string.
    pub(super) fn is_outside(self) -> bool {
        self.quoting == Quoting::Outside
    }

    /// The byte that probably follows a comma or colon: a space, or else the quote of a string.
    pub(super) fn expected(self) -> Option<u8> {
        self.is_at_separator.then_some(if self.is_dense { b'"' } else { b' ' })
    }

    pub(super) fn after(self, text: &[u8]) -> JsonContext {
        let mut next = self;
        for &byte in text {
            match (next.quoting, byte) {
                (Quoting::Outside, b'{' | b'[') => next.depth += 1,
                (Quoting::Outside, b'}' | b']') => next.depth = next.depth.saturating_sub(1),
                _ => {}
            }
            if next.is_at_separator {
                next.is_dense = byte != b' ';
            }
            next.is_at_separator = next.is_outside() && matches!(byte, b',' | b':');
            next.quoting = next.quoting.after(byte);
            next.last = if byte == b' ' { next.last } else { byte };
        }
        next
    }
}
